//! What putting samples does.

use std::sync::Arc;

use bytes::Bytes;
use loader_core::{ErrorKind, NewSample, Part, Put, Row, SampleKey, identity::checksum};

use super::{Writers, row};
use crate::{random::Random, samples::DataSet};

/// Payloads of this size are taken by every store that does not say otherwise.
const LARGE_BYTES: u64 = 8 << 20;

/// Each answer is the row of its sample, with everything that the manifest will say of it.
pub async fn put_answers_every_sample_in_the_order_given(writers: Writers) {
    let subject = writers.new_data_set().await;
    let set = DataSet::odd(writers.form);
    for (put, sample) in subject
        .put(&set.samples)
        .await
        .into_iter()
        .zip(&set.samples)
    {
        assert!(matches!(put, Put::Written(_)), "{} was new", sample.path);
        assert_is_of(&row(put), sample);
    }
    assert!(subject.put(&[]).await.is_empty());
}

/// A payload that is there is found, not written again, and its row is the same.
pub async fn a_repeated_put_changes_nothing(writers: Writers) {
    let subject = writers.new_data_set().await;
    let set = DataSet::many(writers.form, 20);
    let first: Vec<_> = subject
        .put(&set.samples)
        .await
        .into_iter()
        .map(row)
        .collect();
    for (put, first) in subject.put(&set.samples).await.into_iter().zip(&first) {
        assert!(matches!(put, Put::Present(_)), "{} was there", first.path);
        assert_eq!(row(put), *first);
    }
    subject.publish(first, &set.classes).await;
    let reader = subject.reader(&set).await;
    assert_eq!(
        reader.listed(reader.store().keys()).await.len(),
        20,
        "no payload is there twice"
    );
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
}

/// What a name stands for never changes: new bytes under an old path get a name of their own.
pub async fn the_same_path_with_other_bytes_is_another_payload(writers: Writers) {
    let subject = writers.new_data_set().await;
    let mut set = DataSet::many(writers.form, 3);
    subject.written(&set).await;
    let old = subject.reader(&set).await;
    change_a_byte(&mut set.samples[1]);
    let put = subject.put(&set.samples).await;
    let written: Vec<_> = put
        .iter()
        .map(|put| matches!(put, Put::Written(_)))
        .collect();
    assert_eq!(written, [false, true, false]);
    subject
        .publish(put.into_iter().map(row).collect(), &set.classes)
        .await;
    let new = subject.reader(&set).await;
    new.assert_samples(new.fetch(new.all_rows()).await);
    old.assert_samples(old.fetch(old.all_rows()).await);
}

/// Several puts of overlapping groups at once all succeed, and agree on the rows.
pub async fn puts_at_once_of_the_same_samples_agree(writers: Writers) {
    let subject = writers.new_data_set().await;
    let set = DataSet::many(writers.form, 30);
    let put = |start: usize| {
        let writer = Arc::clone(&subject.writer);
        let samples = set.samples[start..start + 15].to_vec();
        tokio::spawn(async move { writer.put(samples).await })
    };
    let mut rows: Vec<Option<Row>> = vec![None; 30];
    for (start, task) in [0, 5, 10, 15].map(|start| (start, put(start))) {
        let puts = task
            .await
            .expect("a put does not panic")
            .expect("the store takes samples");
        for (place, put) in (start..).zip(puts) {
            let row = row(put);
            assert_is_of(&row, &set.samples[place]);
            assert!(
                rows[place]
                    .replace(row.clone())
                    .is_none_or(|other| other == row),
                "rows of {} differ",
                row.path
            );
        }
    }
    subject
        .publish(rows.into_iter().flatten().collect(), &set.classes)
        .await;
    let reader = subject.reader(&set).await;
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
    assert_eq!(reader.listed(reader.store().keys()).await.len(), 30);
}

/// The limit that the capability names holds for each payload by itself; without one, large payloads are taken.
pub async fn a_payload_that_is_too_large_fails_alone(writers: Writers) {
    let subject = writers.new_data_set().await;
    let limit = subject.writer.capability().max_payload_bytes;
    // Limits beyond what a test can hold in memory are taken at their word.
    let limit = limit.filter(|limit| *limit <= 8 * LARGE_BYTES);
    let mut set = DataSet::many(writers.form, 3);
    let large = usize::try_from(limit.unwrap_or(LARGE_BYTES)).expect("it fits into memory");
    resize(&mut set.samples[1], large);
    if limit.is_some() {
        let mut too_large = set.clone();
        resize(&mut too_large.samples[1], large + 1);
        let puts = subject.put(&too_large.samples).await;
        for (place, put) in puts.iter().enumerate() {
            match put {
                Put::Failed(error) => {
                    assert_eq!((place, error.kind()), (1, ErrorKind::TooLarge));
                    assert_eq!(
                        error.path(),
                        Some(&set.samples[1].path),
                        "the error names its sample"
                    );
                }
                Put::Written(_) => assert_ne!(place, 1, "more bytes than the limit were taken"),
                Put::Present(_) => panic!("sample {place} was new"),
            }
        }
    }
    subject.written(&set).await;
    let reader = subject.reader(&set).await;
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
}

fn change_a_byte(sample: &mut NewSample) {
    // The last part may say what the label is: the first one is changed.
    let mut payload = sample.payload.to_vec();
    payload[0] ^= 1;
    sample.payload = payload.into();
}

/// Gives the first part so many bytes more that the payload has `payload_bytes`.
fn resize(sample: &mut NewSample, payload_bytes: usize) {
    let added = payload_bytes - sample.payload.len();
    let payload = [
        Bytes::from(Random::new(9).bytes(added)),
        sample.payload.clone(),
    ]
    .concat();
    let names = sample.parts.iter().enumerate().map(|(place, part)| {
        (
            part.name.as_str(),
            part.nbytes + if place == 0 { added as u64 } else { 0 },
        )
    });
    let parts = Part::sequence(names.collect::<Vec<_>>());
    (sample.parts, sample.payload) = (parts, payload.into());
}

fn assert_is_of(row: &Row, sample: &NewSample) {
    let checksum = checksum(&sample.payload);
    let expected = Row {
        path: sample.path.clone(),
        key: SampleKey::of_content(&sample.path, checksum),
        nbytes: sample.payload.len() as u64,
        checksum: Some(checksum),
        label: sample.label,
        parts: Arc::clone(&sample.parts),
        fields: sample.fields.clone(),
    };
    assert_eq!(*row, expected);
}
