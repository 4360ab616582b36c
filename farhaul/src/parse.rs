//! Options as people write them: sizes and prefetch policies, the same for the command, Python and whoever comes next.

use loader_core::{
    Error, ErrorKind, Result, loader::config::Prefetch, prefetch::fixed::FixedConfig,
};

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

/// Bytes of a text such as `512MB`, `4 GB`, `4G`, `1.5GiB`, `1.5e9` or `1000000`.
///
/// Units are decimal unless an `i` says binary, and their case does not matter; a fraction of a byte is cut off.
///
/// # Errors
/// [`ErrorKind::Usage`] for anything else, and from 10¹⁸ bytes on where a fraction or exponent is written.
///
/// # Examples
/// ```
/// assert_eq!(farhaul::parse::size("512MB")?, 512_000_000);
/// assert_eq!(farhaul::parse::size("1.5 GiB")?, 3 << 29);
/// # Ok::<(), farhaul::Error>(())
/// ```
pub fn size(text: &str) -> Result<u64> {
    let wrong = || {
        usage(format!(
            "{text:?} is no size: write it as 512MB, 4GB or 1GiB"
        ))
    };
    let (number, unit) = split(text.trim());
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

/// The number, with its exponent where it has one, and what follows. It begins with a digit or a point: no sign, no `inf`.
fn split(text: &str) -> (&str, &str) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mantissa = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'.')
        .count();
    let tail = &text[mantissa..];
    let exponent = tail.strip_prefix(['e', 'E']).map_or(0, |tail| {
        let sign = usize::from(tail.starts_with(['+', '-']));
        match digits(&tail[sign..]) {
            0 => 0,
            count => 1 + sign + count,
        }
    });
    text.split_at(mantissa + exponent)
}

/// A prefetch policy: `fixed:N` fetches N batches ahead, `fixed:N:K` begins with few and adds one for every K batches taken;
/// `fixed` alone is [`FixedConfig::default`].
///
/// # Errors
/// [`ErrorKind::Usage`] for anything else; also for `adaptive`, which is for far stores and comes with them.
///
/// # Examples
/// ```
/// use farhaul::{FixedConfig, Prefetch};
///
/// let policy = farhaul::parse::prefetch("fixed:16:2")?;
/// assert_eq!(policy, Prefetch::Fixed(FixedConfig { batches: 16, slow_start: 2 }));
/// # Ok::<(), farhaul::Error>(())
/// ```
pub fn prefetch(text: &str) -> Result<Prefetch> {
    if text == "adaptive" {
        let message = "the adaptive policy comes with far stores, which this version does not have";
        return Err(usage(message.to_owned()).hint("use fixed:N, N batches ahead"));
    }
    let wrong = || {
        usage(format!(
            "{text:?} is no policy: write fixed:N, N batches ahead as in fixed:4, or fixed:N:K for a slow start"
        ))
    };
    let number = |text: &str| {
        // `parse` takes a plus sign too.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().ok()).flatten()
    };
    if text == "fixed" {
        return Ok(Prefetch::Fixed(FixedConfig::default()));
    }
    let policy = text.strip_prefix("fixed:").ok_or_else(wrong)?;
    let (batches, slow_start) = match policy.split_once(':') {
        None => (number(policy), Some(0)),
        Some((batches, slow_start)) => (number(batches), number(slow_start)),
    };
    match batches.zip(slow_start) {
        Some((batches, slow_start)) if batches > 0 => Ok(Prefetch::Fixed(FixedConfig {
            batches,
            slow_start,
        })),
        _ => Err(wrong()),
    }
}

fn usage(message: String) -> Error {
    Error::new(ErrorKind::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_unless_an_i_says_binary() {
        for (text, bytes) in [
            ("512MB", 512_000_000),
            ("4gb", 4_000_000_000),
            ("4G", 4_000_000_000),
            ("1GiB", 1 << 30),
            ("1.5 KiB", 1536),
            (" 77 ", 77),
            ("77 B", 77),
            ("3k", 3000),
            (".5k", 500),
            ("1e9", 1_000_000_000),
            ("1.5e9", 1_500_000_000),
            ("15E+8", 1_500_000_000),
            ("5e-1MB", 500_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text).unwrap(), bytes, "{text}");
        }
        for text in [
            "",
            "MB",
            "-1",
            "+1",
            "1XB",
            "1e",
            "1e9e9",
            "e9",
            "1e999",
            "inf",
            "NaN",
            "999999999TB",
            "1.2.3",
            ".",
            "\u{e9}",
            "1\u{e9}",
            "99999999999999999999",
        ] {
            let error = size(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
            assert!(error.message().contains("512MB"), "{text}");
        }
    }

    #[test]
    fn a_policy_is_a_number_of_batches_and_how_slowly_it_starts() {
        let fixed = |batches, slow_start| {
            Prefetch::Fixed(FixedConfig {
                batches,
                slow_start,
            })
        };
        assert_eq!(prefetch("fixed:7").unwrap(), fixed(7, 0));
        assert_eq!(prefetch("fixed:7:2").unwrap(), fixed(7, 2));
        assert_eq!(prefetch("fixed:7:0").unwrap(), fixed(7, 0));
        assert_eq!(prefetch("fixed").unwrap(), fixed(8, 0));
        for text in [
            "",
            "fixed:",
            "fixed:0",
            "fixed:0:3",
            "fixed:-1",
            "fixed:+1",
            "fixed:1:",
            "fixed:1:-2",
            "fixed:1:2:3",
            "fixed:1.5",
            "7",
            "Fixed:7",
        ] {
            let error = prefetch(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
            assert!(error.message().contains("fixed:N"), "{text}");
        }
        assert!(
            prefetch("adaptive")
                .unwrap_err()
                .message()
                .contains("far stores")
        );
    }
}
