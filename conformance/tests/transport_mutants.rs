//! Each clause of the transport suite fails for a transport that breaks it.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use conformance::{
    credit::{CreditConfig, CreditTransport, Responder},
    harness::run,
    transport_suite::{self, TransportSubject, Transports},
};
use futures_util::{
    StreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use loader_core::{CallOptions, Error, ErrorKind, Result, Transport, TransportCapability};
use tokio::sync::{Semaphore, mpsc};

/// One way each to break the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    CutsAt40000,
    LosesEmptyAnswers,
    AnswersTwice,
    NeverEnds,
    HidesErrors,
    FailsAfterAFailure,
    MakesOneCallAtATime,
    MixesUpAnswers,
    TakesEveryLane,
    HasNoLanes,
    PrintsItsToken,
    IgnoresCredit,
    ChokesOnLargeAnswers,
    GoesOnAfterADrop,
    LeaksDroppedCalls,
    IgnoresDeadlines,
}
use Defect as D;

struct Mutant {
    defect: Defect,
    inner: CreditTransport,
    calls: AtomicU64,
    failures: Arc<AtomicU64>,
    slots: Arc<Semaphore>,
}

impl Mutant {
    fn new(defect: Defect, responder: Responder) -> Self {
        let slots = if defect == D::MakesOneCallAtATime {
            1
        } else {
            50
        };
        Self {
            defect,
            inner: CreditTransport::new(responder, CreditConfig::default()),
            calls: AtomicU64::new(0),
            failures: Arc::default(),
            slots: Arc::new(Semaphore::new(slots)),
        }
    }
}

impl Transport for Mutant {
    fn capability(&self) -> TransportCapability {
        let mut capability = self.inner.capability();
        if self.defect == D::HasNoLanes {
            capability.lanes = 0;
        }
        capability
    }

