//! Odd samples, the same on every machine: what people really keep in their folders, and what they should not.

use std::{fmt::Write as _, sync::Arc};

use bytes::Bytes;
use loader_core::{FieldValue, Fields, NO_LABEL, NewSample, Part, SamplePath};

use crate::random::Random;

/// What kind of data set a store can hold, so that the suites ask it for no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Anything: any path, parts, fields, label, and payloads of no bytes.
    #[default]
    Any,
    /// Files at `class/…/name.extension`: one part, no fields, the label is the number of the class folder.
    ImageFolder,
    /// Samples of tars at `shard/key`: several parts named by extension, the label stands as text in the part `cls`.
    WebDataset,
}

/// Samples with the class names that their labels mean.
#[derive(Debug, Clone, Default)]
pub struct DataSet {
    /// What they can be kept in.
    pub form: Form,
    /// The samples, in an order that is not that of their paths.
    pub samples: Vec<NewSample>,
    /// Class names by label, in code-point order; one class has no samples.
    pub classes: Vec<String>,
}

impl DataSet {
    /// No samples, but classes.
    pub fn empty(form: Form) -> Self {
        Self {
            form,
            samples: Vec::new(),
            classes: classes(),
        }
    }

    /// One sample.
    pub fn one(form: Form) -> Self {
        let mut set = Self::many(form, 1);
        set.samples.truncate(1);
        set
    }

    /// So many samples of 1 to 600 bytes with plain paths.
    pub fn many(form: Form, count: usize) -> Self {
        let mut random = Random::new(count as u64);
        let sample = |number: usize| {
            let nbytes = 1 + random.index(600);
            let payload = random.bytes(nbytes);
            plain(form, number, payload)
        };
        let mut samples: Vec<_> = (0..count).map(sample).collect();
        Random::new(1).shuffle(&mut samples);
        Self {
            form,
            samples,
            classes: classes(),
        }
    }

    /// About twenty samples, each odd in a way of its own: paths that are no UTF-8, payloads of 0, 1 and 1,000,000 bytes,
    /// many parts, every type of field, as far as the form can hold them.
    pub fn odd(form: Form) -> Self {
        let mut samples = match form {
            Form::Any => odd_of_any_kind(),
            Form::ImageFolder => odd_files(),
            Form::WebDataset => odd_shards(),
        };
        Random::new(2).shuffle(&mut samples);
        Self {
            form,
            samples,
            classes: classes(),
        }
    }

    /// The samples in path order: `in_order()[row]` is what a fetch of `row` must deliver.
    pub fn in_order(&self) -> Vec<&NewSample> {
        let mut samples: Vec<_> = self.samples.iter().collect();
        samples.sort_by(|left, right| left.path.cmp(&right.path));
        samples
    }
}

/// A sample of one part that is named after the path's extension.
pub fn file(path: impl Into<SamplePath>, label: i64, payload: impl Into<Bytes>) -> NewSample {
    let (path, payload) = (path.into(), payload.into());
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let dot = name.iter().rposition(|byte| *byte == b'.');
    let extension = dot.map_or("data".into(), |dot| {
        String::from_utf8_lossy(&name[dot + 1..])
    });
    let parts = Part::sequence([(&*extension, payload.len() as u64)]);
    NewSample {
        path,
        label,
        parts,
        payload,
        fields: Fields::new(),
    }
}

/// A sample of several parts.
pub fn parted(path: impl Into<SamplePath>, label: i64, parts: &[(&str, &[u8])]) -> NewSample {
    NewSample {
        path: path.into(),
        label,
        parts: Part::sequence(
            parts
                .iter()
                .map(|(name, bytes)| (*name, bytes.len() as u64)),
        ),
        payload: parts
            .iter()
            .map(|(_, bytes)| *bytes)
            .collect::<Vec<_>>()
            .concat()
            .into(),
        fields: Fields::new(),
    }
}

