//! Puts the shards' lists together: rows sorted by path, members of one sample side by side.

use std::{
    cmp::Ordering,
    fs::File,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering as Memory},
    },
    thread,
};

use loader_core::{Error, ErrorKind, NO_LABEL, Result};

use super::{
    PartRecord, SPARSE, Shard, TarCatalog, TarListing,
    names::Names,
    scan::{self, ShardRows},
    shown,
};
use crate::{
    config::ListOptions,
    failure::{self, Problem},
    paths::PathTable,
    tar::is_gzip,
};

/// Lists all shards on several threads.
///
/// # Errors
/// [`ErrorKind::Conflict`] where two shards have one name; [`ErrorKind::Unsupported`] for a gzip shard in place;
/// [`ErrorKind::Io`] where no thread can be started; what the operating system says.
pub(crate) fn list(mut shards: Vec<Shard>, options: ListOptions) -> Result<TarListing> {
    shards.sort_by(|left, right| left.name.cmp(&right.name));
    if let Some(pair) = shards.windows(2).find(|pair| pair[0].name == pair[1].name) {
        let (first, second) = (failure::shown(&pair[0].path), failure::shown(&pair[1].path));
        let message = format!(
            "two shards have one name, so that their samples would have one path: {first} and {second}"
        );
        return Err(Error::new(ErrorKind::Conflict, message).hint("rename or remove one of them"));
    }
    let rows = scan_all(&mut shards, options)?;
    merge(shards, rows, options)
}

fn scan_all(shards: &mut [Shard], options: ListOptions) -> Result<Vec<ShardRows>> {
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let jobs: Vec<_> = shards
        .iter_mut()
        .map(|shard| Mutex::new((shard, None)))
        .collect();
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Memory::Relaxed)) {
            let mut job = job.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = scan_one(job.0, options);
            has_failed.fetch_or(rows.is_err(), Memory::Relaxed);
            job.1 = Some(rows);
            if has_failed.load(Memory::Relaxed) {
                break;
            }
        }
    };
    thread::scope(|scope| {
        for number in 0..options.threads.min(jobs.len()) {
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(_) => {}
                Err(error) if number == 0 => return Err(failure::no_thread(error)),
                // Those that the system gave do all of it.
                Err(_) => break,
            }
        }
        Ok(())
    })?;
    // Where one failed, those after it may never have begun; the failure is among them.
    jobs.into_iter()
        .filter_map(|job| job.into_inner().unwrap_or_else(PoisonError::into_inner).1)
        .collect()
}

fn scan_one(shard: &mut Shard, options: ListOptions) -> Result<ShardRows> {
    let failed = |error| failure::listing("cannot read", &shard.path, error);
    let file = File::open(&shard.path).map_err(failed)?;
    shard.is_gzip = is_gzip(&file).map_err(failed)?;
    if shard.is_gzip && options.in_place {
        let message = format!(
            "{} is compressed with gzip and cannot be read in place",
            failure::shown(&shard.path)
        );
        return Err(Error::new(ErrorKind::Unsupported, message)
            .hint("ingest it: farhaul ingest SOURCE --to embedded:PATH"));
    }
    scan::scan(shard, &file, options)
}

/// Number of a shard and of a fragment in it; [`WHOLE`] stands for the shard itself.
type Reference = (u32, u32);

const WHOLE: u32 = u32::MAX;

