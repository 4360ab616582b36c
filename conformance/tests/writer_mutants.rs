//! Each clause of the writer suite fails for a writer that breaks it.
#![allow(clippy::unwrap_used, reason = "a test stops where anything fails")]

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use conformance::{
    harness::run,
    samples::Form,
    writer_suite::{self, WriterSubject, Writers},
};
use futures_util::TryStreamExt;
use loader_core::{
    Capability, Error, ErrorKind, Manifest, NewSample, Put, Result, Row, SamplePath, Store,
    StoreWriter, Summary,
    memory::{MemoryWriter, Rows},
};

/// One way each to break the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    BeginsPublished,
    AnswersInAnotherOrder,
    AnswersTooFew,
    WritesAgain,
    NamesByPath,
    RefusesWhenBusy,
    TakesTooLarge,
    FailsTheGroup,
    PublishesEachPut,
    LosesFields,
    DeletesOrphans,
    RefusesToPublishAgain,
    SortsClasses,
    RefusesEmptyManifests,
    ForgetsRows,
}
use Defect as D;

const MOST_BYTES: u64 = 2_000_000;

struct Mutant {
    defect: Defect,
    inner: MemoryWriter,
    rows: Mutex<BTreeMap<SamplePath, Row>>,
    busy: tokio::sync::Mutex<()>,
}

fn row(put: &Put) -> Option<&Row> {
    match put {
        Put::Written(row) | Put::Present(row) => Some(row),
        Put::Failed(_) => None,
    }
}

fn rows_of(manifest: &Manifest) -> Vec<Row> {
    (0..manifest.catalog.len())
        .map(|number| manifest.catalog.row(number))
        .collect()
}

fn manifest(classes: &Arc<[String]>, rows: Vec<Row>) -> Manifest {
    Manifest {
        classes: Arc::clone(classes),
        catalog: Arc::new(Rows::new(rows).unwrap()),
    }
}

#[async_trait]
impl StoreWriter for Mutant {
    fn capability(&self) -> Capability {
        let mut capability = self.inner.capability();
        capability.max_payload_bytes = Some(MOST_BYTES);
        capability
    }

    async fn published(&self) -> Result<Option<Manifest>> {
        let published = self.inner.published().await?;
        Ok(match (self.defect, published) {
            (D::BeginsPublished, None) => Some(manifest(&Arc::default(), Vec::new())),
            (D::ForgetsRows, Some(published)) => Some(manifest(
                &published.classes,
                rows_of(&published).into_iter().skip(1).collect(),
            )),
            (_, published) => published,
        })
    }

