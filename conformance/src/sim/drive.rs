//! Plays an epoch: the part of the engine, the link and the consumer, and a judge beside them.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    time::{Duration, Instant},
};

use loader_core::{
    Lane, Prefetcher,
    loader::reorder::Reorder,
    prefetch::{Action, Arrival, Completion, Outlook, Taken},
};

use super::{
    Report, Scenario,
    link::{Fate, Wire},
};
use crate::random::mix;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Change(usize),
    Reached { copy: u64 },
    Ended { copy: u64, fate: Fate },
    WantsBatch,
    GivesBack { bytes: u64 },
    Wake,
}

/// One request for a position.
#[derive(Debug, Clone, Copy)]
struct Copy {
    position: u64,
    lane: Lane,
    started: Duration,
    served: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not asked for, or lost and to be asked for again.
    Open,
    /// So many copies are out.
    Out(u32),
    /// Delivered, or failed for good; so many copies are still out.
    Settled(u32),
}

struct Game<'a> {
    scenario: &'a Scenario,
    policy: &'a mut dyn Prefetcher,
    origin: Instant,
    now: Duration,
    wire: Wire,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    sequence: u64,
    states: Vec<State>,
    copies: BTreeMap<u64, Copy>,
    reorder: Reorder,
    batch_bytes: BTreeMap<u64, u64>,
    ready: VecDeque<u64>,
    completed_batches: u64,
    taken_batches: u64,
    waiting_since: Option<Duration>,
    kept: VecDeque<u64>,
    held_bytes: u64,
    in_flight_bytes: u64,
    /// Requests that the store has taken on.
    served: usize,
    most_allowed: u64,
    settled: u64,
    report: Report,
}

/// Plays the scenario to its end.
///
/// # Panics
/// Where the policy breaks its contract: it issues what is not admitted, a position twice, one that does not exist, a lane that
/// is not there; it waits for the past, acts without end, or stops before all positions were delivered; or more than the budget
/// and one batch is held.
pub fn drive(scenario: &Scenario, policy: &mut dyn Prefetcher) -> Report {
    let positions =
        usize::try_from(scenario.positions).expect("an epoch that is played fits into memory");
    let batch = scenario.batch_samples;
    let largest_batch = (0..scenario.positions.div_ceil(batch.max(1)))
        .map(|number| {
            batch_positions(scenario, number)
                .map(|position| scenario.bytes(position))
                .sum::<u64>()
        })
        .max();
    let mut game = Game {
        scenario,
        policy,
        origin: Instant::now(),
        now: Duration::ZERO,
        wire: Wire::new(scenario.link, scenario.seed),
        events: BinaryHeap::new(),
        sequence: 0,
        states: vec![State::Open; positions],
        copies: BTreeMap::new(),
        reorder: Reorder::new(
            scenario.order,
            scenario.positions,
            batch,
            scenario.horizon_batches,
        ),
        batch_bytes: BTreeMap::new(),
        ready: VecDeque::new(),
        completed_batches: 0,
        taken_batches: 0,
        waiting_since: Some(Duration::ZERO),
        kept: VecDeque::new(),
        held_bytes: 0,
        in_flight_bytes: 0,
        served: 0,
        most_allowed: 0,
        settled: 0,
        report: Report::default(),
    };
    // What the consumer has is held though the budget may be smaller; a batch in order of arrival may be any samples.
    let lent = (scenario.kept_batches as u64 + 1) * batch * 2 * scenario.mean_bytes;
    game.most_allowed = scenario.budget_bytes.max(lent) + largest_batch.unwrap_or(0);
    game.play();
    game.report
}

fn batch_positions(scenario: &Scenario, batch: u64) -> std::ops::Range<u64> {
    let start = batch * scenario.batch_samples;
    start..(start + scenario.batch_samples).min(scenario.positions)
}

