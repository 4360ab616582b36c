//! The policies that are there keep the contract, and each way to break it is caught.

use loader_core::prefetch::fixed::{Fixed, FixedConfig};

mod fixed {
    use super::{Fixed, FixedConfig};

    conformance::prefetcher_suite!(|| Fixed::new(FixedConfig::default()));
}

mod fixed_with_slow_start {
    use super::{Fixed, fixed_config};

    conformance::prefetcher_suite!(|| Fixed::new(fixed_config(4, 3)));
}

mod fixed_far_ahead {
    use super::{Fixed, fixed_config};

    conformance::prefetcher_suite!(|| Fixed::new(fixed_config(1000, 0)));
}

fn fixed_config(batches: u64, slow_start: u64) -> FixedConfig {
    FixedConfig {
        batches,
        slow_start,
    }
}

mod mutants {
    use std::{
        collections::BTreeSet,
        panic::{AssertUnwindSafe, catch_unwind},
        sync::atomic::{AtomicU64, Ordering},
        time::{Duration, Instant},
    };

    use conformance::sim;
    use loader_core::{
        Lane, Prefetcher,
        prefetch::{Action, Arrival, Completion, Outlook, PrefetchSnapshot, Taken, fixed::Fixed},
    };

    use super::fixed_config;

    /// One way each to break the contract.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Defect {
        IgnoresWhatIsAdmitted,
        IssuesTwice,
        IssuesBeyondTheEnd,
        ForgetsWhatWasLost,
        IssuesAgainWhatFailed,
        SkipsAPosition,
        StopsWhenItWasOverloaded,
        UsesALaneThatIsNotThere,
        WaitsForThePast,
        NeverWaits,
        HedgesWhatHasCome,
        CancelsWhatIsNotOut,
        IsNotRepeatable,
        LooksAtEverythingInEachCall,
        IssuesWithoutSamples,
    }

    #[derive(Debug)]
    struct Mutant {
        defect: Defect,
        inner: Fixed,
        extra: Vec<Action>,
        issued: BTreeSet<u64>,
        next: u64,
        overloaded: bool,
        out: Vec<u64>,
    }

    static CALLS: AtomicU64 = AtomicU64::new(0);

    fn mutant(defect: Defect) -> Mutant {
        let inner = Fixed::new(fixed_config(
            if defect == Defect::LooksAtEverythingInEachCall {
                1000
            } else {
                8
            },
            0,
        ));
        Mutant {
            defect,
            inner,
            extra: Vec::new(),
            issued: BTreeSet::new(),
            next: 0,
            overloaded: false,
            out: Vec::new(),
        }
    }

    impl Prefetcher for Mutant {
        fn completed(&mut self, now: Instant, mut completion: Completion) {
            let Completion {
                position,
                lane,
                arrival,
                ..
            } = completion;
            let again = Action::Issue {
                position,
                lane: None,
            };
            match (self.defect, arrival) {
                (Defect::ForgetsWhatWasLost, Arrival::Lost) => completion.arrival = Arrival::Failed,
                (Defect::IssuesAgainWhatFailed, Arrival::Failed) => self.extra.push(again),
                (Defect::HedgesWhatHasCome, Arrival::Delivered) => self.extra.push(Action::Hedge {
                    position,
                    avoid: lane,
                }),
                (Defect::CancelsWhatIsNotOut, Arrival::Lost) => {
                    self.extra.push(Action::Cancel { position });
                }
                _ => (),
            }
            self.out.retain(|out| {
                *out != position || self.defect != Defect::LooksAtEverythingInEachCall
            });
            self.inner.completed(now, completion);
        }

        fn taken(&mut self, now: Instant, taken: Taken) {
            self.inner.taken(now, taken);
        }

        fn lent(&mut self, now: Instant, change_bytes: i64) {
            self.inner.lent(now, change_bytes);
        }

        fn overloaded(&mut self, now: Instant, lane: Lane, until: Option<Instant>) {
            self.overloaded = true;
            self.inner.overloaded(now, lane, until);
        }

        fn next(&mut self, now: Instant, outlook: &Outlook<'_>) -> Action {
            if let Some(action) = self.extra.pop() {
                return action;
            }
            if self.defect == Defect::IgnoresWhatIsAdmitted {
                let position = self.next;
                self.next += 1;
                return if position < outlook.positions {
                    Action::Issue {
                        position,
                        lane: None,
                    }
                } else {
                    Action::Wait { until: None }
                };
            }
            let action = self.inner.next(now, outlook);
            match (self.defect, action) {
                (Defect::IssuesTwice, Action::Issue { position: 7, .. })
                    if self.issued.insert(7) =>
                {
                    self.extra.push(action);
                }
                (Defect::IssuesBeyondTheEnd, Action::Issue { position, .. })
                    if position + 1 == outlook.positions =>
                {
                    self.extra.push(Action::Issue {
                        position: position + 1,
                        lane: None,
                    });
                }
                (Defect::SkipsAPosition, Action::Issue { position: 7, .. }) => {
                    return self.next(now, outlook);
                }
                (Defect::StopsWhenItWasOverloaded, _) if self.overloaded => {
                    return Action::Wait { until: None };
                }
                (Defect::UsesALaneThatIsNotThere, Action::Issue { position, .. }) => {
                    return Action::Issue {
                        position,
                        lane: Some(Lane(1)),
                    };
                }
                (Defect::WaitsForThePast, Action::Wait { .. }) => {
                    return Action::Wait { until: Some(now) };
                }
                (Defect::NeverWaits, Action::Wait { .. }) => {
                    return Action::Probe { lane: Lane(0) };
                }
                (Defect::IsNotRepeatable, Action::Wait { .. }) => {
                    let call = CALLS.fetch_add(1, Ordering::Relaxed);
                    if call.is_multiple_of(97) {
                        return Action::Probe { lane: Lane(0) };
                    }
                }
                (Defect::LooksAtEverythingInEachCall, Action::Issue { position, .. }) => {
                    self.out.push(position);
                }
                (Defect::IssuesWithoutSamples, _) if outlook.positions == 0 => {
                    return Action::Probe { lane: Lane(0) };
                }
                _ => (),
            }
            action
        }

        fn snapshot(&self) -> PrefetchSnapshot {
            self.inner.snapshot()
        }
    }

    type Clause = fn(sim::Policies<'_>);

    /// The clause passes a sound policy and fails a mutant.
    fn assert_catches(clause: Clause, defect: Defect) {
        clause(&|| Box::new(Fixed::new(fixed_config(8, 0))));
        let caught = catch_unwind(AssertUnwindSafe(|| clause(&|| Box::new(mutant(defect)))));
        assert!(caught.is_err(), "{defect:?} is not caught");
    }

    #[test]
    fn every_clause_catches_a_policy_that_breaks_it() {
        use Defect as D;
        let table: [(Clause, Defect); 19] = [
            (sim::a_clean_link_near_and_far, D::IgnoresWhatIsAdmitted),
            (sim::a_clean_link_near_and_far, D::IssuesTwice),
            (sim::a_clean_link_near_and_far, D::IssuesBeyondTheEnd),
            (sim::a_clean_link_near_and_far, D::SkipsAPosition),
            (sim::a_clean_link_near_and_far, D::WaitsForThePast),
            (sim::a_link_with_jitter_and_stragglers, D::HedgesWhatHasCome),
            (sim::a_link_that_loses_requests, D::ForgetsWhatWasLost),
            (
                sim::a_link_whose_rate_and_distance_change,
                D::SkipsAPosition,
            ),
            (sim::a_link_that_is_down_for_a_while, D::CancelsWhatIsNotOut),
            (sim::a_store_that_is_overloaded, D::StopsWhenItWasOverloaded),
            (sim::a_consumer_that_is_slower_than_the_link, D::NeverWaits),
            (sim::a_consumer_that_keeps_batches, D::IgnoresWhatIsAdmitted),
            (sim::a_budget_smaller_than_a_batch, D::IgnoresWhatIsAdmitted),
            (sim::a_horizon_of_nothing, D::IgnoresWhatIsAdmitted),
            (sim::every_order_of_batches, D::ForgetsWhatWasLost),
            (sim::samples_that_are_bad, D::IssuesAgainWhatFailed),
            (sim::one_lane, D::UsesALaneThatIsNotThere),
            (
                sim::the_same_calls_give_the_same_actions,
                D::IsNotRepeatable,
            ),
            (sim::an_epoch_without_samples, D::IssuesWithoutSamples),
        ];
        for (clause, defect) in table {
            assert_catches(clause, defect);
        }
        assert_catches(
            sim::batches_of_one_sample_and_epochs_of_one_batch,
            D::IssuesBeyondTheEnd,
        );
        assert_catches(
            sim::a_call_takes_constant_time_amortised,
            D::LooksAtEverythingInEachCall,
        );
    }

    #[test]
    fn a_window_that_is_too_small_for_the_distance_shows_in_the_report() {
        let far = sim::Link::clean().round_trip(Duration::from_millis(250));
        let run = |batches| {
            sim::drive(
                &sim::Scenario::over(far),
                &mut Fixed::new(fixed_config(batches, 0)),
            )
        };
        let (small, large) = (run(1), run(11));
        let rate = far.bytes_per_second;
        assert!(
            small.share_of(rate) < 0.6 && large.share_of(rate) > 0.8,
            "{} {}",
            small.share_of(rate),
            large.share_of(rate)
        );
        assert!(small.waited > large.waited && small.most_held_bytes < large.most_held_bytes);
    }
}
