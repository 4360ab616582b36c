//! Brace patterns, as WebDataset users write them: `train-{0000..0146}.tar`, `{train,val}/{0..9}.tar`.

use loader_core::{Error, ErrorKind, Result, identity::display_bytes};

/// Most names that a pattern may stand for.
const MOST: usize = 1_000_000;

/// True where a path has a brace group.
pub(crate) fn is_pattern(path: &[u8]) -> bool {
    path.iter()
        .position(|byte| *byte == b'{')
        .is_some_and(|open| path[open..].contains(&b'}'))
}

/// The folder that all names of a pattern lie below: what comes before the first brace, up to its last slash.
pub(crate) fn base(path: &[u8]) -> &[u8] {
    let brace = path
        .iter()
        .position(|byte| *byte == b'{')
        .unwrap_or(path.len());
    let slash = path[..brace].iter().rposition(|byte| *byte == b'/');
    slash.map_or(b"", |slash| &path[..=slash])
}

/// All names that a pattern stands for, in its order.
///
/// # Errors
/// [`ErrorKind::Usage`] where a group is malformed or there are too many names.
pub(crate) fn expand(pattern: &[u8]) -> Result<Vec<Vec<u8>>> {
    let wrong = |what: &str| {
        Error::new(
            ErrorKind::Usage,
            format!("the pattern {} {what}", display_bytes(pattern)),
        )
    };
    let mut names = vec![Vec::new()];
    let mut rest = pattern;
    while let Some(open) = rest.iter().position(|byte| *byte == b'{') {
        let close = rest[open..]
            .iter()
            .position(|byte| *byte == b'}')
            .map(|close| open + close);
        let close = close.ok_or_else(|| wrong("has a brace that does not end"))?;
        let group = &rest[open + 1..close];
        if group.contains(&b'{') {
            return Err(wrong("has a group inside a group"));
        }
        let choices =
            choices(group).ok_or_else(|| wrong("has a group that is neither {1..9} nor {a,b}"))?;
        if names.len().saturating_mul(choices.len()) > MOST {
            return Err(wrong("stands for more than a million names"));
        }
        let with = |name: &Vec<u8>| {
            choices
                .iter()
                .map(|choice| [name, &rest[..open], choice].concat())
                .collect::<Vec<_>>()
        };
        names = names.iter().flat_map(with).collect();
        rest = &rest[close + 1..];
    }
    for name in &mut names {
        name.extend_from_slice(rest);
    }
    Ok(names)
}

fn choices(group: &[u8]) -> Option<Vec<Vec<u8>>> {
    if group.contains(&b',') {
        return Some(
            group
                .split(|byte| *byte == b',')
                .map(<[u8]>::to_vec)
                .collect(),
        );
    }
    let (first, last) = str::from_utf8(group).ok()?.split_once("..")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(first) || !is_number(last) {
        return None;
    }
    let (from, to): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    // One of them written with leading zeros: all are as wide as the wider one, as a shell has it.
    let is_padded = [first, last]
        .iter()
        .any(|text| text.len() > 1 && text.starts_with('0'));
    let width = if is_padded {
        first.len().max(last.len())
    } else {
        0
    };
    let count = usize::try_from(from.abs_diff(to))
        .ok()
        .filter(|count| *count < MOST)?;
    let number = |step: u64| if from <= to { from + step } else { from - step };
    Some(
        (0..=count as u64)
            .map(|step| format!("{:0width$}", number(step)).into_bytes())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(pattern: &str) -> Vec<String> {
        expand(pattern.as_bytes())
            .unwrap()
            .into_iter()
            .map(|name| String::from_utf8(name).unwrap())
            .collect()
    }

    #[test]
    fn ranges_and_lists_expand_as_in_a_shell() {
        assert_eq!(
            names("d/im-{008..010}.tar"),
            ["d/im-008.tar", "d/im-009.tar", "d/im-010.tar"]
        );
        assert_eq!(names("{a,b}/{9..10}"), ["a/9", "a/10", "b/9", "b/10"]);
        assert_eq!(names("{2..0}"), ["2", "1", "0"]);
    }

    #[test]
    fn the_base_is_a_folder() {
        assert_eq!(base(b"a/b/im-{0..1}.tar"), b"a/b/");
        assert_eq!(base(b"{0..1}/x.tar"), b"");
    }

    #[test]
    fn patterns_that_make_no_sense_are_refused() {
        for pattern in [
            "{}",
            "{a}",
            "{1..}",
            "{1..2",
            "{{1..2}}",
            "{0..9999999}",
            "{1..x}",
            "{0..999}{0..999}{0..999}",
        ] {
            assert_eq!(
                expand(pattern.as_bytes()).unwrap_err().kind(),
                ErrorKind::Usage,
                "{pattern}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_pattern_makes_it_panic(pattern in "[{}a0-9.,/]{0,24}") {
            let _ = expand(pattern.as_bytes());
        }
    }
}
