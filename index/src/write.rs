//! The lasting form: an Arrow IPC file of one record batch.

use std::{collections::HashMap, io::Write, sync::Arc};

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float64Array, GenericListArray,
    GenericStringArray, Int64Array, LargeBinaryArray, RecordBatch, UInt32Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Field as ArrowField, Schema};
use loader_core::{Error, ErrorKind, Result};

use crate::{
    columns::{Columns, Field, Numbers, Offsets, Texts, Values},
    header::{Header, METADATA_KEY},
};

/// The column names of version 1; further columns have [`FIELD_PREFIX`] before theirs.
pub(crate) const PATH: &str = "path";
pub(crate) const KEY: &str = "key";
pub(crate) const NBYTES: &str = "nbytes";
pub(crate) const CHECKSUM: &str = "checksum";
pub(crate) const LABEL: &str = "label";
pub(crate) const LAYOUT: &str = "layout";
pub(crate) const PARTS: &str = "parts";
pub(crate) const FIELD_PREFIX: &str = "field:";

/// Writes the whole file.
pub(crate) fn write(header: &Header, columns: &Columns, file: impl Write) -> Result<()> {
    let failed = |error| match error {
        ArrowError::IoError(_, error) => Error::io("the index cannot be written", error),
        error => Error::new(ErrorKind::Internal, "the index cannot be written").caused_by(error),
    };
    let batch = batch(header, columns).map_err(failed)?;
    let mut writer = FileWriter::try_new(file, &batch.schema()).map_err(failed)?;
    writer.write(&batch).map_err(failed)?;
    writer.finish().map_err(failed)
}

fn batch(header: &Header, columns: &Columns) -> Result<RecordBatch, ArrowError> {
    let mut arrays: Vec<(String, ArrayRef)> = vec![
        (
            PATH.to_owned(),
            binary(&columns.path_ends, columns.paths.clone().into()),
        ),
        (
            KEY.to_owned(),
            Arc::new(FixedSizeBinaryArray::try_new(
                16,
                columns.keys.clone(),
                None,
            )?),
        ),
        (
            NBYTES.to_owned(),
            Arc::new(UInt64Array::new(columns.nbytes.clone(), None)),
        ),
        (
            CHECKSUM.to_owned(),
            Arc::new(UInt64Array::new(
                columns.checksums.clone(),
                nulls(columns.has_checksum.as_ref()),
            )),
        ),
        (
            LABEL.to_owned(),
            Arc::new(Int64Array::new(columns.labels.clone(), None)),
        ),
        (
            LAYOUT.to_owned(),
            Arc::new(UInt32Array::new(columns.layouts.clone(), None)),
        ),
    ];
    if let Some((ends, numbers)) = &columns.part_numbers {
        let numbers: ArrayRef = match numbers {
            Numbers::Small(numbers) => Arc::new(UInt32Array::new(numbers.clone(), None)),
            Numbers::Large(numbers) => Arc::new(UInt64Array::new(numbers.clone(), None)),
        };
        arrays.push((PARTS.to_owned(), list(ends, numbers, None)?));
    }
    for field in &columns.fields {
        arrays.push((format!("{FIELD_PREFIX}{}", field.name), array(field)?));
    }
    let metadata = HashMap::from([(METADATA_KEY.to_owned(), header.to_json())]);
    let fields: Vec<_> = arrays
        .iter()
        .map(|(name, array)| ArrowField::new(name, array.data_type().clone(), array.is_nullable()))
        .collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    RecordBatch::try_new(schema, arrays.into_iter().map(|(_, array)| array).collect())
}

fn array(field: &Field) -> Result<ArrayRef, ArrowError> {
    let nulls = nulls(field.present.as_ref());
    Ok(match &field.values {
        Values::Bool(values) => Arc::new(BooleanArray::new(values.clone(), nulls)),
        Values::Int(values) => Arc::new(Int64Array::new(values.clone(), nulls)),
        Values::Float(values) => Arc::new(Float64Array::new(values.clone(), nulls)),
        Values::Text(values) => text(values, nulls)?,
        Values::IntList(ends, values) => {
            list(ends, Arc::new(Int64Array::new(values.clone(), None)), nulls)?
        }
        Values::FloatList(ends, values) => list(
            ends,
            Arc::new(Float64Array::new(values.clone(), None)),
            nulls,
        )?,
        Values::TextList(ends, values) => list(ends, text(values, None)?, nulls)?,
    })
}

fn nulls(present: Option<&BooleanBuffer>) -> Option<NullBuffer> {
    present.cloned().map(NullBuffer::new)
}

fn binary(ends: &Offsets, bytes: Buffer) -> ArrayRef {
    match ends {
        Offsets::Small(ends) => Arc::new(BinaryArray::new(
            OffsetBuffer::new(ends.clone()),
            bytes,
            None,
        )),
        Offsets::Large(ends) => Arc::new(LargeBinaryArray::new(
            OffsetBuffer::new(ends.clone()),
            bytes,
            None,
        )),
    }
}

/// Fails for a foreign file whose texts are no UTF-8.
fn text(texts: &Texts, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    Ok(match &texts.ends {
        Offsets::Small(ends) => Arc::new(GenericStringArray::try_new(
            OffsetBuffer::new(ends.clone()),
            texts.bytes.clone(),
            nulls,
        )?),
        Offsets::Large(ends) => Arc::new(GenericStringArray::try_new(
            OffsetBuffer::new(ends.clone()),
            texts.bytes.clone(),
            nulls,
        )?),
    })
}

fn list(
    ends: &Offsets,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let item = Arc::new(ArrowField::new("item", values.data_type().clone(), false));
    Ok(match ends {
        Offsets::Small(ends) => Arc::new(GenericListArray::try_new(
            item,
            OffsetBuffer::new(ends.clone()),
            values,
            nulls,
        )?),
        Offsets::Large(ends) => Arc::new(GenericListArray::try_new(
            item,
            OffsetBuffer::new(ends.clone()),
            values,
            nulls,
        )?),
    })
}
