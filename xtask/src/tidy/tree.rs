//! The files that the rules look at: what git tracks or would track.

use std::fs;
use std::path::Path;

use crate::shell::{Result, Run};

/// A text file of the repository.
#[derive(Debug)]
pub(super) struct File {
    /// Path from the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// Whether this is Rust that ends up in a library or a program, not a test or a benchmark.
    pub(super) fn is_rust_source(&self) -> bool {
        self.extension() == "rs" && self.path.contains("/src/")
    }

    /// The ending after the last dot.
    pub(super) fn extension(&self) -> &str {
        self.path
            .rsplit_once('.')
            .map_or("", |(_, extension)| extension)
    }
}

/// The text files of the repository.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

impl Tree {
    /// Reads every text file that git tracks or would track.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let listing = Run::new("git")
            .words("ls-files -z --cached --others --exclude-standard")
            .read()?;
        let mut paths: Vec<&str> = listing
            .split('\0')
            .filter(|path| !path.is_empty())
            .collect();
        paths.sort_unstable();
        paths.dedup();
        let files = paths.into_iter().filter_map(|path| {
            // What is deleted but not yet committed, or no text, has no rules.
            let text = String::from_utf8(fs::read(root.join(path)).ok()?).ok()?;
            Some(File {
                path: path.to_owned(),
                text,
            })
        });
        Ok(Self {
            files: files.collect(),
        })
    }

    /// The file at exactly this path.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The folders directly below the root whose name starts with `prefix`.
    pub(super) fn folders(&self, prefix: &str) -> Vec<&str> {
        let first = |file: &'_ File| file.path.find('/');
        let mut folders: Vec<&str> = self
            .files
            .iter()
            .filter_map(|file| first(file).map(|end| &file.path[..end]))
            .filter(|folder| folder.starts_with(prefix))
            .collect();
        folders.dedup();
        folders
    }

    /// A tree of these files, for the tests of rules.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Self {
            files: files.iter().map(file).collect(),
        }
    }
}
