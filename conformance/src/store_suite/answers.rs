//! What a fetch answers.

use std::time::{Duration, Instant};

use loader_core::{
    Error, ErrorKind, FetchRequest, Fetched, Fingerprint, Lane, NewSample, Row, Sample, SampleKey,
};

use crate::{
    harness::{Stores, Tested},
    samples::{DataSet, Form},
};

/// A fetch of all rows yields each sample as it was put in: path, label, parts, payload.
pub async fn every_target_is_answered_once_with_its_sample(stores: Stores) {
    let tested = stores.holding(DataSet::odd(stores.form)).await;
    let answers = tested.fetch(tested.all_rows()).await;
    tested.assert_samples(answers);
}

/// Targets are independent of row order, and one row may be asked for twice.
pub async fn rows_come_in_any_order_and_as_often_as_they_are_asked_for(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 10)).await;
    let rows = [9, 0, 5, 0, 9];
    let answers = tested.fetch(tested.rows(rows)).await;
    for (row, fetched) in rows.into_iter().zip(answers) {
        tested.assert_row(row, fetched);
    }
}

/// No targets, no answers, and the stream ends.
pub async fn an_empty_request_has_no_answers(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 3)).await;
    assert!(tested.fetch(tested.rows([])).await.is_empty());
    assert!(
        tested
            .fetch(FetchRequest::keys(Vec::new()))
            .await
            .is_empty()
    );
}

/// A fetch by name gives what the manifest says of it: path, label and parts.
pub async fn keys_fetch_the_same_samples_as_rows(stores: Stores) {
    let tested = stores.holding(DataSet::odd(stores.form)).await;
    let keys = tested
        .catalog_rows()
        .await
        .into_iter()
        .map(|row| row.key)
        .collect();
    let answers = tested.fetch(FetchRequest::keys(keys)).await;
    tested.assert_samples(answers);
}

/// A row number that the data set does not have is an error of that target alone.
pub async fn an_unknown_row_fails_alone_with_a_typed_error(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 5)).await;
    let mut answers = tested.fetch(tested.rows([0, 5, u64::MAX, 4])).await;
    assert_unknown(&answers.remove(2));
    assert_unknown(&answers.remove(1));
    tested.assert_row(4, answers.remove(1));
    tested.assert_row(0, answers.remove(0));
}

/// A name that no payload has is an error of that target alone.
pub async fn an_unknown_key_fails_alone_with_a_typed_error(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 5)).await;
    let rows = tested.catalog_rows().await;
    let keys = vec![rows[0].key, SampleKey([0xab; 16]), rows[4].key];
    let mut answers = tested.fetch(FetchRequest::keys(keys)).await;
    assert_unknown(&answers.remove(1));
    tested.assert_row(4, answers.remove(1));
    tested.assert_row(0, answers.remove(0));
}

/// Row numbers mean nothing without their data set.
pub async fn rows_of_another_data_set_are_incompatible(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 5)).await;
    let other = Fingerprint::of_rows([(&b"another data set"[..], 1, 0)]);
    for fetched in tested
        .fetch(FetchRequest::rows(other, vec![0, 1, 99]))
        .await
    {
        assert_eq!(kind(&fetched), Some(ErrorKind::Incompatible));
    }
}

/// Parts are matched without case; those that a sample lacks are left out; the bytes are those of the parts asked for.
pub async fn parts_are_chosen_by_name_without_case(stores: Stores) {
    let tested = stores.holding(DataSet::odd(stores.form)).await;
    let whole = tested
        .fetch(tested.all_rows())
        .await
        .into_iter()
        .map(sample)
        .collect::<Vec<_>>();
    for names in [
        &["jpG", "TXT", "none"][..],
        &["seg.PNG"],
        &["SEG.png", "JPG"],
        &[],
    ] {
        let mut request = tested.all_rows();
        request.parts = Some(names.iter().map(|name| (*name).to_owned()).collect());
        for (whole, fetched) in whole.iter().zip(tested.fetch(request).await) {
            let sample = sample(fetched);
            let wanted = |name: &str| names.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
            let expected: Vec<_> = whole
                .parts
                .iter()
                .filter(|part| wanted(&part.name))
                .collect();
            let found: Vec<_> = sample
                .parts
                .iter()
                .map(|part| (&part.name, part.nbytes))
                .collect();
            let named: Vec<_> = expected
                .iter()
                .map(|part| (&part.name, part.nbytes))
                .collect();
            assert_eq!(found, named, "{names:?} of {}", whole.path);
            for part in expected {
                assert_eq!(
                    sample.part(&part.name),
                    whole.part(&part.name),
                    "{} of {}",
                    part.name,
                    whole.path
                );
            }
            let nbytes: u64 = sample.parts.iter().map(|part| part.nbytes).sum();
            assert_eq!(
                sample.payload.len() as u64,
                nbytes,
                "only the chosen parts of {}",
                whole.path
            );
            assert_eq!(
                (&sample.path, sample.label, sample.key),
                (&whole.path, whole.label, whole.key)
            );
        }
    }
}

