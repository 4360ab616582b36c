//! The core's boundary: `loader-core` knows no socket, codec, driver or Python.

use crate::shell::{Result, Run};

/// Crates that would bring one of these, by the start of their names.
const FORBIDDEN: [&str; 30] = [
    "arrow",
    "aws-",
    "cdrs",
    "futures-io",
    "h3",
    "heed",
    "hyper",
    "ibverbs",
    "image",
    "jpeg",
    "lmdb",
    "memmap",
    "mio",
    "mozjpeg",
    "numpy",
    "png",
    "pyo3",
    "quinn",
    "redis",
    "reqwest",
    "rustls",
    "scylla",
    "sideway",
    "socket2",
    "tar",
    "tiff",
    "tonic",
    "turbojpeg",
    "webp",
    "zune",
];

pub(super) fn check() -> Result<Vec<String>> {
    let tree = Run::cargo()
        .words("tree --package loader-core --edges normal --all-features --prefix none")
        .read()?;
    Ok(outside(&tree))
}

/// The forbidden crates in a listing of `cargo tree --prefix none`.
fn outside(listing: &str) -> Vec<String> {
    let mut names: Vec<&str> = listing
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| FORBIDDEN.iter().any(|start| name.starts_with(start)))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|name| {
            format!(
                "loader-core depends on {name}; the core knows no socket, codec, driver or Python"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_below_the_core_is_found_once() {
        let listing = "loader-core v0.1.0\nbytes v1.0.0\nscylla v1.2.0\nscylla v1.2.0 (*)\n";
        let broken = outside(listing);
        assert_eq!(broken.len(), 1);
        assert!(broken[0].contains("scylla"));
    }

    #[test]
    fn what_the_core_uses_is_allowed() {
        assert!(outside("loader-core v0.1.0\nbytes v1.0.0\ntokio v1.0.0\nasync-trait v0.1\nxxhash-rust v0.8\n").is_empty());
    }
}
