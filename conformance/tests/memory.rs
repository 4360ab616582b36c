//! The reference store keeps the contracts, bare and in every wrapper.
#![allow(clippy::unwrap_used, reason = "a test stops where anything fails")]

use std::sync::Arc;

use bytes::Bytes;
use conformance::{
    harness::{Subject, Tamper},
    samples::DataSet,
    writer_suite::{WriterSubject, ingest},
};
use loader_core::{
    Store,
    memory::{MemoryStore, MemoryWriter},
    wrap::{
        limit::{Limit, LimitConfig},
        meter::Meter,
        retry::{Retry, RetryConfig},
        timeout::{Timeout, TimeoutConfig},
    },
};

fn memory(set: DataSet) -> MemoryStore {
    MemoryStore::from_samples(set.samples, set.classes).unwrap()
}

fn shared(set: DataSet) -> Arc<dyn Store> {
    Arc::new(memory(set))
}

fn breakable(set: DataSet) -> Subject {
    let store = memory(set);
    Subject::from(store.clone()).with_tamper(move |key, how| {
        let payload = (how == Tamper::Change).then(|| Bytes::from_static(b"something else"));
        store.tamper(key, payload);
        async {}
    })
}

mod bare {
    conformance::store_suite!(|set| async move { super::memory(set) });
    conformance::damage_suite!(|set| async move { super::breakable(set) });
}

mod image_folder {
    conformance::store_suite!(conformance::samples::Form::ImageFolder, |set| async move {
        super::memory(set)
    });
}

mod web_dataset {
    conformance::store_suite!(conformance::samples::Form::WebDataset, |set| async move {
        super::memory(set)
    });
}

mod retried {
    conformance::store_suite!(|set| async move {
        super::Retry::new(
            super::shared(set),
            super::RetryConfig::default(),
            super::Arc::default(),
        )
    });
}

mod timed {
    conformance::store_suite!(|set| async move {
        super::Timeout::new(super::shared(set), super::TimeoutConfig::default())
    });
}

mod limited {
    conformance::store_suite!(|set| async move {
        super::Limit::new(super::shared(set), &super::LimitConfig::default())
    });
}

mod metered {
    conformance::store_suite!(|set| async move {
        super::Meter::new(super::shared(set), super::Arc::default())
    });
}

/// All of them, in the order that the documentation recommends.
mod wrapped {
    use super::{
        Arc, DataSet, Limit, LimitConfig, Meter, Retry, RetryConfig, Store, Timeout, TimeoutConfig,
    };

    fn wrapped(set: DataSet) -> Meter {
        let counters = Arc::default();
        let store: Arc<dyn Store> =
            Arc::new(Timeout::new(super::shared(set), TimeoutConfig::default()));
        let store: Arc<dyn Store> = Arc::new(Limit::new(store, &LimitConfig::default()));
        let store: Arc<dyn Store> = Arc::new(Retry::new(
            store,
            RetryConfig::default(),
            Arc::clone(&counters),
        ));
        Meter::new(store, counters)
    }

    conformance::store_suite!(|set| async move { wrapped(set) });
}

mod writer {
    use super::{MemoryWriter, WriterSubject};

    fn subject(writer: MemoryWriter) -> WriterSubject {
        let opened = writer.clone();
        WriterSubject::new(writer, move || std::future::ready(opened.open()))
    }

    mod without_limit {
        use super::{MemoryWriter, subject};

        conformance::writer_suite!(|| async { subject(MemoryWriter::new()) });
    }

    mod with_limit {
        use super::{MemoryWriter, subject};

        conformance::writer_suite!(|| async {
            subject(MemoryWriter::new().with_max_payload_bytes(2_000_000))
        });
    }
}

mod filled_by_its_writer {
    use super::{MemoryWriter, ingest};

    conformance::store_suite!(|set| async move {
        let writer = MemoryWriter::new();
        ingest(&writer, &set).await.unwrap();
        writer.open().unwrap()
    });
}
