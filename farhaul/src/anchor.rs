//! A store that keeps its threads alive.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use loader_core::{
    Capability, Catalog, FetchRequest, Fetched, Result, Row, SampleKey, Store, Summary,
};

use crate::runtime::Runtime;

/// Passes everything on, and holds the runtime: a loader or a stream may outlive the data set that it came from.
#[derive(Debug)]
pub(crate) struct Anchored {
    pub(crate) store: Arc<dyn Store>,
    #[expect(dead_code, reason = "it is held, not used")]
    pub(crate) runtime: Arc<Runtime>,
}

#[async_trait]
impl Store for Anchored {
    fn capability(&self) -> Capability {
        self.store.capability()
    }

    fn summary(&self) -> Summary {
        self.store.summary()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        self.store.catalog().await
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        self.store.fetch(request)
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        self.store.keys()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        self.store.metadata()
    }
}

impl fmt::Display for Anchored {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.store, out)
    }
}
