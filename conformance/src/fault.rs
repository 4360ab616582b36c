//! A store that fails on cue, the same way every time.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{
    StreamExt,
    future::pending,
    stream::{self, BoxStream},
};
use loader_core::{
    Capability, Catalog, Error, ErrorKind, FetchRequest, Fetched, Result, Row, SampleKey, Store,
    Summary,
};
use tokio::time::sleep;

use crate::{
    random::mix,
    request::{Name, names, one_target},
};

/// What goes wrong with one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is answered with an error of this kind: `Vanished` for a row that is gone, `Overloaded` for a busy store.
    Fail(ErrorKind),
    /// Its answer comes so much later.
    Delay(Duration),
    /// It gets no answer; the others do, and the stream ends as if nothing had happened.
    Drop,
    /// It gets no answer, and the stream never ends.
    Hang,
    /// The stream ends before it and all targets that were not answered yet.
    EndEarly,
    /// It is answered twice.
    Twice,
    /// Its bytes are changed without a word.
    Corrupt,
    /// Its answer names a target that the request does not have.
    WrongTarget,
}

/// Which faults happen when. Attempts at a target are counted from 0, requests to the store too.
#[derive(Debug, Clone, Default)]
pub struct Script {
    scripted: BTreeMap<(Name, u64), Fault>,
    always: BTreeMap<Name, Fault>,
    overloaded: Vec<Range<u64>>,
    random: Vec<(u64, u64, Fault)>,
}

impl Script {
    /// Nothing goes wrong.
    pub fn new() -> Self {
        Self::default()
    }

    /// One attempt at a target goes wrong.
    #[must_use]
    pub fn at(mut self, name: impl Into<Name>, attempt: u64, fault: Fault) -> Self {
        self.scripted.insert((name.into(), attempt), fault);
        self
    }

    /// The first so many attempts at a target go wrong.
    #[must_use]
    pub fn first(mut self, name: impl Into<Name>, attempts: u64, fault: Fault) -> Self {
        let name = name.into();
        self.scripted
            .extend((0..attempts).map(|attempt| ((name, attempt), fault)));
        self
    }

    /// Every attempt at a target goes wrong, but for those that are scripted by number.
    #[must_use]
    pub fn always(mut self, name: impl Into<Name>, fault: Fault) -> Self {
        self.always.insert(name.into(), fault);
        self
    }

    /// A burst: the requests with these numbers are answered with [`ErrorKind::Overloaded`] throughout.
    #[must_use]
    pub fn overloaded(mut self, requests: Range<u64>) -> Self {
        self.overloaded.push(requests);
        self
    }

    /// So many of a thousand attempts go wrong, picked by `seed`, target and attempt alone.
    #[must_use]
    pub fn per_mille(mut self, seed: u64, per_mille: u64, fault: Fault) -> Self {
        self.random.push((seed, per_mille, fault));
        self
    }

    fn fault(&self, request: u64, name: Name, attempt: u64) -> Option<Fault> {
        if self.overloaded.iter().any(|burst| burst.contains(&request)) {
            return Some(Fault::Fail(ErrorKind::Overloaded));
        }
        let scripted = self
            .scripted
            .get(&(name, attempt))
            .or_else(|| self.always.get(&name));
        scripted.copied().or_else(|| {
            let drawn = self
                .random
                .iter()
                .find(|(seed, per_mille, _)| draw(*seed, name, attempt) % 1000 < *per_mille);
            drawn.map(|(_, _, fault)| *fault)
        })
    }
}

fn draw(seed: u64, name: Name, attempt: u64) -> u64 {
    let name = match name {
        Name::Row(row) => row,
        Name::Key(key) => key.0.chunks(8).fold(1, |hash, chunk| {
            chunk
                .iter()
                .fold(hash, |hash, byte| mix(hash ^ u64::from(*byte)))
        }),
    };
    mix(mix(mix(seed) ^ name) ^ attempt)
}

