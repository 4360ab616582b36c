//! Rules on which files there are: the shape of a backend, the numbering of decisions.

use super::tree::{File, Tree};
use crate::numbers;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for backend in tree.folders("backend-") {
        shape_of_backend(tree, backend, &mut broken);
    }
    decisions(tree, &mut broken);
    readme_numbers(tree, &mut broken);
    broken
}

/// The README's numbers are those that were measured last, and nothing else.
fn readme_numbers(tree: &Tree, broken: &mut Vec<String>) {
    let (Some(readme), Some(page)) = (tree.file("README.md"), tree.file("bench/results/local.md"))
    else {
        return;
    };
    if numbers::put(&readme.text, &page.text).is_none_or(|wanted| wanted != readme.text) {
        broken.push("README.md: its numbers are not those of bench/results/local.md".into());
    }
}

/// Who knows one backend knows all: each has the same parts in the same places.
fn shape_of_backend(tree: &Tree, backend: &str, broken: &mut Vec<String>) {
    for part in ["README.md", "src/lib.rs", "tests/conformance.rs"] {
        let path = format!("{backend}/{part}");
        if tree.file(&path).is_none() {
            broken.push(format!("{path}: every backend has one"));
        }
    }
    let text = |path| tree.file(path).map_or("", |file: &File| file.text.as_str());
    if !text("farhaul/Cargo.toml").contains(&format!("\"dep:{backend}\"")) {
        broken.push(format!(
            "farhaul/Cargo.toml: no feature brings `dep:{backend}`"
        ));
    }
    let has_row = text("README.md")
        .lines()
        .any(|line| line.starts_with('|') && line.contains(&format!("({backend}/README.md)")));
    if !has_row {
        broken.push(format!(
            "README.md: the table of stores has no row that links {backend}/README.md"
        ));
    }
}

/// `docs/decisions/NNNN-some-words.md`, numbered from 0001 without a gap, with a title.
fn decisions(tree: &Tree, broken: &mut Vec<String>) {
    let folder = "docs/decisions/";
    let files = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with(folder));
    for (index, file) in files.enumerate() {
        let wanted = format!("{folder}{:04}-", index + 1);
        if !file.path.starts_with(&wanted) || file.extension() != "md" {
            broken.push(format!(
                "{}: decisions are numbered without a gap; here `{wanted}….md` is next",
                file.path
            ));
        }
        if !file.text.starts_with("# ") {
            broken.push(format!("{}: starts without a title", file.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: [(&str, &str); 5] = [
        (
            "README.md",
            "| folder | [notes](backend-folder/README.md) |\n",
        ),
        ("backend-folder/README.md", ""),
        ("backend-folder/src/lib.rs", ""),
        ("backend-folder/tests/conformance.rs", ""),
        ("farhaul/Cargo.toml", "folder = [\"dep:backend-folder\"]\n"),
    ];

    #[test]
    fn a_whole_backend_is_not_complained_about() {
        assert_eq!(check(&Tree::of(&WHOLE)), Vec::<String>::new());
    }

    #[test]
    fn each_missing_part_of_a_backend_is_found() {
        for missing in 0..WHOLE.len() {
            let mut files = WHOLE.to_vec();
            let (path, _) = files.remove(missing);
            let broken = check(&Tree::of(&files));
            assert_eq!(broken.len(), 1, "without {path}: {broken:?}");
            assert!(broken[0].contains(path), "without {path}: {broken:?}");
        }
    }

    #[test]
    fn numbers_that_were_not_measured_are_found() {
        let page = ("bench/results/local.md", "# Title\n\n| 3 |\n");
        let readme = |number: &str| format!("{}\n| {number} |\n{}\n", numbers::START, numbers::END);
        assert_eq!(
            check(&Tree::of(&[("README.md", &readme("3")), page])),
            Vec::<String>::new()
        );
        assert!(check(&Tree::of(&[("README.md", &readme("4")), page]))[0].contains("numbers"));
        assert!(check(&Tree::of(&[("README.md", ""), page]))[0].contains("numbers"));
    }

    #[test]
    fn decisions_are_numbered_without_a_gap_and_titled() {
        let good = [
            ("docs/decisions/0001-record.md", "# Record\n"),
            ("docs/decisions/0002-choose.md", "# Choose\n"),
        ];
        assert_eq!(check(&Tree::of(&good)), Vec::<String>::new());
        assert!(check(&Tree::of(&good[1..]))[0].contains("0001-"));
        assert!(
            check(&Tree::of(&[("docs/decisions/record.md", "# Record\n")]))[0].contains("numbered")
        );
        assert!(
            check(&Tree::of(&[("docs/decisions/0001-record.md", "Record\n")]))[0].contains("title")
        );
    }
}
