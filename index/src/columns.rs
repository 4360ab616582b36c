//! The columns of an index, over Arrow buffers that may lie in a memory map.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, Buffer, ScalarBuffer};
use bytes::Bytes;
use loader_core::{Error, ErrorKind, FieldValue, Result};

/// All columns; each has `rows` entries, which whoever makes one has checked.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    pub(crate) rows: usize,
    pub(crate) path_ends: Offsets,
    pub(crate) paths: Bytes,
    /// 16 bytes a row.
    pub(crate) keys: Buffer,
    pub(crate) nbytes: ScalarBuffer<u64>,
    pub(crate) checksums: ScalarBuffer<u64>,
    /// Which rows have a checksum; `None` for all.
    pub(crate) has_checksum: Option<BooleanBuffer>,
    pub(crate) labels: ScalarBuffer<i64>,
    pub(crate) layouts: ScalarBuffer<u32>,
    /// The numbers that layouts of more than one part need; `None` where no row has any.
    pub(crate) part_numbers: Option<(Offsets, Numbers)>,
    pub(crate) fields: Vec<Field>,
}

/// Where values of varying length start and end: `rows + 1` numbers, of 32 bits where they suffice.
#[derive(Debug, Clone)]
pub(crate) enum Offsets {
    Small(ScalarBuffer<i32>),
    Large(ScalarBuffer<i64>),
}

impl Offsets {
    /// From the ends of all values, preceded by 0.
    pub(crate) fn new(ends: Vec<i64>) -> Self {
        if ends.last().is_none_or(|last| i32::try_from(*last).is_ok()) {
            let small = |end| i32::try_from(end).expect("the last end is the largest, and it fits");
            Self::Small(ends.into_iter().map(small).collect())
        } else {
            Self::Large(ends.into())
        }
    }

    /// The place of a row's value. The caller keeps `row` in range; [`Self::check`] has seen the numbers.
    pub(crate) fn range(&self, row: usize) -> Range<usize> {
        let place =
            |number: i64| usize::try_from(number).expect("checked when the index was opened");
        match self {
            Self::Small(ends) => place(ends[row].into())..place(ends[row + 1].into()),
            Self::Large(ends) => place(ends[row])..place(ends[row + 1]),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Small(ends) => ends.len(),
            Self::Large(ends) => ends.len(),
        }
    }

    /// Makes sure that there are `rows` values, one after another, inside `limit` places.
    pub(crate) fn check(&self, rows: usize, limit: usize, name: &str) -> Result<()> {
        let sound = match self {
            Self::Small(ends) => is_monotonic(ends.iter().map(|end| i64::from(*end)), limit),
            Self::Large(ends) => is_monotonic(ends.iter().copied(), limit),
        };
        if sound && self.len() == rows + 1 {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Corrupt,
            format!("the offsets of column {name:?} are not in order"),
        ))
    }
}

fn is_monotonic(ends: impl Iterator<Item = i64>, limit: usize) -> bool {
    let mut last = 0;
    for end in ends {
        if end < last {
            return false;
        }
        last = end;
    }
    usize::try_from(last).is_ok_and(|last| last <= limit)
}

/// Whole numbers, of 32 bits where they suffice.
#[derive(Debug, Clone)]
pub(crate) enum Numbers {
    Small(ScalarBuffer<u32>),
    Large(ScalarBuffer<u64>),
}

impl Numbers {
    pub(crate) fn new(numbers: Vec<u64>) -> Self {
        let small: Option<Vec<u32>> = numbers
            .iter()
            .map(|number| u32::try_from(*number).ok())
            .collect();
        small.map_or_else(
            || Self::Large(numbers.into()),
            |small| Self::Small(small.into()),
        )
    }

    pub(crate) fn at(&self, place: usize) -> u64 {
        match self {
            Self::Small(numbers) => numbers[place].into(),
            Self::Large(numbers) => numbers[place],
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Small(numbers) => numbers.len(),
            Self::Large(numbers) => numbers.len(),
        }
    }
}

/// One further column.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Which rows have a value; `None` for all.
    pub(crate) present: Option<BooleanBuffer>,
    pub(crate) values: Values,
}

/// The values of a further column, by type.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    Bool(BooleanBuffer),
    Int(ScalarBuffer<i64>),
    Float(ScalarBuffer<f64>),
    Text(Texts),
    IntList(Offsets, ScalarBuffer<i64>),
    FloatList(Offsets, ScalarBuffer<f64>),
    TextList(Offsets, Texts),
}

/// Texts, one after another.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    pub(crate) ends: Offsets,
    pub(crate) bytes: Buffer,
}

impl Texts {
    fn at(&self, row: usize) -> String {
        // Foreign files may hold bytes that are no UTF-8; they are shown as such instead of being searched at open.
        String::from_utf8_lossy(&self.bytes[self.ends.range(row)]).into_owned()
    }
}

impl Field {
    pub(crate) fn at(&self, row: usize) -> Option<FieldValue> {
        if self
            .present
            .as_ref()
            .is_some_and(|present| !present.value(row))
        {
            return None;
        }
        Some(match &self.values {
            Values::Bool(values) => FieldValue::Bool(values.value(row)),
            Values::Int(values) => FieldValue::Int(values[row]),
            Values::Float(values) => FieldValue::Float(values[row]),
            Values::Text(values) => FieldValue::Text(values.at(row)),
            Values::IntList(ends, values) => FieldValue::IntList(values[ends.range(row)].to_vec()),
            Values::FloatList(ends, values) => {
                FieldValue::FloatList(values[ends.range(row)].to_vec())
            }
            Values::TextList(ends, values) => {
                FieldValue::TextList(ends.range(row).map(|place| values.at(place)).collect())
            }
        })
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.values {
            Values::Bool(_) => "bool",
            Values::Int(_) => "int64",
            Values::Float(_) => "float64",
            Values::Text(_) => "text",
            Values::IntList(..) => "list<int64>",
            Values::FloatList(..) => "list<float64>",
            Values::TextList(..) => "list<text>",
        }
    }
}

/// Bits with `true` for each present value; `None` where none is missing.
pub(crate) fn presence(present: &[bool]) -> Option<BooleanBuffer> {
    present
        .contains(&false)
        .then(|| BooleanBuffer::from(present))
}
