//! Writers that are killed.

use std::{path::Path, process::Stdio, thread, time::Duration};

use backend_embedded::{EmbeddedConfig, EmbeddedStore};
use futures_util::StreamExt;
use loader_core::{NewSample, Store, StoreWriter};

use crate::support::{
    assert_has, bytes, child, child_command, manifest, open, place, put, runtime, sized, store,
    writer,
};

const COUNT: u64 = 400;

fn samples() -> Vec<NewSample> {
    (0..COUNT)
        .map(|number| sized(number, 2000 + usize::try_from(number % 7).unwrap() * 9000))
        .collect()
}

/// Starts a child, kills it after some milliseconds and waits for it; true where it had not ended by itself.
fn kill_after(test: &str, role: &str, folder: &Path, pause: Duration) -> bool {
    let mut process = child_command(test, role, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    thread::sleep(pause);
    process.kill().unwrap();
    !process.wait().unwrap().success()
}

/// Milliseconds that look random and are the same in every run.
fn pause(number: u64) -> Duration {
    Duration::from_millis(u64::from(bytes(number, 8)[7]) * 2 / 3 + 5)
}

#[test]
fn an_ingest_killed_twenty_times_ends_with_exactly_the_samples() {
    const TEST: &str = "crash::an_ingest_killed_twenty_times_ends_with_exactly_the_samples";
    if let Some((_, folder)) = child() {
        let runtime = runtime();
        let writer = writer(&folder);
        for group in samples().chunks(8) {
            put(&runtime, &writer, group);
            thread::sleep(Duration::from_millis(1));
        }
        return;
    }
    let (_folder, place) = place();
    let runtime = runtime();
    let killed = (0..20)
        .filter(|number| kill_after(TEST, "put", &place, pause(*number)))
        .count();
    assert!(
        killed >= 5,
        "only {killed} of 20 writers were killed before they ended"
    );
    assert!(
        EmbeddedStore::open(&place, EmbeddedConfig::default()).is_err(),
        "nothing was published"
    );
    store(&runtime, &place, &samples());
    let opened = open(&place);
    assert_has(&runtime, &opened, &samples());
    assert_eq!(
        runtime.block_on(opened.keys().count()),
        samples().len(),
        "there are payloads of no sample"
    );
}

#[test]
fn a_publishing_killed_at_any_moment_leaves_the_old_or_the_new_data_set() {
    const TEST: &str =
        "crash::a_publishing_killed_at_any_moment_leaves_the_old_or_the_new_data_set";
    let sets: Vec<Vec<NewSample>> = vec![samples()[..100].to_vec(), samples()[50..200].to_vec()];
    if let Some((_, folder)) = child() {
        let runtime = runtime();
        let writer = writer(&folder);
        loop {
            for set in &sets {
                let rows = put(&runtime, &writer, set);
                runtime.block_on(writer.publish(manifest(&rows))).unwrap();
            }
        }
    }
    let (_folder, place) = place();
    let runtime = runtime();
    store(&runtime, &place, &sets[0]);
    let mut seen = [false; 2];
    for number in 0..20 {
        assert!(kill_after(TEST, "publish", &place, pause(number)));
        let opened = open(&place);
        let which = usize::from(opened.summary().samples == sets[1].len() as u64);
        assert_has(&runtime, &opened, &sets[which]);
        seen[which] = true;
    }
    drop(writer(&place));
    let left = std::fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
    left.sort();
    assert!(
        left.len() == 3
            && left[0] == "data.mdb"
            && left[1].starts_with("index-")
            && left[2] == "lock.mdb",
        "{left:?}"
    );
    assert!(seen[0] || seen[1]);
}