    async fn put(&self, samples: Vec<NewSample>) -> Result<Vec<Put>> {
        let refused = || Error::new(ErrorKind::Conflict, "not now");
        let _busy = match self.defect {
            D::RefusesWhenBusy => Some(self.busy.try_lock().map_err(|_| refused())?),
            _ => None,
        };
        if self.defect == D::RefusesWhenBusy {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut puts = self.inner.put(samples).await?;
        if self.defect == D::FailsTheGroup && puts.iter().any(|put| row(put).is_none()) {
            return Err(Error::new(ErrorKind::TooLarge, "one is too large"));
        }
        let all: Vec<Row> = {
            let mut rows = self.rows.lock().unwrap();
            for put in &mut puts {
                if let Some(new) = row(put).cloned() {
                    let known = rows
                        .entry(new.path.clone())
                        .or_insert_with(|| new.clone())
                        .clone();
                    if self.defect == D::NamesByPath && known != new {
                        *put = Put::Present(known);
                    }
                    if self.defect == D::WritesAgain {
                        *put = Put::Written(new);
                    }
                }
            }
            rows.values().cloned().collect()
        };
        match self.defect {
            D::AnswersInAnotherOrder => puts.reverse(),
            D::AnswersTooFew => drop(puts.pop()),
            _ => (),
        }
        if self.defect == D::PublishesEachPut {
            self.inner.publish(manifest(&Arc::default(), all)).await?;
        }
        Ok(puts)
    }

    async fn publish(&self, mut manifest: Manifest) -> Result<Summary> {
        let summary = manifest.summary();
        let mut rows = rows_of(&manifest);
        match self.defect {
            D::RefusesEmptyManifests if rows.is_empty() => {
                return Err(Error::new(ErrorKind::Empty, "no rows"));
            }
            D::RefusesToPublishAgain if self.inner.published().await?.is_some() => {
                return Err(Error::new(ErrorKind::Conflict, "it is published"));
            }
            D::SortsClasses => {
                let mut classes = manifest.classes.to_vec();
                classes.sort();
                manifest.classes = classes.into();
            }
            D::LosesFields => rows.iter_mut().for_each(|row| row.fields.clear()),
            _ => (),
        }
        let keep: Vec<_> = rows.iter().map(|row| row.key).collect();
        self.inner
            .publish(self::manifest(&manifest.classes, rows))
            .await?;
        if self.defect == D::DeletesOrphans {
            let store = self.inner.open()?;
            for key in store.keys().try_collect::<Vec<_>>().await? {
                if !keep.contains(&key) {
                    store.tamper(key, None);
                }
            }
        }
        Ok(summary)
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

fn subject(defect: Defect) -> WriterSubject {
    let mut inner = MemoryWriter::new();
    if defect != D::TakesTooLarge {
        inner = inner.with_max_payload_bytes(MOST_BYTES);
    }
    let opened = inner.clone();
    let (rows, busy) = (Mutex::default(), tokio::sync::Mutex::default());
    WriterSubject::new(
        Mutant {
            defect,
            inner,
            rows,
            busy,
        },
        move || std::future::ready(opened.open()),
    )
}

fn writers(defect: Defect) -> Writers {
    Writers::new(Form::Any, move || async move { subject(defect) })
}

macro_rules! table {
    ($($clause:ident: $($defect:ident),+;)*) => {
        $(
            #[test]
            fn $clause() {
                run(writer_suite::$clause(writers(D::None)));
                for defect in [$(D::$defect),+] {
                    let caught = catch_unwind(AssertUnwindSafe(|| run(writer_suite::$clause(writers(defect)))));
                    assert!(caught.is_err(), "{defect:?} is not caught");
                }
            }
        )*

        #[test]
        fn every_clause_stands_in_the_table() {
            let table = [$(stringify!($clause)),*];
            let source = include_str!("../src/writer_suite.rs");
            let clauses = source.lines().filter_map(|line| line.strip_prefix("                "));
            let clauses: Vec<_> = clauses.filter_map(|line| line.strip_suffix(',')).filter(|name| !name.contains([' ', '('])).collect();
            assert_eq!(clauses, table);
        }
    };
}

table! {
    a_new_data_set_has_nothing_published: BeginsPublished;
    put_answers_every_sample_in_the_order_given: AnswersInAnotherOrder, AnswersTooFew;
    a_repeated_put_changes_nothing: WritesAgain;
    the_same_path_with_other_bytes_is_another_payload: NamesByPath;
    puts_at_once_of_the_same_samples_agree: RefusesWhenBusy;
    a_payload_that_is_too_large_fails_alone: TakesTooLarge, FailsTheGroup;
    nothing_is_visible_before_it_is_published: PublishesEachPut;
    what_was_published_reads_back_as_it_was_put: LosesFields;
    a_reader_that_is_open_keeps_what_it_is_pinned_to: DeletesOrphans;
    publishing_twice_changes_nothing: RefusesToPublishAgain;
    publishing_fewer_rows_leaves_the_other_payloads_as_orphans: DeletesOrphans;
    classes_stay_and_new_ones_are_appended: SortsClasses;
    an_empty_manifest_can_be_published: RefusesEmptyManifests;
    an_ingest_goes_on_from_what_is_published: ForgetsRows;
}
