//! The original policy: N batches ahead, with a slow start.
