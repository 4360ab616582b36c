//! The resumable position of a loader: small, readable JSON, exact whatever the order of arrival.

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, ErrorKind, Result},
    identity::Fingerprint,
    loader::{
        config::Order,
        permutation::Permutation,
        plan::{Deal, LastBatch, Plan},
        positions::Positions,
    },
};

/// The magic word that every saved state starts with.
const FORMAT: &str = "farhaul.state";
/// The version that this build writes; it reads all with this number.
const VERSION: u64 = 1;

/// Where a loader stands in an epoch: of one rank, or (merged) of all.
///
/// At most 4 KB of JSON while `horizon × batch ≤ 12,000`; an unbounded order may exceed that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    format: String,
    version: u64,
    /// The data set, in whatever store.
    pub fingerprint: Fingerprint,
    /// Its rows.
    pub samples: u64,
    /// The seed of the order and of the augmentation.
    pub seed: u64,
    /// The epoch.
    pub epoch: u64,
    /// False where the order is the rows' own.
    pub shuffle: bool,
    /// How samples were packed; it may be changed on resume.
    pub order: Order,
    /// Samples in a batch of a rank.
    pub batch_samples: u64,
    /// Ranks that shared the epoch.
    pub ranks: u64,
    /// The rank whose state this is; `None` in a merged state, which any ranks and batch size can resume.
    pub rank: Option<u64>,
    /// What becomes of the rest of the epoch.
    pub last_batch: LastBatch,
    /// Positions of the epoch that were done with before this dealing began.
    pub before: Positions,
    /// Ordinals of this rank that were handed over since.
    pub settled: Positions,
    /// Batches of this rank that were handed over since; it tells whether an empty last batch is still due.
    pub handed_batches: u64,
    /// Samples that failed and were skipped or substituted in this epoch on this rank (or on all).
    pub failures: u64,
}

/// What a state is about besides the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The data set.
    pub fingerprint: Fingerprint,
    /// Its rows.
    pub samples: u64,
    /// The seed.
    pub seed: u64,
    /// The epoch.
    pub epoch: u64,
    /// Whether the order is shuffled.
    pub shuffle: bool,
    /// How samples are packed.
    pub order: Order,
}

