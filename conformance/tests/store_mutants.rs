//! Each clause of the store suites fails for a store that breaks it.
#![allow(clippy::unwrap_used, reason = "a test stops where anything fails")]

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use conformance::{
    harness::{Stores, Subject, Tamper, run},
    samples::{DataSet, Form},
    store_suite,
};
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use loader_core::{
    Capability, Catalog, Error, ErrorKind, FetchRequest, Fetched, Fingerprint, Lane, Manifest,
    Result, Row, SampleKey, Store, Summary, Targets,
    memory::{MemoryStore, Rows},
};
use tokio::sync::Semaphore;

/// One way each to break the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    AnswersTwice,
    DropsTheLast,
    EndsAtTheFirstError,
    NeverEnds,
    NamesAnotherTarget,
    SwapsPayloads,
    ForgetsLabels,
    ForgetsParts,
    DeduplicatesRows,
    AnswersNothingWithSomething,
    ForgetsPathsOfKeys,
    UnknownIsInternal,
    TakesRowsOfAnyDataSet,
    MatchesPartsByCase,
    SendsAllParts,
    IgnoresDeadlines,
    TakesEveryDeadlineForPast,
    IgnoresLanes,
    HasNoLanes,
    MiscountsBytes,
    LosesEmptyClasses,
    CatalogIsOfAnotherOrder,
    LosesFields,
    RecordsWrongChecksums,
    RecordsNoChecksums,
    ListsAKeyTwice,
    ListsNoKeys,
    ListsARowTwice,
    ListsNoRows,
    EmptyIsNotFound,
    PrintsItsPassword,
    BearsTenFetches,
    LeaksDroppedStreams,
    LosesTheThousandth,
    TakesGoneForNotFound,
    DeliversChanged,
    ListsWhatIsGone,
}
use Defect as D;

struct Mutant {
    defect: Defect,
    inner: MemoryStore,
    slots: Arc<Semaphore>,
}

fn mutant(defect: Defect, mut set: DataSet) -> Mutant {
    if defect == D::LosesFields {
        set.samples
            .iter_mut()
            .for_each(|sample| sample.fields.clear());
    }
    let inner = MemoryStore::from_samples(set.samples, set.classes).unwrap();
    let slots = if defect == D::BearsTenFetches {
        10
    } else {
        100
    };
    Mutant {
        defect,
        inner,
        slots: Arc::new(Semaphore::new(slots)),
    }
}

impl Mutant {
    fn changed_rows(&self, rows: Vec<Row>) -> Vec<Row> {
        let mut rows = rows;
        for row in &mut rows {
            match self.defect {
                D::RecordsWrongChecksums => row.checksum = Some(1),
                D::RecordsNoChecksums => row.checksum = None,
                _ => (),
            }
        }
        rows
    }

    fn request(&self, mut request: FetchRequest) -> FetchRequest {
        match (self.defect, &mut request.targets) {
            (D::TakesRowsOfAnyDataSet, Targets::Rows { fingerprint, .. }) => {
                *fingerprint = self.inner.summary().fingerprint;
            }
            (D::DeduplicatesRows, Targets::Rows { rows, .. }) => rows.dedup_by_key(|row| *row % 5),
            _ => (),
        }
        match self.defect {
            D::IgnoresDeadlines => request.deadline = None,
            D::TakesEveryDeadlineForPast if request.deadline.is_some() => {
                request.deadline = Some(std::time::Instant::now());
            }
            D::SendsAllParts => request.parts = None,
            D::MatchesPartsByCase => {
                // Names in other cases than those in the data set match nothing.
                let known = |name: &&String| {
                    ["jpg", "JPG", "seg.png", "cls", "txt"].contains(&name.as_str())
                };
                request.parts = request
                    .parts
                    .map(|names| names.iter().filter(known).cloned().collect());
            }
            _ => (),
        }
        request
    }

