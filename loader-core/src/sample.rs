//! What travels: samples with their named parts, and the rows that describe them.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, ErrorKind, Result},
    identity::{SampleKey, SamplePath},
};

/// The label of a sample that has none.
pub const NO_LABEL: i64 = -1;

/// One named part of a sample: an image, a mask, a text, a `.cls` as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// The part's name as the source wrote it (`jpg`, `JPG`, `seg.png`): matched without case.
    pub name: String,
    /// Where it starts in the payload, bytes.
    pub offset: u64,
    /// How long it is, bytes.
    pub nbytes: u64,
    /// Its media type, guessed from the name (`image/jpeg`, `text/plain`, `application/octet-stream`).
    pub media_type: String,
}

impl Part {
    /// Parts that stand one after another in a payload, from (name, length in bytes).
    pub fn sequence<'a>(parts: impl IntoIterator<Item = (&'a str, u64)>) -> Arc<[Self]> {
        let mut offset = 0;
        let part = |(name, nbytes): (&str, u64)| {
            let part = Self {
                name: name.to_owned(),
                offset,
                nbytes,
                media_type: media_type(name).to_owned(),
            };
            offset += nbytes;
            part
        };
        parts.into_iter().map(part).collect()
    }

    /// True where the part's name says that it is a picture.
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }
}

/// The media type that the last extension of `name` stands for, in any case of letters.
pub fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    match extension.as_str() {
        "jpg" | "jpeg" | "jpe" | "jfif" => "image/jpeg",
        "png" => "image/png",
        "webp" => "image/webp",
        "tif" | "tiff" => "image/tiff",
        "gif" => "image/gif",
        "bmp" => "image/bmp",
        "cls" | "txt" | "cls2" | "caption" => "text/plain",
        "json" => "application/json",
        _ => "application/octet-stream",
    }
}

/// A sample as a store delivers it: what it is and its bytes.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Its name in the store.
    pub key: SampleKey,
    /// Its source path.
    pub path: SamplePath,
    /// Its label, [`NO_LABEL`] where it has none.
    pub label: i64,
    /// The parts inside `payload`; never empty.
    pub parts: Arc<[Part]>,
    /// The bytes of all parts, one after another.
    pub payload: Bytes,
}

impl Sample {
    /// The bytes of the part called `name` (matched without case), without a copy.
    pub fn part(&self, name: &str) -> Option<Bytes> {
        let part = self
            .parts
            .iter()
            .find(|part| part.name.eq_ignore_ascii_case(name))?;
        Some(self.slice(part))
    }

    /// The bytes of the first part that is a picture, without a copy.
    ///
    /// # Errors
    /// [`ErrorKind::MissingPart`] naming the parts that are there; a part outside the payload is [`ErrorKind::Corrupt`].
    pub fn image(&self) -> Result<Bytes> {
        let Some(part) = self.parts.iter().find(|part| part.is_image()) else {
            let names: Vec<_> = self.parts.iter().map(|part| part.name.as_str()).collect();
            let message = format!("no image among the parts [{}]", names.join(", "));
            return Err(Error::new(ErrorKind::MissingPart, message).at(self.path.clone()));
        };
        if part
            .offset
            .checked_add(part.nbytes)
            .is_none_or(|end| end > self.payload.len() as u64)
        {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "the payload is shorter than its parts say",
            )
            .at(self.path.clone()));
        }
        Ok(self.slice(part))
    }

    fn slice(&self, part: &Part) -> Bytes {
        let end = usize::try_from(part.offset + part.nbytes)
            .unwrap_or(usize::MAX)
            .min(self.payload.len());
        let start = usize::try_from(part.offset).unwrap_or(usize::MAX).min(end);
        self.payload.slice(start..end)
    }
}

/// A sample on its way into a store, with everything that the manifest will say of it.
#[derive(Debug, Clone)]
pub struct NewSample {
    /// Its source path; one row a path.
    pub path: SamplePath,
    /// Its label, [`NO_LABEL`] where it has none.
    pub label: i64,
    /// The parts inside `payload`.
    pub parts: Arc<[Part]>,
    /// The bytes of all parts, one after another.
    pub payload: Bytes,
    /// Further columns of the manifest.
    pub fields: Fields,
}

/// The columns of a row besides path, label and size.
pub type Fields = BTreeMap<String, FieldValue>;

/// A scalar or a short list; at most 1 KiB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FieldValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// A short list of whole numbers.
    IntList(Vec<i64>),
    /// A short list of numbers.
    FloatList(Vec<f64>),
    /// A short list of texts.
    TextList(Vec<String>),
}

impl FieldValue {
    /// The name of its type in `info`: `bool`, `int64`, `float64`, `text`, and `list<…>` of the last three.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::Int(_) => "int64",
            Self::Float(_) => "float64",
            Self::Text(_) => "text",
            Self::IntList(_) => "list<int64>",
            Self::FloatList(_) => "list<float64>",
            Self::TextList(_) => "list<text>",
        }
    }
}

/// One row of a data set's metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Source path; rows are sorted by its bytes.
    pub path: SamplePath,
    /// Name of the payload in the store.
    pub key: SampleKey,
    /// Size of the payload, bytes.
    pub nbytes: u64,
    /// Checksum of the payload; `None` for a folder read in place, whose files nobody has read yet.
    pub checksum: Option<u64>,
    /// Label, [`NO_LABEL`] where there is none.
    pub label: i64,
    /// The parts of the payload.
    pub parts: Arc<[Part]>,
    /// Further columns.
    pub fields: Fields,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_without_case_and_never_reach_outside() {
        let parts: Arc<[Part]> = Arc::from(vec![Part {
            name: "JPG".into(),
            offset: 2,
            nbytes: 9,
            media_type: "image/jpeg".into(),
        }]);
        let sample = Sample {
            key: SampleKey::default(),
            path: "a".into(),
            label: 0,
            parts,
            payload: Bytes::from_static(b"12345"),
        };
        assert_eq!(&sample.part("jpg").unwrap()[..], b"345");
        assert_eq!(sample.image().unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
