//! The columns of an MDS sample: which become parts, which fields, which the label.

use bytes::{Bytes, BytesMut};
use loader_core::{
    Error, ErrorKind, FieldValue, Fields, NO_LABEL, NewSample, Part, Result, SamplePath,
    sample::media_type,
};

use super::encoding::Encoding;
use crate::source::insert_json;

/// Names of a column that holds the label, the first that is there wins.
const LABEL_NAMES: [&str; 4] = ["label", "class", "cls", "target"];

/// Longest text that is a field; longer ones are parts, bytes.
const LONGEST_FIELD: usize = 1024;

/// The columns of a shard, in their order.
#[derive(Debug)]
pub(super) struct Columns {
    all: Vec<Column>,
    label: Option<usize>,
    /// True where nothing but texts is there to be the payload.
    texts_are_parts: bool,
}

#[derive(Debug)]
struct Column {
    name: String,
    encoding: Encoding,
    /// Size of every value, bytes; `None` where each sample states it.
    nbytes: Option<u32>,
}

impl Columns {
    /// The columns that the index names for a shard.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] where the lists do not fit together; [`ErrorKind::Unsupported`] naming a column that cannot be
    /// read (pickles, raw PIL pictures, lists of pictures).
    pub(super) fn new(
        shard: &str,
        names: &[String],
        encodings: &[String],
        sizes: &[Option<u32>],
    ) -> Result<Self> {
        if names.is_empty() || names.len() != encodings.len() || names.len() != sizes.len() {
            let message = format!(
                "the index names {} columns, {} encodings and {} sizes for shard {shard}",
                names.len(),
                encodings.len(),
                sizes.len()
            );
            return Err(Error::new(ErrorKind::Malformed, message));
        }
        let mut columns = Vec::new();
        for ((name, encoding), nbytes) in names.iter().zip(encodings).zip(sizes) {
            let parsed = Encoding::of(encoding).ok_or_else(|| {
                let message = format!(
                    "column {name} of shard {shard} has encoding {encoding}, which is not read"
                );
                Error::new(ErrorKind::Unsupported, message)
                    .hint("write the set anew with jpeg, png or bytes columns")
            })?;
            if let (Some(stated), Some(fixed)) = (nbytes, parsed.fixed())
                && *stated != fixed
            {
                let message = format!(
                    "column {name} of shard {shard} has encoding {encoding} and {stated} bytes a value"
                );
                return Err(Error::new(ErrorKind::Malformed, message));
            }
            columns.push(Column {
                name: name.clone(),
                encoding: parsed,
                nbytes: *nbytes,
            });
        }
        let is_label = |wanted: &&str| {
            columns.iter().position(|column| {
                column.name.eq_ignore_ascii_case(wanted) && column.encoding.is_whole_number()
            })
        };
        let label = LABEL_NAMES.iter().find_map(is_label);
        let texts_are_parts = !columns.iter().any(|column| column.encoding.is_part());
        Ok(Self {
            all: columns,
            label,
            texts_are_parts,
        })
    }

    /// A sample of its bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] where sizes or values make no sense, [`ErrorKind::Empty`] for a picture without bytes.
    pub(super) fn sample(&self, path: SamplePath, bytes: &Bytes) -> Result<NewSample> {
        let mut label = NO_LABEL;
        let mut fields = Fields::new();
        let mut parts: Vec<(String, Bytes)> = Vec::new();
        for (number, (column, value)) in self.all.iter().zip(self.values(bytes)?).enumerate() {
            let wrong = || malformed(format!("column {} holds no value of its type", column.name));
            let name = &column.name;
            if self.label == Some(number) {
                label = column.encoding.whole_number(&value).ok_or_else(wrong)?;
                continue;
            }
            match column.encoding {
                Encoding::Jpeg | Encoding::Png | Encoding::Bytes => {
                    let part = column.part_name(&value);
                    if value.is_empty() && media_type(&part).starts_with("image/") {
                        return Err(Error::new(
                            ErrorKind::Empty,
                            format!("the image in column {name} has no bytes"),
                        ));
                    }
                    parts.push((part, value));
                }
                Encoding::Array => parts.push((format!("{name}.bin"), value)),
                Encoding::Text if !self.texts_are_parts && value.len() <= LONGEST_FIELD => {
                    let text = str::from_utf8(&value).map_err(|_| wrong())?;
                    fields.insert(name.clone(), FieldValue::Text(text.to_owned()));
                }
                Encoding::Text => parts.push((format!("{name}.txt"), value)),
                Encoding::Json => {
                    insert_json(&value, &mut fields);
                    parts.push((format!("{name}.json"), value));
                }
                Encoding::Signed(_) | Encoding::Unsigned(_) | Encoding::IntText => {
                    fields.insert(
                        name.clone(),
                        FieldValue::Int(column.encoding.whole_number(&value).ok_or_else(wrong)?),
                    );
                }
                Encoding::Float(_) | Encoding::FloatText => {
                    fields.insert(
                        name.clone(),
                        FieldValue::Float(column.encoding.number(&value).ok_or_else(wrong)?),
                    );
                }
            }
        }
        if parts.iter().all(|(_, value)| value.is_empty()) {
            return Err(Error::new(
                ErrorKind::Empty,
                "the sample has no bytes besides its fields",
            ));
        }
        let sequence = Part::sequence(
            parts
                .iter()
                .map(|(name, value)| (name.as_str(), value.len() as u64)),
        );
        Ok(NewSample {
            path,
            label,
            parts: sequence,
            payload: joined(parts),
            fields,
        })
    }

