//! What a call brings.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use loader_core::{CallOptions, Error, ErrorKind, Lane};
use tokio::task::JoinSet;

use super::{
    Transports,
    peer::{Last, answer, echo, produce},
};
use crate::{credit::Responder, harness::within};

/// Nothing is cut, joined, lost or repeated, from no bytes to a million, either way.
pub async fn requests_and_answers_of_any_size_come_whole_and_once(transports: Transports) {
    let subject = transports.to(echo()).await;
    for bytes in [0, 1, 7, 65_535, 65_536, 1_000_000] {
        let request = answer(bytes as u64, bytes);
        assert!(
            transports.answers(subject.call(request.clone())).await == [request],
            "{bytes} bytes there and back"
        );
    }
    let several: Responder = Arc::new(|_| {
        stream::iter([9, 0, 1, 100_000, 0, 1_000_000, 9])
            .map(|bytes| Ok(answer(bytes as u64, bytes)))
            .boxed()
    });
    let subject = transports.to(several).await;
    let mut expected: Vec<_> = [9, 0, 1, 100_000, 0, 1_000_000, 9]
        .map(|bytes| answer(bytes as u64, bytes))
        .into();
    expected.sort_unstable();
    let answers = transports.answers(subject.call("go")).await;
    let sizes = |answers: &[Bytes]| answers.iter().map(Bytes::len).collect::<Vec<_>>();
    assert_eq!(sizes(&answers), sizes(&expected));
    assert!(answers == expected, "the bytes of an answer are other ones");
}

/// The stream of a call without answers ends.
pub async fn a_call_may_have_no_answers(transports: Transports) {
    let (responder, _) = produce(0, 0, Last::End);
    let subject = transports.to(responder).await;
    assert!(transports.answers(subject.call("nothing")).await.is_empty());
}

/// An answer owns its memory.
pub async fn an_answer_outlives_its_call_and_its_transport(transports: Transports) {
    let (responder, _) = produce(20, 50_000, Last::End);
    let subject = transports.to(responder).await;
    let answers = transports.answers(subject.call("go")).await;
    // Another call has the chance to overwrite what the first one left.
    transports.answers(subject.call("again")).await;
    drop(subject);
    let mut expected: Vec<_> = (0..20).map(|number| answer(number, 50_000)).collect();
    expected.sort_unstable();
    assert!(answers == expected, "an answer has changed");
}

/// Answers that came before stay good; the error is the last element.
pub async fn a_call_that_the_peer_breaks_off_ends_with_an_error(transports: Transports) {
    let (responder, _) = produce(5, 100, Last::BreakOff);
    let subject = transports.to(responder).await;
    let (answers, error) = transports.all(subject.call("go")).await;
    assert!(answers.len() <= 5 && answers.iter().all(|answer| answer.len() == 100));
    assert!(error.is_some(), "half of an answer is no answer");
}

/// The error of one call is no error of another that runs beside it.
pub async fn a_call_that_fails_does_not_disturb_another(transports: Transports) {
    let subject = transports.to(by_request()).await;
    let (mut good, bad) = (subject.call("hold"), subject.call("fail"));
    let first = transports.next(&mut good).await;
    assert!(
        first.is_some_and(|first| first.is_ok()),
        "the good call has begun"
    );
    assert!(transports.all(bad).await.1.is_some(), "the bad call fails");
    assert_eq!(transports.answers(subject.call("quick")).await, ["quick"]);
    drop(good);
}

/// A call that waits for its peer does not make another one wait.
pub async fn a_call_that_is_slow_does_not_hold_up_another(transports: Transports) {
    let subject = transports.to(by_request()).await;
    let mut slow = subject.call("hold");
    assert!(
        transports
            .next(&mut slow)
            .await
            .is_some_and(|first| first.is_ok())
    );
    for _ in 0..20 {
        assert_eq!(transports.answers(subject.call("quick")).await, ["quick"]);
    }
}

/// Calls from several threads do not mix up their answers.
pub async fn two_hundred_calls_at_once_are_all_answered(transports: Transports) {
    let subject = transports.to(echo()).await;
    let mut tasks = JoinSet::new();
    for number in 0..200 {
        let request = answer(number, 2000);
        let stream = subject.call(request.clone());
        let patience = transports.patience;
        tasks.spawn(async move {
            let answers = within(
                patience,
                "the answers of a call",
                stream.collect::<Vec<_>>(),
            )
            .await;
            let answers: Vec<_> = answers
                .into_iter()
                .map(|answer| answer.expect("an echo does not fail"))
                .collect();
            answers == [request]
        });
    }
    let right = tasks.join_all().await;
    assert_eq!(right, [true; 200]);
}

/// Each lane that the capability counts carries calls; a lane that is not there is a wrong usage.
pub async fn every_lane_can_be_used(transports: Transports) {
    let subject = transports.to(echo()).await;
    let lanes = subject.transport.capability().lanes;
    let on = |lane| CallOptions {
        lane: Some(Lane(lane)),
        ..CallOptions::default()
    };
    for lane in 0..lanes {
        let stream = subject.transport.call("lane".into(), on(lane));
        assert_eq!(transports.answers(stream).await, ["lane"]);
    }
    if let Some(none) = lanes.checked_add(1) {
        let (answers, error) = transports
            .all(subject.transport.call("lane".into(), on(none)))
            .await;
        assert!(answers.is_empty());
        assert_eq!(error.as_ref().map(Error::kind), Some(ErrorKind::Usage));
    }
}

/// Every figure is one that can be worked with, and the transport's name begins with its scheme.
pub async fn no_capability_is_nonsense(transports: Transports) {
    let subject = transports.to(echo()).await;
    let capability = subject.transport.capability();
    assert!(capability.lanes >= 1, "no lanes");
    assert!(
        capability.max_frame_bytes >= 1 << 20,
        "frames too small for a sample"
    );
    let name = subject.transport.to_string();
    assert!(
        !capability.scheme.is_empty() && name.starts_with(capability.scheme),
        "{name:?}"
    );
}

/// Neither the transport nor its errors show a token.
pub async fn nothing_printed_has_a_secret(transports: Transports) {
    let (responder, _) = produce(0, 0, Last::BreakOff);
    let subject = transports.to(responder).await;
    let (_, error) = transports.all(subject.call("go")).await;
    let error = error.expect("the peer broke off");
    for printed in [
        subject.transport.to_string(),
        format!("{:?}", subject.transport),
        error.to_string(),
        format!("{error:?}"),
    ] {
        for secret in &subject.secrets {
            assert!(!printed.contains(secret.as_str()), "a secret is printed");
        }
    }
}

/// `hold` gets one answer and no end, `fail` breaks off, anything else comes back after a moment.
fn by_request() -> Responder {
    Arc::new(|request: Bytes| match &request[..] {
        b"hold" => stream::iter([Ok(request)]).chain(stream::pending()).boxed(),
        b"fail" => stream::iter([Err(Error::new(ErrorKind::Unavailable, "as asked"))]).boxed(),
        _ => stream::once(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(request)
        })
        .boxed(),
    })
}