fn classes() -> Vec<String> {
    ["Zebra", "cat", "empty", "\u{e9}clair", "\u{65e5}\u{672c}"]
        .map(str::to_owned)
        .to_vec()
}

fn plain(form: Form, number: usize, payload: Vec<u8>) -> NewSample {
    // The class `empty` (label 2) stays without samples.
    let label = [0, 1, 3, 4][number % 4];
    let class = &classes()[label];
    let label = i64::try_from(label).expect("at most 4");
    match form {
        Form::Any | Form::ImageFolder => file(format!("{class}/{number:06}.jpg"), label, payload),
        Form::WebDataset => parted(
            format!("shard-{:06}/{number:06}", number / 100),
            label,
            &[("jpg", &payload), ("cls", label.to_string().as_bytes())],
        ),
    }
}

fn odd_of_any_kind() -> Vec<NewSample> {
    let mut random = Random::new(3);
    let paths: [&[u8]; 17] = [
        b"plain.jpg",
        b"PLAIN.JPG",
        b"no_extension",
        b"a",
        b"a/b",
        b"a/b/c/d/e/f/g.png",
        b"caf\xe9.jpg",
        b"\xff\xfe/\x80.bin",
        b" spaces around ",
        b"line\nbreak\ttab.jpg",
        b"quote'\"`;--.jpg",
        b"100%25.jpg",
        b"100%.jpg?x=1&y=2#z",
        b"..hidden..",
        "\u{65e5}\u{672c}/\u{e9}clair.jpg".as_bytes(),
        "\u{65e5}\u{672c}/e\u{301}clair.jpg".as_bytes(),
        "\u{1f408}.jpg".as_bytes(),
    ];
    let mut samples: Vec<_> = (0..)
        .zip(paths)
        .map(|(number, path)| file(path, number % 5, random.bytes(20 + path.len())))
        .collect();
    samples.extend([
        file("size/nothing.bin", 0, Vec::new()),
        file("size/one.bin", 1, vec![0]),
        file("size/million.bin", 2, random.bytes(1_000_000)),
        file("label/none.jpg", NO_LABEL, random.bytes(10)),
        file("label/largest.jpg", i64::MAX, random.bytes(10)),
        file("x".repeat(1000), 0, random.bytes(10)),
        // Equal bytes under two paths are two samples.
        file("twin/1.jpg", 0, &b"twin"[..]),
        file("twin/2.jpg", 1, &b"twin"[..]),
        parted(
            "parts/many",
            1,
            &[
                ("JPG", &random.bytes(300)),
                ("seg.png", &random.bytes(50)),
                ("cls", b"1"),
                ("txt", b""),
            ],
        ),
    ]);
    let mut with_fields = file("fields/all.jpg", 1, random.bytes(30));
    with_fields.fields = fields();
    let mut with_one_field = file("fields/one.jpg", 1, random.bytes(30));
    with_one_field.fields = Fields::from([("split".to_owned(), FieldValue::Text("train".into()))]);
    samples.extend([with_fields, with_one_field]);
    samples
}