fn merge(shards: Vec<Shard>, rows: Vec<ShardRows>, options: ListOptions) -> Result<TarListing> {
    let mut order: Vec<Reference> = Vec::new();
    for (shard, rows) in (0_u32..).zip(&rows) {
        if rows.archive.is_some() {
            order.push((shard, WHOLE));
        }
        order.extend(
            (0_u32..)
                .zip(0..rows.keys.len())
                .map(|(fragment, _)| (shard, fragment)),
        );
    }
    let parts: usize = rows.iter().map(|rows| rows.parts.len()).sum();
    if u32::try_from(order.len().max(parts)).is_err() {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("{} samples with {parts} parts in one set", order.len()),
        ));
    }
    // Shards come sorted and mostly hold sorted keys; the stable sort finds these runs, and keeps the members' order.
    order.sort_by(|left, right| compare(&shards, &rows, *left, *right));

    let bytes = order
        .iter()
        .map(|(shard, _)| shards[*shard as usize].name.len() + 1)
        .sum::<usize>()
        + rows.iter().map(|rows| rows.keys.bytes()).sum::<usize>();
    let mut names = Names::default();
    let renamed: Vec<Vec<u32>> = rows
        .iter()
        .map(|rows| {
            rows.names
                .iter()
                .map(|name| names.number(&name.text))
                .collect()
        })
        .collect();
    names.seal();
    let mut sparse_starts = Vec::new();
    let mut sparse = Vec::new();
    let mut left_out = 0;
    let mut problems = Vec::new();
    let mut rows: Vec<ShardRows> = rows;
    for rows in &mut rows {
        sparse_starts.push(u32::try_from(sparse.len()).unwrap_or(u32::MAX));
        sparse.append(&mut rows.sparse);
        left_out += rows.left_out;
        problems.push(std::mem::take(&mut rows.problems));
    }
    let mut first_part = Vec::with_capacity(order.len() + 1);
    first_part.push(0);
    let catalog = TarCatalog {
        shards,
        paths: PathTable::with_capacity(order.len(), bytes),
        labels: Vec::with_capacity(order.len()),
        shard_of: Vec::with_capacity(order.len()),
        first_part,
        parts: Vec::with_capacity(parts),
        names,
        sparse,
        problems: std::collections::BTreeMap::new(),
        has_labels: false,
        has_images: false,
        max_sample_bytes: options.max_sample_bytes.into(),
    };
    let mut merger = Merger {
        catalog,
        rows,
        problems,
        renamed,
        sparse_starts,
        folded: Vec::new(),
    };
    let mut start = 0;
    while start < order.len() {
        let is_same = |reference: &&Reference| {
            compare(
                &merger.catalog.shards,
                &merger.rows,
                order[start],
                **reference,
            ) == Ordering::Equal
        };
        let end = start + order[start..].iter().take_while(is_same).count();
        merger.row(&order[start..end]);
        start = end;
    }
    let mut catalog = merger.catalog;
    let used = |what: fn(&super::names::PartName) -> bool| {
        let wanted: Vec<bool> = catalog.names.iter().map(what).collect();
        wanted.contains(&true) && catalog.parts.iter().any(|record| wanted[record.name()])
    };
    (catalog.has_labels, catalog.has_images) =
        (used(|name| name.is_label), used(|name| name.is_image));
    Ok(TarListing {
        catalog,
        classes: Vec::new(),
        left_out,
    })
}

fn compare(shards: &[Shard], rows: &[ShardRows], left: Reference, right: Reference) -> Ordering {
    fn pieces<'a>(
        shards: &'a [Shard],
        rows: &'a [ShardRows],
        (shard, fragment): Reference,
    ) -> [&'a [u8]; 3] {
        let name = &shards[shard as usize].name[..];
        if fragment == WHOLE {
            [name, b"", b""]
        } else {
            [
                name,
                b"/",
                rows[shard as usize].keys.path(fragment as usize),
            ]
        }
    }
    let (first, second) = (pieces(shards, rows, left), pieces(shards, rows, right));
    if left.0 == right.0 && left.1 != WHOLE && right.1 != WHOLE {
        return first[2].cmp(second[2]);
    }
    first
        .iter()
        .copied()
        .flatten()
        .cmp(second.iter().copied().flatten())
}

struct Merger {
    catalog: TarCatalog,
    rows: Vec<ShardRows>,
    problems: Vec<Vec<(u32, Problem)>>,
    renamed: Vec<Vec<u32>>,
    sparse_starts: Vec<u32>,
    folded: Vec<u32>,
}

