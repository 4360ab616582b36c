//! Rules on the text of single files.

use super::tree::{File, Tree};

/// Lines that a source file may have; a module that grows past it holds two ideas.
const MOST_LINES: usize = 500;

/// Where `unsafe` may be written: the module of that name, as a file or a folder.
const UNSAFE_MODULES: [&str; 5] = [
    "transport-rdma/src",
    "decode/src/jpeg",
    "backend-embedded/src/map",
    "index/src/map",
    "bindings-py/src/buffer",
];

/// Words that say "not finished". Spelled in two parts, or this file would break its own rule.
const LEFTOVERS: [&str; 7] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("X", "XX"),
    concat!("dbg", "!("),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("#[", "ignore"),
];

/// Folders that exist on one machine only.
const MACHINE_FOLDERS: [&str; 4] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
];

/// Endings of files written by hand.
const WRITTEN: [&str; 11] = [
    "rs", "py", "pyi", "md", "toml", "yml", "yaml", "sh", "json", "txt", "",
];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut broken = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| WRITTEN.contains(&file.extension()))
    {
        if file.is_rust_source() {
            length(file, &mut broken);
            opening(file, &mut broken);
        }
        if file.extension() == "rs" {
            unsafe_code(file, &mut broken);
        }
        lines(file, &mut broken);
    }
    broken
}

fn length(file: &File, broken: &mut Vec<String>) {
    let lines = file.text.lines().count();
    if lines > MOST_LINES {
        broken.push(format!(
            "{}: {lines} lines; {MOST_LINES} is the most, so cut it where its ideas part",
            file.path
        ));
    }
}

fn opening(file: &File, broken: &mut Vec<String>) {
    // A crate may take its words from its README, and a `tests` module says by its name what it is for.
    let says = ["//!", "#![doc = include_str!("]
        .iter()
        .any(|start| file.text.starts_with(start));
    if !says && !file.path.ends_with("/tests.rs") {
        broken.push(format!(
            "{}: starts without `//!`; say in a line what the module is for",
            file.path
        ));
    }
}

fn unsafe_code(file: &File, broken: &mut Vec<String>) {
    if UNSAFE_MODULES
        .iter()
        .any(|module| may_be_unsafe(&file.path, module))
    {
        return;
    }
    for (number, line) in file.text.lines().enumerate() {
        if has_unsafe_keyword(line) {
            broken.push(format!(
                "{}:{}: `unsafe` outside {}",
                file.path,
                number + 1,
                UNSAFE_MODULES.join(", ")
            ));
        }
    }
}

/// Whether this is the module itself, or a test of its crate, which does to it what another program could.
fn may_be_unsafe(path: &str, module: &str) -> bool {
    let (package, _) = module.split_once('/').expect("a module lies in a package");
    let is_module = path
        .strip_prefix(module)
        .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'));
    let is_test = path
        .strip_prefix(package)
        .is_some_and(|rest| rest.starts_with("/tests/"));
    is_module || is_test
}

/// Whether the keyword stands in this line's code: not in a comment, a string or `unsafe_code`.
fn has_unsafe_keyword(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.split('"').step_by(2).any(|outside| {
        outside
            .split(|character: char| {
                !character.is_alphanumeric() && character != '_' && character != '`'
            })
            .any(|word| word == "unsafe")
    })
}

fn lines(file: &File, broken: &mut Vec<String>) {
    for (number, line) in file.text.lines().enumerate() {
        let place = || format!("{}:{}", file.path, number + 1);
        for word in LEFTOVERS.iter().filter(|word| holds_word(line, word)) {
            broken.push(format!("{}: `{word}` is left over", place()));
        }
        for folder in MACHINE_FOLDERS
            .iter()
            .filter(|folder| holds_folder(line, folder))
        {
            broken.push(format!(
                "{}: `{folder}` exists on one machine only",
                place()
            ));
        }
        let trimmed = line.trim_start_matches(['/', '!', '*', ' ']);
        if trimmed.starts_with("```") && trimmed[3..].split(',').any(|word| word.trim() == "ignore")
        {
            broken.push(format!(
                "{}: an `ignore` fence rots; make it compile",
                place()
            ));
        }
    }
}

/// Whether `word` stands in `line` with no letter or digit touching its letters.
fn holds_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let touches =
            |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let ends_in_letter = word.ends_with(char::is_alphanumeric);
        !(touches(before) || ends_in_letter && touches(after))
    })
}

/// Whether an absolute path through `folder` starts in `line`.
fn holds_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        !line[..start]
            .ends_with(|before: char| before.is_alphanumeric() || "._-/}*)".contains(before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The complaints about one file of this path and text.
    fn broken(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]))
    }

    #[test]
    fn a_file_that_keeps_the_rules_is_not_complained_about() {
        let text = "//! Reads things.\n// unsafe is not needed\nfn a() { let s = \"unsafe\"; }\n#![deny(unsafe_code)]\n";
        assert_eq!(broken("index/src/lib.rs", text), Vec::<String>::new());
    }

    #[test]
    fn a_source_file_that_is_too_long_or_starts_without_words_is_found() {
        let long = format!("//! Long.\n{}", "\n".repeat(MOST_LINES));
        assert!(broken("index/src/long.rs", &long)[0].contains("501 lines"));
        assert!(broken("index/src/bare.rs", "use std::fmt;\n")[0].contains("without `//!`"));
        assert!(broken("index/src/map/tests.rs", "use std::fmt;\n").is_empty());
        assert!(
            broken("index/tests/bare.rs", "use std::fmt;\n").is_empty(),
            "tests may start as they like"
        );
    }

    #[test]
    fn unsafe_is_found_except_where_it_may_be() {
        let text = "//! Maps.\nunsafe { peek() }\n";
        assert!(broken("index/src/lib.rs", text)[0].contains("index/src/lib.rs:2: `unsafe`"));
        assert!(broken("farhaul/tests/a.rs", text)[0].contains("unsafe"));
        assert!(broken("index/tests/a.rs", text).is_empty());
        assert!(
            broken("index/src/mapped.rs", text)[0].contains("unsafe"),
            "a longer name is another module"
        );
        assert!(broken("index/src/map.rs", text).is_empty());
        assert!(broken("decode/src/jpeg/raw.rs", text).is_empty());
    }

    #[test]
    fn leftovers_are_found_as_words() {
        let word = concat!("TO", "DO");
        assert!(broken("a.md", &format!("{word}: more"))[0].contains("a.md:1"));
        assert!(broken("a.md", &format!("MAS{word}N")).is_empty());
        assert!(
            broken("a/tests/b.rs", concat!("#[", "ignore = \"slow\"]"))[0].contains("left over")
        );
        assert!(broken("a/tests/b.rs", concat!("    dbg", "!(x);"))[0].contains("left over"));
    }

    #[test]
    fn folders_of_one_machine_are_found() {
        let home = concat!("/ho", "me/me/data");
        assert!(broken("a.py", &format!("path = \"{home}\""))[0].contains("one machine"));
        assert!(broken("a.py", &format!("url = \"https://example.org{home}\"")).is_empty());
    }

    #[test]
    fn fences_that_are_not_compiled_are_found() {
        let fence = concat!("/// `", "``ignore\n");
        assert!(broken("a/tests/b.rs", fence)[0].contains("fence"));
        assert!(broken("a/tests/b.rs", "/// ```no_run\n").is_empty());
    }
}
