//! Several stores, writers and processes over one folder.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    process::Stdio,
    time::{Duration, Instant},
};

use backend_embedded::{EmbeddedConfig, EmbeddedStore, EmbeddedWriter};
use loader_core::{ErrorKind, NewSample, Store, StoreWriter, uri::percent_encode};

use crate::support::{
    assert_has, assert_well, child, child_command, fetch, manifest, open, place, put, runtime,
    sample, say, sized, store, writer,
};

fn samples(count: u64) -> Vec<NewSample> {
    (0..count).map(sample).collect()
}

#[test]
fn one_process_may_open_a_store_many_times() {
    let (_folder, place) = place();
    let runtime = runtime();
    let writer = writer(&place);
    let rows = put(&runtime, &writer, &samples(10));
    runtime.block_on(writer.publish(manifest(&rows))).unwrap();
    let stores = [
        open(&place),
        open(&place),
        open(&place.join("..").join("set")),
    ];
    for opened in &stores {
        assert_has(&runtime, opened, &samples(10));
    }
    drop(writer);
    drop(stores);
    assert_has(&runtime, &open(&place), &samples(10));
}

#[test]
fn a_folder_that_was_replaced_is_opened_anew() {
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &samples(10));
    let before = open(&place);
    fs::remove_dir_all(&place).unwrap();
    store(&runtime, &place, &samples(15));
    assert_has(&runtime, &open(&place), &samples(15));
    for fetched in fetch(&runtime, &before, vec![0, 1]) {
        let error = fetched.outcome.unwrap_err();
        assert!(error.to_string().contains("replaced"), "{error}");
    }
    drop(before);
    assert_has(&runtime, &open(&place), &samples(15));
}

#[test]
fn a_limit_of_a_writer_holds_where_a_reader_came_first() {
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &samples(10));
    let _reader = open(&place);
    let mut config = EmbeddedConfig::default();
    config.max_file_bytes = 1 << 20;
    let writer = EmbeddedWriter::open_or_create(&place, config).unwrap();
    let large = (0..20).map(|number| sized(number, 1_000_000)).collect();
    assert_eq!(
        runtime.block_on(writer.put(large)).unwrap_err().kind(),
        ErrorKind::DiskFull
    );
}

#[test]
fn a_second_writer_is_told_that_there_is_one() {
    let (_folder, place) = place();
    let first = writer(&place);
    let mut config = EmbeddedConfig::default();
    config.writer_wait = Duration::from_millis(100);
    let started = Instant::now();
    let error = EmbeddedWriter::open_or_create(&place, config.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.is_transient() && error.advice().is_some());
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "the wait is bounded"
    );
    drop(first);
    EmbeddedWriter::open_or_create(&place, config).unwrap();
}

#[test]
fn a_writer_waits_for_one_that_ends_soon() {
    let (_folder, place) = place();
    let first = writer(&place);
    let waiting = std::thread::spawn({
        let place = place.clone();
        move || writer(&place).to_string()
    });
    std::thread::sleep(Duration::from_millis(100));
    drop(first);
    assert_eq!(
        waiting.join().unwrap(),
        format!("embedded:{}", percent_encode(place.as_os_str().as_bytes()))
    );
}

#[test]
fn a_reader_follows_the_file_that_another_process_makes_larger() {
    const TEST: &str = "sharing::a_reader_follows_the_file_that_another_process_makes_larger";
    if let Some((_, folder)) = child() {
        let runtime = runtime();
        let opened = open(&folder);
        say("opened");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        assert_has(&runtime, &opened, &samples(20));
        assert_eq!(open(&folder).summary().samples, 70);
        return;
    }
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &samples(20));
    let mut command = child_command(TEST, "read", &place);
    let mut reader = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(reader.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.contains("opened")));
    let mut all = samples(20);
    all.extend((100..150).map(|number| sized(number, 1_000_000)));
    store(&runtime, &place, &all);
    reader.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    assert!(lines.any(|line| line.contains("1 passed")));
    assert!(reader.wait().unwrap().success());
}

