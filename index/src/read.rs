//! Reads an index file that anybody may have made: everything that a later access relies on is checked here.
//!
//! The flatbuffers of the format are read directly. The reader of `arrow-ipc` panics on files whose buffers lie outside of
//! the body or whose schema lacks a name, and it decodes columns that this build does not know.

mod body;

use arrow_buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use arrow_ipc::{Block, Endianness, Footer, MessageHeader, Schema, Type};
use bytes::Bytes;
use loader_core::{Error, ErrorKind, Result};

use self::body::{Body, is_i64, is_u32, is_u64};
use crate::{
    columns::{Columns, Field, Numbers, Offsets, Texts},
    header::{Header, METADATA_KEY},
    snapshot::Index,
    write::{CHECKSUM, FIELD_PREFIX, KEY, LABEL, LAYOUT, NBYTES, PARTS, PATH},
};

/// Bytes at both ends of every Arrow IPC file.
const ARROW_MAGIC: &[u8] = b"ARROW1";
/// Length of the footer and the magic, at the very end.
const TRAILER_BYTES: usize = 10;
/// Columns of every index; the rest may be absent.
const NEEDED: [&str; 6] = [PATH, KEY, NBYTES, CHECKSUM, LABEL, LAYOUT];

fn malformed(message: &'static str) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

fn corrupt(message: String) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

/// Checks a whole file and makes an index over it.
pub(crate) fn read(bytes: Bytes) -> Result<Index> {
    // Buffers are aligned relative to the file's start; bytes that start elsewhere are copied once.
    let bytes = if bytes.as_ptr().addr().is_multiple_of(8) {
        bytes
    } else {
        Buffer::from_slice_ref(&bytes[..]).into()
    };
    // A copy of the footer: the checker wants it aligned, and its place in the file need not be.
    let footer = footer_bytes(&bytes)?.to_vec();
    let footer = arrow_ipc::root_as_footer(&footer)
        .map_err(|error| corrupt(format!("the footer of the index cannot be read: {error}")))?;
    let schema = footer
        .schema()
        .ok_or_else(|| malformed("the index has no schema"))?;
    if schema.endianness() != Endianness::Little {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "the index is big-endian",
        ));
    }
    let header = Header::parse(&metadata(&schema)?)?;
    let columns = columns(&bytes, &footer, &schema)?;
    let layouts = header.layouts.len();
    if columns.rows as u64 != header.samples {
        return Err(corrupt(format!(
            "the index has {} rows and says {}",
            columns.rows, header.samples
        )));
    }
    if columns
        .layouts
        .iter()
        .any(|layout| *layout as usize >= layouts)
    {
        return Err(corrupt(format!(
            "a row of the index names none of its {layouts} layouts"
        )));
    }
    Ok(Index::new(header, columns, Some(bytes)))
}

fn footer_bytes(bytes: &[u8]) -> Result<&[u8]> {
    let truncated = || {
        Error::new(
            ErrorKind::Truncated,
            "the index file ends before it is complete",
        )
    };
    if !bytes.starts_with(&ARROW_MAGIC[..bytes.len().min(ARROW_MAGIC.len())]) {
        return Err(malformed(
            "not an index file: it does not start as Arrow IPC files do",
        ));
    }
    let end = bytes
        .len()
        .checked_sub(TRAILER_BYTES)
        .ok_or_else(truncated)?;
    let (length, magic) = bytes[end..].split_at(4);
    if magic != ARROW_MAGIC {
        return Err(truncated());
    }
    let length = u32::from_le_bytes(length.try_into().expect("split after 4 bytes"));
    let start = end.checked_sub(length as usize).ok_or_else(truncated)?;
    Ok(&bytes[start..end])
}

fn metadata(schema: &Schema<'_>) -> Result<String> {
    let pairs = schema.custom_metadata().into_iter().flatten();
    let header = pairs
        .filter(|pair| pair.key() == Some(METADATA_KEY))
        .find_map(|pair| pair.value());
    header
        .map(ToOwned::to_owned)
        .ok_or_else(|| malformed("not a farhaul index: an Arrow file without its header"))
}

