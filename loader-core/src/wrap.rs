//! Wrappers: a store in, a store out. Each adds one ability and passes everything else on.
//!
//! From the outside in, [`Meter`](meter::Meter), [`Retry`](retry::Retry), [`Limit`](limit::Limit) and
//! [`Timeout`](timeout::Timeout) go together: then the wait for a permit does not count as the store's time, and a retry
//! queues like any other request.
//!
//! All of them hand out exactly one answer per target whatever the store inside does: an answer that is
//! missing becomes an error, one too many is dropped.

pub mod limit;
pub mod meter;
mod owed;
pub mod retry;
pub mod timeout;
