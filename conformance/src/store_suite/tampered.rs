//! What a store says of payloads that were broken behind its back.

use loader_core::{ErrorKind, FetchRequest, SampleKey};

use super::answers::kind;
use crate::{
    harness::{Stores, Tamper, Tested},
    samples::DataSet,
};

/// A row whose payload was deleted is `Vanished`, by row and by key, and no listing has it; the other rows come.
pub async fn a_payload_that_is_gone_is_vanished_and_the_others_come(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 10)).await;
    let key = tested.tamper(3, Tamper::Remove).await;
    tested.assert_broken(3, key, ErrorKind::Vanished).await;
    let listed = tested.listed(tested.store().keys()).await;
    assert!(
        !listed.contains(&key),
        "a payload that is gone is not listed"
    );
    assert_eq!(listed.len(), 9);
    assert_eq!(
        tested
            .listed(tested.store().metadata())
            .await
            .concat()
            .len(),
        10,
        "the manifest stays as it is"
    );
}

/// A payload that does not have its checksum is `Corrupt`, by row and by key; the other rows come.
pub async fn a_payload_that_changed_is_corrupt_and_the_others_come(stores: Stores) {
    let tested = stores.holding(DataSet::many(stores.form, 10)).await;
    let key = tested.tamper(3, Tamper::Change).await;
    tested.assert_broken(3, key, ErrorKind::Corrupt).await;
}

impl Tested {
    async fn tamper(&self, row: usize, how: Tamper) -> SampleKey {
        let tamper = self
            .subject
            .tamper
            .as_ref()
            .expect("Subject::with_tamper says how to break a payload");
        let key = self.catalog_rows().await[row].key;
        tamper(key, how).await;
        key
    }

    async fn assert_broken(&self, broken: u64, key: SampleKey, expected: ErrorKind) {
        for (row, fetched) in (0..).zip(self.fetch(self.all_rows()).await) {
            if row == broken {
                assert_eq!(kind(&fetched), Some(expected));
                let error = fetched.outcome.expect_err("it has a kind");
                let path = &self.set.in_order()[3].path;
                assert_eq!(error.path(), Some(path), "the error names its sample");
            } else {
                self.assert_row(row, fetched);
            }
        }
        let by_key = self.fetch(FetchRequest::keys(vec![key])).await;
        assert_eq!(kind(&by_key[0]), Some(expected), "by key");
    }
}
