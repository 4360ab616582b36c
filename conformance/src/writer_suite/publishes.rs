//! What publishing a manifest does, and what it leaves as it was.

use loader_core::{ErrorKind, FetchRequest, NO_LABEL};

use super::{Writers, rows_of};
use crate::samples::DataSet;

/// Nothing is published and nothing can be opened, which is an error of a known kind.
pub async fn a_new_data_set_has_nothing_published(writers: Writers) {
    let subject = writers.new_data_set().await;
    assert!(subject.published().await.is_none());
    let error = subject.open().await.expect_err("there is nothing to open");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// Samples that were put are not there for a reader until the manifest that names them is.
pub async fn nothing_is_visible_before_it_is_published(writers: Writers) {
    let subject = writers.new_data_set().await;
    let mut set = DataSet::many(writers.form, 10);
    let later = set.samples.split_off(5);
    let mut rows = subject.put_all(&set.samples).await;
    assert!(subject.published().await.is_none());
    assert!(subject.open().await.is_err(), "nothing was published");
    subject.publish(rows.clone(), &set.classes).await;
    rows.extend(subject.put_all(&later).await);
    let reader = subject.reader(&set).await;
    assert_eq!(reader.store().summary().samples, 5);
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
    assert_eq!(reader.catalog_rows().await.len(), 5);
    assert_eq!(
        reader
            .listed(reader.store().metadata())
            .await
            .concat()
            .len(),
        5
    );
    subject.publish(rows, &set.classes).await;
    set.samples.extend(later);
    let reader = subject.reader(&set).await;
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
}

/// Odd samples survive: paths, parts, fields, labels and every byte.
pub async fn what_was_published_reads_back_as_it_was_put(writers: Writers) {
    let subject = writers.new_data_set().await;
    let set = DataSet::odd(writers.form);
    let summary = subject.written(&set).await;
    let reader = subject.reader(&set).await;
    assert_eq!(reader.store().summary(), summary);
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
    let published = subject.published().await.expect("it was published");
    assert_eq!(published.summary(), summary);
    assert_eq!(rows_of(&published), reader.catalog_rows().await);
    let fields: Vec<_> = set
        .in_order()
        .iter()
        .map(|sample| sample.fields.clone())
        .collect();
    let read: Vec<_> = rows_of(&published)
        .into_iter()
        .map(|row| row.fields)
        .collect();
    assert_eq!(read, fields);
}

/// A reader goes on showing what it was opened on, whatever is put and published meanwhile.
pub async fn a_reader_that_is_open_keeps_what_it_is_pinned_to(writers: Writers) {
    let subject = writers.new_data_set().await;
    let old_set = DataSet::many(writers.form, 10);
    let old_summary = subject.written(&old_set).await;
    let old = subject.reader(&old_set).await;
    let old_rows = old.catalog_rows().await;
    // The new one has other samples, and none of the old ones but one.
    let mut new_set = DataSet::many(writers.form, 21);
    new_set.samples.drain(..10);
    subject.written(&new_set).await;
    assert_eq!(old.store().summary(), old_summary);
    assert_eq!(old.catalog_rows().await, old_rows);
    assert_eq!(old.listed(old.store().metadata()).await.concat().len(), 10);
    old.assert_samples(old.fetch(old.all_rows()).await);
    let new = subject.reader(&new_set).await;
    new.assert_samples(new.fetch(new.all_rows()).await);
    for fetched in new.fetch(old.all_rows()).await {
        assert_eq!(
            fetched.outcome.expect_err("another data set").kind(),
            ErrorKind::Incompatible
        );
    }
}

/// The same manifest published again is the same data set.
pub async fn publishing_twice_changes_nothing(writers: Writers) {
    let subject = writers.new_data_set().await;
    let set = DataSet::many(writers.form, 10);
    let rows = subject.put_all(&set.samples).await;
    let first = subject.publish(rows.clone(), &set.classes).await;
    let reader = subject.reader(&set).await;
    assert_eq!(subject.publish(rows, &set.classes).await, first);
    for reader in [reader, subject.reader(&set).await] {
        assert_eq!(reader.store().summary(), first);
        reader.assert_samples(reader.fetch(reader.all_rows()).await);
        assert_eq!(reader.listed(reader.store().keys()).await.len(), 10);
    }
}

/// Rows that a new manifest leaves out are no samples any more; their payloads are listed and come without path and label.
pub async fn publishing_fewer_rows_leaves_the_other_payloads_as_orphans(writers: Writers) {
    let subject = writers.new_data_set().await;
    let mut set = DataSet::many(writers.form, 10);
    let mut rows = subject.put_all(&set.samples).await;
    subject.publish(rows.clone(), &set.classes).await;
    let orphans = rows.split_off(7);
    subject.publish(rows, &set.classes).await;
    let left_out = set.samples.split_off(7);
    let reader = subject.reader(&set).await;
    assert_eq!(reader.store().summary().samples, 7);
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
    let listed = reader.listed(reader.store().keys()).await;
    assert!(
        orphans.iter().all(|row| listed.contains(&row.key)),
        "orphans are listed"
    );
    let keys = orphans.iter().map(|row| row.key).collect();
    for (sample, fetched) in left_out
        .iter()
        .zip(reader.fetch(FetchRequest::keys(keys)).await)
    {
        let fetched = fetched.outcome.expect("the payload is there");
        assert!(
            fetched.payload == sample.payload,
            "the payload of {}",
            sample.path
        );
        assert!(
            fetched.path.is_empty() && fetched.label == NO_LABEL,
            "nobody knows what it is"
        );
        assert!(!fetched.parts.is_empty());
    }
}

/// The caller keeps the classes that are there and appends: the store gives back exactly what it was given.
pub async fn classes_stay_and_new_ones_are_appended(writers: Writers) {
    let subject = writers.new_data_set().await;
    let mut set = DataSet::many(writers.form, 3);
    let rows = subject.put_all(&set.samples).await;
    subject.publish(rows, &set.classes).await;
    let published = subject.published().await.expect("it was published");
    assert_eq!(*published.classes, *set.classes);
    // Appended, and no longer in code-point order: old labels keep their meaning.
    set.classes.push("A new class".to_owned());
    subject.publish(rows_of(&published), &set.classes).await;
    assert_eq!(
        *subject.published().await.expect("it was published").classes,
        *set.classes
    );
    let reader = subject.reader(&set).await;
    assert_eq!(*reader.store().summary().classes, *set.classes);
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
}

/// A data set without samples can be published, opened, and filled later.
pub async fn an_empty_manifest_can_be_published(writers: Writers) {
    let subject = writers.new_data_set().await;
    let empty = DataSet::empty(writers.form);
    subject.publish(Vec::new(), &empty.classes).await;
    let reader = subject.reader(&empty).await;
    assert_eq!(reader.store().summary().samples, 0);
    assert_eq!(*reader.store().summary().classes, *empty.classes);
    assert!(reader.catalog_rows().await.is_empty());
    let set = DataSet::one(writers.form);
    subject.written(&set).await;
    let reader = subject.reader(&set).await;
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
}

/// What is published has all that an ingest needs to extend it.
pub async fn an_ingest_goes_on_from_what_is_published(writers: Writers) {
    let subject = writers.new_data_set().await;
    let mut set = DataSet::many(writers.form, 9);
    let later = set.samples.split_off(4);
    subject.written(&set).await;
    let published = subject.published().await.expect("it was published");
    let mut rows = rows_of(&published);
    assert_eq!(rows.len(), 4);
    rows.extend(subject.put_all(&later).await);
    subject.publish(rows, &published.classes).await;
    set.samples.extend(later);
    let reader = subject.reader(&set).await;
    assert_eq!(reader.store().summary().samples, 9);
    assert_eq!(*reader.store().summary().classes, *set.classes);
    reader.assert_samples(reader.fetch(reader.all_rows()).await);
}