    fn answer(defect: Defect, asked_by_key: bool, mut fetched: Fetched) -> Fetched {
        let kind = fetched.outcome.as_ref().err().map(Error::kind);
        match (defect, &mut fetched.outcome) {
            (D::SwapsPayloads, Ok(sample)) if sample.payload.len() > 2 => {
                let mut payload = sample.payload.to_vec();
                payload.reverse();
                sample.payload = payload.into();
            }
            (D::ForgetsLabels, Ok(sample)) => sample.label = -1,
            (D::ForgetsParts, Ok(sample)) => {
                sample.parts = sample.parts.iter().take(1).cloned().collect();
            }
            (D::ForgetsPathsOfKeys, Ok(sample)) if asked_by_key => sample.path = "".into(),
            (D::UnknownIsInternal, outcome @ Err(_)) if kind == Some(ErrorKind::NotFound) => {
                *outcome = Err(Error::new(ErrorKind::Internal, "index out of bounds"));
            }
            (D::TakesGoneForNotFound, outcome @ Err(_)) if kind == Some(ErrorKind::Vanished) => {
                *outcome = Err(Error::new(ErrorKind::NotFound, "gone"));
            }
            (D::PrintsItsPassword, outcome @ Err(_)) => {
                *outcome = Err(Error::new(
                    ErrorKind::NotFound,
                    "no such row at cassandra://me:hunter2@host",
                ));
            }
            _ => (),
        }
        if defect == D::NamesAnotherTarget {
            fetched.target += 1;
        }
        if defect == D::IgnoresLanes {
            fetched.lane = Lane(1);
        }
        fetched
    }
}

#[async_trait]
impl Store for Mutant {
    fn capability(&self) -> Capability {
        let mut capability = self.inner.capability();
        capability.lanes = if self.defect == D::HasNoLanes { 0 } else { 2 };
        if self.defect != D::IgnoresLanes {
            capability.lanes = capability.lanes.min(1);
        }
        capability
    }

    fn summary(&self) -> Summary {
        let mut summary = self.inner.summary();
        match self.defect {
            D::MiscountsBytes => summary.bytes += 1,
            D::LosesEmptyClasses => {
                summary.classes = summary
                    .classes
                    .iter()
                    .filter(|class| *class != "empty")
                    .cloned()
                    .collect();
            }
            D::EmptyIsNotFound if summary.samples == 0 => {
                summary.fingerprint = Fingerprint::default();
            }
            _ => (),
        }
        summary
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        let catalog = self.inner.catalog().await?;
        if self.defect == D::CatalogIsOfAnotherOrder {
            return Ok(Arc::new(Backwards(catalog)));
        }
        let rows = (0..catalog.len()).map(|row| catalog.row(row)).collect();
        Ok(Arc::new(Rows::new(self.changed_rows(rows))?))
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        let asked = request.targets.len();
        let by_key = matches!(request.targets, Targets::Keys(_));
        let defect = self.defect;
        let right = self
            .inner
            .fetch(self.request(request))
            .map(move |fetched| Self::answer(defect, by_key, fetched));
        let extra = || Fetched {
            target: 0,
            lane: Lane(0),
            outcome: Err(Error::new(ErrorKind::Io, "x")),
        };
        match defect {
            D::AnswersTwice => right.chain(stream::iter([extra()])).boxed(),
            D::DropsTheLast => right.take(asked.saturating_sub(1)).boxed(),
            D::EndsAtTheFirstError => right
                .take_while(|fetched| std::future::ready(fetched.outcome.is_ok()))
                .boxed(),
            D::NeverEnds => right.chain(stream::pending()).boxed(),
            D::AnswersNothingWithSomething if asked == 0 => stream::iter([extra()]).boxed(),
            D::LosesTheThousandth => right
                .filter(|fetched| {
                    let lost = fetched
                        .outcome
                        .as_ref()
                        .is_ok_and(|sample| sample.path.ends_with(b"999.jpg"));
                    std::future::ready(!lost)
                })
                .boxed(),
            D::BearsTenFetches => {
                // A deadlock: who holds one slot waits for a second.
                let slots = Arc::clone(&self.slots);
                let held = async move {
                    let one = Arc::clone(&slots).acquire_owned().await;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    (one, slots.acquire_owned().await)
                };
                stream::once(held)
                    .flat_map(move |_| stream::empty())
                    .chain(right)
                    .boxed()
            }
            D::LeaksDroppedStreams => {
                let slots = Arc::clone(&self.slots);
                let taken = async move {
                    if let Ok(slot) = slots.acquire().await {
                        slot.forget();
                    }
                    slots
                };
                let count = asked;
                let mut seen = 0;
                stream::once(taken)
                    .flat_map(move |slots| stream::repeat(slots).take(count))
                    .zip(right)
                    .map(move |(slots, fetched)| {
                        seen += 1;
                        if seen == count {
                            slots.add_permits(1);
                        }
                        fetched
                    })
                    .boxed()
            }
            _ => right.boxed(),
        }
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        let keys = self.inner.keys();
        match self.defect {
            D::ListsAKeyTwice => keys.chain(self.inner.keys().take(1)).boxed(),
            D::ListsNoKeys => stream::empty().boxed(),
            D::ListsWhatIsGone => self
                .inner
                .metadata()
                .flat_map(|rows| {
                    let rows = rows.unwrap();
                    stream::iter(rows.into_iter().map(|row| Ok(row.key)))
                })
                .boxed(),
            _ => keys,
        }
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        let rows = self.inner.metadata();
        match self.defect {
            D::ListsARowTwice => rows
                .chain(
                    self.inner
                        .metadata()
                        .map(|rows| rows.map(|rows| rows[..1].to_vec())),
                )
                .boxed(),
            D::ListsNoRows => stream::empty().boxed(),
            _ => rows,
        }
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, out)
    }
}

