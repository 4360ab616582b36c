//! What the suites share: how a subject is made, driven and waited for.

use std::{any::Any, fmt, future::Future, sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::LocalBoxFuture,
    stream::{BoxStream, StreamExt},
};
use loader_core::{FetchRequest, Fetched, SampleKey, Store};
use tokio::{runtime, time::timeout};

use crate::samples::{DataSet, Form};

/// How long a clause waits for anything before it says that nothing comes.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A store under test, with what must live as long as it does.
pub struct Subject {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Texts that must never be printed.
    pub secrets: Vec<String>,
    /// Breaks a payload behind the store's back.
    pub tamper: Option<TamperFn>,
    guards: Vec<Box<dyn Any>>,
}

/// See [`Subject::with_tamper`].
pub type TamperFn = Box<dyn Fn(SampleKey, Tamper) -> LocalBoxFuture<'static, ()>>;

/// What is done to a stored payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tamper {
    /// It is deleted.
    Remove,
    /// Its bytes are changed.
    Change,
}

impl Subject {
    /// A store under test.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            secrets: Vec::new(),
            tamper: None,
            guards: Vec::new(),
        }
    }

    /// Keeps something (a folder, a server) until the clause is over.
    #[must_use]
    pub fn keeping(mut self, guard: impl Any) -> Self {
        self.guards.push(Box::new(guard));
        self
    }

    /// Names a password or token that the store was opened with: nothing printed may contain it.
    #[must_use]
    pub fn with_secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// Says how to break a payload that the store has, for [`damage_suite!`](crate::damage_suite!).
    #[must_use]
    pub fn with_tamper<F>(mut self, tamper: impl Fn(SampleKey, Tamper) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        self.tamper = Some(Box::new(move |key, how| tamper(key, how).boxed_local()));
        self
    }
}

impl<S: Store> From<S> for Subject {
    fn from(store: S) -> Self {
        Self::new(Arc::new(store))
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Subject")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// Makes the stores that a clause asks for.
pub struct Stores {
    /// What the stores can hold.
    pub form: Form,
    /// How long the clause waits for an answer.
    pub patience: Duration,
    make: Box<dyn Fn(DataSet) -> LocalBoxFuture<'static, Subject>>,
}

impl Stores {
    /// Stores made by a closure.
    pub fn new<F, S>(form: Form, make: impl Fn(DataSet) -> F + 'static) -> Self
    where
        F: Future<Output = S> + 'static,
        S: Into<Subject> + 'static,
    {
        let make = move |set| make(set).map(Into::into).boxed_local();
        Self {
            form,
            patience: PATIENCE,
            make: Box::new(make),
        }
    }

    /// Waits only so long for each answer.
    #[must_use]
    pub fn patient_for(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    pub(crate) async fn holding(&self, set: DataSet) -> Tested {
        let subject = within(
            PATIENCE * 6,
            "a store with the samples",
            (self.make)(set.clone()),
        )
        .await;
        Tested {
            subject,
            set,
            patience: self.patience,
        }
    }
}

impl fmt::Debug for Stores {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stores")
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

/// A store, and what it must hold.
pub(crate) struct Tested {
    pub(crate) subject: Subject,
    pub(crate) set: DataSet,
    pub(crate) patience: Duration,
}

impl Tested {
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.subject.store
    }

    pub(crate) fn rows(&self, rows: impl IntoIterator<Item = u64>) -> FetchRequest {
        FetchRequest::rows(
            self.store().summary().fingerprint,
            rows.into_iter().collect(),
        )
    }

    pub(crate) fn all_rows(&self) -> FetchRequest {
        self.rows(0..self.set.samples.len() as u64)
    }

    /// The answers to a request by target, after a look at their number.
    pub(crate) async fn fetch(&self, request: FetchRequest) -> Vec<Fetched> {
        answers(
            self.store().fetch(request.clone()),
            request.targets.len(),
            self.patience,
        )
        .await
    }

    pub(crate) async fn listed<T: Send + 'static>(
        &self,
        stream: BoxStream<'static, loader_core::Result<T>>,
    ) -> Vec<T> {
        let listed = within(
            self.patience,
            "the end of a listing",
            stream.collect::<Vec<_>>(),
        )
        .await;
        listed
            .into_iter()
            .map(|listed| listed.expect("a listing does not fail"))
            .collect()
    }
}

/// All answers of a stream in target order; anything but one for each target is a failure.
pub(crate) async fn answers(
    mut stream: BoxStream<'static, Fetched>,
    targets: usize,
    patience: Duration,
) -> Vec<Fetched> {
    let mut answers: Vec<Option<Fetched>> = (0..targets).map(|_| None).collect();
    while let Some(fetched) = within(patience, "the next answer of a fetch", stream.next()).await {
        let target = fetched.target;
        assert!(
            target < targets,
            "an answer for target {target} of a request that has {targets}"
        );
        assert!(
            answers[target].replace(fetched).is_none(),
            "a second answer for target {target}"
        );
    }
    let missing: Vec<_> = (0..targets)
        .filter(|target| answers[*target].is_none())
        .collect();
    assert!(
        missing.is_empty(),
        "no answers for the targets {missing:?} of {targets}"
    );
    answers.into_iter().flatten().collect()
}

/// Waits for something, but not for ever.
pub(crate) async fn within<T>(
    patience: Duration,
    what: &str,
    future: impl Future<Output = T>,
) -> T {
    timeout(patience, future)
        .await
        .unwrap_or_else(|_| panic!("{what} did not come within {patience:?}"))
}

/// Runs a clause on two threads of a runtime that has a clock and sockets.
pub fn run(clause: impl Future<Output = ()>) {
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime can be made");
    runtime.block_on(within(PATIENCE * 10, "the end of the clause", clause));
    // A task that blocks must not keep the test alive: its clause has passed.
    runtime.shutdown_timeout(Duration::from_secs(1));
}

/// Makes tests of some clauses of a suite, for subjects to which not all of them apply; the suites' own macros use it too.
///
/// The arguments are the suite's module, what makes its subjects, and the names of the clauses.
#[macro_export]
macro_rules! clauses {
    ($suite:ident, $subjects:expr, [$($clause:ident),* $(,)?]) => {
        $(
            #[test]
            fn $clause() {
                $crate::harness::run($crate::$suite::$clause($subjects));
            }
        )*
    };
}
