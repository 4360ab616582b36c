//! The promise that every wrapper keeps: one answer per target, no more and no less.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_util::{Stream, StreamExt, stream::BoxStream};

use crate::{
    error::{Error, ErrorKind},
    store::{Fetched, Lane},
};

/// Targets that still have no answer.
#[derive(Debug)]
pub(super) struct Owed {
    open: Vec<bool>,
    count: usize,
    /// No target below is open.
    first: usize,
}

impl Owed {
    pub(super) fn new(targets: usize) -> Self {
        Self {
            open: vec![true; targets],
            count: targets,
            first: 0,
        }
    }

    /// True the first time that a target is answered; false for a second answer and for a target that nobody asked for.
    pub(super) fn settle(&mut self, target: usize) -> bool {
        let open = self.open.get_mut(target).is_some_and(std::mem::take);
        self.count -= usize::from(open);
        open
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Settles the first target that is still open.
    pub(super) fn take(&mut self) -> Option<usize> {
        let target = self.first + self.open[self.first..].iter().position(|open| *open)?;
        self.first = target + 1;
        self.settle(target);
        Some(target)
    }
}

/// The answers of a store, made to keep the promise: repeated and unknown ones are dropped, missing ones become an error.
///
/// The stream inside, and the guard beside it, are dropped with the last answer: no store can hold anything up after that.
pub(super) struct Answers<G> {
    inner: Option<(BoxStream<'static, Fetched>, G)>,
    owed: Owed,
}

impl<G> Answers<G> {
    pub(super) fn new(inner: BoxStream<'static, Fetched>, targets: usize, guard: G) -> Self {
        let owed = Owed::new(targets);
        Self {
            inner: (targets > 0).then_some((inner, guard)),
            owed,
        }
    }
}

impl<G: Unpin> Stream for Answers<G> {
    type Item = Fetched;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Fetched>> {
        let this = &mut *self;
        while let Some((inner, _)) = &mut this.inner {
            let Some(fetched) = ready!(inner.poll_next_unpin(context)) else {
                this.inner = None;
                break;
            };
            if this.owed.settle(fetched.target) {
                if this.owed.is_empty() {
                    this.inner = None;
                }
                return Poll::Ready(Some(fetched));
            }
        }
        Poll::Ready(this.owed.take().map(|target| missing(target, unanswered())))
    }
}

/// The answer for a target that the store has none for.
pub(super) fn missing(target: usize, error: Error) -> Fetched {
    Fetched {
        target,
        lane: Lane::default(),
        outcome: Err(error.during("fetch")),
    }
}

/// A store that breaks off is taken for one that went away: the same request may succeed.
fn unanswered() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the store ended its answers without one for this sample",
    )
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use futures_util::stream;

    use super::*;
    use crate::{
        catalog::{Catalog, Summary},
        error::Result,
        identity::SampleKey,
        memory::MemoryStore,
        sample::{NewSample, Part, Row},
        store::{Capability, FetchRequest, Store},
    };

    /// A store whose answers a test makes up: it is given the request and what the right answers would be.
    pub(in crate::wrap) struct MadeUp<F> {
        pub(in crate::wrap) store: MemoryStore,
        pub(in crate::wrap) fetch: F,
    }

    impl<F> MadeUp<F>
    where
        F: Fn(FetchRequest, BoxStream<'static, Fetched>) -> BoxStream<'static, Fetched>,
    {
        pub(in crate::wrap) fn new(samples: usize, fetch: F) -> Arc<Self> {
            let sample = |number: usize| NewSample {
                path: format!("{number:04}").into(),
                label: 0,
                parts: Part::sequence([("jpg", 100)]),
                payload: vec![0; 100].into(),
                fields: crate::sample::Fields::new(),
            };
            let store = MemoryStore::from_samples((0..samples).map(sample), Vec::new()).unwrap();
            Arc::new(Self { store, fetch })
        }
    }

    #[async_trait]
    impl<F> Store for MadeUp<F>
    where
        F: Fn(FetchRequest, BoxStream<'static, Fetched>) -> BoxStream<'static, Fetched>
            + Send
            + Sync
            + 'static,
    {
        fn capability(&self) -> Capability {
            self.store.capability()
        }
        fn summary(&self) -> Summary {
            self.store.summary()
        }
        async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
            self.store.catalog().await
        }
        fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
            (self.fetch)(request.clone(), self.store.fetch(request))
        }
        fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
            self.store.keys()
        }
        fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
            self.store.metadata()
        }
    }

    impl<F> std::fmt::Display for MadeUp<F> {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("made-up:")
        }
    }

    impl<F> std::fmt::Debug for MadeUp<F> {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("MadeUp")
        }
    }

    pub(in crate::wrap) fn request(store: &dyn Store, rows: std::ops::Range<u64>) -> FetchRequest {
        FetchRequest::rows(store.summary().fingerprint, rows.collect())
    }

    /// What became of each target, in target order; a target that is answered more than once fails the test.
    pub(in crate::wrap) async fn outcomes(
        stream: BoxStream<'static, Fetched>,
    ) -> Vec<Result<u64, ErrorKind>> {
        let mut fetched: Vec<_> = stream.collect().await;
        fetched.sort_by_key(|fetched| fetched.target);
        assert!(
            fetched
                .iter()
                .enumerate()
                .all(|(place, fetched)| fetched.target == place),
            "one answer a target"
        );
        let outcome = |fetched: Fetched| match fetched.outcome {
            Ok(sample) => Ok(sample.payload.len() as u64),
            Err(error) => Err(error.kind()),
        };
        fetched.into_iter().map(outcome).collect()
    }

    #[tokio::test]
    async fn repeated_unknown_and_missing_answers_are_put_right() {
        let answer = |target| missing(target, Error::new(ErrorKind::Corrupt, "x"));
        let inner = stream::iter([1, 1, 7, 2].map(answer)).boxed();
        let answers: Vec<_> = Answers::new(inner, 4, ()).collect().await;
        let kinds: Vec<_> = answers
            .iter()
            .map(|fetched| (fetched.target, fetched.outcome.as_ref().unwrap_err().kind()))
            .collect();
        let (corrupt, gone) = (ErrorKind::Corrupt, ErrorKind::Unavailable);
        assert_eq!(kinds, [(1, corrupt), (2, corrupt), (0, gone), (3, gone)]);
    }

    #[tokio::test]
    async fn a_store_that_never_ends_is_let_go_with_the_last_answer() {
        let guard = Arc::new(());
        let answer = missing(0, Error::new(ErrorKind::Corrupt, "x"));
        let inner = stream::iter([answer]).chain(stream::pending()).boxed();
        let mut answers = Answers::new(inner, 1, Arc::clone(&guard));
        assert!(answers.next().await.is_some());
        assert_eq!(Arc::strong_count(&guard), 1);
        assert!(answers.next().await.is_none());
    }
}
