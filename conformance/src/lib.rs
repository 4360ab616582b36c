//! The contracts of farhaul as tests, and the fakes to run them on.

pub mod fault;
pub mod lanes;
pub mod random;
pub mod request;
pub mod samples;
