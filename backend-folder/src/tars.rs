//! The rows of a set of tars, in flat buffers: 24 bytes a row and its path, and 12 bytes a part.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use bytes::Bytes;
use loader_core::{
    Catalog, Error, ErrorKind, Fields, Part, Result, Row, SampleKey, identity::display_bytes,
};

use crate::{
    failure::{self, Problem},
    files::index,
    open_files::OpenFiles,
    paths::PathTable,
    read,
    tar::header::BLOCK,
};

mod links;
mod merge;
mod names;
mod scan;

pub(crate) use self::{merge::list, names::Names};
use crate::tar::sparse::Segment;

/// One tar of the set.
#[derive(Debug)]
pub(crate) struct Shard {
    /// Path without the suffix, relative to the set.
    pub(crate) name: Vec<u8>,
    pub(crate) path: PathBuf,
    pub(crate) nbytes: u64,
    pub(crate) modified: i64,
    pub(crate) is_gzip: bool,
}

/// One part of a sample: 12 bytes, since a large set has millions of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartRecord {
    /// Its name's number; [`SPARSE`] is set where `block` is the number of a sparse file.
    name: u32,
    /// Where it starts in the archive, in blocks of 512 bytes: members start nowhere else.
    block: u32,
    nbytes: u32,
}

const SPARSE: u32 = 1 << 31;

impl PartRecord {
    fn name(self) -> usize {
        (self.name & !SPARSE) as usize
    }

    fn is_sparse(self) -> bool {
        self.name & SPARSE != 0
    }

    fn offset(self) -> u64 {
        u64::from(self.block) * BLOCK as u64
    }
}

/// A file with holes: where its runs start in the archive, and where they belong.
#[derive(Debug, Clone)]
pub(crate) struct SparseFile {
    offset: u64,
    segments: Box<[Segment]>,
}

/// Some bytes of an archive and where they belong in the payload of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) row: u32,
    pub(crate) at: u32,
    pub(crate) nbytes: u32,
}

/// The samples of a set of tars, sorted by path.
#[derive(Debug)]
pub(crate) struct TarCatalog {
    pub(crate) shards: Vec<Shard>,
    paths: PathTable,
    labels: Vec<i64>,
    shard_of: Vec<u32>,
    /// The first part of each row, and the number of all parts at the end.
    first_part: Vec<u32>,
    parts: Vec<PartRecord>,
    names: Names,
    sparse: Vec<SparseFile>,
    problems: BTreeMap<u32, Problem>,
    has_labels: bool,
    has_images: bool,
    max_sample_bytes: u64,
}

/// A catalogue and what else the listing says.
#[derive(Debug)]
pub(crate) struct TarListing {
    pub(crate) catalog: TarCatalog,
    /// Class names by label, where somebody wrote them down.
    pub(crate) classes: Vec<String>,
    pub(crate) left_out: u64,
}

impl TarCatalog {
    pub(crate) fn path(&self, row: usize) -> &[u8] {
        self.paths.path(row)
    }

    pub(crate) fn shard(&self, row: usize) -> usize {
        self.shard_of[row] as usize
    }

    pub(crate) fn key(&self, row: usize) -> SampleKey {
        let modified = self.shards[self.shard(row)].modified;
        SampleKey::of_file(self.path(row), self.payload_bytes(row), modified.into())
    }

    pub(crate) fn payload_bytes(&self, row: usize) -> u64 {
        self.records(row)
            .iter()
            .map(|record| u64::from(record.nbytes))
            .sum()
    }

    pub(crate) fn parts(&self, row: usize) -> Arc<[Part]> {
        self.parts_of(self.records(row))
    }

    /// What is known to be wrong with a row since the listing.
    pub(crate) fn problem(&self, row: usize) -> Option<Error> {
        let number = u32::try_from(row).unwrap_or(u32::MAX);
        if let Some(problem) = self.problems.get(&number) {
            return Some(problem.error(self.path(row)));
        }
        let records = self.records(row);
        let has = |what: fn(&names::PartName) -> bool| {
            records
                .iter()
                .any(|record| what(self.names.name(record.name())))
        };
        let missing = if self.has_images && !has(|name| name.is_image) {
            "no image, which other samples have"
        } else if self.has_labels && !has(|name| name.is_label) {
            "no label (part cls), which other samples have"
        } else {
            return None;
        };
        let seen: Vec<_> = records
            .iter()
            .take(16)
            .map(|record| &*self.names.name(record.name()).text)
            .collect();
        let message = format!("{missing}; its parts are: {}", seen.join(", "));
        Some(Error::new(ErrorKind::MissingPart, message).at(self.path(row)))
    }