    /// The columns' values: first the sizes of those that vary, then the values one after another.
    fn values(&self, bytes: &Bytes) -> Result<Vec<Bytes>> {
        let wrong = || malformed("the sizes of its columns do not add up to the sample".to_owned());
        let varying = self
            .all
            .iter()
            .filter(|column| column.nbytes.is_none())
            .count();
        let mut at = varying * 4;
        let mut sizes = bytes.get(..at).ok_or_else(wrong)?.chunks_exact(4);
        let mut values = Vec::with_capacity(self.all.len());
        for column in &self.all {
            let stated = || {
                sizes
                    .next()
                    .map(|size| u32::from_le_bytes(size.try_into().expect("4 bytes")))
            };
            let nbytes = column.nbytes.or_else(stated).ok_or_else(wrong)? as usize;
            let end = at
                .checked_add(nbytes)
                .filter(|end| *end <= bytes.len())
                .ok_or_else(wrong)?;
            values.push(bytes.slice(at..end));
            at = end;
        }
        if at == bytes.len() {
            Ok(values)
        } else {
            Err(wrong())
        }
    }
}

impl Column {
    /// The column's name with the extension of what it holds, unless it ends in one already.
    fn part_name(&self, value: &[u8]) -> String {
        let is_named = media_type(&self.name) != "application/octet-stream";
        let extension = match self.encoding {
            Encoding::Jpeg => "jpg",
            Encoding::Png => "png",
            _ => match value {
                [0xff, 0xd8, 0xff, ..] => "jpg",
                [0x89, b'P', b'N', b'G', ..] => "png",
                [
                    b'R',
                    b'I',
                    b'F',
                    b'F',
                    _,
                    _,
                    _,
                    _,
                    b'W',
                    b'E',
                    b'B',
                    b'P',
                    ..,
                ] => "webp",
                [b'G', b'I', b'F', b'8', ..] => "gif",
                [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => "tif",
                _ => return self.name.clone(),
            },
        };
        if is_named {
            self.name.clone()
        } else {
            format!("{}.{extension}", self.name)
        }
    }
}

/// The parts one after another; a single one is not copied.
fn joined(mut parts: Vec<(String, Bytes)>) -> Bytes {
    if parts.len() == 1 {
        return parts.remove(0).1;
    }
    let mut payload = BytesMut::with_capacity(parts.iter().map(|(_, value)| value.len()).sum());
    for (_, value) in &parts {
        payload.extend_from_slice(value);
    }
    payload.freeze()
}

fn malformed(message: String) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns(spec: &[(&str, &str, Option<u32>)]) -> Result<Columns> {
        let names: Vec<_> = spec.iter().map(|(name, _, _)| (*name).to_owned()).collect();
        let encodings: Vec<_> = spec
            .iter()
            .map(|(_, encoding, _)| (*encoding).to_owned())
            .collect();
        let sizes: Vec<_> = spec.iter().map(|(_, _, nbytes)| *nbytes).collect();
        Columns::new("shard.00000.mds", &names, &encodings, &sizes)
    }

    #[test]
    fn columns_become_label_parts_and_fields() {
        let columns = columns(&[
            ("caption", "str", None),
            ("image", "bytes", None),
            ("label", "int", Some(8)),
            ("score", "float16", Some(2)),
        ])
        .unwrap();
        let mut bytes = [3_u32.to_le_bytes(), 4_u32.to_le_bytes()].concat();
        bytes.extend_from_slice(b"cat\xff\xd8\xff\xe0");
        bytes.extend_from_slice(&7_i64.to_le_bytes());
        bytes.extend_from_slice(&0x3e00_u16.to_le_bytes());
        let sample = columns.sample("0".into(), &bytes.into()).unwrap();
        assert_eq!(
            (sample.label, &sample.payload[..]),
            (7, &b"\xff\xd8\xff\xe0"[..])
        );
        assert_eq!(sample.parts[0].name, "image.jpg");
        assert_eq!(sample.fields["caption"], FieldValue::Text("cat".into()));
        assert_eq!(sample.fields["score"], FieldValue::Float(1.5));
    }

    #[test]
    fn a_set_of_texts_has_texts_as_parts() {
        let columns = columns(&[("text", "str", None)]).unwrap();
        let sample = columns
            .sample("0".into(), &Bytes::from_static(b"\x02\0\0\0hi"))
            .unwrap();
        assert_eq!(
            (&sample.parts[0].name[..], &sample.payload[..]),
            ("text.txt", &b"hi"[..])
        );
    }

    #[test]
    fn pickles_are_never_read() {
        for encoding in ["pkl", "pil", "list[jpeg]", "x"] {
            assert_eq!(
                columns(&[("image", encoding, None)]).unwrap_err().kind(),
                ErrorKind::Unsupported
            );
        }
        assert_eq!(
            columns(&[("label", "int", Some(4))]).unwrap_err().kind(),
            ErrorKind::Malformed
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let columns = columns(&[("image", "jpeg", None), ("x", "uint16", Some(2)), ("t", "str_int", None), ("label", "int", Some(8))]).unwrap();
            let _ = columns.sample("0".into(), &bytes.into());
        }
    }
}
