//! Further columns while they grow: typed by what they have met, widened where types conflict.

use arrow_buffer::{BooleanBuffer, Buffer};
use loader_core::FieldValue;

use crate::columns::{Field, Offsets, Texts, Values, presence};

/// A column under construction.
#[derive(Debug)]
pub(crate) struct FieldBuilder {
    present: Vec<bool>,
    values: Growing,
}

/// Values by type. Lists hold the ends of their entries, preceded by 0.
#[derive(Debug)]
enum Growing {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Text(Growth),
    IntList(Vec<i64>, Vec<i64>),
    FloatList(Vec<i64>, Vec<f64>),
    TextList(Vec<i64>, Growth),
}

#[derive(Debug)]
struct Growth {
    ends: Vec<i64>,
    bytes: Vec<u8>,
}

impl Growth {
    fn new() -> Self {
        Self {
            ends: vec![0],
            bytes: Vec::new(),
        }
    }

    fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(end(self.bytes.len()));
    }

    fn at(&self, row: usize) -> &str {
        let place = |row: usize| usize::try_from(self.ends[row]).expect("ends are lengths");
        std::str::from_utf8(&self.bytes[place(row)..place(row + 1)])
            .expect("only texts were pushed")
    }

    fn freeze(self) -> Texts {
        Texts {
            ends: Offsets::new(self.ends),
            bytes: Buffer::from_vec(self.bytes),
        }
    }
}

fn end(length: usize) -> i64 {
    i64::try_from(length).expect("no allocation is longer than i64::MAX")
}

impl FieldBuilder {
    /// A column for values of the type of `first`, empty in the `rows` rows so far.
    pub(crate) fn new(first: &FieldValue, rows: usize) -> Self {
        let values = match first {
            FieldValue::Bool(_) => Growing::Bool(Vec::new()),
            FieldValue::Int(_) => Growing::Int(Vec::new()),
            FieldValue::Float(_) => Growing::Float(Vec::new()),
            FieldValue::Text(_) => Growing::Text(Growth::new()),
            FieldValue::IntList(_) => Growing::IntList(vec![0], Vec::new()),
            FieldValue::FloatList(_) => Growing::FloatList(vec![0], Vec::new()),
            FieldValue::TextList(_) => Growing::TextList(vec![0], Growth::new()),
        };
        let mut builder = Self {
            present: Vec::new(),
            values,
        };
        builder.pad(rows);
        builder
    }

    fn same_type(&self) -> Self {
        let values = match self.values {
            Growing::Bool(_) => Growing::Bool(Vec::new()),
            Growing::Int(_) => Growing::Int(Vec::new()),
            Growing::Float(_) => Growing::Float(Vec::new()),
            Growing::Text(_) => Growing::Text(Growth::new()),
            Growing::IntList(..) => Growing::IntList(vec![0], Vec::new()),
            Growing::FloatList(..) => Growing::FloatList(vec![0], Vec::new()),
            Growing::TextList(..) => Growing::TextList(vec![0], Growth::new()),
        };
        Self {
            present: Vec::new(),
            values,
        }
    }

    /// Appends empty rows until there are `rows`.
    pub(crate) fn pad(&mut self, rows: usize) {
        while self.present.len() < rows {
            self.push_none();
        }
    }

    fn push_none(&mut self) {
        self.present.push(false);
        match &mut self.values {
            Growing::Bool(values) => values.push(false),
            Growing::Int(values) => values.push(0),
            Growing::Float(values) => values.push(0.0),
            Growing::Text(texts) => texts.push(""),
            Growing::IntList(ends, values) => ends.push(end(values.len())),
            Growing::FloatList(ends, values) => ends.push(end(values.len())),
            Growing::TextList(ends, texts) => ends.push(end(texts.ends.len() - 1)),
        }
    }

    /// Appends a value, widening the column where its type does not hold it.
    pub(crate) fn push(&mut self, value: &FieldValue) {
        if self.try_push(value) {
            return;
        }
        let wider = match (&self.values, value) {
            (Growing::Int(_), FieldValue::Float(_)) => Growing::Float(Vec::new()),
            (Growing::IntList(..), FieldValue::FloatList(_)) => {
                Growing::FloatList(vec![0], Vec::new())
            }
            _ => Growing::Text(Growth::new()),
        };
        // A whole number that no float holds makes even the float column too narrow.
        let widened = self
            .copy_into(wider)
            .or_else(|| self.copy_into(Growing::Text(Growth::new())));
        *self = widened.expect("a column of texts takes every value");
        let taken = self.try_push(value);
        debug_assert!(taken, "the wider column was chosen to take the value");
    }

    fn copy_into(&self, values: Growing) -> Option<Self> {
        let mut copy = Self {
            present: Vec::with_capacity(self.present.len()),
            values,
        };
        for row in 0..self.present.len() {
            match self.at(row) {
                None => copy.push_none(),
                Some(value) => copy.try_push(&value).then_some(())?,
            }
        }
        Some(copy)
    }

