//! The engine against a store in memory and one that fails on cue: what a consumer gets, in every order and after every stop.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is how a test fails")]

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use conformance::{
    fault::{Fault, FaultyStore, Script},
    samples,
};
use corner_cases::{Fickle, Fragile, Narrow, Swelling};
use loader_core::{
    ErrorKind, Result, Store,
    collate::Raw,
    loader::{
        Loader,
        config::{Horizon, LoaderConfig, MaxErrors, OnError, Order, Prefetch},
        plan::LastBatch,
        state::State,
    },
    memory::MemoryStore,
    prefetch::fixed::FixedConfig,
};
use proptest::prelude::*;
use tokio::runtime::Runtime;

#[path = "loader/corner_cases.rs"]
mod corner_cases;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
});

fn store(count: usize) -> Arc<MemoryStore> {
    let classes = vec!["even".to_owned(), "odd".to_owned()];
    let samples = (0..count).map(|number| {
        samples::file(
            format!("{number:05}.jpg"),
            i64::from(number % 2 == 1),
            vec![0; 10 + number % 7],
        )
    });
    Arc::new(MemoryStore::from_samples(samples, classes).unwrap())
}

fn config(batch_samples: u64) -> LoaderConfig {
    let mut config = LoaderConfig::default();
    config.batch_samples = batch_samples;
    config.seed = 7;
    config.threads = 2;
    config
}

fn loader(store: Arc<dyn Store>, config: LoaderConfig) -> Loader<Raw> {
    Loader::new(store, Raw, config, RUNTIME.handle().clone()).unwrap()
}

/// Positions of the batches of a pass, at most `stop` of them.
fn positions(loader: &mut Loader<Raw>, stop: usize) -> Vec<Vec<u64>> {
    let batches = loader.start().unwrap().take(stop).map(|delivered| {
        delivered
            .unwrap()
            .batch
            .tags
            .iter()
            .map(|tag| tag.position)
            .collect()
    });
    batches.collect()
}

#[test]
fn an_epoch_has_every_sample_once_and_the_next_another_order() {
    let mut loader = loader(store(100), config(8));
    assert_eq!(loader.batches(), 13);
    let rows = |loader: &mut Loader<Raw>| -> Vec<u64> {
        loader
            .start()
            .unwrap()
            .flat_map(|delivered| delivered.unwrap().batch.tags)
            .map(|tag| tag.row)
            .collect()
    };
    let (first, second) = (rows(&mut loader), rows(&mut loader));
    assert_ne!(first, second);
    for order in [first, second] {
        assert_eq!(order.into_iter().collect::<BTreeSet<_>>().len(), 100);
    }
}

#[test]
fn a_store_that_takes_one_request_at_a_time_is_asked_on_when_it_ends() {
    let store = Arc::new(Narrow(MemoryStore::clone(&store(100))));
    assert_eq!(
        positions(&mut loader(store, config(8)), usize::MAX)
            .concat()
            .len(),
        100
    );
}

#[test]
fn strict_and_window_orders_are_reproducible() {
    let run = |order, per_mille| {
        let script = Script::new().per_mille(3, per_mille, Fault::Delay(Duration::from_millis(3)));
        let mut config = config(8);
        config.order = order;
        positions(
            &mut loader(Arc::new(FaultyStore::new(store(100), script)), config),
            usize::MAX,
        )
    };
    assert_eq!(run(Order::Strict, 0), run(Order::Strict, 200));
    let sets = |batches: Vec<Vec<u64>>| {
        batches
            .into_iter()
            .map(BTreeSet::from_iter)
            .collect::<Vec<_>>()
    };
    assert_eq!(sets(run(Order::Window, 0)), sets(run(Order::Window, 200)));
}

#[test]
fn a_straggler_never_passes_the_horizon() {
    let row_of_first = loader(store(200), config(4)).state().plan().row(0);
    let script = Script::new().always(row_of_first, Fault::Delay(Duration::from_millis(100)));
    let mut config = config(4);
    config.horizon = Horizon::Batches(3.try_into().unwrap());
    let batches = positions(
        &mut loader(Arc::new(FaultyStore::new(store(200), script)), config),
        usize::MAX,
    );
    let of_first = batches.iter().position(|batch| batch.contains(&0)).unwrap();
    assert!((1..=3).contains(&of_first), "batch {of_first}");
}

