//! Scenarios that every policy must get through; [`drive()`] is the judge.

use std::time::{Duration, Instant};

use loader_core::{
    Lane, Prefetcher,
    loader::config::Order,
    prefetch::{Action, Arrival, Completion, Outlook},
};

use super::{Link, Report, Scenario, drive};

/// Makes a policy at the start of its epoch.
pub type Policies<'a> = &'a dyn Fn() -> Box<dyn Prefetcher>;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn play(policies: Policies<'_>, scenario: &Scenario) -> Report {
    drive(scenario, &mut *policies())
}

/// Whatever the distance.
pub fn a_clean_link_near_and_far(policies: Policies<'_>) {
    for round_trip in [
        Duration::ZERO,
        MILLISECOND,
        30 * MILLISECOND,
        250 * MILLISECOND,
    ] {
        let report = play(
            policies,
            &Scenario::over(Link::clean().round_trip(round_trip)),
        );
        assert!(
            report.share_of(40_000_000) <= 1.0,
            "the link carries what it can"
        );
    }
}

/// Late answers, and answers that overtake each other.
pub fn a_link_with_jitter_and_stragglers(policies: Policies<'_>) {
    for seed in 0..5 {
        let link = Link {
            jitter: 20 * MILLISECOND,
            stragglers_per_mille: 20,
            ..Link::clean()
        };
        play(
            policies,
            &Scenario {
                seed,
                ..Scenario::over(link)
            },
        );
    }
}

/// What is lost is asked for again until it comes.
pub fn a_link_that_loses_requests(policies: Policies<'_>) {
    for (seed, lost_per_mille) in [1, 10, 100, 500].into_iter().enumerate() {
        let link = Link {
            lost_per_mille,
            jitter: MILLISECOND,
            ..Link::clean()
        };
        let report = play(
            policies,
            &Scenario {
                seed: seed as u64,
                ..Scenario::over(link)
            },
        );
        assert!(report.requests >= 60 * 32 - 5);
    }
}

/// Four times slower, then back, then three times farther.
pub fn a_link_whose_rate_and_distance_change(policies: Policies<'_>) {
    let mut scenario = Scenario::over(Link::clean());
    scenario.changes = vec![
        (
            SECOND,
            Link {
                bytes_per_second: 10_000_000,
                ..Link::clean()
            },
        ),
        (3 * SECOND, Link::clean()),
        (4 * SECOND, Link::clean().round_trip(300 * MILLISECOND)),
    ];
    play(policies, &scenario);
}

/// Everything that is asked for two seconds is lost; afterwards the epoch goes on.
pub fn a_link_that_is_down_for_a_while(policies: Policies<'_>) {
    let mut scenario = Scenario::over(Link::clean());
    let down = Link {
        bytes_per_second: 0,
        ..Link::clean()
    };
    scenario.changes = vec![(SECOND, down), (3 * SECOND, Link::clean())];
    play(policies, &scenario);
}

/// A store that refuses above some requests gets the epoch done.
pub fn a_store_that_is_overloaded(policies: Policies<'_>) {
    for most_requests in [1, 20] {
        let link = Link {
            most_requests: Some(most_requests),
            ..Link::clean().round_trip(10 * MILLISECOND)
        };
        play(policies, &Scenario::over(link));
    }
}

/// Reading ahead stops at the budget.
pub fn a_consumer_that_is_slower_than_the_link(policies: Policies<'_>) {
    let scenario = Scenario {
        think: 200 * MILLISECOND,
        ..Scenario::over(Link::clean())
    };
    let report = play(policies, &scenario);
    assert!(
        report.elapsed >= 59 * 200 * MILLISECOND,
        "the consumer thinks as long as it thinks"
    );
}

/// Batches that are lent reduce what is read ahead, even to nothing, but never stop the epoch.
pub fn a_consumer_that_keeps_batches(policies: Policies<'_>) {
    for budget_bytes in [4_000_000, 12_000_000, 40_000_000] {
        let scenario = Scenario {
            kept_batches: 3,
            budget_bytes,
            think: MILLISECOND,
            ..Scenario::over(Link::clean())
        };
        play(policies, &scenario);
    }
}

/// The batch that is being filled is always served.
pub fn a_budget_smaller_than_a_batch(policies: Policies<'_>) {
    for budget_bytes in [0, 1, 1_000_000] {
        let scenario = Scenario {
            budget_bytes,
            positions: 300,
            ..Scenario::over(Link::clean())
        };
        play(policies, &scenario);
    }
}

/// Nothing but the open batch may be asked for, or one batch besides.
pub fn a_horizon_of_nothing(policies: Policies<'_>) {
    for horizon_batches in [0, 1] {
        for order in [Order::Arrival, Order::Window] {
            play(
                policies,
                &Scenario {
                    horizon_batches,
                    order,
                    positions: 320,
                    ..Scenario::over(Link::clean())
                },
            );
        }
    }
}

