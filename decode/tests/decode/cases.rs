//! Every shared case gives the answer that its manifest says.

use std::panic::{AssertUnwindSafe, catch_unwind};

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