impl Game<'_> {
    fn play(&mut self) {
        for (number, (at, _)) in self.scenario.changes.iter().enumerate() {
            self.at(*at, Event::Change(number));
        }
        let batches = self
            .scenario
            .positions
            .div_ceil(self.scenario.batch_samples);
        self.ask();
        while self.taken_batches < batches {
            let Some(Reverse((time, _, event))) = self.events.pop() else {
                panic!(
                    "nothing is under way, and {} of {} positions came: {:?}",
                    self.settled,
                    self.states.len(),
                    self.policy
                );
            };
            self.now = time;
            assert!(
                time < Duration::from_hours(24),
                "the epoch does not end: {:?}",
                self.policy
            );
            self.happen(event);
            self.ask();
        }
        assert_eq!(
            self.settled, self.scenario.positions,
            "every position comes to an end"
        );
        let (held, allowed) = (self.report.most_held_bytes, self.most_allowed);
        assert!(
            held <= allowed,
            "{held} bytes were held, {allowed} may be: the budget and one batch"
        );
        self.report.elapsed = self.now;
    }

    fn at(&mut self, time: Duration, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((time, self.sequence, event)));
    }

    fn instant(&self) -> Instant {
        self.origin + self.now
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Change(number) => self.wire.link = self.scenario.changes[number].1,
            Event::Reached { copy } => {
                if let Some(Copy { position, .. }) = self.copies.get(&copy) {
                    let arrives = self.wire.deliver(self.now, self.scenario.bytes(*position));
                    self.at(
                        arrives,
                        Event::Ended {
                            copy,
                            fate: Fate::Reaches,
                        },
                    );
                }
            }
            Event::Ended { copy, fate } => {
                if let Some(ended) = self.copies.remove(&copy) {
                    self.served -= usize::from(ended.served);
                    self.ended(ended, fate);
                }
            }
            Event::WantsBatch => {
                self.waiting_since = Some(self.now);
                self.hand_over();
            }
            Event::GivesBack { bytes } => {
                self.held_bytes -= bytes;
                let bytes = i64::try_from(bytes).expect("a batch is small");
                self.policy.lent(self.instant(), -bytes);
            }
            Event::Wake => (),
        }
    }

    fn ended(&mut self, copy: Copy, fate: Fate) {
        let Copy {
            position,
            lane,
            started,
            ..
        } = copy;
        let bytes = self.scenario.bytes(position);
        self.in_flight_bytes -= bytes;
        let state = self.states[index(position)];
        let is_bad = mix(position ^ !self.scenario.seed) % 1000 < self.scenario.bad_per_mille;
        let (state, arrival) = match (state, fate) {
            (State::Out(_), Fate::Reaches) if is_bad => {
                (self.settle(position, state, 0), Arrival::Failed)
            }
            (State::Out(_), Fate::Reaches) => {
                (self.settle(position, state, bytes), Arrival::Delivered)
            }
            (State::Out(1), Fate::Lost | Fate::Refused) => {
                self.held_bytes -= bytes;
                (State::Open, Arrival::Lost)
            }
            // Another copy is still out: nothing is lost yet, and nobody need ask again.
            (State::Out(copies), Fate::Lost | Fate::Refused) => {
                self.states[index(position)] = State::Out(copies - 1);
                return;
            }
            (State::Settled(copies), _) => (State::Settled(copies - 1), Arrival::Duplicate),
            (State::Open, _) => unreachable!("a position that is open has no copies out"),
        };
        self.states[index(position)] = state;
        if fate == Fate::Refused {
            let until = self.instant() + self.wire.link.round_trip;
            self.policy.overloaded(self.instant(), lane, Some(until));
        }
        let came = fate == Fate::Reaches && arrival != Arrival::Failed;
        self.report.duplicate_bytes += if arrival == Arrival::Duplicate && came {
            bytes
        } else {
            0
        };
        let started = self.origin + started;
        let completion = Completion {
            position,
            bytes: if came { bytes } else { 0 },
            started,
            lane,
            arrival,
        };
        self.policy.completed(self.instant(), completion);
        self.hand_over();
    }

    /// A position has come, with so many bytes, or failed with none.
    fn settle(&mut self, position: u64, state: State, bytes: u64) -> State {
        let State::Out(copies) = state else {
            unreachable!("only what is out can come")
        };
        self.held_bytes -= self.scenario.bytes(position) - bytes;
        self.report.bytes += bytes;
        self.settled += 1;
        // The place of a sample tells its batch; sizes follow their sample.
        let mut places = Vec::new();
        self.reorder.arrived(position, &mut places);
        for place in places {
            let bad = mix(place.ordinal ^ !self.scenario.seed) % 1000 < self.scenario.bad_per_mille;
            let bytes = if bad {
                0
            } else {
                self.scenario.bytes(place.ordinal)
            };
            *self.batch_bytes.entry(place.batch).or_default() += bytes;
        }
        while self.completed_batches < self.reorder.open_batch() {
            let bytes = self
                .batch_bytes
                .remove(&self.completed_batches)
                .unwrap_or(0);
            self.ready.push_back(bytes);
            self.completed_batches += 1;
        }
        State::Settled(copies - 1)
    }

    /// Gives the consumer a batch if it waits and one is ready.
    fn hand_over(&mut self) {
        if self.waiting_since.is_none() {
            return;
        }
        let Some(bytes) = self.ready.pop_front() else {
            return;
        };
        let since = self.waiting_since.take().expect("it was looked at above");
        self.report.waited += self.now.saturating_sub(since);
        let waited_since = (since < self.now).then_some(self.origin + since);
        let now = self.instant();
        self.policy.taken(
            now,
            Taken {
                batch: self.taken_batches,
                bytes,
                waited_since,
            },
        );
        self.policy
            .lent(now, i64::try_from(bytes).expect("a batch is small"));
        self.taken_batches += 1;
        let done = self.now + self.scenario.think;
        self.kept.push_back(bytes);
        if self.kept.len() > self.scenario.kept_batches {
            let bytes = self.kept.pop_front().expect("one was just put there");
            self.at(done, Event::GivesBack { bytes });
        }
        self.at(done, Event::WantsBatch);
    }

    /// Asks the policy until it waits.
    fn ask(&mut self) {
        // Each action changes something; more actions than there is to change are going in circles.
        let most_actions = 10 * self.states.len() + 1000;
        for _ in 0..most_actions {
            match self.answer() {
                Action::Wait { until: None } => return,
                Action::Wait { until: Some(until) } => {
                    let until = until
                        .checked_duration_since(self.origin)
                        .unwrap_or_default();
                    assert!(until > self.now, "it waits for {until:?} at {:?}", self.now);
                    self.at(until, Event::Wake);
                    return;
                }
                action => self.act(action),
            }
        }
        panic!("the policy acts without end: {:?}", self.policy);
    }

    fn answer(&mut self) -> Action {
        let scenario = self.scenario;
        let expected_bytes = |position| scenario.bytes(position);
        let outlook = Outlook {
            positions: scenario.positions,
            batch_samples: scenario.batch_samples,
            open_batch: self.reorder.open_batch(),
            taken_batches: self.taken_batches,
            horizon_batches: scenario.horizon_batches,
            held_bytes: self.held_bytes,
            budget_bytes: scenario.budget_bytes,
            expected_bytes: &expected_bytes,
        };
        let action = self.policy.next(self.instant(), &outlook);
        if let Action::Issue { position, .. } = action {
            assert!(
                position < scenario.positions,
                "position {position} of {}",
                scenario.positions
            );
            let admitted = outlook.admits(position, scenario.bytes(position));
            assert!(
                admitted,
                "position {position} is issued though it is not admitted: {outlook:?}"
            );
        }
        action
    }

    fn act(&mut self, action: Action) {
        self.report.actions.push(action);
        match action {
            Action::Issue { position, lane } => {
                let state = &mut self.states[index(position)];
                assert_eq!(
                    *state,
                    State::Open,
                    "position {position} is issued again though it was not lost"
                );
                *state = State::Out(1);
                self.held_bytes += self.scenario.bytes(position);
                self.report.most_held_bytes = self.report.most_held_bytes.max(self.held_bytes);
                let lane = lane.unwrap_or_else(|| self.wire.lane(None));
                self.request(position, lane);
            }
            Action::Hedge { position, avoid } => {
                let state = &mut self.states[index(position)];
                let State::Out(copies) = *state else {
                    panic!("position {position} is hedged though it is not out")
                };
                *state = State::Out(copies + 1);
                self.report.hedges += 1;
                let lane = self.wire.lane(Some(avoid));
                self.request(position, lane);
            }
            Action::Cancel { position } => {
                let out: Vec<_> = self
                    .copies
                    .iter()
                    .filter(|(_, copy)| copy.position == position)
                    .map(|(copy, _)| *copy)
                    .collect();
                let bytes = self.scenario.bytes(position);
                for copy in &out {
                    let cancelled = self.copies.remove(copy);
                    self.served -= usize::from(cancelled.is_some_and(|copy| copy.served));
                    self.in_flight_bytes -= bytes;
                }
                let state = &mut self.states[index(position)];
                *state = match *state {
                    State::Out(_) => {
                        self.held_bytes -= bytes;
                        State::Open
                    }
                    State::Settled(_) => State::Settled(0),
                    State::Open => panic!("position {position} is cancelled though it is not out"),
                };
            }
            Action::Probe { lane } => {
                assert!(lane.0 < self.wire.link.lanes, "{lane:?} is not there");
            }
            Action::Wait { .. } => unreachable!("waiting is no act"),
        }
    }

    fn request(&mut self, position: u64, lane: Lane) {
        assert!(lane.0 < self.wire.link.lanes, "{lane:?} is not there");
        self.report.requests += 1;
        self.in_flight_bytes += self.scenario.bytes(position);
        self.report.most_in_flight_bytes =
            self.report.most_in_flight_bytes.max(self.in_flight_bytes);
        let copy = self.report.requests;
        let (time, fate) = self.wire.send(self.now, self.served);
        let served = fate == Fate::Reaches;
        self.served += usize::from(served);
        self.copies.insert(
            copy,
            Copy {
                position,
                lane,
                started: self.now,
                served,
            },
        );
        let event = if fate == Fate::Reaches {
            Event::Reached { copy }
        } else {
            Event::Ended { copy, fate }
        };
        self.at(time, event);
    }
}

fn index(position: u64) -> usize {
    usize::try_from(position).expect("an epoch that is played fits into memory")
}
