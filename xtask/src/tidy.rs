//! `cargo xtask tidy`: the rules of the house that no other tool knows.
//!
//! A rule is a function from the [`Tree`] to the places where it is broken; each has a test that
//! breaks it.

mod boundary;
mod shape;
mod source;
mod tree;

use crate::shell::Result;
use tree::Tree;

/// Checks every rule and prints each place where one is broken.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::read(crate::places::root())?;
    let mut broken = Vec::new();
    for rule in [source::check, shape::check] {
        broken.extend(rule(&tree));
    }
    broken.extend(boundary::check()?);
    for line in &broken {
        println!("{line}");
    }
    match broken.len() {
        0 => {
            println!("{} files keep the rules", tree.files.len());
            Ok(())
        }
        count => Err(format!(
            "tidy found {count} broken rules (CONTRIBUTING.md says why each is there)"
        )),
    }
}