    /// Reads the wanted parts of a row (all where `wanted` is `None`) into one buffer.
    ///
    /// # Errors
    /// What is wrong with the row, `Vanished` or `Changed` for its shard, or what the operating system says.
    pub(crate) fn read(
        &self,
        row: usize,
        wanted: Option<&[String]>,
        open: &OpenFiles,
    ) -> Result<(Arc<[Part]>, Bytes)> {
        if let Some(error) = self.problem(row) {
            return Err(error);
        }
        let shard = &self.shards[self.shard(row)];
        let file = open.file(self.shard(row), &shard.path, shard.nbytes, shard.modified)?;
        let is_wanted = |record: &PartRecord| {
            let name = &self.names.name(record.name()).text;
            wanted.is_none_or(|wanted| {
                wanted
                    .iter()
                    .any(|wanted| wanted.eq_ignore_ascii_case(name))
            })
        };
        let records: Vec<PartRecord> = self
            .records(row)
            .iter()
            .copied()
            .filter(is_wanted)
            .collect();
        let nbytes = records.iter().map(|record| u64::from(record.nbytes)).sum();
        let mut payload = read::buffer(nbytes, self.max_sample_bytes)?;
        let failed = |error| failure::reading(&shard.path, error);
        for record in &records {
            let nbytes = record.nbytes as usize;
            if record.is_sparse() {
                let start = payload.len();
                payload.resize(start + nbytes, 0);
                for (offset, at, nbytes) in self.runs(*record) {
                    let run = start + at as usize..start + (at + nbytes) as usize;
                    read::exact(&file, offset, &mut payload[run]).map_err(failed)?;
                }
            } else {
                read::append(&file, record.offset(), nbytes, &mut payload).map_err(failed)?;
            }
        }
        // Afterwards: what was read before somebody wrote is not what is there now.
        read::check_unchanged(&file, &shard.path, shard.nbytes, shard.modified)?;
        Ok((self.parts_of(&records), payload.into()))
    }

    /// Where the first byte of a row lies: rows of one shard read in this order go forward.
    pub(crate) fn place(&self, row: usize) -> (usize, u64) {
        let first = self.records(row).first().map_or(0, |record| {
            if record.is_sparse() {
                0
            } else {
                record.offset()
            }
        });
        (self.shard(row), first)
    }

    /// All bytes of a row, as pieces of its archive; only for rows without a problem, whose sizes are within limits.
    pub(crate) fn extents(&self, row: usize, into: &mut Vec<Extent>) {
        let number = u32::try_from(row).unwrap_or(u32::MAX);
        let mut start = 0;
        for record in self.records(row) {
            let pieces = if record.is_sparse() {
                self.runs(*record).collect()
            } else {
                vec![(record.offset(), 0, record.nbytes)]
            };
            let pieces = pieces.into_iter().filter(|(_, _, nbytes)| *nbytes > 0);
            into.extend(pieces.map(|(offset, at, nbytes)| Extent {
                offset,
                row: number,
                at: start + at,
                nbytes,
            }));
            start += record.nbytes;
        }
    }

    /// Offset in the archive, offset in the part and length of each run of a sparse file.
    fn runs(&self, record: PartRecord) -> impl Iterator<Item = (u64, u32, u32)> {
        let file = &self.sparse[record.block as usize];
        let small = |number: u64| u32::try_from(number).expect("a run lies within its part");
        file.segments
            .iter()
            .scan(file.offset, move |offset, segment| {
                let at = *offset;
                *offset += segment.nbytes;
                Some((at, small(segment.at), small(segment.nbytes)))
            })
    }

    fn records(&self, row: usize) -> &[PartRecord] {
        &self.parts[self.first_part[row] as usize..self.first_part[row + 1] as usize]
    }

    fn parts_of(&self, records: &[PartRecord]) -> Arc<[Part]> {
        Part::sequence(
            records
                .iter()
                .map(|record| (&*self.names.name(record.name()).text, record.nbytes.into())),
        )
    }
}

impl Catalog for TarCatalog {
    fn len(&self) -> u64 {
        self.labels.len() as u64
    }

    fn nbytes(&self, row: u64) -> u64 {
        self.payload_bytes(index(row))
    }

    fn label(&self, row: u64) -> i64 {
        self.labels[index(row)]
    }

    fn key(&self, row: u64) -> SampleKey {
        self.key(index(row))
    }

    fn row(&self, row: u64) -> Row {
        let number = index(row);
        Row {
            path: self.path(number).into(),
            key: self.key(number),
            nbytes: self.payload_bytes(number),
            checksum: None,
            label: self.labels[number],
            parts: self.parts(number),
            fields: Fields::new(),
        }
    }

    fn find(&self, path: &[u8]) -> Option<u64> {
        self.paths.find(path).map(|row| row as u64)
    }

    fn fields(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn snapshot(&self) -> Option<Bytes> {
        None
    }
}

/// How a shard is called in messages.
fn shown(shard: &Shard) -> String {
    format!("shard {}", display_bytes(&shard.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FolderConfig;

    #[test]
    fn a_row_of_two_parts_takes_at_most_64_bytes_and_its_path() {
        let mut bytes = Vec::new();
        for number in 0..500 {
            for part in ["cls", "jpg"] {
                bytes.extend(crate::tar::header::tests::header(
                    &format!("{number:06}.{part}"),
                    b"00000000001\0",
                    b'0',
                ));
                bytes.extend([b'1'; 512]);
            }
        }
        let file = tempfile::NamedTempFile::with_suffix(".tar").unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let shard = Shard {
            name: b"s".to_vec(),
            path: file.path().to_owned(),
            nbytes: bytes.len() as u64,
            modified: 0,
            is_gzip: false,
        };
        let catalog = list(vec![shard], FolderConfig::default().list_options())
            .unwrap()
            .catalog;
        assert_eq!(catalog.len(), 500);
        let small = catalog.shard_of.capacity() * 4 + catalog.first_part.capacity() * 4;
        let numbers = small
            + catalog.labels.capacity() * 8
            + catalog.parts.capacity() * size_of::<PartRecord>();
        let total = numbers + catalog.paths.capacity_bytes();
        assert!(total <= 500 * (64 + "s/000000".len()), "{total}");
    }
}
