//! What a store says of itself and of its data set.

use std::collections::{BTreeMap, BTreeSet};

use loader_core::{FetchRequest, Fingerprint, SampleKey, identity::checksum};

use crate::{
    harness::Stores,
    samples::{DataSet, Form},
};

/// Every figure is one that can be worked with, and the store's name begins with its scheme.
pub async fn the_capability_makes_sense(stores: Stores) {
    let tested = stores.holding(DataSet::one(stores.form)).await;
    let capability = tested.store().capability();
    assert!(capability.lanes >= 1, "no lanes");
    assert!(capability.request_samples >= 1, "no samples a request");
    assert!(capability.requests_in_flight >= 1, "no requests in flight");
    assert_ne!(
        capability.max_payload_bytes,
        Some(0),
        "no payload is small enough"
    );
    let name = tested.store().to_string();
    assert!(
        !capability.scheme.is_empty() && name.starts_with(capability.scheme),
        "{name:?} is no URI of {:?}",
        capability.scheme
    );
}

/// Count, bytes, classes, fields and fingerprint are those of the samples.
pub async fn the_summary_is_that_of_the_samples(stores: Stores) {
    let tested = stores.holding(DataSet::odd(stores.form)).await;
    let summary = tested.store().summary();
    let set = &tested.set;
    assert_eq!(summary.samples, set.samples.len() as u64);
    assert_eq!(
        summary.bytes,
        set.samples
            .iter()
            .map(|sample| sample.payload.len() as u64)
            .sum::<u64>()
    );
    assert_eq!(*summary.classes, *set.classes);
    assert_eq!(summary.fingerprint, fingerprint(set));
    assert_eq!(*summary.fields, fields(set));
}

/// The catalogue has one row a sample, sorted by path bytes, with everything that the sample said.
pub async fn the_catalog_has_every_row_in_path_order(stores: Stores) {
    let tested = stores.holding(DataSet::odd(stores.form)).await;
    let catalog = tested
        .store()
        .catalog()
        .await
        .expect("the catalogue can be read");
    let expected = tested.set.in_order();
    assert_eq!(catalog.len(), expected.len() as u64);
    assert_eq!(catalog.fields(), fields(&tested.set));
    for (number, expected) in (0..).zip(expected) {
        let row = catalog.row(number);
        assert_eq!(row.path, expected.path, "row {number}");
        assert_eq!(row.label, expected.label, "label of {}", row.path);
        assert_eq!(
            row.nbytes,
            expected.payload.len() as u64,
            "bytes of {}",
            row.path
        );
        assert_eq!(row.fields, expected.fields, "fields of {}", row.path);
        if stores.form != Form::ImageFolder {
            assert_eq!(row.parts, expected.parts, "parts of {}", row.path);
        }
        assert_eq!(
            (
                catalog.key(number),
                catalog.nbytes(number),
                catalog.label(number)
            ),
            (row.key, row.nbytes, row.label),
            "{}",
            row.path
        );
        assert_eq!(
            catalog.find(&row.path),
            Some(number),
            "{} is found",
            row.path
        );
    }
    for path in [&b"\xfe no such path"[..], b"", b"Zebra/"] {
        assert_eq!(catalog.find(path), None);
    }
}

/// Where a checksum is recorded it is right, and the payload is named after it; a store that says it compares has them all.
pub async fn a_recorded_checksum_is_that_of_the_payload(stores: Stores) {
    let tested = stores.holding(DataSet::odd(stores.form)).await;
    let compares = tested.store().capability().checksums;
    let rows = tested.catalog_rows().await;
    for (row, expected) in rows.iter().zip(tested.set.in_order()) {
        assert!(
            row.checksum.is_some() || !compares,
            "no checksum to compare {} with",
            row.path
        );
        if let Some(recorded) = row.checksum {
            assert_eq!(
                recorded,
                checksum(&expected.payload),
                "checksum of {}",
                row.path
            );
            assert_eq!(
                row.key,
                SampleKey::of_content(&row.path, recorded),
                "key of {}",
                row.path
            );
        }
    }
    let keys: BTreeSet<_> = rows.iter().map(|row| row.key).collect();
    assert_eq!(keys.len(), rows.len(), "each row has a key of its own");
}

