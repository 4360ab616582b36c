//! The clauses of the `StoreWriter` contract.

use std::{any::Any, fmt, future::Future, sync::Arc};

use futures_util::{FutureExt, future::LocalBoxFuture};
use loader_core::{
    Catalog, Manifest, NewSample, Put, Result, Row, Store, StoreWriter, Summary, memory::Rows,
};

use crate::{
    harness::{PATIENCE, Subject, Tested, within},
    samples::{DataSet, Form},
};

mod publishes;
mod puts;

pub use self::{publishes::*, puts::*};

/// Makes a test of each clause of the [`StoreWriter`] contract.
///
/// The argument is a closure that makes a writer of a new data set, as a [`WriterSubject`].
#[macro_export]
macro_rules! writer_suite {
    ($make:expr $(,)?) => {
        $crate::writer_suite!($crate::samples::Form::Any, $make);
    };
    ($form:expr, $make:expr $(,)?) => {
        $crate::clauses!(
            writer_suite,
            $crate::writer_suite::Writers::new($form, $make),
            [
                a_new_data_set_has_nothing_published,
                put_answers_every_sample_in_the_order_given,
                a_repeated_put_changes_nothing,
                the_same_path_with_other_bytes_is_another_payload,
                puts_at_once_of_the_same_samples_agree,
                a_payload_that_is_too_large_fails_alone,
                nothing_is_visible_before_it_is_published,
                what_was_published_reads_back_as_it_was_put,
                a_reader_that_is_open_keeps_what_it_is_pinned_to,
                publishing_twice_changes_nothing,
                publishing_fewer_rows_leaves_the_other_payloads_as_orphans,
                classes_stay_and_new_ones_are_appended,
                an_empty_manifest_can_be_published,
                an_ingest_goes_on_from_what_is_published,
            ]
        );
    };
}

type OpenFn = Box<dyn Fn() -> LocalBoxFuture<'static, Result<Arc<dyn Store>>>>;

/// A writer under test, with what must live as long as it does.
pub struct WriterSubject {
    writer: Arc<dyn StoreWriter>,
    open: OpenFn,
    guards: Vec<Box<dyn Any>>,
}

impl WriterSubject {
    /// A writer, and how to open a reader of what it has published.
    pub fn new<F, S>(writer: impl StoreWriter, open: impl Fn() -> F + 'static) -> Self
    where
        F: Future<Output = Result<S>> + 'static,
        S: Store,
    {
        let shared = |store| Arc::new(store) as Arc<dyn Store>;
        let open = move || open().map(move |opened| opened.map(shared)).boxed_local();
        Self {
            writer: Arc::new(writer),
            open: Box::new(open),
            guards: Vec::new(),
        }
    }

    /// Keeps something (a folder, a server) until the clause is over.
    #[must_use]
    pub fn keeping(mut self, guard: impl Any) -> Self {
        self.guards.push(Box::new(guard));
        self
    }

    async fn put(&self, samples: &[NewSample]) -> Vec<Put> {
        let put = within(
            PATIENCE,
            "the end of a put",
            self.writer.put(samples.to_vec()),
        )
        .await;
        let put = put.expect("the store takes samples");
        assert_eq!(put.len(), samples.len(), "one answer a sample");
        put
    }

    /// Puts samples that fit, in groups as the capability advises.
    async fn put_all(&self, samples: &[NewSample]) -> Vec<Row> {
        let mut rows = Vec::new();
        for group in samples.chunks(self.writer.capability().request_samples) {
            rows.extend(self.put(group).await.into_iter().map(row));
        }
        rows
    }

    async fn publish(&self, rows: Vec<Row>, classes: &[String]) -> Summary {
        let manifest = manifest(rows, classes);
        let expected = manifest.summary();
        let summary = within(
            PATIENCE,
            "the end of a publication",
            self.writer.publish(manifest),
        )
        .await;
        let summary = summary.expect("rows that were put can be published");
        assert_eq!(summary, expected, "the summary is that of the manifest");
        summary
    }

    async fn published(&self) -> Option<Manifest> {
        let published = within(PATIENCE, "the published manifest", self.writer.published()).await;
        published.expect("the published manifest can be read")
    }

    async fn open(&self) -> Result<Arc<dyn Store>> {
        within(PATIENCE, "an open reader", (self.open)()).await
    }

    /// A reader of what is published, which must be `set`.
    async fn reader(&self, set: &DataSet) -> Tested {
        let store = self.open().await.expect("what is published can be opened");
        Tested {
            subject: Subject::new(store),
            set: set.clone(),
            patience: PATIENCE,
        }
    }

    async fn written(&self, set: &DataSet) -> Summary {
        let rows = self.put_all(&set.samples).await;
        self.publish(rows, &set.classes).await
    }
}

impl fmt::Debug for WriterSubject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WriterSubject")
            .field("writer", &self.writer)
            .finish_non_exhaustive()
    }
}

/// Makes the writers that a clause asks for.
pub struct Writers {
    /// What the stores can hold.
    pub form: Form,
    make: Box<dyn Fn() -> LocalBoxFuture<'static, WriterSubject>>,
}

impl Writers {
    /// Writers made by a closure, each of a new data set.
    pub fn new<F>(form: Form, make: impl Fn() -> F + 'static) -> Self
    where
        F: Future<Output = WriterSubject> + 'static,
    {
        Self {
            form,
            make: Box::new(move || make().boxed_local()),
        }
    }

    async fn new_data_set(&self) -> WriterSubject {
        within(PATIENCE * 6, "a writer", (self.make)()).await
    }
}

impl fmt::Debug for Writers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Writers")
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

/// Puts all samples of a set and publishes them: the shortest ingest there is, for stores that are filled by their own writer.
///
/// # Errors
/// The first that the writer meets, for a group or for a sample.
pub async fn ingest(writer: &dyn StoreWriter, set: &DataSet) -> Result<Summary> {
    let mut rows = Vec::new();
    for group in set.samples.chunks(writer.capability().request_samples) {
        for put in writer.put(group.to_vec()).await? {
            match put {
                Put::Written(row) | Put::Present(row) => rows.push(row),
                Put::Failed(error) => return Err(error),
            }
        }
    }
    let catalog = Arc::new(Rows::new(rows)?);
    writer
        .publish(Manifest {
            classes: set.classes.clone().into(),
            catalog,
        })
        .await
}

fn manifest(rows: Vec<Row>, classes: &[String]) -> Manifest {
    let catalog: Arc<dyn Catalog> = Arc::new(Rows::new(rows).expect("one row a path"));
    Manifest {
        classes: classes.to_vec().into(),
        catalog,
    }
}

fn row(put: Put) -> Row {
    match put {
        Put::Written(row) | Put::Present(row) => row,
        Put::Failed(error) => panic!("a sample that fits was not stored: {error}"),
    }
}

fn rows_of(manifest: &Manifest) -> Vec<Row> {
    (0..manifest.catalog.len())
        .map(|number| manifest.catalog.row(number))
        .collect()
}
