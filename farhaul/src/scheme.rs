//! The schemes that farhaul knows, in this build or not.

use crate::registry::BACKENDS;

/// Whether a scheme is followed by a path or by a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Path,
    Host,
}

/// A scheme, and the Cargo feature that brings it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scheme {
    pub(crate) name: &'static str,
    pub(crate) feature: &'static str,
    pub(crate) reach: Reach,
}

impl Scheme {
    /// `name:PATH`.
    pub(crate) const fn of_path(name: &'static str, feature: &'static str) -> Self {
        Self {
            name,
            feature,
            reach: Reach::Path,
        }
    }

    /// `name://host/…`.
    pub(crate) const fn of_host(name: &'static str, feature: &'static str) -> Self {
        Self {
            name,
            feature,
            reach: Reach::Host,
        }
    }
}

pub(crate) const EMBEDDED: Scheme = Scheme::of_path("embedded", "embedded");
pub(crate) const FOLDER: Scheme = Scheme::of_path("folder", "folder");

/// Schemes of features that a build may lack.
pub(crate) const OPTIONAL: [Scheme; 2] = [EMBEDDED, FOLDER];

/// Schemes that a later version will have, so that nobody takes them for slips.
const PLANNED: [Scheme; 10] = [
    Scheme::of_host("cassandra", "cassandra"),
    Scheme::of_host("scylla", "scylla"),
    Scheme::of_host("redis", "redis"),
    Scheme::of_host("rediss", "redis"),
    Scheme::of_host("s3", "s3"),
    Scheme::of_host("h3", "h3"),
    Scheme::of_host("h2", "h3"),
    Scheme::of_host("auto", "h3"),
    Scheme::of_host("tcp", "tcp"),
    Scheme::of_host("rdma", "rdma"),
];

/// All of them, those of this build first.
pub(crate) fn known() -> impl Iterator<Item = Scheme> {
    let built = BACKENDS.iter().flat_map(|backend| backend.schemes);
    built.chain(&OPTIONAL).chain(&PLANNED).copied()
}

/// The schemes of this build, for messages.
pub(crate) fn available() -> String {
    let built = BACKENDS.iter().flat_map(|backend| backend.schemes);
    let names: Vec<_> = built.map(|scheme| format!("{}:", scheme.name)).collect();
    if names.is_empty() {
        "no store at all".to_owned()
    } else {
        names.join(", ")
    }
}