/// As they arrive, within their window, strictly.
pub fn every_order_of_batches(policies: Policies<'_>) {
    for order in [Order::Arrival, Order::Window, Order::Strict] {
        let link = Link {
            jitter: 20 * MILLISECOND,
            stragglers_per_mille: 10,
            lost_per_mille: 10,
            ..Link::clean()
        };
        play(
            policies,
            &Scenario {
                order,
                ..Scenario::over(link)
            },
        );
    }
}

/// A sample that fails for good is not asked for again.
pub fn samples_that_are_bad(policies: Policies<'_>) {
    for bad_per_mille in [10, 1000] {
        let link = Link {
            lost_per_mille: 20,
            ..Link::clean()
        };
        let report = play(
            policies,
            &Scenario {
                bad_per_mille,
                ..Scenario::over(link)
            },
        );
        assert!((report.bytes == 0) == (bad_per_mille == 1000));
    }
}

/// The smallest batches and the smallest epoch.
pub fn batches_of_one_sample_and_epochs_of_one_batch(policies: Policies<'_>) {
    play(
        policies,
        &Scenario {
            batch_samples: 1,
            positions: 300,
            ..Scenario::over(Link::clean())
        },
    );
    play(
        policies,
        &Scenario {
            positions: 1,
            ..Scenario::over(Link::clean())
        },
    );
    play(
        policies,
        &Scenario {
            positions: 32,
            ..Scenario::over(Link::clean())
        },
    );
}

/// Nothing to ask for is nothing to do.
pub fn an_epoch_without_samples(policies: Policies<'_>) {
    let report = play(
        policies,
        &Scenario {
            positions: 0,
            ..Scenario::over(Link::clean())
        },
    );
    assert_eq!(report.actions, []);
}

/// A hedge has nowhere else to go.
pub fn one_lane(policies: Policies<'_>) {
    let link = Link {
        lanes: 1,
        jitter: 20 * MILLISECOND,
        stragglers_per_mille: 20,
        ..Link::clean()
    };
    play(policies, &Scenario::over(link));
}

/// No clock, no luck of its own.
pub fn the_same_calls_give_the_same_actions(policies: Policies<'_>) {
    let link = Link {
        jitter: 20 * MILLISECOND,
        stragglers_per_mille: 10,
        lost_per_mille: 10,
        ..Link::clean()
    };
    let scenario = Scenario {
        think: 50 * MILLISECOND,
        ..Scenario::over(link)
    };
    let (first, second) = (play(policies, &scenario), play(policies, &scenario));
    assert!(first.actions == second.actions, "two runs differ");
    assert_eq!(first, second);
}

/// Sixteen times as much in flight costs no more a call; the shortest of several runs counts, for others use the machine too.
pub fn a_call_takes_constant_time_amortised(policies: Policies<'_>) {
    let shortest = |positions: u64| {
        (0..5)
            .map(|_| fill_and_drain(&mut *policies(), positions))
            .min()
            .expect("five runs")
    };
    let (few, many) = (shortest(500), shortest(8_000));
    assert!(
        many < 6 * few.max(50),
        "{few} ns a call with hundreds in flight, {many} ns with thousands"
    );
}

/// Nanoseconds a call where nothing bounds what is in flight: everything that it asks for is asked, then everything comes,
/// the latest first.
fn fill_and_drain(policy: &mut dyn Prefetcher, positions: u64) -> u64 {
    let origin = Instant::now();
    let expected_bytes = |_| 1;
    let batch_samples = positions.div_ceil(8);
    let (mut calls, mut out, mut settled) = (0_u64, Vec::new(), 0);
    let mut now = origin;
    while settled < positions {
        let outlook = Outlook {
            positions,
            batch_samples,
            open_batch: settled / batch_samples,
            taken_batches: settled / batch_samples,
            horizon_batches: u64::MAX,
            held_bytes: 0,
            budget_bytes: u64::MAX,
            expected_bytes: &expected_bytes,
        };
        calls += 1;
        match policy.next(now, &outlook) {
            Action::Issue { position, .. } => out.push((position, now)),
            Action::Wait { .. } => {
                let (position, started) =
                    out.pop().expect("something is out, or it would not wait");
                now += Duration::from_micros(10);
                let completion = Completion {
                    position,
                    bytes: 1,
                    started,
                    lane: Lane(0),
                    arrival: Arrival::Delivered,
                };
                policy.completed(now, completion);
                settled += 1;
            }
            Action::Hedge { .. } | Action::Cancel { .. } | Action::Probe { .. } => (),
        }
        assert!(calls < 20 * positions + 1000, "the policy acts without end");
    }
    let nanos = u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    nanos / calls
}
