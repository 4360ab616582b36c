//! Sizes and policies as people write them.

use loader_core::prefetch::fixed::FixedConfig;

/// Units by name in lower case, and their bytes.
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1000),
    ("m", 1_000_000),
    ("mb", 1_000_000),
    ("g", 1_000_000_000),
    ("gb", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// Bytes of a text such as `512MB`, `4 GB`, `1.5GiB` or `1000000`.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size: write it as 512MB, 4GB or 1GiB");
    let text_trimmed = text.trim();
    let digits = text_trimmed
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text_trimmed.len());
    let (number, unit) = text_trimmed.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, unit_bytes) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    if let Ok(number) = number.parse::<u64>() {
        return number.checked_mul(*unit_bytes).ok_or_else(wrong);
    }
    let number: f64 = number.parse().map_err(|_| wrong())?;
    #[expect(
        clippy::cast_precision_loss,
        reason = "units are powers far below 2^53"
    )]
    let bytes = number * *unit_bytes as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a size"
    )]
    if (0.0..1e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(wrong())
    }
}

/// `fixed:N`. The adaptive policy is for far stores and comes with them.
pub(super) fn parse_prefetch(text: &str) -> Result<FixedConfig, String> {
    if text == "adaptive" {
        return Err("the adaptive policy comes with far stores, which this version does not have; use fixed:N".to_owned());
    }
    let batches = text
        .strip_prefix("fixed:")
        .and_then(|batches| batches.parse().ok())
        .filter(|batches| *batches > 0);
    let batches = batches.ok_or_else(|| {
        format!("{text:?} is no policy: write fixed:N, N batches ahead, as in fixed:4")
    })?;
    Ok(FixedConfig {
        batches,
        ..FixedConfig::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_unless_an_i_says_binary() {
        for (text, bytes) in [
            ("512MB", 512_000_000),
            ("4gb", 4_000_000_000),
            ("1GiB", 1 << 30),
            ("1.5 KiB", 1536),
            ("77", 77),
            ("3k", 3000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "MB",
            "-1",
            "1XB",
            "1e9",
            "999999999TB",
            "1.2.3",
            "\u{e9}",
            "99999999999999999999",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_policy_is_a_number_of_batches() {
        assert_eq!(parse_prefetch("fixed:7").unwrap().batches, 7);
        for text in ["fixed", "fixed:0", "fixed:-1", "7"] {
            assert!(
                parse_prefetch(text).unwrap_err().contains("fixed:N"),
                "{text}"
            );
        }
        assert!(
            parse_prefetch("adaptive")
                .unwrap_err()
                .contains("far stores")
        );
    }
}
