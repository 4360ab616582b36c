//! The clauses of the `Transport` contract.

use std::{any::Any, fmt, future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::LocalBoxFuture, stream::BoxStream};
use loader_core::{CallOptions, Result, Transport};

use crate::{
    credit::Responder,
    harness::{PATIENCE, within},
};

mod answers;
mod flows;
mod peer;

pub use self::{answers::*, flows::*};

/// Makes a test of each clause of the [`Transport`] contract.
///
/// The argument is a closure that is given a [`Responder`], puts it behind a listener, and returns a
/// future of a transport to it, or of a [`TransportSubject`] where the listener must
/// be kept.
#[macro_export]
macro_rules! transport_suite {
    ($make:expr $(,)?) => {
        $crate::clauses!(
            transport_suite,
            $crate::transport_suite::Transports::new($make),
            [
                requests_and_answers_of_any_size_come_whole_and_once,
                a_call_may_have_no_answers,
                an_answer_outlives_its_call_and_its_transport,
                a_call_that_the_peer_breaks_off_ends_with_an_error,
                a_call_that_fails_does_not_disturb_another,
                a_call_that_is_slow_does_not_hold_up_another,
                two_hundred_calls_at_once_are_all_answered,
                every_lane_can_be_used,
                no_capability_is_nonsense,
                nothing_printed_has_a_secret,
                a_caller_that_does_not_poll_stops_the_peer,
                answers_larger_than_the_credit_come_all_the_same,
                dropping_a_stream_stops_the_peer,
                dropped_calls_leak_nothing,
                a_deadline_ends_a_call_with_a_timeout,
                a_deadline_in_the_past_is_a_timeout,
            ]
        );
    };
}

/// A transport under test, with what must live as long as it does.
pub struct TransportSubject {
    /// The transport.
    pub transport: Arc<dyn Transport>,
    /// Texts that must never be printed.
    pub secrets: Vec<String>,
    guards: Vec<Box<dyn Any>>,
}

impl TransportSubject {
    /// A transport under test.
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            secrets: Vec::new(),
            guards: Vec::new(),
        }
    }

    /// Keeps something (a listener, a folder with certificates) until the clause is over.
    #[must_use]
    pub fn keeping(mut self, guard: impl Any) -> Self {
        self.guards.push(Box::new(guard));
        self
    }

    /// Names a token that the transport sends: nothing printed may contain it.
    #[must_use]
    pub fn with_secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// A call that leaves everything to the transport.
    fn call(&self, request: impl Into<Bytes>) -> BoxStream<'static, Result<Bytes>> {
        self.transport.call(request.into(), CallOptions::default())
    }
}

impl<T: Transport> From<T> for TransportSubject {
    fn from(transport: T) -> Self {
        Self::new(Arc::new(transport))
    }
}

impl fmt::Debug for TransportSubject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TransportSubject")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

type MakeFn = Box<dyn Fn(Responder) -> LocalBoxFuture<'static, TransportSubject>>;

/// Makes the transports that a clause asks for.
pub struct Transports {
    /// How long the clause waits for an answer.
    pub patience: Duration,
    make: MakeFn,
}

impl Transports {
    /// Transports made by a closure, each to the responder that it is given.
    pub fn new<F, T>(make: impl Fn(Responder) -> F + 'static) -> Self
    where
        F: Future<Output = T> + 'static,
        T: Into<TransportSubject> + 'static,
    {
        let make = move |responder| make(responder).map(Into::into).boxed_local();
        Self {
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

    async fn to(&self, responder: Responder) -> TransportSubject {
        within(PATIENCE * 6, "a transport", (self.make)(responder)).await
    }

    async fn next(&self, stream: &mut BoxStream<'static, Result<Bytes>>) -> Option<Result<Bytes>> {
        within(self.patience, "the next answer of a call", stream.next()).await
    }

    /// All answers of a call, sorted, and the error that it ended with.
    async fn all(
        &self,
        mut stream: BoxStream<'static, Result<Bytes>>,
    ) -> (Vec<Bytes>, Option<loader_core::Error>) {
        let mut answers = Vec::new();
        let mut error = None;
        while let Some(answer) = self.next(&mut stream).await {
            assert!(error.is_none(), "something came after the error");
            match answer {
                Ok(answer) => answers.push(answer),
                Err(last) => error = Some(last),
            }
        }
        answers.sort_unstable();
        (answers, error)
    }

    /// All answers of a call that must not fail, sorted.
    async fn answers(&self, stream: BoxStream<'static, Result<Bytes>>) -> Vec<Bytes> {
        let (answers, error) = self.all(stream).await;
        assert!(error.is_none(), "a call failed: {error:?}");
        answers
    }
}

impl fmt::Debug for Transports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Transports").finish_non_exhaustive()
    }
}