impl fmt::Debug for Mutant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Mutant({:?})", self.defect)
    }
}

/// Rows from the last to the first.
#[derive(Debug)]
struct Backwards(Arc<dyn Catalog>);

impl Catalog for Backwards {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn nbytes(&self, row: u64) -> u64 {
        self.row(row).nbytes
    }
    fn label(&self, row: u64) -> i64 {
        self.row(row).label
    }
    fn key(&self, row: u64) -> SampleKey {
        self.row(row).key
    }
    fn row(&self, row: u64) -> Row {
        self.0.row(self.len() - 1 - row)
    }
    fn find(&self, path: &[u8]) -> Option<u64> {
        self.0.find(path).map(|row| self.len() - 1 - row)
    }
    fn fields(&self) -> BTreeMap<String, String> {
        self.0.fields()
    }
    fn snapshot(&self) -> Option<Bytes> {
        None
    }
}

/// A subject whose payloads can be broken; a defect may hide it.
fn subject(defect: Defect, set: DataSet) -> Subject {
    let store = mutant(defect, set);
    let inner = store.inner.clone();
    let subject = Subject::from(store).with_secret("hunter2");
    subject.with_tamper(move |key, how| {
        match (how, defect) {
            (Tamper::Change, D::DeliversChanged) => (),
            (Tamper::Change, _) => inner.tamper(key, Some(Bytes::from_static(b"something else"))),
            (Tamper::Remove, _) => inner.tamper(key, None),
        }
        async {}
    })
}

fn stores(defect: Defect) -> Stores {
    Stores::new(Form::Any, move |set| async move { subject(defect, set) })
        .patient_for(Duration::from_secs(2))
}

macro_rules! table {
    ($($clause:ident: $($defect:ident),+;)*) => {
        $(
            #[test]
            fn $clause() {
                run(store_suite::$clause(stores(D::None)));
                for defect in [$(D::$defect),+] {
                    let caught = catch_unwind(AssertUnwindSafe(|| run(store_suite::$clause(stores(defect)))));
                    assert!(caught.is_err(), "{defect:?} is not caught");
                }
            }
        )*

        #[test]
        fn every_clause_stands_in_the_table() {
            let table = [$(stringify!($clause)),*];
            let source = include_str!("../src/store_suite.rs");
            let clauses = source.lines().filter_map(|line| line.trim().strip_suffix(','));
            let clauses: Vec<_> = clauses.filter(|name| name.contains('_') && !name.contains(' ') && *name != "store_suite").collect();
            assert_eq!(clauses, table);
        }
    };
}

