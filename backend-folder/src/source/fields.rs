//! The columns that `.json` parts make: top-level scalars and short lists.

use bytes::Bytes;
use loader_core::{FieldValue, Fields, Part};
use serde_json::Value;

/// Largest field, bytes as JSON.
const LONGEST_FIELD: usize = 1024;

/// Largest `.json` part that is looked into, bytes: larger ones are annotations, not columns.
const LARGEST_JSON: usize = 1 << 20;

/// The fields of a sample. JSON that cannot be read makes none; the part itself stays as it is.
pub(super) fn of_parts(parts: &[Part], payload: &Bytes) -> Fields {
    let mut fields = Fields::new();
    for part in parts
        .iter()
        .filter(|part| part.media_type == "application/json")
    {
        let start = usize::try_from(part.offset).unwrap_or(usize::MAX);
        let nbytes = usize::try_from(part.nbytes).unwrap_or(usize::MAX);
        if let Some(bytes) = start
            .checked_add(nbytes)
            .and_then(|end| payload.get(start..end))
        {
            insert_json(bytes, &mut fields);
        }
    }
    fields
}

/// Adds what the top level of an object says; names that are taken stay.
pub(crate) fn insert_json(bytes: &[u8], fields: &mut Fields) {
    if bytes.len() > LARGEST_JSON {
        return;
    }
    let Ok(Value::Object(object)) = serde_json::from_slice(bytes) else {
        return;
    };
    for (name, value) in object {
        if !fields.contains_key(&name)
            && let Some(value) = field(value)
        {
            fields.insert(name, value);
        }
    }
}

fn field(value: Value) -> Option<FieldValue> {
    Some(match value {
        Value::Bool(value) => FieldValue::Bool(value),
        Value::Number(number) => number
            .as_i64()
            .map(FieldValue::Int)
            .or_else(|| number.as_f64().map(FieldValue::Float))?,
        Value::String(text) if text.len() <= LONGEST_FIELD => FieldValue::Text(text),
        Value::Array(values) if !values.is_empty() && values.len() <= LONGEST_FIELD / 8 => {
            list(values)?
        }
        _ => return None,
    })
}

fn list(values: Vec<Value>) -> Option<FieldValue> {
    if values.iter().all(Value::is_i64) {
        return Some(FieldValue::IntList(
            values.iter().filter_map(Value::as_i64).collect(),
        ));
    }
    if values.iter().all(Value::is_number) {
        return values
            .iter()
            .map(Value::as_f64)
            .collect::<Option<_>>()
            .map(FieldValue::FloatList);
    }
    let texts: Vec<String> = values
        .into_iter()
        .map(|value| {
            if let Value::String(text) = value {
                Some(text)
            } else {
                None
            }
        })
        .collect::<Option<_>>()?;
    (texts.iter().map(String::len).sum::<usize>() <= LONGEST_FIELD)
        .then_some(FieldValue::TextList(texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_and_short_lists_become_fields() {
        let mut fields = Fields::new();
        let long = format!(
            r#"{{"a":1,"b":1.5,"c":"x","d":[1,2],"e":[1,2.5],"f":["x"],"g":{{}},"h":null,"i":"{}","j":[1,"x"],"k":true}}"#,
            "x".repeat(2000)
        );
        insert_json(long.as_bytes(), &mut fields);
        let types: Vec<_> = fields
            .iter()
            .map(|(name, value)| format!("{name}:{}", value.type_name()))
            .collect();
        assert_eq!(
            types,
            [
                "a:int64",
                "b:float64",
                "c:text",
                "d:list<int64>",
                "e:list<float64>",
                "f:list<text>",
                "k:bool"
            ]
        );
    }

    #[test]
    fn what_is_no_object_makes_no_field() {
        for bytes in [&b"[1]"[..], b"{", b"", b"\xff"] {
            let mut fields = Fields::new();
            insert_json(bytes, &mut fields);
            assert!(fields.is_empty());
        }
    }
}
