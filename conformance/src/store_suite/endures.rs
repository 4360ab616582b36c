//! What a store bears: many at once, and callers who leave.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, stream};
use tokio::task::JoinSet;

use crate::{
    harness::{Stores, answers},
    samples::DataSet,
};

/// Two hundred fetches from several threads get all of their answers.
pub async fn two_hundred_fetches_at_once_are_all_answered(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 40)).await;
    let mut tasks = JoinSet::new();
    for number in 0..200 {
        let rows = [number % 40, (number * 7 + 3) % 40];
        let (store, request, patience) = (
            Arc::clone(&tested.subject.store),
            tested.rows(rows),
            tested.patience,
        );
        tasks.spawn(async move { (rows, answers(store.fetch(request), 2, patience).await) });
    }
    let mut fetches = 0;
    while let Some(done) = tasks.join_next().await {
        let (rows, answers) = done.expect("a fetch does not panic");
        for (row, fetched) in rows.into_iter().zip(answers) {
            tested.assert_row(row, fetched);
        }
        fetches += 1;
    }
    assert_eq!(fetches, 200);
}

/// Streams that are dropped before, at and after their first answer hold nothing back from those that follow.
pub async fn a_dropped_stream_leaks_nothing(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 20)).await;
    for round in 0..300 {
        let mut stream = tested.store().fetch(tested.all_rows());
        match round % 3 {
            0 => (),
            1 => drop(stream.next().now_or_never()),
            _ => assert!(
                crate::harness::within(tested.patience, "a first answer", stream.next())
                    .await
                    .is_some()
            ),
        }
    }
    tested.assert_samples(tested.fetch(tested.all_rows()).await);
}

/// Asked as its capability advises, the store delivers a thousand samples.
pub async fn a_thousand_samples_come_through_as_the_capability_advises(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 1000)).await;
    let capability = tested.store().capability();
    let rows: Vec<u64> = (0..1000).map(|number| number * 7 % 1000).collect();
    let requests = rows.chunks(capability.request_samples).map(<[u64]>::to_vec);
    let fetch = |rows: Vec<u64>| {
        let tested = &tested;
        async move { (rows.clone(), tested.fetch(tested.rows(rows)).await) }
    };
    let mut fetched = stream::iter(requests)
        .map(fetch)
        .buffer_unordered(capability.requests_in_flight);
    let mut samples = 0;
    while let Some((rows, answers)) = fetched.next().await {
        for (row, fetched) in rows.into_iter().zip(answers) {
            tested.assert_row(row, fetched);
            samples += 1;
        }
    }
    assert_eq!(samples, 1000);
}
