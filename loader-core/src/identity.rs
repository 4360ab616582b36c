//! What a sample and a data set are called: path, key, checksum and fingerprint.
//!
//! These forms last: they stand in every store and every saved state. Changing one is a new major version.

use std::{
    fmt::{self, Write as _},
    ops::Deref,
    str,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::error::{Error, ErrorKind, Result};

/// The source path of a sample, byte for byte: relative, `/` between components, never normalised.
///
/// For a folder it is the relative file path, for tars `shard/key` with the shard's name without its suffix.
/// `Display` keeps valid UTF-8 as it is and writes every other byte as `%XX`; that is the form used in JSON and messages.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SamplePath(Bytes);

impl SamplePath {
    /// The path's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path's bytes, shared.
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }
}

impl Deref for SamplePath {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Bytes> for SamplePath {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<Vec<u8>> for SamplePath {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for SamplePath {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl From<String> for SamplePath {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for SamplePath {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl fmt::Display for SamplePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&display_bytes(&self.0))
    }
}

impl fmt::Debug for SamplePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", display_bytes(&self.0))
    }
}

/// Shows bytes as text: valid UTF-8 as it is, any other byte as `%XX`.
pub fn display_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "%{byte:02X}").expect("writing to a string never fails");
        }
    }
    text
}

/// The name of a payload in a store: 16 bytes, a hash of the path and of what the sample contains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SampleKey(pub [u8; 16]);

impl SampleKey {
    /// The key of a sample whose content checksum is known.
    pub fn of_content(path: &[u8], checksum: u64) -> Self {
        Self::hash(b"content", path, &[checksum])
    }

    /// The key of a file read in place, whose content nobody has read yet: size in bytes, modification time in ns.
    pub fn of_file(path: &[u8], nbytes: u64, modified_ns: i128) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "both halves of the number are used"
        )]
        let halves = (modified_ns as u64, (modified_ns >> 64) as u64);
        Self::hash(b"file", path, &[nbytes, halves.0, halves.1])
    }

    fn hash(domain: &[u8], path: &[u8], numbers: &[u64]) -> Self {
        let mut hash = Xxh3::new();
        hash.update(domain);
        hash.update(&(path.len() as u64).to_le_bytes());
        hash.update(path);
        for number in numbers {
            hash.update(&number.to_le_bytes());
        }
        Self(hash.digest128().to_be_bytes())
    }
}

impl fmt::Display for SampleKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for SampleKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

/// The checksum of a payload: xxh3-64 over all its parts, one after another.
pub fn checksum(payload: &[u8]) -> u64 {
    xxh3_64(payload)
}

/// Names a data set by what is in it: a hash over (path, nbytes, label) of every row in path order.
///
/// It is the same in every store, so a state saved over one store resumes over another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// The fingerprint of rows that come in path order.
    pub fn of_rows<'a>(rows: impl IntoIterator<Item = (&'a [u8], u64, i64)>) -> Self {
        let mut hasher = FingerprintHasher::default();
        for (path, nbytes, label) in rows {
            hasher.row(path, nbytes, label);
        }
        hasher.finish()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        let wrong = || {
            Error::new(
                ErrorKind::Malformed,
                format!("{text:?} is no fingerprint: 32 hexadecimal digits are wanted"),
            )
        };
        if text.len() != 32 || !text.is_ascii() {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

/// Builds a [`Fingerprint`] row by row; rows must come in path order.
#[derive(Clone)]
pub struct FingerprintHasher(Box<Xxh3>);

impl Default for FingerprintHasher {
    fn default() -> Self {
        Self(Box::new(Xxh3::new()))
    }
}

impl fmt::Debug for FingerprintHasher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FingerprintHasher")
    }
}

impl FingerprintHasher {
    /// Adds the next row: payload size in bytes, label (−1 where the sample has none).
    pub fn row(&mut self, path: &[u8], nbytes: u64, label: i64) {
        self.0.update(&(path.len() as u64).to_le_bytes());
        self.0.update(path);
        self.0.update(&nbytes.to_le_bytes());
        self.0.update(&label.to_le_bytes());
    }

    /// The fingerprint of all rows added.
    pub fn finish(&self) -> Fingerprint {
        Fingerprint(self.0.digest128().to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_never_changes() {
        // Golden values of version 1: a store written by any build must be found by every later one.
        assert_eq!(format!("{:016x}", checksum(b"farhaul")), "2e17b97ed27cd295");
        assert_eq!(
            SampleKey::of_content(b"a", 1).to_string(),
            "fa80b2cc40b84f010cce0db2ca75669b"
        );
        assert_eq!(
            SampleKey::of_file(b"a", 1, 2).to_string(),
            "f9af21622818cc60b1ef749166a46c13"
        );
        assert_eq!(
            Fingerprint::of_rows([(&b"a"[..], 1, 2)]).to_string(),
            "173f0d7e1f6445e0f1a5e2a7131ffcd1"
        );
    }

    #[test]
    fn bytes_that_are_no_utf8_are_shown_as_percent() {
        assert_eq!(
            display_bytes(b"100% \xff\xc3\xa9.jpg"),
            "100% %FF\u{e9}.jpg"
        );
    }

    #[test]
    fn a_fingerprint_survives_its_text() {
        let fingerprint = Fingerprint::of_rows([(&b"a"[..], 1, 2)]);
        assert_eq!(
            Fingerprint::try_from(fingerprint.to_string()).unwrap(),
            fingerprint
        );
        assert!(Fingerprint::try_from("xy".to_owned()).is_err());
    }
}
