//! The plan of an epoch at 10⁴ to 10⁸ samples: what starting one costs, and what a position costs.

use std::hint::black_box;
use std::time::Instant;

use loader_core::loader::permutation::Permutation;
use loader_core::loader::plan::{Deal, LastBatch, Plan};
use loader_core::loader::positions::Positions;
use serde_json::{Value, json};

use crate::memory;

/// Positions asked for at each size.
const ASKED: u64 = 5_000_000;

/// Epochs started at each size.
const EPOCHS: u32 = 1000;

/// One record a size.
pub(crate) fn measure() -> Value {
    [10_000, 1_000_000, 100_000_000]
        .map(measure_size)
        .into_iter()
        .collect()
}

fn measure_size(samples: u64) -> Value {
    let deal = Deal {
        batch_samples: 256,
        ranks: 4,
        rank: 1,
        last_batch: LastBatch::Drop,
    };
    let nothing = Positions::default();
    let before = memory::own_bytes();
    let started = Instant::now();
    for epoch in 0..EPOCHS {
        black_box(Plan::new(
            samples,
            Some(Permutation::new(samples, 7, u64::from(epoch))),
            &nothing,
            deal,
        ));
    }
    let epoch_ns = started.elapsed().as_secs_f64() * 1e9 / f64::from(EPOCHS);

    let plan = Plan::new(
        samples,
        Some(Permutation::new(samples, 7, 0)),
        &nothing,
        deal,
    );
    let ordinals = plan.ordinals();
    let started = Instant::now();
    let mut rows = 0;
    for asked in 0..ASKED {
        rows ^= plan.row(plan.position(asked % ordinals));
    }
    black_box(rows);
    let seconds = started.elapsed().as_secs_f64();
    json!({
        "samples": samples,
        "start_of_epoch_ns": epoch_ns,
        "position_ns": seconds * 1e9 / precise(ASKED),
        "grown_bytes": memory::own_bytes().saturating_sub(before),
    })
}

/// A count as a float; those here are far below 2⁵².
#[allow(
    clippy::cast_precision_loss,
    reason = "counts of this module fit the mantissa"
)]
fn precise(count: u64) -> f64 {
    count as f64
}
