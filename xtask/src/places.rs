//! Where things lie: the workspace, its target folder, the Python environment.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::shell::Run;

/// The workspace root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies one folder below the workspace root")
}

/// Cargo's target folder, wherever the developer has put it.
pub(crate) fn target() -> &'static Path {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    TARGET.get_or_init(|| {
        let metadata = Run::cargo()
            .words("metadata --no-deps --format-version 1")
            .read()
            .ok();
        metadata
            .and_then(|text| serde_json::from_str::<Value>(&text).ok())
            .and_then(|metadata| metadata["target_directory"].as_str().map(PathBuf::from))
            .unwrap_or_else(|| root().join("target"))
    })
}

/// The Python environment that every command shares.
pub(crate) fn venv() -> PathBuf {
    target().join("venv")
}

/// A program of the Python environment.
pub(crate) fn venv_program(name: &str) -> PathBuf {
    venv().join("bin").join(name)
}

/// `PATH` with the environment's programs first: cargo finds `cargo-nextest` and its like there.
pub(crate) fn path_with_venv() -> std::ffi::OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(venv().join("bin")).chain(std::env::split_paths(&inherited));
    std::env::join_paths(folders).expect("a folder of PATH holds no separator")
}