/// An answer that would come too late is an error, not a sample.
pub async fn a_deadline_in_the_past_is_a_timeout_for_every_target(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 5)).await;
    let mut request = tested.all_rows();
    let now = Instant::now();
    request.deadline = Some(now.checked_sub(Duration::from_millis(1)).unwrap_or(now));
    for fetched in tested.fetch(request).await {
        assert_eq!(kind(&fetched), Some(ErrorKind::Timeout));
    }
}

/// A deadline is no delay and no failure while there is time.
pub async fn a_deadline_far_ahead_changes_nothing(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 5)).await;
    let mut request = tested.all_rows();
    request.deadline = Some(Instant::now() + Duration::from_hours(1));
    request.expected_bytes = 5 * 300;
    let answers = tested.fetch(request).await;
    tested.assert_samples(answers);
}

/// Answers say which lane they came over; it is the one that was asked for, and not the one to avoid if there is another.
pub async fn every_lane_can_be_asked_for_and_avoided(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 5)).await;
    let lanes = tested.store().capability().lanes;
    for lane in (0..lanes).map(Lane) {
        let mut request = tested.all_rows();
        request.lane = Some(lane);
        let answers = tested.fetch(request).await;
        assert!(
            answers.iter().all(|fetched| fetched.lane == lane),
            "{lane:?} was asked for"
        );
        tested.assert_samples(answers);
        let mut request = tested.all_rows();
        request.avoid = Some(lane);
        let answers = tested.fetch(request).await;
        assert!(
            answers.iter().all(|fetched| fetched.lane.0 < lanes),
            "one of {lanes} lanes"
        );
        assert!(
            lanes == 1 || answers.iter().all(|fetched| fetched.lane != lane),
            "{lane:?} was to be avoided"
        );
        tested.assert_samples(answers);
    }
}

/// Kinds that say that there is no such thing, and that asking again will not help.
fn assert_unknown(fetched: &Fetched) {
    let error = fetched
        .outcome
        .as_ref()
        .expect_err("there is no such sample");
    let typed = matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::Vanished | ErrorKind::Usage
    );
    assert!(
        typed && !error.is_transient(),
        "not found, vanished or usage, for good, but {error:?}"
    );
}

pub(super) fn kind(fetched: &Fetched) -> Option<ErrorKind> {
    fetched.outcome.as_ref().err().map(Error::kind)
}

pub(super) fn sample(fetched: Fetched) -> Sample {
    fetched
        .outcome
        .unwrap_or_else(|error| panic!("target {}: {error}", fetched.target))
}

impl Tested {
    pub(crate) async fn catalog_rows(&self) -> Vec<Row> {
        let catalog = self
            .store()
            .catalog()
            .await
            .expect("the catalogue can be read");
        (0..catalog.len()).map(|row| catalog.row(row)).collect()
    }

    /// Looks at an answer for every row, in row order.
    pub(crate) fn assert_samples(&self, answers: Vec<Fetched>) {
        assert_eq!(answers.len(), self.set.samples.len());
        for (expected, fetched) in self.set.in_order().into_iter().zip(answers) {
            self.assert_sample(expected, &sample(fetched));
        }
    }

    pub(crate) fn assert_row(&self, row: u64, fetched: Fetched) {
        let row = usize::try_from(row).expect("small data sets");
        self.assert_sample(self.set.in_order()[row], &sample(fetched));
    }

    fn assert_sample(&self, expected: &NewSample, sample: &Sample) {
        assert_eq!(sample.path, expected.path);
        assert_eq!(sample.label, expected.label, "label of {}", sample.path);
        assert_eq!(
            sample.payload.len(),
            expected.payload.len(),
            "payload bytes of {}",
            sample.path
        );
        assert!(
            sample.payload == expected.payload,
            "the payload of {} is another one",
            sample.path
        );
        if self.set.form == Form::ImageFolder {
            // What the one part of a file is called is the store's own affair.
            assert_eq!(sample.parts.len(), 1, "parts of {}", sample.path);
            assert_eq!(
                (sample.parts[0].offset, sample.parts[0].nbytes),
                (0, sample.payload.len() as u64)
            );
        } else {
            assert_eq!(sample.parts, expected.parts, "parts of {}", sample.path);
        }
    }
}
