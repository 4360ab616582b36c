//! How the values of an MDS column are written.

/// How a value is written. Numbers are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Bytes,
    Jpeg,
    Png,
    Text,
    Json,
    Signed(u32),
    Unsigned(u32),
    Float(u32),
    IntText,
    FloatText,
    /// An array as it is: a part without further meaning.
    Array,
}

impl Encoding {
    /// What the index calls by this name.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "bytes" => Self::Bytes,
            "jpeg" => Self::Jpeg,
            "png" => Self::Png,
            "str" => Self::Text,
            "json" => Self::Json,
            "int" | "int64" => Self::Signed(8),
            "int32" => Self::Signed(4),
            "int16" => Self::Signed(2),
            "int8" => Self::Signed(1),
            "uint64" => Self::Unsigned(8),
            "uint32" => Self::Unsigned(4),
            "uint16" => Self::Unsigned(2),
            "uint8" => Self::Unsigned(1),
            "float64" => Self::Float(8),
            "float32" => Self::Float(4),
            "float16" => Self::Float(2),
            "str_int" => Self::IntText,
            "str_float" | "str_decimal" => Self::FloatText,
            name if name == "ndarray" || name.starts_with("ndarray:") => Self::Array,
            _ => return None,
        })
    }

    pub(super) fn is_whole_number(self) -> bool {
        matches!(self, Self::Signed(_) | Self::Unsigned(_) | Self::IntText)
    }

    /// True where a value is a part of the payload by itself.
    pub(super) fn is_part(self) -> bool {
        matches!(self, Self::Bytes | Self::Jpeg | Self::Png | Self::Array)
    }

    /// The size that the encoding itself fixes, bytes.
    pub(super) fn fixed(self) -> Option<u32> {
        match self {
            Self::Signed(nbytes) | Self::Unsigned(nbytes) | Self::Float(nbytes) => Some(nbytes),
            _ => None,
        }
    }

    /// The whole number that a value is; `None` where it is none.
    pub(super) fn whole_number(self, value: &[u8]) -> Option<i64> {
        match self {
            Self::Signed(8) => Some(i64::from_le_bytes(value.try_into().ok()?)),
            Self::Signed(4) => Some(i32::from_le_bytes(value.try_into().ok()?).into()),
            Self::Signed(2) => Some(i16::from_le_bytes(value.try_into().ok()?).into()),
            Self::Signed(_) => Some(i8::from_le_bytes(value.try_into().ok()?).into()),
            Self::Unsigned(8) => i64::try_from(u64::from_le_bytes(value.try_into().ok()?)).ok(),
            Self::Unsigned(4) => Some(u32::from_le_bytes(value.try_into().ok()?).into()),
            Self::Unsigned(2) => Some(u16::from_le_bytes(value.try_into().ok()?).into()),
            Self::Unsigned(_) => Some(u8::from_le_bytes(value.try_into().ok()?).into()),
            Self::IntText => str::from_utf8(value).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// The number that a value is; `None` where it is none.
    pub(super) fn number(self, value: &[u8]) -> Option<f64> {
        match self {
            Self::Float(8) => Some(f64::from_le_bytes(value.try_into().ok()?)),
            Self::Float(4) => Some(f32::from_le_bytes(value.try_into().ok()?).into()),
            Self::Float(_) => Some(half(u16::from_le_bytes(value.try_into().ok()?))),
            Self::FloatText => str::from_utf8(value).ok()?.parse().ok(),
            _ => None,
        }
    }
}

/// A half-precision number: 1 bit of sign, 5 of exponent, 10 of fraction.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers_have_their_value() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2_f64.powi(-24)),
            (0x7c00, f64::INFINITY),
        ] {
            assert!(half(bits).total_cmp(&value).is_eq(), "{bits:x}");
        }
        assert!(half(0x7c01).is_nan());
    }
}
