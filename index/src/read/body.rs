//! A cursor over the one record batch: each column takes its nodes and buffers from it, in the order of the schema.

use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, ScalarBuffer};
use arrow_ipc::{Field as FlatField, Precision, RecordBatch, Type};
use bytes::Bytes;
use loader_core::{Error, ErrorKind, Result};

use super::{corrupt, malformed};
use crate::{
    columns::{Numbers, Offsets, Texts, Values},
    write::{KEY, PARTS},
};

/// The one record batch, as a cursor over its nodes and buffers.
pub(super) struct Body<'a> {
    pub(super) bytes: &'a Bytes,
    pub(super) start: usize,
    pub(super) length: usize,
    pub(super) rows: usize,
    pub(super) batch: RecordBatch<'a>,
    pub(super) next_node: usize,
    pub(super) next_buffer: usize,
}

impl Body<'_> {
    /// The next node: how many values, and whether some are missing.
    fn node(&mut self, name: &str) -> Result<(usize, bool)> {
        let nodes = self
            .batch
            .nodes()
            .filter(|nodes| self.next_node < nodes.len());
        let node = nodes
            .ok_or_else(|| corrupt(format!("column {name:?} has no entry in the record batch")))?
            .get(self.next_node);
        self.next_node += 1;
        let length = usize::try_from(node.length())
            .map_err(|_| corrupt(format!("column {name:?} has a negative length")))?;
        Ok((length, node.null_count() != 0))
    }

    /// The next buffer, over the file's own memory.
    fn buffer(&mut self, name: &str) -> Result<Buffer> {
        let buffers = self
            .batch
            .buffers()
            .filter(|buffers| self.next_buffer < buffers.len());
        let missing = || corrupt(format!("column {name:?} lacks a buffer"));
        let buffer = buffers.ok_or_else(missing)?.get(self.next_buffer);
        self.next_buffer += 1;
        let (Ok(offset), Ok(length)) = (
            usize::try_from(buffer.offset()),
            usize::try_from(buffer.length()),
        ) else {
            return Err(corrupt(format!(
                "column {name:?} has a buffer of negative size"
            )));
        };
        if offset
            .checked_add(length)
            .is_none_or(|end| end > self.length)
        {
            return Err(corrupt(format!(
                "column {name:?} reaches outside of the index file"
            )));
        }
        let start = self.start + offset;
        Ok(Buffer::from(self.bytes.slice(start..start + length)))
    }

    fn start_column(&mut self, rows: usize, name: &str) -> Result<Option<BooleanBuffer>> {
        let (length, has_nulls) = self.node(name)?;
        if length != rows {
            return Err(corrupt(format!(
                "column {name:?} has {length} values instead of {rows}"
            )));
        }
        let validity = self.buffer(name)?;
        if !has_nulls {
            return Ok(None);
        }
        bits(validity, rows, name).map(Some)
    }

    fn numbers<T: ArrowNativeType>(&mut self, count: usize, name: &str) -> Result<ScalarBuffer<T>> {
        let buffer = self.buffer(name)?;
        if count == 0 {
            return Ok(Vec::new().into());
        }
        if count
            .checked_mul(size_of::<T>())
            .is_none_or(|wanted| buffer.len() < wanted)
        {
            return Err(corrupt(format!(
                "column {name:?} is shorter than its {count} values"
            )));
        }
        if !buffer.as_ptr().addr().is_multiple_of(align_of::<T>()) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("column {name:?} is not aligned"),
            ));
        }
        Ok(ScalarBuffer::new(buffer, 0, count))
    }

    pub(super) fn scalars<T: ArrowNativeType>(
        &mut self,
        field: &FlatField<'_>,
        rows: usize,
        name: &str,
        fits: fn(&FlatField<'_>) -> bool,
    ) -> Result<(Option<BooleanBuffer>, ScalarBuffer<T>)> {
        if !fits(field) {
            return Err(wrong_type(field, name));
        }
        Ok((self.start_column(rows, name)?, self.numbers(rows, name)?))
    }

    fn offsets(&mut self, large: bool, rows: usize, name: &str) -> Result<Offsets> {
        // Writers may leave out the only offset of a column without rows.
        let count = if rows == 0 {
            0
        } else {
            rows.checked_add(1)
                .ok_or_else(|| malformed("too many rows"))?
        };
        let offsets = if large {
            Offsets::Large(self.numbers(count, name)?)
        } else {
            Offsets::Small(self.numbers(count, name)?)
        };
        Ok(if rows == 0 {
            Offsets::new(vec![0])
        } else {
            offsets
        })
    }

    pub(super) fn texts(
        &mut self,
        field: &FlatField<'_>,
        rows: usize,
        name: &str,
        types: [Type; 2],
    ) -> Result<(Option<BooleanBuffer>, Texts)> {
        if !types.contains(&field.type_type()) {
            return Err(wrong_type(field, name));
        }
        let present = self.start_column(rows, name)?;
        let ends = self.offsets(field.type_type() == types[1], rows, name)?;
        let bytes = self.buffer(name)?;
        ends.check(rows, bytes.len(), name)?;
        Ok((present, Texts { ends, bytes }))
    }

    pub(super) fn keys(&mut self, field: &FlatField<'_>) -> Result<Buffer> {
        if field
            .type_as_fixed_size_binary()
            .is_none_or(|size| size.byteWidth() != 16)
        {
            return Err(wrong_type(field, KEY));
        }
        self.start_column(self.rows, KEY)?;
        let keys = self.buffer(KEY)?;
        if keys.len() / 16 < self.rows {
            return Err(corrupt(
                "column \"key\" is shorter than its rows".to_owned(),
            ));
        }
        Ok(keys)
    }

    pub(super) fn parts(&mut self, field: &FlatField<'_>) -> Result<(Offsets, Numbers)> {
        let (_, ends, item, length) = self.list(field, PARTS)?;
        let numbers = if is_u32(&item) {
            Numbers::Small(self.scalars(&item, length, PARTS, is_u32)?.1)
        } else {
            Numbers::Large(self.scalars(&item, length, PARTS, is_u64)?.1)
        };
        ends.check(self.rows, numbers.len(), PARTS)?;
        Ok((ends, numbers))
    }

    /// Presence, ends, type and number of the entries of a column of lists.
    fn list<'f>(
        &mut self,
        field: &FlatField<'f>,
        name: &str,
    ) -> Result<(Option<BooleanBuffer>, Offsets, FlatField<'f>, usize)> {
        let item = field
            .children()
            .filter(|children| children.len() == 1)
            .map(|children| children.get(0));
        let (Type::List | Type::LargeList, Some(item)) = (field.type_type(), item) else {
            return Err(wrong_type(field, name));
        };
        let present = self.start_column(self.rows, name)?;
        let ends = self.offsets(field.type_type() == Type::LargeList, self.rows, name)?;
        let nodes = self
            .batch
            .nodes()
            .filter(|nodes| self.next_node < nodes.len());
        let length = nodes.map_or(0, |nodes| nodes.get(self.next_node).length());
        let length = usize::try_from(length)
            .map_err(|_| corrupt(format!("column {name:?} has a negative length")))?;
        Ok((present, ends, item, length))
    }

    /// A further column; `None`, and skipped, where its type is not known to this build.
    pub(super) fn values(
        &mut self,
        field: &FlatField<'_>,
        name: &str,
    ) -> Result<Option<(Option<BooleanBuffer>, Values)>> {
        let rows = self.rows;
        Ok(Some(match field.type_type() {
            Type::Bool => {
                let present = self.start_column(rows, name)?;
                (present, Values::Bool(bits(self.buffer(name)?, rows, name)?))
            }
            Type::Int if is_i64(field) => {
                let (present, values) = self.scalars(field, rows, name, is_i64)?;
                (present, Values::Int(values))
            }
            Type::FloatingPoint if is_f64(field) => {
                let (present, values) = self.scalars(field, rows, name, is_f64)?;
                (present, Values::Float(values))
            }
            Type::Utf8 | Type::LargeUtf8 => {
                let (present, texts) =
                    self.texts(field, rows, name, [Type::Utf8, Type::LargeUtf8])?;
                (present, Values::Text(texts))
            }
            Type::List | Type::LargeList if has_known_items(field) => {
                let (present, ends, item, length) = self.list(field, name)?;
                let values = if is_i64(&item) {
                    Values::IntList(ends, self.scalars(&item, length, name, is_i64)?.1)
                } else if is_f64(&item) {
                    Values::FloatList(ends, self.scalars(&item, length, name, is_f64)?.1)
                } else {
                    Values::TextList(
                        ends,
                        self.texts(&item, length, name, [Type::Utf8, Type::LargeUtf8])?
                            .1,
                    )
                };
                let (Values::IntList(ends, _)
                | Values::FloatList(ends, _)
                | Values::TextList(ends, _)) = &values
                else {
                    return Err(wrong_type(field, name));
                };
                ends.check(rows, length, name)?;
                (present, values)
            }
            _ => {
                self.skip(field, 0)?;
                return Ok(None);
            }
        }))
    }

    /// Steps over a column of a later version.
    pub(super) fn skip(&mut self, field: &FlatField<'_>, depth: usize) -> Result<()> {
        let buffers = match field.type_type() {
            Type::Null | Type::RunEndEncoded => 0,
            Type::Struct_ | Type::FixedSizeList => 1,
            Type::Binary | Type::Utf8 | Type::LargeBinary | Type::LargeUtf8 => 3,
            Type::Union
            | Type::BinaryView
            | Type::Utf8View
            | Type::ListView
            | Type::LargeListView => {
                return Err(wrong_type(field, field.name().unwrap_or_default()));
            }
            _ => 2,
        };
        if depth > 16 {
            return Err(malformed("a column of the index is nested too deeply"));
        }
        self.next_node += 1;
        self.next_buffer += buffers;
        // A dictionary's values stand elsewhere, so the column has no children here.
        let children = field.children().filter(|_| field.dictionary().is_none());
        children
            .into_iter()
            .flatten()
            .try_for_each(|child| self.skip(&child, depth + 1))
    }
}

