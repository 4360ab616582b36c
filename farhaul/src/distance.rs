//! Did you mean …? Edit distance for schemes and keys.

/// The known word nearest to a mistyped one, at most two edits away.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let close = |candidate: &str| {
        let distance = edits(&word, candidate);
        // Two edits turn any word of two letters into any other.
        (distance <= 2 && distance < candidate.len().max(word.len()).div_ceil(2))
            .then_some(distance)
    };
    known
        .into_iter()
        .filter_map(|candidate| Some((close(candidate)?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn edits(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    if left.len().abs_diff(right.len()) > 2 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=right.len()).collect::<Vec<_>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(a != b))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["embedded", "folder", "cassandra", "s3", "h3", "redis"];

    #[test]
    fn a_slip_of_two_letters_is_recognised_and_more_is_not() {
        for (word, meant) in [
            ("embeded", Some("embedded")),
            ("Embedded", Some("embedded")),
            ("floder", Some("folder")),
            ("casandr", Some("cassandra")),
            ("radis", Some("redis")),
            ("s4", None),
            ("mongodb", None),
            ("", None),
            ("\u{e9}\u{e9}", None),
        ] {
            assert_eq!(nearest(word, KNOWN), meant, "{word}");
        }
    }
}