impl State {
    /// The state at the start of an epoch.
    pub fn new(subject: Subject, deal: Deal, before: Positions) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            fingerprint: subject.fingerprint,
            samples: subject.samples,
            seed: subject.seed,
            epoch: subject.epoch,
            shuffle: subject.shuffle,
            order: subject.order,
            batch_samples: deal.batch_samples,
            ranks: deal.ranks,
            rank: Some(deal.rank),
            last_batch: deal.last_batch,
            before,
            settled: Positions::default(),
            handed_batches: 0,
            failures: 0,
        }
    }

    /// Reads a state from JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Version`] naming both versions; [`ErrorKind::Malformed`] where it is no state.
    pub fn from_json(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u64,
        }
        let malformed = |cause| {
            Error::new(ErrorKind::Malformed, "this is no saved state of farhaul")
                .during("load state")
                .caused_by(cause)
        };
        let head: Head = serde_json::from_str(text).map_err(malformed)?;
        if head.format != FORMAT {
            return Err(Error::new(
                ErrorKind::Malformed,
                format!("this is a {:?}, no {FORMAT:?}", head.format),
            )
            .during("load state"));
        }
        if head.version != VERSION {
            let message = format!(
                "the state has version {}, this farhaul reads version {VERSION}",
                head.version
            );
            return Err(Error::new(ErrorKind::Version, message)
                .during("load state")
                .hint("load it with the farhaul that saved it"));
        }
        let state: Self = serde_json::from_str(text).map_err(malformed)?;
        state.check()?;
        Ok(state)
    }

    /// The state as JSON.
    ///
    /// # Panics
    /// Never: numbers and texts always have a JSON form.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts always have a JSON form")
    }

    /// The plan that this state's ordinals belong to; rank 0's where the state is merged.
    pub fn plan(&self) -> Plan {
        let order = self
            .shuffle
            .then(|| Permutation::new(self.samples, self.seed, self.epoch));
        Plan::new(self.samples, order, &self.before, self.deal())
    }

    /// True where this rank (or, merged, every rank) has got everything.
    pub fn is_complete(&self) -> bool {
        match self.rank {
            Some(_) => self.handed_batches >= self.plan().batches(),
            None => self.before.len() >= self.samples,
        }
    }

    /// Joins the states that all ranks saved at one moment into one that any ranks and batch size can resume.
    ///
    /// # Errors
    /// [`ErrorKind::Incompatible`] where the states are of different runs, or a rank is missing or comes twice.
    pub fn merge(states: &[Self]) -> Result<Self> {
        let wrong = |message: String| {
            Err(Error::new(ErrorKind::Incompatible, message).during("merge states"))
        };
        let Some(first) = states.first() else {
            return wrong("there are no states to merge".to_owned());
        };
        if first.rank.is_none() {
            return if states.len() == 1 {
                Ok(first.clone())
            } else {
                wrong("one of the states is merged already".to_owned())
            };
        }
        let mut before = first.before.clone();
        let mut failures = 0;
        for rank in 0..first.ranks {
            let mut of_rank = states.iter().filter(|state| state.rank == Some(rank));
            let (Some(state), None) = (of_rank.next(), of_rank.next()) else {
                return wrong(format!(
                    "of the {} ranks, rank {rank} is missing or comes twice",
                    first.ranks
                ));
            };
            if state.same_run() != first.same_run() || state.before != first.before {
                return wrong(format!(
                    "the states of rank {rank} and rank {} are of different runs or epochs",
                    first.rank.unwrap_or(0)
                ));
            }
            let plan = state.plan();
            for ordinal in state.settled.iter() {
                before.insert(plan.position(ordinal));
            }
            failures += state.failures;
        }
        if states.len() as u64 != first.ranks {
            return wrong(format!("{} states for {} ranks", states.len(), first.ranks));
        }
        Ok(Self {
            rank: None,
            before,
            settled: Positions::default(),
            handed_batches: 0,
            failures,
            ..first.clone()
        })
    }

    /// This state dealt anew: unchanged where the dealing is the same, else from a merged state (or the only rank's).
    ///
    /// # Errors
    /// [`ErrorKind::Incompatible`] for another data set, or where the other ranks' states are needed too.
    pub fn dealt(&self, fingerprint: Fingerprint, samples: u64, deal: Deal) -> Result<Self> {
        let wrong =
            |message: String| Error::new(ErrorKind::Incompatible, message).during("load state");
        if self.fingerprint != fingerprint {
            let message = format!(
                "the state is of data set {}, this is {fingerprint}",
                self.fingerprint
            );
            return Err(wrong(message).hint(
                "open the data set that the state was saved with (any store of it will do)",
            ));
        }
        if self.samples != samples {
            let message = format!(
                "the state counts {} samples, the data set has {samples}",
                self.samples
            );
            return Err(wrong(message).hint("the state was changed since it was saved"));
        }
        if self.rank == Some(deal.rank) && self.deal() == deal {
            return Ok(self.clone());
        }
        let global = match self.rank {
            None => self.clone(),
            Some(_) if self.ranks == 1 => Self::merge(std::slice::from_ref(self))?,
            Some(rank) => {
                let message = format!(
                    "the state is of rank {rank} of {} with batches of {}, this is rank {} of {} with batches of {}",
                    self.ranks, self.batch_samples, deal.rank, deal.ranks, deal.batch_samples
                );
                return Err(
                    wrong(message).hint("join the states of all ranks first: merge_states([...])")
                );
            }
        };
        Ok(Self {
            batch_samples: deal.batch_samples,
            ranks: deal.ranks,
            rank: Some(deal.rank),
            last_batch: deal.last_batch,
            settled: Positions::default(),
            handed_batches: 0,
            ..global
        })
    }

    fn deal(&self) -> Deal {
        Deal {
            batch_samples: self.batch_samples,
            ranks: self.ranks,
            rank: self.rank.unwrap_or(0),
            last_batch: self.last_batch,
        }
    }

    fn same_run(&self) -> (Fingerprint, u64, u64, u64, bool, u64, u64, LastBatch) {
        let Self {
            fingerprint,
            samples,
            seed,
            epoch,
            shuffle,
            batch_samples,
            ranks,
            last_batch,
            ..
        } = self;
        (
            *fingerprint,
            *samples,
            *seed,
            *epoch,
            *shuffle,
            *batch_samples,
            *ranks,
            *last_batch,
        )
    }

    fn check(&self) -> Result<()> {
        let in_range = self.batch_samples > 0
            && self.ranks > 0
            && self.batch_samples.checked_mul(self.ranks).is_some()
            && self.rank.is_none_or(|rank| rank < self.ranks)
            && self.before.end() <= self.samples;
        if in_range {
            let ordinals = self.plan().ordinals();
            let handed = self
                .handed_batches
                .saturating_mul(self.batch_samples)
                .min(ordinals);
            if self.settled.end() <= ordinals && self.settled.len() == handed {
                return Ok(());
            }
        }
        Err(Error::new(
            ErrorKind::Malformed,
            "the state's numbers contradict each other",
        )
        .during("load state"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn subject(samples: u64) -> Subject {
        let fingerprint = Fingerprint::of_rows([(&b"a"[..], samples, 0)]);
        Subject {
            fingerprint,
            samples,
            seed: 7,
            epoch: 3,
            shuffle: true,
            order: Order::Arrival,
        }
    }

    fn deal(batch_samples: u64, ranks: u64, rank: u64) -> Deal {
        Deal {
            batch_samples,
            ranks,
            rank,
            last_batch: LastBatch::Partial,
        }
    }

    #[test]
    fn version_one_is_read_for_ever() {
        let text = include_str!("../../tests/golden/state-1.json");
        let state = State::from_json(text).unwrap();
        assert_eq!(
            (state.samples, state.epoch, state.settled.len()),
            (1000, 3, 128)
        );
        assert_eq!(State::from_json(&state.to_json()).unwrap(), state);
    }

    #[test]
    fn another_version_is_an_error_that_names_both() {
        let text = State::new(subject(9), deal(2, 1, 0), Positions::default())
            .to_json()
            .replace("\"version\":1", "\"version\":2");
        let error = State::from_json(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert!(error.to_string().contains("version 2") && error.to_string().contains("version 1"));
    }

    #[test]
    fn another_rank_needs_the_merged_state() {
        let state = State::new(subject(9), deal(2, 2, 0), Positions::default());
        let error = state
            .dealt(state.fingerprint, 9, deal(2, 2, 1))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incompatible);
        assert!(error.advice().unwrap().contains("merge_states"));
        let error = state
            .dealt(state.fingerprint, 8, deal(2, 2, 0))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Incompatible);
        assert_eq!(
            State::merge(&[state.clone(), state]).unwrap_err().kind(),
            ErrorKind::Incompatible
        );
    }

    proptest! {
        #[test]
        fn any_stops_and_resumes_cover_the_epoch_exactly_once(
            samples in 1_u64..200,
            stages in proptest::collection::vec((1_u64..7, 1_u64..5, proptest::collection::vec(any::<u16>(), 4)), 1..4),
        ) {
            let mut seen = Positions::default();
            let mut merged: Option<State> = None;
            for (number, (batch, ranks, stops)) in stages.iter().enumerate() {
                let last_stage = number + 1 == stages.len();
                let mut states = Vec::new();
                for rank in 0..*ranks {
                    let mut state = match &merged {
                        None => State::new(subject(samples), deal(*batch, *ranks, rank), Positions::default()),
                        Some(merged) => merged.dealt(merged.fingerprint, samples, deal(*batch, *ranks, rank)).unwrap(),
                    };
                    let plan = state.plan();
                    let stop = u64::from(stops[usize::try_from(rank).unwrap()]) % (plan.batches() + 1);
                    state.handed_batches = if last_stage { plan.batches() } else { stop };
                    // Out of order: what a rank has got is scattered over its ordinals.
                    let order = Permutation::new(plan.ordinals(), 1, 2);
                    for at in 0..(state.handed_batches * batch).min(plan.ordinals()) {
                        let ordinal = order.at(at);
                        prop_assert!(state.settled.insert(ordinal));
                        prop_assert!(seen.insert(plan.position(ordinal)), "twice");
                    }
                    states.push(State::from_json(&state.to_json()).unwrap());
                }
                merged = Some(State::merge(&states).unwrap());
            }
            prop_assert_eq!(seen.len(), samples);
            prop_assert!(merged.unwrap().is_complete());
        }
    }
}
