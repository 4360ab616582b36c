//! Lists one shard: its members, grouped into samples as they come.

use std::fs::File;

use loader_core::{ErrorKind, NO_LABEL, Result, identity::display_bytes};

use super::{PartRecord, SPARSE, Shard, SparseFile, links, names::Names, shown};
use crate::{
    config::ListOptions,
    failure::{self, Problem},
    names::KeySplit,
    paths::PathTable,
    tar::{Archive, Content, Cut, GzipArchive, Members, PlainArchive, header::BLOCK},
};

/// Members that stood side by side under one key: a sample, or a piece of one that goes on elsewhere in the shard.
#[derive(Debug, Default)]
pub(super) struct ShardRows {
    pub(super) keys: PathTable,
    pub(super) first_part: Vec<u32>,
    pub(super) labels: Vec<i64>,
    pub(super) parts: Vec<PartRecord>,
    pub(super) names: Names,
    pub(super) sparse: Vec<SparseFile>,
    /// By fragment, in order; the first one of a fragment counts.
    pub(super) problems: Vec<(u32, Problem)>,
    /// What is wrong with the archive itself, at a place that belongs to no sample.
    pub(super) archive: Option<Problem>,
    pub(super) left_out: u64,
}

/// The bytes that a member stands for.
#[derive(Debug, Clone)]
pub(super) struct Bytes {
    pub(super) content: Place,
    pub(super) nbytes: u64,
    pub(super) head: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(super) enum Place {
    Plain(u64),
    Sparse(SparseFile),
}

/// Opens an archive from its start.
///
/// # Errors
/// What the operating system says.
pub(super) fn with_archive<T>(
    shard: &Shard,
    file: &File,
    work: impl FnOnce(&mut dyn Archive) -> T,
) -> Result<T> {
    let failed = |error| failure::listing("cannot read", &shard.path, error);
    if shard.is_gzip {
        let file = File::open(&shard.path).map_err(failed)?;
        return Ok(work(&mut GzipArchive::new(file)));
    }
    Ok(work(&mut PlainArchive::new(file, shard.nbytes)))
}

/// Lists a shard.
///
/// # Errors
/// What the operating system says; damage of the archive is a problem of one row instead.
pub(super) fn scan(shard: &Shard, file: &File, options: ListOptions) -> Result<ShardRows> {
    let mut scan = Scan {
        rows: ShardRows::default(),
        links: Vec::new(),
        shard,
        options,
        label_is_exact: false,
    };
    with_archive(shard, file, |archive| scan.run(archive))??;
    let Scan {
        mut rows, links, ..
    } = scan;
    if !links.is_empty() {
        let found = with_archive(shard, file, |archive| links::resolve(&links, archive))?;
        let mut scan = Scan {
            rows,
            links: Vec::new(),
            shard,
            options,
            label_is_exact: false,
        };
        scan.place_links(links, found);
        rows = scan.rows;
        rows.problems.sort_by_key(|(fragment, _)| *fragment);
    }
    Ok(rows)
}

struct Scan<'a> {
    rows: ShardRows,
    links: Vec<links::Link>,
    shard: &'a Shard,
    options: ListOptions,
    /// True where the last fragment's label came from a part that is called `cls` and nothing more.
    label_is_exact: bool,
}

