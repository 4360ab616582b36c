//! The fakes do what they are told, so that what is tested with them is tested.
#![allow(clippy::unwrap_used, reason = "a test stops where anything fails")]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use conformance::{
    credit::{CreditConfig, CreditTransport},
    fault::{Fault, FaultyStore, Script},
    lanes::{LaneScript, LanedStore, Mood},
    samples::{DataSet, Form},
};
use futures_util::{StreamExt, stream};
use loader_core::{
    CallOptions, ErrorKind, FetchRequest, Fetched, Lane, Store, Transport, memory::MemoryStore,
};
use tokio::time::Instant;

const LATENCY: Duration = Duration::from_millis(10);

fn memory(count: usize) -> Arc<dyn Store> {
    let set = DataSet::many(Form::Any, count);
    Arc::new(MemoryStore::from_samples(set.samples, set.classes).unwrap())
}

fn rows(store: &dyn Store, rows: impl IntoIterator<Item = u64>) -> FetchRequest {
    FetchRequest::rows(store.summary().fingerprint, rows.into_iter().collect())
}

async fn all(store: &dyn Store, request: FetchRequest) -> Vec<Fetched> {
    store.fetch(request).collect().await
}

fn kind(fetched: &Fetched) -> Option<ErrorKind> {
    fetched.outcome.as_ref().err().map(loader_core::Error::kind)
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_over_the_lane_it_names_and_never_over_the_one_to_avoid() {
    let store = LanedStore::new(
        memory(4),
        [
            LaneScript::healthy(LATENCY),
            LaneScript::healthy(3 * LATENCY),
        ],
    );
    let start = Instant::now();
    let mut request = rows(&store, [0, 1]);
    request.lane = Some(Lane(1));
    assert!(
        all(&store, request)
            .await
            .iter()
            .all(|fetched| fetched.lane == Lane(1) && fetched.outcome.is_ok())
    );
    assert!(start.elapsed() >= 3 * LATENCY);
    for _ in 0..5 {
        let mut request = rows(&store, [0]);
        request.avoid = Some(Lane(1));
        assert_eq!(all(&store, request).await[0].lane, Lane(0));
    }
    let mut request = rows(&store, [0]);
    request.lane = Some(Lane(2));
    assert_eq!(kind(&all(&store, request).await[0]), Some(ErrorKind::Usage));
}

#[tokio::test(start_paused = true)]
async fn lanes_fail_alone_and_a_deadline_holds_on_a_silent_one() {
    let store = LanedStore::new(
        memory(4),
        [LaneScript::healthy(LATENCY), LaneScript::healthy(LATENCY)],
    );
    store.set(
        Lane(0),
        LaneScript {
            mood: Mood::Failing(ErrorKind::Unavailable),
            ..LaneScript::healthy(LATENCY)
        },
    );
    store.set(
        Lane(1),
        LaneScript {
            mood: Mood::Silent,
            ..LaneScript::healthy(LATENCY)
        },
    );
    let mut request = rows(&store, [0]);
    request.lane = Some(Lane(0));
    assert_eq!(
        kind(&all(&store, request.clone()).await[0]),
        Some(ErrorKind::Unavailable)
    );
    request.lane = Some(Lane(1));
    request.deadline = Some((Instant::now() + LATENCY).into_std());
    assert_eq!(
        kind(&all(&store, request).await[0]),
        Some(ErrorKind::Timeout)
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_counts_as_cancelled() {
    let slow = LaneScript {
        spacing: LATENCY,
        ..LaneScript::healthy(LATENCY)
    };
    let store = LanedStore::new(memory(4), [slow]);
    let mut stream = store.fetch(rows(&store, 0..4));
    assert_eq!(stream.next().await.unwrap().target, 0);
    assert_eq!(store.counts(Lane(0)).under_way(), 3);
    drop(stream);
    let counts = store.counts(Lane(0));
    assert_eq!((counts.asked, counts.answered, counts.cancelled), (4, 1, 3));
}

#[tokio::test(start_paused = true)]
async fn faults_strike_the_attempt_and_target_that_they_are_scripted_for() {
    let script = Script::new()
        .at(1, 0, Fault::Fail(ErrorKind::Overloaded))
        .first(2, 2, Fault::Drop)
        .always(3, Fault::Twice);
    let store = FaultyStore::new(memory(5), script);
    let mut targets = Vec::new();
    for _ in 0..3 {
        let answers = all(&store, rows(&store, 0..5)).await;
        targets.push(
            answers
                .iter()
                .map(|fetched| (fetched.target, kind(fetched)))
                .collect::<Vec<_>>(),
        );
        targets
            .last_mut()
            .unwrap()
            .sort_by_key(|(target, _)| *target);
    }
    let overloaded = Some(ErrorKind::Overloaded);
    assert_eq!(
        targets[0],
        [(0, None), (1, overloaded), (3, None), (3, None), (4, None)]
    );
    assert_eq!(
        targets[1],
        [(0, None), (1, None), (3, None), (3, None), (4, None)]
    );
    assert_eq!(
        targets[2],
        [
            (0, None),
            (1, None),
            (2, None),
            (3, None),
            (3, None),
            (4, None)
        ]
    );
    assert_eq!((store.requests(), store.attempts(2)), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_stream_can_end_early_a_payload_change_and_a_burst_pass() {
    let script = Script::new()
        .at(2, 1, Fault::EndEarly)
        .always(0, Fault::Corrupt)
        .overloaded(0..1);
    let store = FaultyStore::new(memory(4), script);
    assert!(
        all(&store, rows(&store, 0..4))
            .await
            .iter()
            .all(|fetched| kind(fetched) == Some(ErrorKind::Overloaded))
    );
    let answers = all(&store, rows(&store, 0..4)).await;
    assert_eq!(answers.len(), 2);
    let right = all(&*memory(4), rows(&store, [0]))
        .await
        .remove(0)
        .outcome
        .unwrap()
        .payload;
    let wrong = answers
        .into_iter()
        .find(|fetched| fetched.target == 0)
        .unwrap()
        .outcome
        .unwrap()
        .payload;
    assert_eq!(wrong.len(), right.len());
    assert_ne!(wrong, right);
}

#[tokio::test(start_paused = true)]
async fn random_faults_are_the_same_in_every_run() {
    let run = || async {
        let store = FaultyStore::new(
            memory(200),
            Script::new().per_mille(7, 100, Fault::Fail(ErrorKind::Io)),
        );
        let mut failed: Vec<_> = all(&store, rows(&store, 0..200))
            .await
            .iter()
            .filter(|fetched| fetched.outcome.is_err())
            .map(|fetched| fetched.target)
            .collect();
        failed.sort_unstable();
        failed
    };
    let failed = run().await;
    assert!((5..50).contains(&failed.len()), "{}", failed.len());
    assert_eq!(failed, run().await);
}

mod with_lanes {
    use std::sync::Arc;

    use super::{LATENCY, LaneScript, LanedStore, MemoryStore};

    conformance::store_suite!(|set| async move {
        let store = MemoryStore::from_samples(set.samples, set.classes).unwrap();
        LanedStore::new(
            Arc::new(store),
            [
                LaneScript::healthy(LATENCY / 10),
                LaneScript::healthy(LATENCY / 5),
            ],
        )
    });
}

mod without_faults {
    use std::sync::Arc;

    use super::{FaultyStore, MemoryStore, Script};

    conformance::store_suite!(|set| async move {
        let store = MemoryStore::from_samples(set.samples, set.classes).unwrap();
        FaultyStore::new(Arc::new(store), Script::new())
    });
}

mod transport {
    use super::{CreditConfig, CreditTransport};

    conformance::transport_suite!(|responder| async {
        CreditTransport::new(responder, CreditConfig::default())
    });
}

#[tokio::test(start_paused = true)]
async fn a_transport_counts_its_calls_and_keeps_their_credit() {
    let answers =
        |_| stream::iter((0..100_u8).map(|number| Ok(Bytes::from(vec![number; 1000])))).boxed();
    let config = CreditConfig {
        spacing: LATENCY,
        ..CreditConfig::default()
    };
    let transport = CreditTransport::new(Arc::new(answers), config);
    let options = CallOptions {
        credit_bytes: 10_000,
        ..CallOptions::default()
    };
    let numbers: Vec<_> = transport
        .call(Bytes::new(), options)
        .map(|answer| answer.unwrap()[0])
        .collect()
        .await;
    assert!(!numbers.is_sorted(), "they come out of order");
    let mut dropped = transport.call(Bytes::new(), options);
    assert!(dropped.next().await.is_some());
    drop(dropped);
    let counts = transport.counts();
    assert_eq!((counts.calls, counts.finished, counts.cancelled), (2, 1, 1));
    assert!(
        (1000..=11_000).contains(&counts.most_under_way),
        "{}",
        counts.most_under_way
    );
}
