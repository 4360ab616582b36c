//! Tables of tab-separated values in which a value may be quoted.

use std::{collections::BTreeMap, path::Path, str::FromStr};

use super::RealFile;

pub(super) fn real_files(text: &str, folder: &Path) -> Vec<RealFile> {
    let mut lines = lines(text).into_iter();
    let names = lines.next().expect("the table has a head");
    let file = |values: Vec<String>| {
        let value: BTreeMap<_, _> = names.iter().map(String::as_str).zip(values).collect();
        let text = |name: &str| {
            value
                .get(name)
                .unwrap_or_else(|| panic!("no column {name}"))
                .clone()
        };
        RealFile {
            name: text("name"),
            path: folder.join(text("name")),
            bytes: number(&text("bytes")),
            sha256: text("sha256"),
            what_is_odd: text("what_is_odd"),
            expected: text("expected"),
            shape: numbers(&text("WxHxC_stored"), 'x'),
            mean: numbers(&text("mean_RGB"), ','),
            tolerance: numbers::<f64, 1>(&text("tolerance"), ',').map(|[tolerance]| tolerance),
            note: text("note"),
        }
    };
    lines.map(file).collect()
}

fn number<T: FromStr>(text: &str) -> T {
    text.parse()
        .ok()
        .unwrap_or_else(|| panic!("{text:?} is no number"))
}

/// So many numbers; `None` for an empty value.
fn numbers<T: FromStr, const N: usize>(text: &str, separator: char) -> Option<[T; N]> {
    let numbers: Vec<_> = text
        .split(separator)
        .filter(|text| !text.is_empty())
        .map(number)
        .collect();
    (!numbers.is_empty()).then(|| {
        numbers
            .try_into()
            .ok()
            .unwrap_or_else(|| panic!("{text:?} are not {N} numbers"))
    })
}

/// The values of each line. A value that begins with a quote ends with one; two of them inside it are one.
fn lines(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut value) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => value.extend(characters.next()),
            '"' if quoted => quoted = false,
            '"' if value.is_empty() => quoted = true,
            '\t' if !quoted => line.push(std::mem::take(&mut value)),
            '\r' if !quoted => (),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut value));
                lines.push(std::mem::take(&mut line));
            }
            character => value.push(character),
        }
    }
    if !value.is_empty() || !line.is_empty() {
        line.push(value);
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_values_keep_their_quotes_tabs_and_line_breaks() {
        let text = "a\tb\n\"say \"\"yes\"\"\"\t\"two\nlines\tand a tab\"\r\nin \"side\"\t";
        assert_eq!(
            lines(text),
            [
                vec!["a", "b"],
                vec!["say \"yes\"", "two\nlines\tand a tab"],
                vec!["in \"side\"", ""]
            ]
        );
    }
}
