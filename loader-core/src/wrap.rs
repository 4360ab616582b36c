//! Wrappers: a store in, a store out. Each adds one ability and passes everything else on.

pub mod limit;
pub mod meter;
pub mod retry;
pub mod timeout;
