//! Extended records: `length key=value\n`, for one member or for all that follow.

use super::sparse::Segment;

/// The records that matter for reading; the others (times, owners, comments) are passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extended {
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) link: Option<Vec<u8>>,
    pub(crate) nbytes: Option<u64>,
    pub(crate) sparse: SparseRecords,
}

/// The records of a file with holes, in any of the three POSIX forms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SparseRecords {
    pub(crate) major: Option<u64>,
    pub(crate) minor: Option<u64>,
    pub(crate) name: Option<Vec<u8>>,
    /// The size with the holes.
    pub(crate) real_nbytes: Option<u64>,
    /// Offsets and lengths in turn, as they stand in the records (forms 0.0 and 0.1).
    pub(crate) numbers: Vec<u64>,
    pub(crate) is_present: bool,
}

impl SparseRecords {
    /// The map of forms 0.0 and 0.1; `None` where a length is missing.
    pub(crate) fn segments(&self) -> Option<Vec<Segment>> {
        let pairs = self.numbers.chunks_exact(2);
        pairs.remainder().is_empty().then(|| {
            pairs
                .map(|pair| Segment {
                    at: pair[0],
                    nbytes: pair[1],
                })
                .collect()
        })
    }
}

/// Adds the records in `bytes` to what is known; later ones win, and an empty value takes one back.
///
/// `None` where the records are malformed.
pub(crate) fn parse(mut bytes: &[u8], mut known: Extended) -> Option<Extended> {
    // Some writers pad the records with zero bytes.
    while bytes.iter().any(|byte| *byte != 0) {
        let blank = bytes.iter().position(|byte| *byte == b' ')?;
        let length = usize::try_from(decimal(&bytes[..blank])?).ok()?;
        let record = bytes.get(blank + 1..length)?;
        let record = record.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        apply(&record[..equals], &record[equals + 1..], &mut known)?;
        bytes = &bytes[length..];
    }
    Some(known)
}

fn apply(key: &[u8], value: &[u8], known: &mut Extended) -> Option<()> {
    let text = || (!value.is_empty()).then(|| value.to_vec());
    let number = || {
        if value.is_empty() {
            Some(None)
        } else {
            decimal(value).map(Some)
        }
    };
    match key {
        b"path" => known.path = text(),
        b"linkpath" => known.link = text(),
        b"size" => known.nbytes = number()?,
        _ => {}
    }
    let Some(sparse) = key.strip_prefix(b"GNU.sparse.") else {
        return Some(());
    };
    let records = &mut known.sparse;
    records.is_present = true;
    match sparse {
        b"major" => records.major = number()?,
        b"minor" => records.minor = number()?,
        b"name" => records.name = text(),
        b"size" | b"realsize" => records.real_nbytes = number()?,
        b"offset" | b"numbytes" => records.numbers.push(decimal(value)?),
        b"map" => {
            let entries = value
                .split(|byte| *byte == b',')
                .filter(|entry| !entry.is_empty());
            records.numbers = entries.map(decimal).collect::<Option<_>>()?;
        }
        _ => {}
    }
    Some(())
}

/// A number in decimal digits.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, byte| match byte {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(key: &str, value: &[u8]) -> Vec<u8> {
        let body = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
        let mut length = body.len();
        while length.to_string().len() + body.len() != length {
            length = length.to_string().len() + body.len();
        }
        [length.to_string().as_bytes(), &body].concat()
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, Extended::default());
        }

        #[test]
        fn values_come_back_byte_for_byte(path in prop::collection::vec(any::<u8>(), 1..300), size: u64) {
            let bytes = [record("comment", b"="), record("path", &path), record("size", size.to_string().as_bytes())].concat();
            let known = parse(&bytes, Extended::default()).unwrap();
            prop_assert_eq!(known.path.unwrap(), path);
            prop_assert_eq!(known.nbytes, Some(size));
        }
    }

    #[test]
    fn an_empty_value_takes_a_record_back() {
        let known = Extended {
            path: Some(b"global".to_vec()),
            ..Extended::default()
        };
        assert_eq!(parse(&record("path", b""), known).unwrap().path, None);
    }

    #[test]
    fn records_that_lie_about_their_length_are_refused() {
        for bytes in [
            &b"99 path=a\n"[..],
            b"3 path=a\n",
            b"0 path=a\n",
            b"x path=a\n",
            b"10 path=abc",
            b"18446744073709551616 a=b\n",
        ] {
            assert_eq!(parse(bytes, Extended::default()), None);
        }
    }
}