table! {
    every_target_is_answered_once_with_its_sample:
        AnswersTwice, DropsTheLast, NeverEnds, NamesAnotherTarget, SwapsPayloads, ForgetsLabels, ForgetsParts;
    rows_come_in_any_order_and_as_often_as_they_are_asked_for: DeduplicatesRows;
    an_empty_request_has_no_answers: AnswersNothingWithSomething, NeverEnds;
    keys_fetch_the_same_samples_as_rows: ForgetsPathsOfKeys;
    an_unknown_row_fails_alone_with_a_typed_error: UnknownIsInternal, EndsAtTheFirstError;
    an_unknown_key_fails_alone_with_a_typed_error: UnknownIsInternal, EndsAtTheFirstError;
    rows_of_another_data_set_are_incompatible: TakesRowsOfAnyDataSet;
    parts_are_chosen_by_name_without_case: MatchesPartsByCase, SendsAllParts;
    a_deadline_in_the_past_is_a_timeout_for_every_target: IgnoresDeadlines, DropsTheLast;
    a_deadline_far_ahead_changes_nothing: TakesEveryDeadlineForPast;
    every_lane_can_be_asked_for_and_avoided: IgnoresLanes;
    the_capability_makes_sense: HasNoLanes;
    the_summary_is_that_of_the_samples: MiscountsBytes, LosesEmptyClasses, LosesFields;
    the_catalog_has_every_row_in_path_order: CatalogIsOfAnotherOrder, LosesFields;
    a_recorded_checksum_is_that_of_the_payload: RecordsWrongChecksums, RecordsNoChecksums;
    keys_lists_every_row_once: ListsAKeyTwice, ListsNoKeys;
    metadata_covers_every_row_once: ListsARowTwice, ListsNoRows;
    an_empty_data_set_is_no_error: EmptyIsNotFound, LosesEmptyClasses;
    one_sample_is_a_data_set: DropsTheLast, ListsAKeyTwice;
    nothing_printed_has_credentials: PrintsItsPassword;
    two_hundred_fetches_at_once_are_all_answered: BearsTenFetches;
    a_dropped_stream_leaks_nothing: LeaksDroppedStreams;
    a_thousand_samples_come_through_as_the_capability_advises: LosesTheThousandth;
    a_payload_that_is_gone_is_vanished_and_the_others_come: TakesGoneForNotFound, ListsWhatIsGone;
    a_payload_that_changed_is_corrupt_and_the_others_come: DeliversChanged;
}

#[test]
fn the_wrappers_hide_what_the_inner_store_does_wrong() {
    // Where a store breaks off or repeats itself, a wrapper around it gives every target its one answer.
    use loader_core::wrap::{
        limit::{Limit, LimitConfig},
        meter::Meter,
        timeout::{Timeout, TimeoutConfig},
    };
    for defect in [
        D::AnswersTwice,
        D::NeverEnds,
        D::AnswersNothingWithSomething,
    ] {
        let inner = move |set| -> Arc<dyn Store> { Arc::new(mutant(defect, set)) };
        let timed = Stores::new(Form::Any, move |set| async move {
            Timeout::new(inner(set), TimeoutConfig::default())
        });
        run(store_suite::every_target_is_answered_once_with_its_sample(
            timed,
        ));
        let limited = Stores::new(Form::Any, move |set| async move {
            Limit::new(inner(set), &LimitConfig::default())
        });
        run(store_suite::an_empty_request_has_no_answers(limited));
        let metered = Stores::new(Form::Any, move |set| async move {
            Meter::new(inner(set), Arc::default())
        });
        run(store_suite::a_thousand_samples_come_through_as_the_capability_advises(metered));
    }
}

#[test]
fn a_manifest_of_rows_backwards_has_another_fingerprint() {
    // The mutant with the wrong order would not be one if nobody could tell.
    let set = DataSet::many(Form::Any, 3);
    let store = MemoryStore::from_samples(set.samples, set.classes).unwrap();
    run(async move {
        let catalog: Arc<dyn Catalog> = Arc::new(Backwards(store.catalog().await.unwrap()));
        let backwards = Manifest {
            classes: Arc::new([]),
            catalog,
        }
        .summary();
        assert_ne!(backwards.fingerprint, store.summary().fingerprint);
    });
}
