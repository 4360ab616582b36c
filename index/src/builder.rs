//! Rows in any order, kept in columns until they are an [`Index`].

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use arrow_buffer::Buffer;
use bytes::Bytes;
use loader_core::{Catalog, Manifest, Result, Row, identity::FingerprintHasher};

use crate::{
    columns::{Columns, Numbers, Offsets, presence},
    fields::FieldBuilder,
    header::{Header, Layout, MAGIC, VERSION},
    snapshot::Index,
};

/// Collects rows and makes an [`Index`] of them.
///
/// Rows come in any order. Of rows with one path the last one stays, so pushing an old data set and then new rows merges
/// them. Memory: about 80 bytes a row besides its path and fields, no object of its own for any row.
#[derive(Debug)]
pub struct IndexBuilder {
    path_ends: Vec<i64>,
    paths: Vec<u8>,
    keys: Vec<u8>,
    nbytes: Vec<u64>,
    checksums: Vec<u64>,
    has_checksum: Vec<bool>,
    labels: Vec<i64>,
    layouts: Vec<u32>,
    number_ends: Vec<i64>,
    numbers: Vec<u64>,
    known_layouts: Vec<Layout>,
    layout_numbers: HashMap<Layout, u32>,
    fields: BTreeMap<String, FieldBuilder>,
    /// True while rows came in path order without repetition.
    sorted: bool,
}

impl Default for IndexBuilder {
    fn default() -> Self {
        Self {
            path_ends: vec![0],
            paths: Vec::new(),
            keys: Vec::new(),
            nbytes: Vec::new(),
            checksums: Vec::new(),
            has_checksum: Vec::new(),
            labels: Vec::new(),
            layouts: Vec::new(),
            number_ends: vec![0],
            numbers: Vec::new(),
            known_layouts: Vec::new(),
            layout_numbers: HashMap::new(),
            fields: BTreeMap::new(),
            sorted: true,
        }
    }
}

impl IndexBuilder {
    /// No rows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows pushed so far, repeated paths counted as often as they came.
    pub fn len(&self) -> usize {
        self.nbytes.len()
    }

