//! What stands in the schema's metadata: magic, version, summary, classes and layouts.

use std::sync::Arc;

use loader_core::{Error, ErrorKind, Fingerprint, Part, Result};
use serde::{Deserialize, Serialize};

/// The first word of an index' metadata.
pub const MAGIC: &str = "farhaul-index";

/// Major and minor version that this build writes. It reads every minor of this major.
pub const VERSION: (u32, u32) = (1, 0);

/// The key of the schema's metadata under which the header stands, as JSON.
pub(crate) const METADATA_KEY: &str = "farhaul";

/// What is true of the whole data set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) magic: String,
    pub(crate) version: (u32, u32),
    pub(crate) fingerprint: Fingerprint,
    pub(crate) samples: u64,
    pub(crate) bytes: u64,
    pub(crate) classes: Vec<String>,
    pub(crate) layouts: Vec<Layout>,
}

/// The parts that some samples have in common: everything but their lengths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// Name and media type of each part.
    pub(crate) parts: Vec<(String, String)>,
    /// True where parts do not stand one after another up to the payload's end: the row then lists offset and length of
    /// each. Otherwise it lists the lengths of all but the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) scattered: bool,
}

impl Layout {
    /// The layout of `parts` in a payload of `nbytes`.
    pub(crate) fn of(parts: &[Part], nbytes: u64) -> Self {
        let names = parts
            .iter()
            .map(|part| (part.name.clone(), part.media_type.clone()))
            .collect();
        Self {
            parts: names,
            scattered: !is_sequence(parts, nbytes),
        }
    }

    /// True where [`Self::of`] would give this very layout, found without an allocation.
    pub(crate) fn fits(&self, parts: &[Part], nbytes: u64) -> bool {
        self.parts.len() == parts.len()
            && self
                .parts
                .iter()
                .zip(parts)
                .all(|((name, media), part)| *name == part.name && *media == part.media_type)
            && self.scattered != is_sequence(parts, nbytes)
    }

    /// How many numbers a row of this layout lists.
    pub(crate) fn numbers(&self) -> usize {
        if self.scattered {
            2 * self.parts.len()
        } else {
            self.parts.len().saturating_sub(1)
        }
    }

    /// The parts of a row, from the numbers that it lists. Too few numbers count as 0: the file is foreign.
    pub(crate) fn parts(&self, nbytes: u64, mut numbers: impl Iterator<Item = u64>) -> Arc<[Part]> {
        let mut next = || numbers.next().unwrap_or(0);
        let mut offset = 0_u64;
        let last = self.parts.len().saturating_sub(1);
        let part = |(position, (name, media)): (usize, &(String, String))| {
            let (start, length) = if self.scattered {
                (next(), next())
            } else {
                (
                    offset,
                    if position == last {
                        nbytes.saturating_sub(offset)
                    } else {
                        next()
                    },
                )
            };
            offset = start.saturating_add(length);
            Part {
                name: name.clone(),
                offset: start,
                nbytes: length,
                media_type: media.clone(),
            }
        };
        self.parts.iter().enumerate().map(part).collect()
    }
}

fn is_sequence(parts: &[Part], nbytes: u64) -> bool {
    let mut end = 0_u64;
    for part in parts {
        if part.offset != end {
            return false;
        }
        let Some(next) = end.checked_add(part.nbytes) else {
            return false;
        };
        end = next;
    }
    end == nbytes && !parts.is_empty()
}

impl Header {
    /// Reads the header; its magic and version are looked at before anything else.
    pub(crate) fn parse(json: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Start {
            magic: String,
            version: (u32, u32),
        }
        let malformed = |error| {
            Error::new(
                ErrorKind::Malformed,
                "the header of the index cannot be read",
            )
            .caused_by(error)
        };
        let start: Start = serde_json::from_str(json).map_err(malformed)?;
        if start.magic != MAGIC {
            return Err(Error::new(
                ErrorKind::Malformed,
                format!("not a farhaul index: its magic is {:?}", start.magic),
            ));
        }
        let (major, minor) = start.version;
        if major != VERSION.0 {
            let message = format!(
                "the index has version {major}.{minor}, this build reads version {}",
                VERSION.0
            );
            return Err(Error::new(ErrorKind::Version, message)
                .hint("use a farhaul of that version, or ingest again"));
        }
        serde_json::from_str(json).map_err(malformed)
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a header has only texts and numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_major_is_named_and_an_unknown_field_ignored() {
        let json = |version: &str| {
            let fingerprint = "0".repeat(32);
            format!(
                r#"{{"magic":"farhaul-index","version":{version},"fingerprint":"{fingerprint}","samples":0,"bytes":0,"classes":[],"layouts":[],"later":1}}"#
            )
        };
        assert_eq!(Header::parse(&json("[1,9]")).unwrap().version, (1, 9));
        let error = Header::parse(&json("[2,0]")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Version);
        assert!(
            error.message().contains("version 2.0") && error.message().contains("version 1"),
            "{error}"
        );
    }

    #[test]
    fn scattered_parts_come_back_as_they_were() {
        let part = |offset, nbytes| Part {
            name: "jpg".into(),
            offset,
            nbytes,
            media_type: "image/jpeg".into(),
        };
        let parts = [part(7, 3), part(0, 2)];
        let layout = Layout::of(&parts, 20);
        assert!(layout.scattered && layout.fits(&parts, 20) && layout.numbers() == 4);
        assert_eq!(&*layout.parts(20, [7, 3, 0, 2].into_iter()), &parts);
    }
}