/// The listing of payloads has every one that the manifest names, and none twice.
pub async fn keys_lists_every_row_once(stores: Stores) {
    let tested = stores.holding(DataSet::odd(stores.form)).await;
    let listed = tested.listed(tested.store().keys()).await;
    let keys: BTreeSet<_> = listed.iter().copied().collect();
    assert_eq!(keys.len(), listed.len(), "a payload is listed once");
    for row in tested.catalog_rows().await {
        assert!(keys.contains(&row.key), "{} is not listed", row.path);
    }
}

/// The listing of metadata has every row once, equal to that of the catalogue.
pub async fn metadata_covers_every_row_once(stores: Stores) {
    let tested = stores.holding(DataSet::odd(stores.form)).await;
    let mut listed = tested.listed(tested.store().metadata()).await.concat();
    listed.sort_by(|left, right| left.path.cmp(&right.path));
    let rows = tested.catalog_rows().await;
    assert_eq!(listed.len(), rows.len(), "rows listed");
    for (listed, row) in listed.iter().zip(&rows) {
        assert_eq!(listed, row);
    }
}

/// A data set may have no samples: everything works and there is nothing.
pub async fn an_empty_data_set_is_no_error(stores: Stores) {
    let tested = stores.holding(DataSet::empty(stores.form)).await;
    let summary = tested.store().summary();
    assert_eq!((summary.samples, summary.bytes), (0, 0));
    assert_eq!(*summary.classes, *tested.set.classes);
    assert_eq!(summary.fingerprint, fingerprint(&tested.set));
    assert!(tested.catalog_rows().await.is_empty());
    assert!(tested.listed(tested.store().keys()).await.is_empty());
    assert!(
        tested
            .listed(tested.store().metadata())
            .await
            .concat()
            .is_empty()
    );
    assert!(tested.fetch(tested.rows([0])).await[0].outcome.is_err());
}

/// One sample is the smallest data set that delivers something.
pub async fn one_sample_is_a_data_set(stores: Stores) {
    let tested = stores.holding(DataSet::one(stores.form)).await;
    assert_eq!(tested.store().summary().samples, 1);
    tested.assert_samples(tested.fetch(tested.all_rows()).await);
    let key = tested.catalog_rows().await[0].key;
    assert_eq!(tested.listed(tested.store().keys()).await, [key]);
    assert_eq!(
        tested
            .listed(tested.store().metadata())
            .await
            .concat()
            .len(),
        1
    );
}

/// Neither the store nor its errors show a password, and no name has a `user:password@` in it.
pub async fn nothing_printed_has_credentials(stores: Stores) {
    let tested = stores.holding(DataSet::one(stores.form)).await;
    let store = tested.store();
    let unknown = tested
        .fetch(FetchRequest::keys(vec![SampleKey([0xab; 16])]))
        .await;
    let error = unknown[0]
        .outcome
        .as_ref()
        .expect_err("there is no such payload");
    for printed in [
        store.to_string(),
        format!("{store:?}"),
        error.to_string(),
        format!("{error:?}"),
    ] {
        for secret in &tested.subject.secrets {
            assert!(!printed.contains(secret.as_str()), "a secret is printed");
        }
    }
    let name = store.to_string();
    if let Some((_, rest)) = name.split_once("://") {
        let authority = rest.split('/').next().unwrap_or_default();
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        assert!(!user.contains(':'), "the store's name has a password in it");
    }
}

fn fingerprint(set: &DataSet) -> Fingerprint {
    let rows = set.in_order();
    let rows = rows
        .iter()
        .map(|sample| (&*sample.path, sample.payload.len() as u64, sample.label));
    Fingerprint::of_rows(rows)
}

fn fields(set: &DataSet) -> BTreeMap<String, String> {
    let fields = set.samples.iter().flat_map(|sample| &sample.fields);
    fields
        .map(|(name, value)| (name.clone(), value.type_name().to_owned()))
        .collect()
}