fn fields() -> Fields {
    let fields = [
        ("split", FieldValue::Text("v\u{e4}l".into())),
        ("blurred", FieldValue::Bool(true)),
        ("width", FieldValue::Int(-640)),
        ("score", FieldValue::Float(0.1)),
        ("box", FieldValue::FloatList(vec![0.0, -1.5, 1e300])),
        ("tokens", FieldValue::IntList((0..100).collect())),
        (
            "tags",
            FieldValue::TextList(vec![String::new(), "\u{65e5}".into()]),
        ),
    ];
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn odd_files() -> Vec<NewSample> {
    let mut random = Random::new(4);
    let paths: [(&[u8], i64); 12] = [
        (b"Zebra/1.jpg", 0),
        (b"Zebra/1.JPEG", 0),
        (b"Zebra/deeper/and/deeper/2.png", 0),
        (b"cat/caf\xe9.jpg", 1),
        (b"cat/ spaces around .jpg", 1),
        (b"cat/line\nbreak.jpg", 1),
        (b"cat/quote'\"`;--.jpg", 1),
        (b"cat/100%25.jpg", 1),
        ("\u{e9}clair/\u{e9}.webp".as_bytes(), 3),
        ("\u{e9}clair/e\u{301}.webp".as_bytes(), 3),
        ("\u{65e5}\u{672c}/\u{1f408}.tif".as_bytes(), 4),
        ("\u{65e5}\u{672c}/one.gif".as_bytes(), 4),
    ];
    let mut samples: Vec<_> = paths
        .map(|(path, label)| file(path, label, random.bytes(20 + path.len())))
        .into();
    samples.push(file("cat/one byte.jpg", 1, vec![0]));
    samples.push(file("cat/million.bmp", 1, random.bytes(1_000_000)));
    samples
}

fn odd_shards() -> Vec<NewSample> {
    let mut random = Random::new(5);
    let keys = [
        "0000",
        "folder/0000",
        "upper",
        "\u{65e5}\u{672c}/\u{e9}",
        "e\u{301}",
        "with space",
        "quote'\"",
    ];
    let mut samples: Vec<_> = (0..)
        .zip(keys)
        .map(|(number, key)| {
            let image = random.bytes(100 + key.len());
            let cls = number.to_string();
            let path = format!("shard-{:06}/{key}", number % 2);
            parted(path, number, &[("jpg", &image), ("cls", cls.as_bytes())])
        })
        .collect();
    let mut long = String::from("shard-000000/");
    (0..8).for_each(|number| {
        write!(long, "a_rather_long_folder_name_{number}/").expect("into memory");
    });
    samples.extend([
        parted(long + "0", 1, &[("jpg", &random.bytes(9)), ("cls", b"1")]),
        parted(
            "shard-000001/many",
            3,
            &[
                ("JPG", &random.bytes(300)),
                ("seg.png", &random.bytes(50)),
                ("cls", b"3"),
            ],
        ),
        parted(
            "shard-000001/million",
            4,
            &[("png", &random.bytes(1_000_000)), ("cls", b"4")],
        ),
    ]);
    samples
}

/// Class names as a manifest holds them.
pub fn shared_classes(set: &DataSet) -> Arc<[String]> {
    set.classes.clone().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_form_has_one_sample_a_path_and_keeps_its_promises() {
        for form in [Form::Any, Form::ImageFolder, Form::WebDataset] {
            for set in [
                DataSet::odd(form),
                DataSet::many(form, 250),
                DataSet::one(form),
                DataSet::empty(form),
            ] {
                let paths: BTreeSet<_> = set
                    .samples
                    .iter()
                    .map(|sample| sample.path.clone())
                    .collect();
                assert_eq!(paths.len(), set.samples.len());
                assert!(set.classes.is_sorted());
                for sample in &set.samples {
                    assert!(!sample.parts.is_empty());
                    let nbytes: u64 = sample.parts.iter().map(|part| part.nbytes).sum();
                    assert_eq!(nbytes, sample.payload.len() as u64);
                    if form != Form::Any {
                        assert!(sample.fields.is_empty() && !sample.payload.is_empty());
                    }
                    if form == Form::ImageFolder {
                        let class = &set.classes[usize::try_from(sample.label).unwrap()];
                        assert!(sample.path.starts_with(format!("{class}/").as_bytes()));
                    }
                }
            }
        }
    }

    #[test]
    fn the_samples_do_not_come_in_path_order() {
        let set = DataSet::many(Form::Any, 50);
        assert!(
            !set.samples
                .is_sorted_by(|left, right| left.path < right.path)
        );
        assert!(
            set.in_order()
                .is_sorted_by(|left, right| left.path < right.path)
        );
    }
}
