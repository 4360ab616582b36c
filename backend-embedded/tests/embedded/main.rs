//! The embedded store as its users, its neighbours and its accidents meet it.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod crash;
mod damage;
mod limits;
mod round_trip;
mod sharing;
mod support;