#[test]
fn a_store_works_on_in_a_forked_process() {
    const TEST: &str = "sharing::a_store_works_on_in_a_forked_process";
    let (_folder, place) = place();
    if let Some((_, folder)) = child() {
        forks(&folder);
        return;
    }
    store(&runtime(), &place, &samples(20));
    assert_well(&child_command(TEST, "fork", &place).output().unwrap());
    assert_has(&runtime(), &open(&place), &samples(20));
}

#[allow(unsafe_code, reason = "forking is what is tested")]
fn forks(folder: &std::path::Path) {
    unsafe extern "C" {
        safe fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        safe fn _exit(code: i32) -> !;
    }
    let opened = open(folder);
    let twin = open(folder);
    let writing = writer(folder);
    let parent = runtime();
    assert_has(&parent, &opened, &samples(20));
    let process = fork();
    if process == 0 {
        // A test's thread may not go on in the child, so the outcome is told by the exit code alone.
        let checked = std::panic::catch_unwind(|| {
            let inner = runtime();
            assert_has(&inner, &opened, &samples(20));
            assert_has(&inner, &twin, &samples(20));
            let error = inner.block_on(writing.put(vec![sample(99)])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            drop((twin, writing));
            assert_has(&inner, &opened, &samples(20));
            assert_has(&inner, &open(folder), &samples(20));
        });
        _exit(i32::from(checked.is_err()));
    }
    let mut status = -1;
    // SAFETY: the status is a local integer.
    assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
    assert_eq!(status, 0, "the forked process failed");
    assert_has(&parent, &opened, &samples(20));
    put(&parent, &writing, &samples(30));
    assert_has(&parent, &twin, &samples(20));
}

#[test]
fn a_read_only_folder_is_read_without_a_lock_file() {
    const TEST: &str = "sharing::a_read_only_folder_is_read_without_a_lock_file";
    if let Some((_, folder)) = child() {
        // The superuser may write anywhere; as nobody, this thread may not. The runtime is made afterwards, so its
        // threads are nobody's too.
        if rustix::process::geteuid().is_root() {
            become_nobody();
        }
        let runtime = runtime();
        assert_has(&runtime, &open(&folder), &samples(20));
        assert!(!folder.join("lock.mdb").exists());
        let error = EmbeddedWriter::open_or_create(&folder, EmbeddedConfig::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        return;
    }
    let (folder, place) = place();
    store(&runtime(), &place, &samples(20));
    fs::remove_file(place.join("lock.mdb")).unwrap();
    let set = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(folder.path(), 0o755);
    for entry in fs::read_dir(&place).unwrap() {
        set(&entry.unwrap().path(), 0o444);
    }
    set(&place, 0o555);
    let output = child_command(TEST, "read", &place).output().unwrap();
    set(&place, 0o755);
    assert_well(&output);
}

fn become_nobody() {
    rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
}

#[test]
fn readers_of_a_killed_process_are_forgotten() {
    const TEST: &str = "sharing::readers_of_a_killed_process_are_forgotten";
    if let Some((_, folder)) = child() {
        let runtime = runtime();
        let opened = open(&folder);
        say("reading");
        loop {
            fetch(&runtime, &opened, (0..20).collect());
        }
    }
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &samples(20));
    for _ in 0..5 {
        let mut reader = child_command(TEST, "read", &place)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(reader.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        assert!(lines.any(|line| line.contains("reading")));
        std::thread::sleep(Duration::from_millis(5));
        reader.kill().unwrap();
        reader.wait().unwrap();
    }
    store(&runtime, &place, &samples(25));
    let opened = EmbeddedStore::open(&place, EmbeddedConfig::default()).unwrap();
    assert_has(&runtime, &opened, &samples(25));
}
