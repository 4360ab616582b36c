//! The store of `docs/adding-a-backend.md`, complete, and the suites that tell that it is right.
#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    unnameable_types,
    missing_docs,
    reason = "a crate of its own would export it"
)]

mod table {
    #[allow(
        clippy::unused_async,
        reason = "a driver of a real database waits in every call"
    )]
    pub mod driver;
    pub mod error;
    pub mod store;
    pub mod writer;
}

use std::sync::Arc;

use bytes::Bytes;
use conformance::{
    harness::{Subject, Tamper},
    samples::DataSet,
    writer_suite::{WriterSubject, ingest},
};
use loader_core::{ErrorKind, SampleKey};
use table::{
    driver::{Client, DriverError},
    error::from_driver,
    store::TableStore,
    writer::TableWriter,
};

async fn table(set: DataSet) -> Subject {
    let client = Arc::new(Client::default());
    ingest(
        &TableWriter {
            client: Arc::clone(&client),
        },
        &set,
    )
    .await
    .unwrap();
    let store = TableStore::open(Arc::clone(&client)).await.unwrap();
    Subject::from(store).with_tamper(move |key, how| damage(Arc::clone(&client), key, how))
}

async fn damage(client: Arc<Client>, key: SampleKey, how: Tamper) {
    client.delete(key.0).await.unwrap();
    if how == Tamper::Change {
        client
            .put(key.0, Bytes::from_static(b"something else"))
            .await
            .unwrap();
    }
}

async fn table_writer() -> WriterSubject {
    let client = Arc::new(Client::default());
    let writer = TableWriter {
        client: Arc::clone(&client),
    };
    WriterSubject::new(writer, move || TableStore::open(Arc::clone(&client)))
}

conformance::store_suite!(table);
conformance::damage_suite!(table);
conformance::writer_suite!(table_writer);

#[test]
fn driver_errors_become_kinds_that_say_whether_to_ask_again() {
    let (busy, no_host) = (
        from_driver(DriverError::Busy),
        from_driver(DriverError::NoHost),
    );
    assert_eq!(
        (busy.kind(), no_host.kind()),
        (ErrorKind::Overloaded, ErrorKind::Unavailable)
    );
    assert!(busy.is_transient() && no_host.is_transient());
}

#[test]
fn the_page_shows_exactly_this_code() {
    let page = include_str!("../../docs/adding-a-backend.md");
    let sources = [
        include_str!("adding_a_backend.rs"),
        include_str!("table/error.rs"),
        include_str!("table/store.rs"),
        include_str!("table/writer.rs"),
        include_str!("../../farhaul/src/backend/embedded.rs"),
        include_str!("../../farhaul/src/registry.rs"),
    ];
    // Indentation is left to either side.
    let trimmed = |code: &str| code.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let sources = sources.map(trimmed);
    let mut blocks = 0;
    for block in page.split("```rust\n").skip(1) {
        let code = trimmed(block.split("```").next().unwrap());
        assert!(
            sources.iter().any(|source| source.contains(&code)),
            "this is not in the example:\n{code}"
        );
        blocks += 1;
    }
    assert!(blocks == 10, "{blocks} blocks of code");
    assert!(
        !page.contains("ignore"),
        "no block is kept from being compiled"
    );
}