    fn try_push(&mut self, value: &FieldValue) -> bool {
        match (&mut self.values, value) {
            (Growing::Bool(values), FieldValue::Bool(value)) => values.push(*value),
            (Growing::Int(values), FieldValue::Int(value)) => values.push(*value),
            (Growing::Float(values), FieldValue::Float(value)) => values.push(*value),
            (Growing::Float(values), FieldValue::Int(value)) => match exact(*value) {
                Some(value) => values.push(value),
                None => return false,
            },
            (Growing::Text(texts), value) => texts.push(&text(value)),
            (Growing::IntList(ends, values), FieldValue::IntList(list)) => {
                values.extend_from_slice(list);
                ends.push(end(values.len()));
            }
            (Growing::FloatList(ends, values), FieldValue::FloatList(list)) => {
                values.extend_from_slice(list);
                ends.push(end(values.len()));
            }
            (Growing::FloatList(ends, values), FieldValue::IntList(list)) => {
                let Some(list) = list
                    .iter()
                    .map(|value| exact(*value))
                    .collect::<Option<Vec<_>>>()
                else {
                    return false;
                };
                values.extend(list);
                ends.push(end(values.len()));
            }
            (Growing::TextList(ends, texts), FieldValue::TextList(list)) => {
                for text in list {
                    texts.push(text);
                }
                ends.push(end(texts.ends.len() - 1));
            }
            _ => return false,
        }
        self.present.push(true);
        true
    }

    fn at(&self, row: usize) -> Option<FieldValue> {
        let place = |number: i64| usize::try_from(number).expect("ends are lengths");
        let range = |ends: &[i64]| place(ends[row])..place(ends[row + 1]);
        self.present[row].then(|| match &self.values {
            Growing::Bool(values) => FieldValue::Bool(values[row]),
            Growing::Int(values) => FieldValue::Int(values[row]),
            Growing::Float(values) => FieldValue::Float(values[row]),
            Growing::Text(texts) => FieldValue::Text(texts.at(row).to_owned()),
            Growing::IntList(ends, values) => FieldValue::IntList(values[range(ends)].to_vec()),
            Growing::FloatList(ends, values) => FieldValue::FloatList(values[range(ends)].to_vec()),
            Growing::TextList(ends, texts) => FieldValue::TextList(
                range(ends)
                    .map(|place| texts.at(place).to_owned())
                    .collect(),
            ),
        })
    }

    /// The same column with the rows of `order`, in that order.
    pub(crate) fn gather(&self, order: &[usize]) -> Self {
        let mut gathered = self.same_type();
        for row in order {
            match self.at(*row) {
                Some(value) => gathered.push(&value),
                None => gathered.push_none(),
            }
        }
        gathered
    }

    /// The finished column; `None` where no row has a value any more.
    pub(crate) fn freeze(self, name: String) -> Option<Field> {
        if !self.present.contains(&true) {
            return None;
        }
        let values = match self.values {
            Growing::Bool(values) => Values::Bool(BooleanBuffer::from(values)),
            Growing::Int(values) => Values::Int(values.into()),
            Growing::Float(values) => Values::Float(values.into()),
            Growing::Text(texts) => Values::Text(texts.freeze()),
            Growing::IntList(ends, values) => Values::IntList(Offsets::new(ends), values.into()),
            Growing::FloatList(ends, values) => {
                Values::FloatList(Offsets::new(ends), values.into())
            }
            Growing::TextList(ends, texts) => Values::TextList(Offsets::new(ends), texts.freeze()),
        };
        Some(Field {
            name,
            present: presence(&self.present),
            values,
        })
    }
}

/// The float that is exactly `value`.
fn exact(value: i64) -> Option<f64> {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "exactness is what the comparison tests"
    )]
    let (float, back) = (value as f64, value as f64 as i128);
    (back == i128::from(value)).then_some(float)
}

/// A value in a column of texts: texts as they are, everything else as JSON.
fn text(value: &FieldValue) -> String {
    match value {
        FieldValue::Text(text) => text.clone(),
        // JSON has no word for these; Rust's are what people expect.
        FieldValue::Float(value) if !value.is_finite() => value.to_string(),
        value => {
            serde_json::to_string(value).expect("scalars and lists of them always have a JSON form")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[FieldValue]) -> Field {
        let mut builder = FieldBuilder::new(&values[0], 0);
        for value in values {
            builder.push(value);
        }
        builder.freeze("x".into()).unwrap()
    }

    #[test]
    fn whole_numbers_widen_to_floats_and_then_to_text() {
        let floats = column(&[
            FieldValue::Int(3),
            FieldValue::Float(0.5),
            FieldValue::Int(4),
        ]);
        assert_eq!(floats.type_name(), "float64");
        assert_eq!(floats.at(0), Some(FieldValue::Float(3.0)));
        let texts = column(&[
            FieldValue::Int(3),
            FieldValue::Float(0.5),
            FieldValue::IntList(vec![1, 2]),
        ]);
        assert_eq!(texts.at(2), Some(FieldValue::Text("[1,2]".into())));
        assert_eq!(texts.at(0), Some(FieldValue::Text("3.0".into())));
    }

    #[test]
    fn no_digit_of_a_large_number_is_lost_by_widening() {
        let large = (1 << 53) + 1;
        let column = column(&[FieldValue::Int(large), FieldValue::Float(0.5)]);
        assert_eq!(
            column.at(0),
            Some(FieldValue::Text("9007199254740993".into()))
        );
        assert_eq!(column.at(1), Some(FieldValue::Text("0.5".into())));
    }

    #[test]
    fn a_late_column_is_empty_in_the_rows_before() {
        let mut builder = FieldBuilder::new(&FieldValue::TextList(vec![]), 2);
        builder.push(&FieldValue::TextList(vec!["a".into(), String::new()]));
        builder.pad(4);
        let field = builder.gather(&[2, 0, 2]).freeze("x".into()).unwrap();
        assert_eq!(field.at(1), None);
        assert_eq!(
            field.at(2),
            Some(FieldValue::TextList(vec!["a".into(), String::new()]))
        );
    }
}