impl Scan<'_> {
    fn run(&mut self, archive: &mut dyn Archive) -> Result<()> {
        for member in Members::new(archive) {
            let member = match member {
                Ok(member) => member,
                Err(cut) if cut.kind == ErrorKind::Io => {
                    let error = std::io::Error::other(cut.message);
                    return Err(failure::listing("cannot read", &self.shard.path, error));
                }
                Err(cut) => {
                    self.cut(&cut);
                    break;
                }
            };
            let (name, nbytes, head) = (member.name, member.nbytes, member.head);
            let bytes = match member.content {
                Content::Nothing => continue,
                Content::Plain(offset) => Bytes {
                    content: Place::Plain(offset),
                    nbytes,
                    head,
                },
                Content::Sparse(offset, segments) => Bytes {
                    content: Place::Sparse(SparseFile { offset, segments }),
                    nbytes,
                    head,
                },
                Content::Malformed(message) => {
                    self.malformed(&name, &message);
                    continue;
                }
                Content::HardLink(target) => {
                    self.link(&name, &target, false);
                    continue;
                }
                Content::SymbolicLink(target) => {
                    self.link(&name, &target, true);
                    continue;
                }
            };
            if let Some(slot) = self.slot(&name) {
                self.fill(slot, Ok(bytes));
            }
        }
        Ok(())
    }

    /// A member whose bytes cannot be known; where it belongs to no sample, the shard itself is at fault.
    fn malformed(&mut self, name: &[u8], message: &str) {
        let message = format!("{} is damaged: {message}", shown(self.shard));
        if let Some((fragment, _)) = self.slot(name) {
            self.problem(fragment, ErrorKind::Malformed, message);
        } else {
            self.rows
                .archive
                .get_or_insert_with(|| Problem::new(ErrorKind::Malformed, message));
        }
    }

    fn link(&mut self, name: &[u8], target: &[u8], is_symbolic: bool) {
        let slot = self.slot(name);
        self.links
            .push(links::Link::new(name, target, is_symbolic, slot));
    }

    /// An empty part for a member: its number, after its fragment; `None`, counted, where the member belongs to no sample.
    fn slot(&mut self, member: &[u8]) -> Option<(u32, u32)> {
        let Some((key, part)) = self.options.split.split(member) else {
            self.rows.left_out += 1;
            return None;
        };
        let fragment = self.fragment(key);
        let name = if let Ok(name) = str::from_utf8(part) {
            self.rows.names.number(name)
        } else {
            let message = format!("the part name {} is no UTF-8", display_bytes(part));
            self.problem(fragment, ErrorKind::Malformed, message);
            self.rows.names.number(&display_bytes(part))
        };
        let number = small(self.rows.parts.len());
        self.rows.parts.push(PartRecord {
            name,
            block: 0,
            nbytes: 0,
        });
        Some((fragment, number))
    }

    fn fragment(&mut self, key: &[u8]) -> u32 {
        let last = self
            .rows
            .keys
            .len()
            .checked_sub(1)
            .filter(|last| self.rows.keys.path(*last) == key);
        small(last.unwrap_or_else(|| {
            self.rows.keys.push(&[key]);
            self.rows.first_part.push(small(self.rows.parts.len()));
            self.rows.labels.push(NO_LABEL);
            self.label_is_exact = false;
            self.rows.keys.len() - 1
        }))
    }

    fn fill(&mut self, (fragment, part): (u32, u32), bytes: Result<Bytes, Problem>) {
        let placed = bytes.and_then(|bytes| {
            let name = self.rows.parts[part as usize].name();
            let (is_image, is_label, is_exact) = {
                let name = self.rows.names.name(name);
                (
                    name.is_image,
                    name.is_label,
                    name.text.eq_ignore_ascii_case("cls"),
                )
            };
            if is_label && (is_exact || (!self.label_is_exact && !self.has_label(fragment, part))) {
                self.rows.labels[fragment as usize] = label(&bytes)?;
                self.label_is_exact = is_exact;
            }
            if is_image && bytes.nbytes == 0 {
                return Err(Problem::new(ErrorKind::Empty, "the image has no bytes"));
            }
            self.place(part, bytes)
        });
        if let Err(problem) = placed {
            self.rows.problems.push((fragment, problem));
        }
    }

    /// True where the fragment has a label among the parts before this one.
    fn has_label(&self, fragment: u32, part: u32) -> bool {
        let before = self.rows.first_part[fragment as usize] as usize..part as usize;
        self.rows.parts[before]
            .iter()
            .any(|record| self.rows.names.name(record.name()).is_label)
    }

    fn place(&mut self, part: u32, bytes: Bytes) -> Result<(), Problem> {
        let limit = self.options.max_sample_bytes;
        let too_large = || {
            Problem::new(
                ErrorKind::TooLarge,
                format!("a part has {} bytes, the limit is {limit}", bytes.nbytes),
            )
        };
        let nbytes = u32::try_from(bytes.nbytes)
            .ok()
            .filter(|nbytes| *nbytes <= limit)
            .ok_or_else(too_large)?;
        let record = &mut self.rows.parts[part as usize];
        match bytes.content {
            Place::Plain(offset) => {
                let far = || {
                    Problem::new(
                        ErrorKind::TooLarge,
                        "it lies beyond the first 2 TiB of its shard",
                    )
                };
                record.block = u32::try_from(offset / BLOCK as u64).map_err(|_| far())?;
            }
            Place::Sparse(_) if self.options.in_place => {
                let message = "a sparse member cannot be read in place; ingest the shard into a store with `farhaul ingest`";
                return Err(Problem::new(ErrorKind::Unsupported, message));
            }
            Place::Sparse(file) => {
                record.block = small(self.rows.sparse.len());
                record.name |= SPARSE;
                self.rows.sparse.push(file);
            }
        }
        record.nbytes = nbytes;
        Ok(())
    }

    fn place_links(&mut self, links: Vec<links::Link>, found: Vec<Option<Bytes>>) {
        for (link, bytes) in links.into_iter().zip(found) {
            let Some(slot) = link.slot else { continue };
            let lost = || {
                let message = format!(
                    "a link leads to {}, which {} lacks",
                    display_bytes(&link.target),
                    shown(self.shard)
                );
                Problem::new(ErrorKind::Malformed, message)
            };
            let bytes = bytes.ok_or_else(lost);
            self.fill(slot, bytes);
        }
    }

    fn cut(&mut self, cut: &Cut) {
        let key = cut
            .member
            .as_deref()
            .and_then(|member| split_key(self.options.split, member));
        let message = format!("{} is damaged: {}", shown(self.shard), cut.message);
        if let Some(key) = key {
            let fragment = self.fragment(&key);
            self.problem(fragment, cut.kind, message);
        } else {
            self.rows
                .archive
                .get_or_insert_with(|| Problem::new(cut.kind, message));
        }
    }

    fn problem(&mut self, fragment: u32, kind: ErrorKind, message: String) {
        self.rows
            .problems
            .push((fragment, Problem::new(kind, message)));
    }
}

fn split_key(split: KeySplit, member: &[u8]) -> Option<Vec<u8>> {
    split.split(member).map(|(key, _)| key.to_vec())
}

/// The number that a label's text is.
fn label(bytes: &Bytes) -> Result<i64, Problem> {
    if bytes.nbytes == 0 {
        return Err(Problem::new(
            ErrorKind::Empty,
            "the label (part cls) has no bytes",
        ));
    }
    let is_whole = bytes.head.len() as u64 == bytes.nbytes;
    let text = is_whole
        .then(|| str::from_utf8(&bytes.head).ok())
        .flatten()
        .map(str::trim);
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let shown = display_bytes(&bytes.head[..bytes.head.len().min(24)]);
        Problem::new(
            ErrorKind::Malformed,
            format!("the label (part cls) is no whole number: {shown:?}"),
        )
    })
}

/// Numbers of parts and fragments: a member takes 512 bytes at least, so that 2³² of them fill 2 TiB, beyond which nothing is read.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