fn columns(bytes: &Bytes, footer: &Footer<'_>, schema: &Schema<'_>) -> Result<Columns> {
    let blocks = footer
        .recordBatches()
        .ok_or_else(|| malformed("the index has no rows block"))?;
    if blocks.len() != 1 {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("the index has {} record batches instead of 1", blocks.len()),
        ));
    }
    let (message, start, length) = block(bytes, blocks.get(0))?;
    let message = message.to_vec();
    let message = arrow_ipc::root_as_message(&message).map_err(|error| {
        corrupt(format!(
            "the record batch of the index cannot be read: {error}"
        ))
    })?;
    if message.header_type() != MessageHeader::RecordBatch {
        return Err(malformed("the rows block of the index is no record batch"));
    }
    let batch = message
        .header_as_record_batch()
        .ok_or_else(|| malformed("the index has an empty record batch"))?;
    if batch.compression().is_some() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "the index is compressed, so it cannot be mapped",
        ));
    }
    let rows = usize::try_from(batch.length())
        .map_err(|_| malformed("the index has a negative number of rows"))?;
    let mut body = Body {
        bytes,
        start,
        length,
        rows,
        batch,
        next_node: 0,
        next_buffer: 0,
    };
    body.columns(schema)
}

/// The message's metadata, and where its body is.
fn block<'a>(bytes: &'a [u8], block: &Block) -> Result<(&'a [u8], usize, usize)> {
    let outside = || corrupt("the rows block lies outside of the index file".to_owned());
    let number = |number: i64| usize::try_from(number).map_err(|_| outside());
    let start = number(block.offset())?;
    let body = start
        .checked_add(number(block.metaDataLength().into())?)
        .ok_or_else(outside)?;
    let length = number(block.bodyLength())?;
    if body.checked_add(length).is_none_or(|end| end > bytes.len()) {
        return Err(outside());
    }
    let message = &bytes[start..body];
    // A continuation mark and a length, or in files of old writers the length alone.
    let prefix = if message.starts_with(&[0xff; 4]) {
        8
    } else {
        4
    };
    Ok((message.get(prefix..).ok_or_else(outside)?, body, length))
}

impl Body<'_> {
    fn columns(&mut self, schema: &Schema<'_>) -> Result<Columns> {
        let rows = self.rows;
        let mut found = Found::default();
        for field in schema.fields().into_iter().flatten() {
            let name = field.name().unwrap_or_default();
            match name {
                PATH => {
                    let types = [Type::Binary, Type::LargeBinary];
                    found.path = Some(self.texts(&field, rows, name, types)?.1);
                }
                KEY => found.key = Some(self.keys(&field)?),
                NBYTES => found.nbytes = Some(self.scalars(&field, rows, name, is_u64)?.1),
                CHECKSUM => found.checksum = Some(self.scalars(&field, rows, name, is_u64)?),
                LABEL => found.label = Some(self.scalars(&field, rows, name, is_i64)?.1),
                LAYOUT => found.layout = Some(self.scalars(&field, rows, name, is_u32)?.1),
                PARTS => found.parts = Some(self.parts(&field)?),
                _ => match name.strip_prefix(FIELD_PREFIX) {
                    Some(plain) => {
                        if let Some((present, values)) = self.values(&field, name)? {
                            found.fields.push(Field {
                                name: plain.to_owned(),
                                present,
                                values,
                            });
                        }
                    }
                    None => self.skip(&field, 0)?,
                },
            }
        }
        found.into_columns(rows)
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    path: Option<Texts>,
    key: Option<Buffer>,
    nbytes: Option<ScalarBuffer<u64>>,
    checksum: Option<(Option<BooleanBuffer>, ScalarBuffer<u64>)>,
    label: Option<ScalarBuffer<i64>>,
    layout: Option<ScalarBuffer<u32>>,
    parts: Option<(Offsets, Numbers)>,
    fields: Vec<Field>,
}

impl Found {
    fn into_columns(self, rows: usize) -> Result<Columns> {
        let Self {
            path: Some(path),
            key: Some(keys),
            nbytes: Some(nbytes),
            checksum: Some(checksum),
            label: Some(labels),
            layout: Some(layouts),
            parts,
            fields,
        } = self
        else {
            return Err(Error::new(
                ErrorKind::Malformed,
                format!("the index lacks one of the columns {}", NEEDED.join(", ")),
            ));
        };
        Ok(Columns {
            rows,
            path_ends: path.ends,
            paths: path.bytes.into(),
            keys,
            nbytes,
            checksums: checksum.1,
            has_checksum: checksum.0,
            labels,
            layouts,
            part_numbers: parts,
            fields,
        })
    }
}
