//! Every shared case gives the answer that its manifest says.

use std::panic::{AssertUnwindSafe, catch_unwind};

use decode::{DecodeConfig, Truncated, decode};

use crate::support::{self, Case};

/// Checks all cases, and names all that differ and not only the first.
fn all(cases: &[Case]) {
    let differs = |case: &&Case| catch_unwind(AssertUnwindSafe(|| case.check())).is_err();
    let wrong: Vec<_> = cases
        .iter()
        .filter(differs)
        .map(|case| case.name.as_str())
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}: {wrong:?}",
        wrong.len(),
        cases.len()
    );
}

#[test]
fn generated_cases_give_their_answers() {
    all(&support::generated());
}

#[test]
fn real_cases_give_their_answers() {
    all(&support::real());
}

#[test]
fn our_huffman_decoding_gives_what_libjpegs_gives() {
    // Where parts are accepted, libjpeg's own is in use, because only that goes on after an error.
    let accepting = DecodeConfig::default().with_truncated(Truncated::Accept);
    let mut pictures = vec![support::photo("chelsea-420.jpg")];
    for case in support::generated().into_iter().chain(support::real()) {
        pictures.push(case.bytes);
    }
    let mut compared = 0;
    for bytes in pictures {
        if let Ok(ours) = decode(&bytes, &DecodeConfig::default()) {
            assert!(decode(&bytes, &accepting).unwrap() == ours);
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}
