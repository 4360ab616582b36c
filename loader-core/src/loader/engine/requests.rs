//! The fetches that are out: grouped as the store likes them, tracked per target, cancelled by dropping.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use futures_util::{
    StreamExt,
    stream::{AbortHandle, BoxStream, SelectAll, abortable},
};

use crate::{
    error::{Error, ErrorKind},
    store::{FetchRequest, Fetched, Lane, Store},
};

/// What one target of a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// The dense position that policies know, or the one that a substitute is for.
    pub(super) position: u64,
    /// The row asked for.
    pub(super) row: u64,
    /// 0 for the planned row; the number of the attempt for a substitute.
    pub(super) substitute: u32,
    pub(super) bytes: u64,
    pub(super) lane: Option<Lane>,
    pub(super) avoid: Option<Lane>,
}

/// One answer, or the end of a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) target: Target,
    pub(super) started: Instant,
    pub(super) fetched: Fetched,
}

#[derive(Debug)]
struct Request {
    targets: Vec<Option<Target>>,
    started: Instant,
    abort: AbortHandle,
}

enum Event {
    Fetched(u64, Fetched),
    Ended(u64),
}

/// All requests of an epoch.
pub(super) struct Requests {
    store: Arc<dyn Store>,
    parts: Option<Arc<[String]>>,
    queue: VecDeque<Target>,
    out: BTreeMap<u64, Request>,
    next: u64,
    streams: SelectAll<BoxStream<'static, Event>>,
    group: usize,
    limit: usize,
}

impl Requests {
    pub(super) fn new(store: Arc<dyn Store>, parts: Option<Arc<[String]>>) -> Self {
        let capability = store.capability();
        Self {
            store,
            parts,
            queue: VecDeque::new(),
            out: BTreeMap::new(),
            next: 0,
            streams: SelectAll::new(),
            group: capability.request_samples.max(1),
            // A policy decides how much a distant store is asked for; a local one would only get more threads than cores.
            limit: if capability.local {
                capability.requests_in_flight.max(1)
            } else {
                usize::MAX
            },
        }
    }

    /// Lines a target up; [`send`](Self::send) asks for it.
    pub(super) fn queue(&mut self, target: Target) {
        self.queue.push_back(target);
    }

    /// Lines a target up before all others.
    pub(super) fn queue_first(&mut self, target: Target) {
        self.queue.push_front(target);
    }

    /// Asks the store for what is lined up, as far as it takes more.
    pub(super) fn send(&mut self, now: Instant) {
        while self.out.len() < self.limit
            && let Some(&first) = self.queue.front()
        {
            let mut targets = Vec::with_capacity(self.group.min(self.queue.len()));
            while targets.len() < self.group
                && let Some(target) = self
                    .queue
                    .pop_front_if(|next| next.lane == first.lane && next.avoid == first.avoid)
            {
                targets.push(target);
            }
            self.ask(targets, now);
        }
    }

    /// True where nothing is out or lined up.
    pub(super) fn is_idle(&self) -> bool {
        self.out.is_empty() && self.queue.is_empty()
    }

    /// Gives up every request that is out for nothing but the planned sample of this position; one for a substitute goes on.
    pub(super) fn cancel(&mut self, position: u64) {
        let is_of = |target: &Target| target.position == position && target.substitute == 0;
        self.queue.retain(|target| !is_of(target));
        self.out.retain(|_, request| {
            let of_position = request
                .targets
                .iter_mut()
                .filter(|target| target.as_ref().is_some_and(is_of));
            of_position.for_each(|target| *target = None);
            let wanted = request.targets.iter().any(Option::is_some);
            if !wanted {
                request.abort.abort();
            }
            wanted
        });
    }

    /// Waits until something is answered or a request ends, and adds what came to `answers`; never returns where nothing is
    /// out. A request that ends makes room for the next one, so the caller has to [`send`](Self::send) again.
    ///
    /// # Cancellation
    /// Dropping the future loses nothing.
    pub(super) async fn answers(&mut self, answers: &mut Vec<Answer>) {
        match self.streams.next().await {
            Some(Event::Fetched(number, fetched)) => self.answered(number, fetched, answers),
            Some(Event::Ended(number)) => self.ended(number, answers),
            None => std::future::pending().await,
        }
    }

    fn ask(&mut self, targets: Vec<Target>, now: Instant) {
        let number = self.next;
        self.next += 1;
        let mut request = FetchRequest::rows(
            self.store.summary().fingerprint,
            targets.iter().map(|target| target.row).collect(),
        );
        request.parts.clone_from(&self.parts);
        request.lane = targets[0].lane;
        request.avoid = targets[0].avoid;
        request.expected_bytes = targets.iter().map(|target| target.bytes).sum();
        let (stream, abort) = abortable(self.store.fetch(request));
        let ended = futures_util::stream::once(std::future::ready(Event::Ended(number)));
        self.streams.push(
            stream
                .map(move |fetched| Event::Fetched(number, fetched))
                .chain(ended)
                .boxed(),
        );
        self.out.insert(
            number,
            Request {
                targets: targets.into_iter().map(Some).collect(),
                started: now,
                abort,
            },
        );
    }

    fn answered(&mut self, number: u64, fetched: Fetched, answers: &mut Vec<Answer>) {
        let Some(request) = self.out.get_mut(&number) else {
            return;
        };
        // A second answer for a target, or one for a target that was never asked for, breaks the contract and is ignored.
        if let Some(target) = request
            .targets
            .get_mut(fetched.target)
            .and_then(Option::take)
        {
            answers.push(Answer {
                target,
                started: request.started,
                fetched,
            });
        }
    }

    fn ended(&mut self, number: u64, answers: &mut Vec<Answer>) {
        let Some(request) = self.out.remove(&number) else {
            return;
        };
        for target in request.targets.into_iter().flatten() {
            let error = Error::new(ErrorKind::Unavailable, "the store ended its answer early")
                .during("fetch")
                .in_store(&self.store);
            let fetched = Fetched {
                target: 0,
                lane: target.lane.unwrap_or_default(),
                outcome: Err(error),
            };
            answers.push(Answer {
                target,
                started: request.started,
                fetched,
            });
        }
    }
}
