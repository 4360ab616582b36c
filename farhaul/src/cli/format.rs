//! Numbers as people read them.

/// `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `812 B`, `4.7 MB`, `1.2 GB`.
pub(super) fn bytes(number: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if number < 1000 {
        return format!("{number} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let mut value = number as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Names and values in two columns.
pub(super) fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<_> = rows
        .iter()
        .map(|(name, value)| format!("{name:width$}  {value}"))
        .collect();
    lines.join("\n")
}

/// The first few of a list, and how many more there are.
pub(super) fn few(list: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = list
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match list.len() {
        0 => "none".to_owned(),
        length if length > SHOWN => format!(
            "{}: {shown}, and {} more",
            count(length as u64),
            count((length - SHOWN) as u64)
        ),
        length => format!("{length}: {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_scaled() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [0, 999, 1000, 999_949, 999_950, 4_700_000, u64::MAX].map(bytes),
            [
                "0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "4.7 MB", "18.4 EB"
            ]
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<_> = (0..10).map(|number| number.to_string()).collect();
        assert_eq!(few(&names[..2]), "2: 0, 1");
        assert_eq!(few(&names), "10: 0, 1, 2, 3, 4, 5, 6, 7, and 2 more");
        assert_eq!(few(&[]), "none");
    }
}
