//! The driver of an epoch.
