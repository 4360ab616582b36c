//! The place in the README that holds measured numbers: `bench` fills it, `tidy` sees that nobody else does.

/// The line before the numbers.
pub(crate) const START: &str = "<!-- numbers: bench/results/local.md -->";

/// The line after them.
pub(crate) const END: &str = "<!-- end of numbers -->";

/// The README with the tables of a page of results between its two marks; `None` where it has no such marks.
pub(crate) fn put(readme: &str, page: &str) -> Option<String> {
    let (before, rest) = readme.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    let tables = page.find("\n|").map_or("", |start| &page[start + 1..]);
    Some(format!(
        "{before}{START}\n{}\n{END}{after}",
        tables.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_replace_what_stood_between_the_marks_and_nothing_else() {
        let readme = format!("above\n{START}\nold\n{END}\nbelow\n");
        let put_in = put(&readme, "# Title\n\nWords.\n\n| a |\n|---|\n").unwrap();
        assert_eq!(
            put_in,
            format!("above\n{START}\n| a |\n|---|\n{END}\nbelow\n")
        );
        assert_eq!(
            put(&put_in, "# Title\n\n| a |\n|---|\n").unwrap(),
            put_in,
            "twice is as once"
        );
    }

    #[test]
    fn a_readme_without_marks_is_refused() {
        assert_eq!(put("no marks", "| a |\n"), None);
    }
}