/// A store in front of another, in which a [`Script`] says what goes wrong.
#[derive(Clone)]
pub struct FaultyStore(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    script: Script,
    requests: AtomicU64,
    attempts: Mutex<BTreeMap<Name, u64>>,
}

impl FaultyStore {
    /// Puts faults in front of a store.
    pub fn new(store: Arc<dyn Store>, script: Script) -> Self {
        let (requests, attempts) = (AtomicU64::new(0), Mutex::default());
        Self(Arc::new(Inner {
            store,
            script,
            requests,
            attempts,
        }))
    }

    /// Requests made so far.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Attempts made at a target so far.
    pub fn attempts(&self, name: impl Into<Name>) -> u64 {
        let attempts = self
            .0
            .attempts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        attempts.get(&name.into()).copied().unwrap_or_default()
    }
}

impl Inner {
    fn next_attempt(&self, name: Name) -> u64 {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = attempts.entry(name).or_default();
        *count += 1;
        *count - 1
    }

    /// The answers for one target: none, one or two.
    async fn answers(
        self: Arc<Self>,
        request: FetchRequest,
        target: usize,
        fault: Option<Fault>,
    ) -> Vec<Fetched> {
        match fault {
            Some(Fault::Delay(delay)) => sleep(delay).await,
            Some(Fault::Hang) => pending().await,
            Some(Fault::Drop | Fault::EndEarly) => return Vec::new(),
            _ => (),
        }
        let rounds = if fault == Some(Fault::Twice) { 2 } else { 1 };
        let mut answers = Vec::new();
        for _ in 0..rounds {
            let Some(mut fetched) = self.store.fetch(one_target(&request, target)).next().await
            else {
                break;
            };
            fetched.target = target;
            match fault {
                Some(Fault::Fail(kind)) => {
                    let error = Error::new(kind, "it fails on cue")
                        .during("fetch")
                        .in_store(&self.store);
                    let path = fetched.outcome.as_ref().map(|sample| sample.path.clone());
                    fetched.outcome = Err(path.map_or(error.clone(), |path| error.at(path)));
                }
                Some(Fault::Corrupt) => {
                    if let Ok(sample) = &mut fetched.outcome {
                        let changed = sample.payload.iter().map(|byte| byte ^ 1).collect();
                        sample.payload = changed;
                    }
                }
                Some(Fault::WrongTarget) => fetched.target = request.targets.len() + target,
                _ => (),
            }
            answers.push(fetched);
        }
        answers
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn capability(&self) -> Capability {
        self.0.store.capability()
    }

    fn summary(&self) -> Summary {
        self.0.store.summary()
    }

    async fn catalog(&self) -> Result<Arc<dyn Catalog>> {
        self.0.store.catalog().await
    }

    fn fetch(&self, request: FetchRequest) -> BoxStream<'static, Fetched> {
        let number = self.0.requests.fetch_add(1, Ordering::Relaxed);
        let inner = Arc::clone(&self.0);
        let fault = |name| inner.script.fault(number, name, inner.next_attempt(name));
        let faults: Vec<_> = names(&request).into_iter().map(fault).collect();
        let end = faults
            .iter()
            .position(|fault| *fault == Some(Fault::EndEarly))
            .unwrap_or(faults.len());
        let faults = faults.into_iter().take(end).enumerate();
        let answers =
            move |(target, fault)| Arc::clone(&inner).answers(request.clone(), target, fault);
        stream::iter(faults)
            .map(answers)
            .buffer_unordered(end.max(1))
            .flat_map(stream::iter)
            .boxed()
    }

    fn keys(&self) -> BoxStream<'static, Result<SampleKey>> {
        self.0.store.keys()
    }

    fn metadata(&self) -> BoxStream<'static, Result<Vec<Row>>> {
        self.0.store.metadata()
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.store, out)
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FaultyStore")
            .field("store", &self.0.store)
            .field("script", &self.0.script)
            .finish_non_exhaustive()
    }
}