    /// True where nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.nbytes.is_empty()
    }

    /// Adds a row; it replaces an earlier one of the same path.
    pub fn push(&mut self, row: &Row) {
        let rows = self.len();
        self.sorted = self.sorted && (rows == 0 || self.path(rows - 1) < row.path.as_bytes());
        self.paths.extend_from_slice(&row.path);
        self.path_ends.push(end(self.paths.len()));
        self.keys.extend_from_slice(&row.key.0);
        self.nbytes.push(row.nbytes);
        self.checksums.push(row.checksum.unwrap_or(0));
        self.has_checksum.push(row.checksum.is_some());
        self.labels.push(row.label);
        self.push_parts(row);
        for (name, value) in &row.fields {
            if let Some(column) = self.fields.get_mut(name) {
                column.pad(rows);
                column.push(value);
            } else {
                let mut column = FieldBuilder::new(value, rows);
                column.push(value);
                self.fields.insert(name.clone(), column);
            }
        }
    }

    fn push_parts(&mut self, row: &Row) {
        let last = self.layouts.last().copied();
        let known =
            last.filter(|number| self.known_layouts[*number as usize].fits(&row.parts, row.nbytes));
        let number = known.unwrap_or_else(|| {
            let layout = Layout::of(&row.parts, row.nbytes);
            *self
                .layout_numbers
                .entry(layout)
                .or_insert_with_key(|layout| {
                    self.known_layouts.push(layout.clone());
                    u32::try_from(self.known_layouts.len() - 1)
                        .expect("fewer than 2^32 layouts fit into memory")
                })
        });
        self.layouts.push(number);
        let layout = &self.known_layouts[number as usize];
        if layout.scattered {
            self.numbers
                .extend(row.parts.iter().flat_map(|part| [part.offset, part.nbytes]));
        } else {
            self.numbers.extend(
                row.parts
                    .iter()
                    .take(layout.numbers())
                    .map(|part| part.nbytes),
            );
        }
        self.number_ends.push(end(self.numbers.len()));
    }

    fn path(&self, row: usize) -> &[u8] {
        &self.paths[range(&self.path_ends, row)]
    }

    /// Sorts the rows, drops replaced ones and names the classes: the data set as it will be stored.
    pub fn finish(mut self, classes: impl Into<Vec<String>>) -> Index {
        let rows = self.len();
        for column in self.fields.values_mut() {
            column.pad(rows);
        }
        let mut builder = if self.sorted { self } else { self.in_order() };
        let mut hasher = FingerprintHasher::default();
        let mut bytes = 0_u64;
        for row in 0..builder.len() {
            hasher.row(builder.path(row), builder.nbytes[row], builder.labels[row]);
            bytes = bytes.saturating_add(builder.nbytes[row]);
        }
        let header = Header {
            magic: MAGIC.to_owned(),
            version: VERSION,
            fingerprint: hasher.finish(),
            samples: builder.len() as u64,
            bytes,
            classes: classes.into(),
            layouts: std::mem::take(&mut builder.known_layouts),
        };
        Index::new(header, builder.freeze(), None)
    }

    /// The same rows in path order, of each path only the last.
    fn in_order(self) -> Self {
        let mut order: Vec<usize> = (0..self.len()).collect();
        // Later rows first among equal paths, so that `dedup` keeps the last one pushed.
        order.sort_unstable_by(|a, b| self.path(*a).cmp(self.path(*b)).then(b.cmp(a)));
        order.dedup_by(|next, kept| self.path(*next) == self.path(*kept));
        let mut ordered = Self {
            known_layouts: Vec::new(),
            ..Self::default()
        };
        for row in &order {
            let row = *row;
            ordered.paths.extend_from_slice(self.path(row));
            ordered.path_ends.push(end(ordered.paths.len()));
            ordered
                .keys
                .extend_from_slice(&self.keys[row * 16..row * 16 + 16]);
            ordered
                .numbers
                .extend_from_slice(&self.numbers[range(&self.number_ends, row)]);
            ordered.number_ends.push(end(ordered.numbers.len()));
        }
        ordered.nbytes = order.iter().map(|row| self.nbytes[*row]).collect();
        ordered.checksums = order.iter().map(|row| self.checksums[*row]).collect();
        ordered.has_checksum = order.iter().map(|row| self.has_checksum[*row]).collect();
        ordered.labels = order.iter().map(|row| self.labels[*row]).collect();
        ordered.layouts = order.iter().map(|row| self.layouts[*row]).collect();
        ordered.fields = self
            .fields
            .iter()
            .map(|(name, column)| (name.clone(), column.gather(&order)))
            .collect();
        ordered.known_layouts = self.known_layouts;
        ordered
    }

    fn freeze(self) -> Columns {
        let numbers = (!self.numbers.is_empty())
            .then(|| (Offsets::new(self.number_ends), Numbers::new(self.numbers)));
        Columns {
            rows: self.nbytes.len(),
            path_ends: Offsets::new(self.path_ends),
            paths: Bytes::from(self.paths),
            keys: Buffer::from_vec(self.keys),
            nbytes: self.nbytes.into(),
            has_checksum: presence(&self.has_checksum),
            checksums: self.checksums.into(),
            labels: self.labels.into(),
            layouts: self.layouts.into(),
            part_numbers: numbers,
            fields: self
                .fields
                .into_iter()
                .filter_map(|(name, column)| column.freeze(name))
                .collect(),
        }
    }
}

impl<'a> Extend<&'a Row> for IndexBuilder {
    fn extend<I: IntoIterator<Item = &'a Row>>(&mut self, rows: I) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}

impl Extend<Row> for IndexBuilder {
    fn extend<I: IntoIterator<Item = Row>>(&mut self, rows: I) {
        rows.into_iter().for_each(|row| self.push(&row));
    }
}

/// The index of a catalogue: its snapshot where it has one, else made from its rows.
///
/// # Errors
/// What is wrong with the snapshot.
pub fn from_catalog(catalog: &dyn Catalog, classes: &[String]) -> Result<Index> {
    if let Some(snapshot) = catalog.snapshot() {
        return Ok(Index::from_bytes(snapshot)?.with_classes(classes));
    }
    let mut builder = IndexBuilder::new();
    builder.extend((0..catalog.len()).map(|number| catalog.row(number)));
    Ok(builder.finish(classes))
}

/// The index that a manifest asks to store.
///
/// # Errors
/// As [`from_catalog`].
pub fn from_manifest(manifest: &Manifest) -> Result<Index> {
    let catalog = Arc::clone(&manifest.catalog);
    from_catalog(&*catalog, &manifest.classes)
}

fn end(length: usize) -> i64 {
    i64::try_from(length).expect("no allocation is longer than i64::MAX")
}

fn range(ends: &[i64], row: usize) -> std::ops::Range<usize> {
    let place = |number: i64| usize::try_from(number).expect("ends are lengths");
    place(ends[row])..place(ends[row + 1])
}