#[test]
fn a_bad_sample_ends_the_epoch_with_its_name_after_what_was_ready() {
    let script = Script::new().always(17, Fault::Fail(ErrorKind::Corrupt));
    let mut config = config(4);
    config.shuffle = false;
    let mut loader = loader(Arc::new(FaultyStore::new(store(40), script)), config);
    let (batches, errors): (Vec<_>, Vec<_>) = loader.start().unwrap().partition(Result::is_ok);
    let error = errors.into_iter().next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.path().unwrap().to_string(), "00017.jpg");
    assert_eq!(loader.state().handed_batches, batches.len() as u64);
}

#[test]
fn skipping_makes_batches_shorter_but_never_fewer() {
    let script = Script::new()
        .always(3, Fault::Fail(ErrorKind::Vanished))
        .always(9, Fault::Fail(ErrorKind::Corrupt));
    let mut config = config(4);
    config.on_error = OnError::Skip;
    let mut loader = loader(Arc::new(FaultyStore::new(store(40), script)), config);
    let batches = positions(&mut loader, usize::MAX);
    assert_eq!(batches.len(), 10);
    assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), 38);
    let failed: BTreeSet<_> = loader
        .failures()
        .iter()
        .map(|failure| failure.row)
        .collect();
    assert_eq!(failed, BTreeSet::from([3, 9]));
    assert_eq!(loader.state().failures, 2);
    assert!(loader.state().is_complete());
}

#[test]
fn a_substitute_is_of_the_same_class_and_reported() {
    let script = Script::new()
        .always(3, Fault::Fail(ErrorKind::Corrupt))
        .always(8, Fault::Fail(ErrorKind::Corrupt));
    let mut config = config(4);
    config.on_error = OnError::Substitute;
    let mut loader = loader(Arc::new(FaultyStore::new(store(40), script)), config);
    let batches = positions(&mut loader, usize::MAX);
    assert!(batches.iter().all(|batch| batch.len() == 4));
    for failure in loader.failures() {
        assert_eq!(failure.substitute.unwrap() % 2, failure.row % 2);
    }
    assert_eq!(loader.failures().len(), 2);
}

#[test]
fn more_errors_than_allowed_end_the_epoch() {
    let script = Script::new().per_mille(1, 300, Fault::Fail(ErrorKind::Corrupt));
    let mut config = config(4);
    config.on_error = OnError::Skip;
    config.max_errors = MaxErrors::Rate(0.05);
    let mut loader = loader(Arc::new(FaultyStore::new(store(100), script)), config);
    let outcome: Result<Vec<_>> = loader.start().unwrap().collect();
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TooManyErrors);
    // Also those of batches that never were complete, and the one that was too many.
    assert_eq!(loader.failures().len(), 6);
    assert_eq!(loader.stats().failures, 6);
}

