//! The command `farhaul` as its users meet it: the real program, its JSON, its exit codes.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod cases;
mod contract;
mod crash;
mod disk;
mod edges;
mod interrupt;
mod memory;
mod permissions;
mod round_trip;
mod support;
mod threads;
mod usage;