fn bits(buffer: Buffer, rows: usize, name: &str) -> Result<BooleanBuffer> {
    if buffer.len() < rows.div_ceil(8) {
        return Err(corrupt(format!(
            "column {name:?} is shorter than its {rows} bits"
        )));
    }
    Ok(BooleanBuffer::new(buffer, 0, rows))
}

fn wrong_type(field: &FlatField<'_>, name: &str) -> Error {
    let kind = field.type_type().variant_name().unwrap_or("unknown");
    Error::new(
        ErrorKind::Malformed,
        format!("column {name:?} of the index has the type {kind}, which does not fit it"),
    )
}

fn is_int(field: &FlatField<'_>, bits: i32, signed: bool) -> bool {
    field.dictionary().is_none()
        && field
            .type_as_int()
            .is_some_and(|int| int.bitWidth() == bits && int.is_signed() == signed)
}

pub(super) fn is_u64(field: &FlatField<'_>) -> bool {
    is_int(field, 64, false)
}

pub(super) fn is_u32(field: &FlatField<'_>) -> bool {
    is_int(field, 32, false)
}

pub(super) fn is_i64(field: &FlatField<'_>) -> bool {
    is_int(field, 64, true)
}

fn is_f64(field: &FlatField<'_>) -> bool {
    field
        .type_as_floating_point()
        .is_some_and(|float| float.precision() == Precision::DOUBLE)
}

fn has_known_items(field: &FlatField<'_>) -> bool {
    let item = field
        .children()
        .filter(|children| children.len() == 1)
        .map(|children| children.get(0));
    item.is_some_and(|item| {
        is_i64(&item) || is_f64(&item) || matches!(item.type_type(), Type::Utf8 | Type::LargeUtf8)
    })
}