#[test]
fn what_is_lost_is_asked_for_again_and_given_up_in_the_end() {
    let script = Script::new()
        .first(5, 2, Fault::Fail(ErrorKind::Timeout))
        .first(6, 1, Fault::Drop);
    let faulty = Arc::new(FaultyStore::new(store(20), script));
    let mut patient = loader(Arc::clone(&faulty) as Arc<dyn Store>, config(4));
    assert_eq!(positions(&mut patient, usize::MAX).concat().len(), 20);
    assert_eq!(patient.stats().retries, 3);
    let script = Script::new().always(5, Fault::Fail(ErrorKind::Unavailable));
    let mut hopeless = loader(Arc::new(FaultyStore::new(store(20), script)), config(4));
    let outcome: Result<Vec<_>> = hopeless.start().unwrap().collect();
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[test]
fn a_store_that_answers_twice_or_ends_early_changes_nothing() {
    let script = Script::new()
        .per_mille(2, 200, Fault::Twice)
        .first(7, 1, Fault::EndEarly)
        .first(8, 1, Fault::WrongTarget);
    let mut loader = loader(Arc::new(FaultyStore::new(store(60), script)), config(4));
    let mut all = positions(&mut loader, usize::MAX).concat();
    all.sort_unstable();
    assert_eq!(all, (0..60).collect::<Vec<_>>());
}

#[test]
fn held_bytes_stay_within_the_budget_and_one_batch() {
    let sample_bytes = 100_000;
    let samples =
        (0..200).map(|number| samples::file(format!("{number:05}.jpg"), 0, vec![1; sample_bytes]));
    let store = Arc::new(MemoryStore::from_samples(samples, vec!["a".to_owned()]).unwrap());
    let mut config = config(8);
    config.memory_bytes = 2_000_000;
    config.prefetch = Prefetch::Fixed(FixedConfig {
        batches: 100,
        slow_start: 0,
    });
    let mut loader = loader(store, config);
    let mut lent = Vec::new();
    for delivered in loader.start().unwrap() {
        // The consumer is slow and keeps its last batch.
        std::thread::sleep(Duration::from_millis(5));
        lent.push(delivered.unwrap());
        if lent.len() > 1 {
            lent.remove(0);
        }
    }
    let peak = loader.stats().held_bytes_max;
    assert!(peak > 1_500_000, "the budget was not used: {peak}");
    assert!(peak <= 2_000_000 + 8 * sample_bytes as u64, "{peak}");
    drop(lent);
    assert_eq!(loader.stats().held_bytes, 0);
}

#[test]
fn dropping_an_epoch_gives_everything_up() {
    let script = Script::new().per_mille(1, 1000, Fault::Delay(Duration::from_mins(1)));
    let faulty = Arc::new(FaultyStore::new(store(1000), script));
    let mut loader = loader(Arc::clone(&faulty) as Arc<dyn Store>, config(16));
    let mut epoch = loader.start().unwrap();
    assert!(matches!(
        epoch.next_within(Duration::from_millis(30)),
        Ok(loader_core::loader::epoch::Step::Pending)
    ));
    drop(epoch);
    drop(loader);
    let begun = Instant::now();
    while Arc::strong_count(&faulty) > 1 {
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "the engine still holds the store"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_runtime_that_goes_away_is_an_error_and_no_hang() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let script = Script::new().per_mille(1, 1000, Fault::Hang);
    let store = Arc::new(FaultyStore::new(store(10), script));
    let mut loader = Loader::new(store, Raw, config(4), runtime.handle().clone()).unwrap();
    let mut epoch = loader.start().unwrap();
    runtime.shutdown_background();
    assert_eq!(
        epoch.next().unwrap().unwrap_err().kind(),
        ErrorKind::Cancelled
    );
}

#[test]
fn what_is_cancelled_can_be_asked_for_again_and_is_held_once() {
    let mut loader = loader(store(40), config(8)).with_prefetcher(|| Box::<Fickle>::default());
    let mut all = positions(&mut loader, usize::MAX).concat();
    all.sort_unstable();
    assert_eq!(all, (0..40).collect::<Vec<_>>());
    assert_eq!(loader.stats().held_bytes, 0);
}

#[test]
fn memory_of_pictures_that_swell_is_learnt_and_held_to_the_budget() {
    let samples =
        (0..400).map(|number| samples::file(format!("{number:05}.jpg"), 0, vec![1; 1000]));
    let store = Arc::new(MemoryStore::from_samples(samples, vec!["a".to_owned()]).unwrap());
    let mut config = config(4);
    config.memory_bytes = 4_000_000;
    config.prefetch = Prefetch::Fixed(FixedConfig {
        batches: 2,
        slow_start: 1,
    });
    let mut loader = Loader::new(store, Swelling, config, RUNTIME.handle().clone()).unwrap();
    for delivered in loader.start().unwrap() {
        assert_eq!(delivered.unwrap().batch.len(), 4);
    }
    let peak = loader.stats().held_bytes_max;
    assert!((400_000..=4_400_000).contains(&peak), "{peak}");
    assert_eq!(loader.stats().held_bytes, 0);
}

#[test]
fn a_decoder_that_panics_costs_one_sample() {
    let mut config = config(8);
    config.on_error = OnError::Skip;
    config.last_batch = LastBatch::Mask;
    let mut loader = Loader::new(store(42), Fragile, config, RUNTIME.handle().clone()).unwrap();
    let batches: Vec<_> = loader
        .start()
        .unwrap()
        .map(|delivered| delivered.unwrap().batch)
        .collect();
    assert!(
        batches.iter().all(|batch| batch.len() == 8),
        "masked batches have the full size"
    );
    assert_eq!(batches.iter().flatten().flatten().count(), 40);
    let kinds: BTreeMap<_, _> = loader
        .failures()
        .iter()
        .map(|failure| (failure.row, failure.error.kind()))
        .collect();
    assert_eq!(
        kinds,
        BTreeMap::from([(13, ErrorKind::Malformed), (14, ErrorKind::Truncated)])
    );
}

#[test]
fn an_empty_data_set_has_no_batches() {
    let mut loader = loader(store(0), config(4));
    assert_eq!(loader.batches(), 0);
    assert!(loader.start().unwrap().next().is_none());
}

#[test]
fn an_epoch_that_is_set_begins_anew_and_the_state_says_so() {
    let mut loader = loader(store(10), config(4));
    positions(&mut loader, 1);
    loader.set_epoch(5);
    assert_eq!(
        (loader.state().epoch, loader.state().handed_batches),
        (5, 0)
    );
    assert_eq!(positions(&mut loader, usize::MAX).concat().len(), 10);
    assert_eq!(loader.state().epoch, 5);
}

#[test]
fn a_complete_state_goes_on_with_the_next_epoch() {
    let mut first = loader(store(10), config(4));
    positions(&mut first, usize::MAX);
    let mut second = loader(store(10), config(4));
    second.load_state(&first.state()).unwrap();
    assert_eq!(second.epoch(), 1);
    assert_eq!(second.batches_left(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Runs of up to three stages with other ranks, batch sizes and orders, each rank stopped anywhere.
    #[test]
    fn every_sample_comes_exactly_once_whatever_the_stops(
        count in 1_usize..160,
        stages in proptest::collection::vec((1_u64..9, 1_u64..5, 0_usize..3, proptest::collection::vec(any::<u8>(), 4)), 1..4),
        last in 0_usize..2,
    ) {
        let store = store(count);
        let mut seen = BTreeSet::new();
        let mut merged: Option<State> = None;
        for (number, (batch, ranks, order, stops)) in stages.iter().enumerate() {
            let last_stage = number + 1 == stages.len();
            let mut states = Vec::new();
            let mut lengths = BTreeSet::new();
            for rank in 0..*ranks {
                let mut config = config(*batch);
                config.order = [Order::Arrival, Order::Window, Order::Strict][*order];
                config.last_batch = [LastBatch::Partial, LastBatch::Mask][last];
                (config.ranks, config.rank) = (*ranks, rank);
                let mut loader = loader(Arc::clone(&store) as Arc<dyn Store>, config.clone());
                if let Some(merged) = &merged {
                    loader.load_state(merged).unwrap();
                    if merged.is_complete() { continue; }
                }
                let length = loader.batches_left();
                lengths.insert(length);
                let stop = u64::from(stops[usize::try_from(rank).unwrap()]) % (length + 1);
                // Once more within the rank: a state of one's own resumes without merging.
                for position in positions(&mut loader, usize::try_from(stop).unwrap()).concat() {
                    prop_assert!(seen.insert(position), "position {} twice", position);
                }
                if last_stage {
                    let saved = State::from_json(&loader.state().to_json()).unwrap();
                    let left = length - stop;
                    loader = self::loader(Arc::clone(&store) as Arc<dyn Store>, config);
                    loader.load_state(&saved).unwrap();
                    if !saved.is_complete() {
                        prop_assert_eq!(loader.batches_left(), left);
                        let rest = positions(&mut loader, usize::MAX);
                        prop_assert_eq!(rest.len() as u64, left);
                        for position in rest.concat() {
                            prop_assert!(seen.insert(position), "position {} twice", position);
                        }
                    }
                }
                states.push(State::from_json(&loader.state().to_json()).unwrap());
            }
            prop_assert!(lengths.len() <= 1, "ranks have unequal batch counts: {:?}", lengths);
            if !states.is_empty() && !last_stage {
                merged = Some(State::merge(&states).unwrap());
            }
        }
        prop_assert_eq!(seen.len(), count);
    }
}
