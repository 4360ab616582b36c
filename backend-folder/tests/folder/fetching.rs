//! Fetching: many at once, in any order, and stopped in the middle.

use std::{
    fs,
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use loader_core::{ErrorKind, FetchRequest, Store};
use tempfile::{TempDir, tempdir};

use crate::support::{open, runtime, tar, write};

fn shard(samples: usize) -> TempDir {
    let folder = tempdir().unwrap();
    let names: Vec<_> = (0..samples)
        .map(|number| {
            (
                format!("{number:05}.jpg"),
                vec![u8::try_from(number % 251).unwrap(); 2000],
            )
        })
        .collect();
    let members: Vec<_> = names
        .iter()
        .map(|(name, bytes)| (name.as_str(), &bytes[..]))
        .collect();
    write(folder.path(), "s.tar", &tar(&members));
    folder
}

#[test]
fn two_hundred_threads_read_at_once() {
    let folder = shard(256);
    let store = open(folder.path());
    let fingerprint = store.summary().fingerprint;
    let runtime = runtime();
    thread::scope(|scope| {
        for start in 0..200_u64 {
            let (store, handle) = (store.clone(), runtime.handle().clone());
            scope.spawn(move || {
                let rows: Vec<u64> = (0..32).map(|step| (start * 7 + step * 5) % 256).collect();
                let stream = store.fetch(FetchRequest::rows(fingerprint, rows.clone()));
                let fetched: Vec<_> = handle.block_on(stream.collect());
                assert_eq!(fetched.len(), 32);
                for fetched in fetched {
                    let sample = fetched.outcome.unwrap();
                    let row = rows[fetched.target];
                    assert_eq!(sample.path.to_string(), format!("s/{row:05}"));
                    assert!(
                        sample.payload.len() == 2000
                            && sample
                                .payload
                                .iter()
                                .all(|byte| u64::from(*byte) == row % 251)
                    );
                }
            });
        }
    });
}

#[test]
fn a_stream_that_is_dropped_stops_reading() {
    let folder = shard(2000);
    let store = open(folder.path());
    let request = FetchRequest::rows(store.summary().fingerprint, (0..2000).collect());
    let runtime = runtime();
    runtime.block_on(async {
        let mut stream = store.fetch(request);
        assert!(stream.next().await.unwrap().outcome.is_ok());
        drop(stream);
        let metrics = tokio::runtime::Handle::current().metrics();
        assert_eq!(
            metrics.num_alive_tasks(),
            0,
            "reading is no task of the runtime"
        );
    });
    // Nothing is left that would hold the store's files.
    let start = Instant::now();
    runtime.shutdown_timeout(Duration::from_secs(5));
    assert!(start.elapsed() < Duration::from_secs(4));
    let held = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    let path = folder.path().join("s.tar");
    drop(store);
    assert_eq!(held.filter(|target| *target == path).count(), 0);
}

#[test]
fn outside_a_runtime_every_target_has_a_typed_error() {
    let folder = shard(3);
    let store = open(folder.path());
    let mut request = FetchRequest::rows(store.summary().fingerprint, vec![0, 1, 2]);
    request.deadline = Some(Instant::now() + Duration::from_secs(1));
    let mut stream = store.fetch(request);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..3 {
        let Poll::Ready(Some(fetched)) = stream.poll_next_unpin(&mut context) else {
            panic!("an answer is there at once")
        };
        assert_eq!(fetched.outcome.unwrap_err().kind(), ErrorKind::Usage);
    }
    assert!(matches!(
        stream.poll_next_unpin(&mut context),
        Poll::Ready(None)
    ));
}

#[test]
fn the_summary_is_that_of_its_manifest() {
    let folder = shard(7);
    let store = open(folder.path());
    assert_eq!(store.summary(), store.manifest().summary());
}

#[test]
fn the_uri_survives_odd_paths() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("50% of a?b#c");
    write(&path, "1.jpg", b"x");
    let store = open(&path);
    assert!(
        store.to_string().ends_with("/50%25%20of%20a%3Fb%23c"),
        "{store}"
    );
    assert!(store.to_string().starts_with("folder:/"));
}

#[test]
fn bytes_written_during_a_read_are_never_delivered() {
    let folder = tempdir().unwrap();
    let old = vec![1; 300_000];
    for number in 0..8 {
        write(folder.path(), &format!("c/{number}.jpg"), &old);
    }
    let store = open(folder.path());
    let fingerprint = store.summary().fingerprint;
    // The clock of a file system ticks every few milliseconds: what is written in the same tick cannot be told apart.
    thread::sleep(Duration::from_millis(30));
    let runtime = runtime();
    let (mut whole, mut changed) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in (0..8).rev() {
                thread::sleep(Duration::from_millis(5));
                let file = fs::File::options()
                    .write(true)
                    .open(folder.path().join(format!("c/{number}.jpg")))
                    .unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, &vec![2; 300_000], 0).unwrap();
            }
        });
        while changed < 8 {
            let stream = store.fetch(FetchRequest::rows(fingerprint, (0..8).collect()));
            let fetched: Vec<_> = runtime.block_on(stream.collect());
            changed = 0;
            for fetched in fetched {
                match fetched.outcome {
                    Ok(sample) => {
                        assert!(sample.payload == old, "a mixture was delivered");
                        whole += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Changed);
                        changed += 1;
                    }
                }
            }
        }
    });
    assert!(whole > 0);
}
