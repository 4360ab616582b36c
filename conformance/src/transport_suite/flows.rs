//! What a call holds, and when it lets go.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use futures_util::{FutureExt, StreamExt};
use loader_core::{CallOptions, Error, ErrorKind};
use tokio::time::sleep;

use super::{
    Transports,
    peer::{Last, answer, echo, produce},
};

const ANSWER_BYTES: usize = 10_000;

/// No more than the credit and one answer lie between the far end and a caller who does not poll; all come when it does.
pub async fn a_caller_that_does_not_poll_stops_the_peer(transports: Transports) {
    let (responder, seen) = produce(2000, ANSWER_BYTES, Last::End);
    let subject = transports.to(responder).await;
    let credit_bytes = 40 * ANSWER_BYTES as u64;
    let options = CallOptions {
        credit_bytes,
        ..CallOptions::default()
    };
    let mut stream = subject.transport.call("go".into(), options);
    for taken in [1, 200] {
        for _ in 0..taken {
            let answer = transports.next(&mut stream).await;
            assert!(
                answer.is_some_and(|answer| answer.is_ok()),
                "an answer of many"
            );
        }
        let produced = settled(|| seen.produced.load(Ordering::SeqCst)).await;
        let taken_so_far = if taken == 1 { 1 } else { 201 };
        // One answer that overshoots, and one that the far end has in its hand.
        let most = taken_so_far + 40 + 2;
        assert!(
            produced <= most,
            "{produced} answers were made when {taken_so_far} had been taken, at most {most} may be"
        );
    }
    assert_eq!(transports.answers(stream).await.len(), 2000 - 201);
}

/// Credit bounds what is ahead of the caller; it never keeps an answer from coming.
pub async fn answers_larger_than_the_credit_come_all_the_same(transports: Transports) {
    let (responder, _) = produce(30, 300_000, Last::End);
    let subject = transports.to(responder).await;
    let options = CallOptions {
        credit_bytes: 1,
        ..CallOptions::default()
    };
    let answers = transports
        .answers(subject.transport.call("go".into(), options))
        .await;
    let mut expected: Vec<_> = (0..30).map(|number| answer(number, 300_000)).collect();
    expected.sort_unstable();
    assert!(
        answers == expected,
        "{} answers of 30 are right",
        answers.len()
    );
}

/// The far end is told to stop, though it has more to send or waits.
pub async fn dropping_a_stream_stops_the_peer(transports: Transports) {
    for count in [3, u64::MAX] {
        let (responder, seen) = produce(count, ANSWER_BYTES, Last::Hang);
        let subject = transports.to(responder).await;
        let mut stream = subject.call("go");
        assert!(
            transports
                .next(&mut stream)
                .await
                .is_some_and(|first| first.is_ok())
        );
        assert_eq!(
            seen.ended.load(Ordering::SeqCst),
            0,
            "the far end is at work"
        );
        drop(stream);
        let start = Instant::now();
        while seen.ended.load(Ordering::SeqCst) == 0 {
            assert!(
                start.elapsed() < transports.patience,
                "the far end goes on for nobody"
            );
            sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Hundreds of calls that were given up hold nothing back from the next.
pub async fn dropped_calls_leak_nothing(transports: Transports) {
    let (responder, _) = produce(100, ANSWER_BYTES, Last::End);
    let subject = transports.to(responder).await;
    let options = CallOptions {
        credit_bytes: 4 * ANSWER_BYTES as u64,
        ..CallOptions::default()
    };
    for round in 0..300 {
        let mut stream = subject.transport.call("go".into(), options);
        match round % 3 {
            0 => (),
            1 => drop(stream.next().now_or_never()),
            _ => assert!(
                transports
                    .next(&mut stream)
                    .await
                    .is_some_and(|first| first.is_ok())
            ),
        }
    }
    assert_eq!(
        transports
            .answers(subject.transport.call("go".into(), options))
            .await
            .len(),
        100
    );
}

/// What has not come by the deadline does not come; the call ends with `Timeout`.
pub async fn a_deadline_ends_a_call_with_a_timeout(transports: Transports) {
    let (responder, _) = produce(3, 100, Last::Hang);
    let subject = transports.to(responder).await;
    let deadline = Some(Instant::now() + Duration::from_millis(200));
    let options = CallOptions {
        deadline,
        ..CallOptions::default()
    };
    let (answers, error) = transports
        .all(subject.transport.call("go".into(), options))
        .await;
    assert!(answers.len() <= 3);
    assert_eq!(error.as_ref().map(Error::kind), Some(ErrorKind::Timeout));
    assert!(
        deadline.is_some_and(|deadline| Instant::now() >= deadline),
        "it ended before the deadline"
    );
}

/// A call that is late from the start is not made, or its answers do not count.
pub async fn a_deadline_in_the_past_is_a_timeout(transports: Transports) {
    let subject = transports.to(echo()).await;
    let now = Instant::now();
    let options = CallOptions {
        deadline: now.checked_sub(Duration::from_millis(1)).or(Some(now)),
        ..CallOptions::default()
    };
    let (answers, error) = transports
        .all(subject.transport.call("late".into(), options))
        .await;
    assert!(answers.is_empty());
    assert_eq!(error.as_ref().map(Error::kind), Some(ErrorKind::Timeout));
}

/// A count that has stopped growing.
async fn settled(count: impl Fn() -> u64) -> u64 {
    let (mut last, mut quiet) = (count(), 0);
    while quiet < 10 {
        sleep(Duration::from_millis(10)).await;
        let now = count();
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
    }
    last
}
