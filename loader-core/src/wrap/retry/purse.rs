//! What a store may spend on retries.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use super::RetryConfig;

/// What may be spent on retries, and the dice for the waits.
#[derive(Debug)]
pub(super) struct Purse {
    /// In thousandths of a retry.
    saved: Mutex<u64>,
    most: u64,
    income: u64,
    dice: AtomicU64,
}

const ONE_RETRY: u64 = 1000;

impl Purse {
    pub(super) fn new(config: &RetryConfig) -> Self {
        let most = config.spare_retries.saturating_mul(ONE_RETRY);
        Self {
            saved: Mutex::new(most),
            most,
            income: config.retries_per_mille,
            dice: AtomicU64::new(config.seed),
        }
    }

    pub(super) fn earn(&self) {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        *saved = saved.saturating_add(self.income).min(self.most);
    }

    pub(super) fn pay(&self) -> bool {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = saved.checked_sub(ONE_RETRY);
        *saved = rest.unwrap_or(*saved);
        rest.is_some()
    }

    /// A number from 0 to below 1: `SplitMix64`, whose state is a counter that threads can share without a lock.
    pub(super) fn fraction(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self
            .dice
            .fetch_add(STEP, Ordering::Relaxed)
            .wrapping_add(STEP);
        let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = u32::try_from((state ^ (state >> 31)) >> 32).expect("32 bits are left");
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }
}