impl Merger {
    fn row(&mut self, references: &[Reference]) {
        let (shard, fragment) = references[0];
        let mut problem = None;
        let mut label = None;
        if fragment == WHOLE {
            self.catalog
                .paths
                .push(&[&self.catalog.shards[shard as usize].name]);
            problem = self.rows[shard as usize].archive.take();
        } else {
            let rows = &self.rows[shard as usize];
            self.catalog.paths.push(&[
                &self.catalog.shards[shard as usize].name,
                b"/",
                rows.keys.path(fragment as usize),
            ]);
        }
        let first_part = self.catalog.parts.len();
        for &(other, fragment) in references {
            if other != shard {
                let (first, second) = (
                    &self.catalog.shards[shard as usize].path,
                    &self.catalog.shards[other as usize].path,
                );
                let message = format!(
                    "two shards have a sample of this path: {} and {}",
                    failure::shown(first),
                    failure::shown(second)
                );
                problem.get_or_insert_with(|| Problem::new(ErrorKind::Conflict, message));
                continue;
            }
            if fragment == WHOLE {
                continue;
            }
            problem = problem.or_else(|| self.take_problem(other, fragment));
            let has_label = self.fragment_parts(other, fragment);
            if has_label && label.is_none() {
                label = Some(self.rows[other as usize].labels[fragment as usize]);
            }
        }
        let records = &self.catalog.parts[first_part..];
        problem =
            problem.or_else(|| check(records, &self.catalog, &mut self.folded, shard as usize));
        if let Some(problem) = problem {
            let row = u32::try_from(self.catalog.labels.len()).unwrap_or(u32::MAX);
            self.catalog.problems.insert(row, problem);
        }
        self.catalog.labels.push(label.unwrap_or(NO_LABEL));
        self.catalog.shard_of.push(shard);
        self.catalog
            .first_part
            .push(u32::try_from(self.catalog.parts.len()).unwrap_or(u32::MAX));
    }

    fn take_problem(&mut self, shard: u32, fragment: u32) -> Option<Problem> {
        let problems = &self.problems[shard as usize];
        let first = problems.partition_point(|(number, _)| *number < fragment);
        problems
            .get(first)
            .filter(|(number, _)| *number == fragment)
            .map(|(_, problem)| problem.clone())
    }

    /// Copies a fragment's parts; true where one of them is a label.
    fn fragment_parts(&mut self, shard: u32, fragment: u32) -> bool {
        let number = shard as usize;
        let rows = &self.rows[number];
        let start = rows.first_part[fragment as usize] as usize;
        let end = rows
            .first_part
            .get(fragment as usize + 1)
            .map_or(rows.parts.len(), |end| *end as usize);
        let mut has_label = false;
        for record in &rows.parts[start..end] {
            let name = self.renamed[number][record.name()];
            has_label |= self.catalog.names.name(name as usize).is_label;
            let record = if record.is_sparse() {
                PartRecord {
                    name: name | SPARSE,
                    block: record.block + self.sparse_starts[number],
                    nbytes: record.nbytes,
                }
            } else {
                PartRecord { name, ..*record }
            };
            self.catalog.parts.push(record);
        }
        has_label
    }
}

/// What is wrong with the parts of a row taken together.
fn check(
    records: &[PartRecord],
    catalog: &TarCatalog,
    folded: &mut Vec<u32>,
    shard: usize,
) -> Option<Problem> {
    folded.clear();
    folded.extend(
        records
            .iter()
            .map(|record| catalog.names.name(record.name()).folded),
    );
    folded.sort_unstable();
    if let Some(twice) = folded.windows(2).find(|pair| pair[0] == pair[1]) {
        let name = &catalog.names.name(twice[0] as usize).text;
        let message = format!(
            "part {name} comes twice in {}",
            shown(&catalog.shards[shard])
        );
        return Some(Problem::new(ErrorKind::Conflict, message));
    }
    let nbytes: u64 = records.iter().map(|record| u64::from(record.nbytes)).sum();
    if nbytes > catalog.max_sample_bytes {
        let message = format!(
            "the sample has {nbytes} bytes, the limit is {}",
            catalog.max_sample_bytes
        );
        return Some(Problem::new(ErrorKind::TooLarge, message));
    }
    (nbytes == 0).then(|| Problem::new(ErrorKind::Empty, "the sample has no bytes"))
}