    fn call(&self, request: Bytes, mut options: CallOptions) -> BoxStream<'static, Result<Bytes>> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        match self.defect {
            D::TakesEveryLane => options.lane = None,
            D::IgnoresCredit => options.credit_bytes = u64::MAX,
            D::IgnoresDeadlines => options.deadline = None,
            _ => (),
        }
        let right = self.inner.call(request, options);
        let broken = || Error::new(ErrorKind::Unavailable, "the connection is gone");
        match self.defect {
            D::CutsAt40000 => right
                .map(|answer| answer.map(|answer| answer.slice(..answer.len().min(40_000))))
                .boxed(),
            D::LosesEmptyAnswers => right
                .filter(|answer| ready(!answer.as_ref().is_ok_and(Bytes::is_empty)))
                .boxed(),
            D::AnswersTwice => right
                .flat_map(|answer| stream::iter([answer.clone(), answer]))
                .boxed(),
            D::NeverEnds => right.chain(stream::pending()).boxed(),
            D::HidesErrors => right.filter(|answer| ready(answer.is_ok())).boxed(),
            D::FailsAfterAFailure => {
                let failures = Arc::clone(&self.failures);
                if failures.load(Ordering::SeqCst) > 0 {
                    return stream::iter([Err(broken())]).boxed();
                }
                let count = move |answer: &Result<Bytes>| {
                    failures.fetch_add(u64::from(answer.is_err()), Ordering::SeqCst);
                };
                right.inspect(count).boxed()
            }
            D::MakesOneCallAtATime => {
                let slots = Arc::clone(&self.slots);
                let slot = stream::once(slots.acquire_owned());
                slot.flat_map(|slot| stream::repeat(Arc::new(slot)))
                    .zip(right)
                    .map(|(_slot, answer)| answer)
                    .boxed()
            }
            D::MixesUpAnswers if call == 150 => {
                stream::iter([Ok(Bytes::from_static(b"another call's"))]).boxed()
            }
            D::PrintsItsToken => right
                .map(|answer| {
                    answer.map_err(|_| Error::new(ErrorKind::Unavailable, "bearer hunter2"))
                })
                .boxed(),
            D::ChokesOnLargeAnswers => {
                let credit = options.credit_bytes;
                let choked = move |answer: Result<Bytes>| async move {
                    if answer
                        .as_ref()
                        .is_ok_and(|answer| credit > 0 && answer.len() as u64 > credit)
                    {
                        std::future::pending::<()>().await;
                    }
                    answer
                };
                right.then(choked).boxed()
            }
            D::GoesOnAfterADrop => {
                let (sender, mut answers) = mpsc::unbounded_channel();
                tokio::spawn(async move {
                    let mut right = right;
                    while let Some(answer) = right.next().await {
                        // Nobody listening is no reason for it to stop.
                        let _ = sender.send(answer);
                    }
                });
                stream::poll_fn(move |context| answers.poll_recv(context)).boxed()
            }
            D::LeaksDroppedCalls => {
                let slots = Arc::clone(&self.slots);
                let taken = {
                    let slots = Arc::clone(&slots);
                    async move {
                        if let Ok(slot) = slots.acquire().await {
                            slot.forget();
                        }
                    }
                };
                let begin = stream::once(taken).filter_map(|()| ready(None));
                let end = stream::once(async move {
                    slots.add_permits(1);
                });
                begin
                    .chain(right)
                    .chain(end.filter_map(|()| ready(None)))
                    .boxed()
            }
            _ => right,
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

fn transports(defect: Defect) -> Transports {
    let make = move |responder| async move {
        TransportSubject::new(Arc::new(Mutant::new(defect, responder))).with_secret("hunter2")
    };
    Transports::new(make).patient_for(Duration::from_secs(2))
}

macro_rules! table {
    ($($clause:ident: $($defect:ident),+;)*) => {
        $(
            #[test]
            fn $clause() {
                run(transport_suite::$clause(transports(D::None)));
                for defect in [$(D::$defect),+] {
                    let caught = catch_unwind(AssertUnwindSafe(|| run(transport_suite::$clause(transports(defect)))));
                    assert!(caught.is_err(), "{defect:?} is not caught");
                }
            }
        )*

        #[test]
        fn every_clause_stands_in_the_table() {
            let table = [$(stringify!($clause)),*];
            let source = include_str!("../src/transport_suite.rs");
            let clauses = source.lines().filter_map(|line| line.strip_prefix("                "));
            let clauses: Vec<_> = clauses.filter_map(|line| line.strip_suffix(',')).filter(|name| !name.contains([' ', '('])).collect();
            assert_eq!(clauses, table);
        }
    };
}

table! {
    requests_and_answers_of_any_size_come_whole_and_once: CutsAt40000, LosesEmptyAnswers, AnswersTwice;
    a_call_may_have_no_answers: NeverEnds;
    an_answer_outlives_its_call_and_its_transport: CutsAt40000;
    a_call_that_the_peer_breaks_off_ends_with_an_error: HidesErrors, NeverEnds;
    a_call_that_fails_does_not_disturb_another: FailsAfterAFailure;
    a_call_that_is_slow_does_not_hold_up_another: MakesOneCallAtATime;
    two_hundred_calls_at_once_are_all_answered: MixesUpAnswers;
    every_lane_can_be_used: TakesEveryLane;
    no_capability_is_nonsense: HasNoLanes;
    nothing_printed_has_a_secret: PrintsItsToken;
    a_caller_that_does_not_poll_stops_the_peer: IgnoresCredit;
    answers_larger_than_the_credit_come_all_the_same: ChokesOnLargeAnswers;
    dropping_a_stream_stops_the_peer: GoesOnAfterADrop;
    dropped_calls_leak_nothing: LeaksDroppedCalls;
    a_deadline_ends_a_call_with_a_timeout: IgnoresDeadlines, HidesErrors;
    a_deadline_in_the_past_is_a_timeout: IgnoresDeadlines;
}
