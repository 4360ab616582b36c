//! What an ingest reads: folders, tars (gzip included) and MDS sets, one sample after another in bounded memory.

use std::{path::Path, sync::Arc};

use loader_core::{Error, NewSample, Result, Sample, Source};

use crate::{
    config::{SourceConfig, SourceFormat},
    layout::{self, Listing},
    mds::MdsSet,
    open_files::OpenFiles,
    rows::Rows,
    store::Uri,
    tars::TarCatalog,
};

mod ahead;
mod fields;
mod gzip;
mod queue;

pub(crate) use self::{ahead::Jobs, fields::insert_json};
use self::{ahead::ReadAhead, gzip::GzipShards};

/// Lists what lies at `path` and makes it ready to be read once, in path order where that is cheap.
///
/// Labels, missing parts and damaged samples are told apart as by [`crate::FolderStore`]; what that refuses (gzip shards,
/// sparse members, MDS) is read here. Top-level scalars and short lists of a sample's `.json` parts become its fields.
///
/// # Errors
/// As [`crate::FolderStore::open`]. For MDS also what is wrong with the index or with a shard as a whole: nothing is
/// delivered from a set that lacks a shard.
pub fn open(path: &Path, format: SourceFormat, config: SourceConfig) -> Result<Box<dyn Source>> {
    let opened = open_quietly(path, format, &config);
    opened.map_err(|error| error.during("ingest").in_store(Uri(path)))
}

fn open_quietly(
    path: &Path,
    format: SourceFormat,
    config: &SourceConfig,
) -> Result<Box<dyn Source>> {
    let (told, jobs, compressed): (_, Arc<dyn Jobs>, _) =
        match layout::list(path, format, config.list_options())? {
            Listing::Files(listing) => {
                let jobs = RowJobs {
                    rows: Rows::Files(Arc::new(listing.catalog)),
                    order: None,
                };
                let told = Told {
                    classes: listing.classes,
                    left_out: listing.left_out,
                    warnings: listing.warnings,
                };
                (told, Arc::new(jobs), None)
            }
            Listing::Tars(listing) => {
                let catalog = Arc::new(listing.catalog);
                let (order, compressed) = by_compression(&catalog);
                let open = Arc::new(OpenFiles::new(config.read_threads.max(1) * 4));
                let jobs = RowJobs {
                    rows: Rows::Tars(Arc::clone(&catalog), open),
                    order,
                };
                let told = Told {
                    classes: listing.classes,
                    left_out: listing.left_out,
                    warnings: Vec::new(),
                };
                let compressed = compressed.map(|rows| GzipShards::new(catalog, rows, config));
                (told, Arc::new(jobs), compressed)
            }
            Listing::Mds => {
                let set = MdsSet::open(path, config.max_sample_bytes)?;
                (Told::default(), Arc::new(set), None)
            }
        };
    let expected = jobs.len() as u64 + compressed.as_ref().map_or(0, GzipShards::expected);
    Ok(Box::new(LocalSource {
        name: Uri(path).to_string(),
        told,
        expected,
        ahead: ReadAhead::new(jobs, config.read_threads, config.read_ahead_bytes),
        compressed,
    }))
}

type RowNumbers = Vec<u32>;

/// Rows that can be read anywhere (`None` for all of them), and by shard those that come out of a gzip stream.
fn by_compression(catalog: &TarCatalog) -> (Option<RowNumbers>, Option<Vec<RowNumbers>>) {
    if !catalog.shards.iter().any(|shard| shard.is_gzip) {
        return (None, None);
    }
    let mut plain = Vec::new();
    let mut compressed = vec![Vec::new(); catalog.shards.len()];
    let count = u32::try_from(loader_core::Catalog::len(catalog)).unwrap_or(u32::MAX);
    for row in 0..count {
        let shard = catalog.shard(row as usize);
        if catalog.shards[shard].is_gzip {
            compressed[shard].push(row);
        } else {
            plain.push(row);
        }
    }
    (Some(plain), Some(compressed))
}

/// Rows in path order, or some of them.
#[derive(Debug)]
struct RowJobs {
    rows: Rows,
    order: Option<RowNumbers>,
}

impl RowJobs {
    fn row(&self, job: usize) -> usize {
        self.order.as_ref().map_or(job, |order| order[job] as usize)
    }
}

impl Jobs for RowJobs {
    fn len(&self) -> usize {
        self.order
            .as_ref()
            .map_or_else(|| crate::files::index(self.rows.len()), Vec::len)
    }

    fn nbytes(&self, job: usize) -> u64 {
        self.rows.nbytes(self.row(job))
    }

    fn read(&self, job: usize) -> Result<NewSample> {
        self.rows.read(self.row(job), None).map(new_sample)
    }
}

/// A sample on its way into a store, with the fields that its parts tell.
fn new_sample(sample: Sample) -> NewSample {
    let fields = fields::of_parts(&sample.parts, &sample.payload);
    let Sample {
        path,
        label,
        parts,
        payload,
        ..
    } = sample;
    NewSample {
        path,
        label,
        parts,
        payload,
        fields,
    }
}

/// What the listing says besides its rows.
#[derive(Debug, Default)]
struct Told {
    classes: Vec<String>,
    left_out: u64,
    warnings: Vec<String>,
}

/// Any source of this crate.
#[derive(Debug)]
struct LocalSource {
    /// Its URI.
    name: String,
    told: Told,
    expected: u64,
    ahead: ReadAhead,
    compressed: Option<GzipShards>,
}

impl Source for LocalSource {
    fn classes(&self) -> Vec<String> {
        self.told.classes.clone()
    }

    fn expected_samples(&self) -> Option<u64> {
        Some(self.expected)
    }

    fn left_out(&self) -> u64 {
        self.told.left_out
    }

    fn warnings(&self) -> Vec<String> {
        self.told.warnings.clone()
    }

    fn next_sample(&mut self) -> Option<Result<NewSample>> {
        let next = self
            .ahead
            .next_sample()
            .or_else(|| self.compressed.as_mut()?.next_sample());
        let named = |error: Error| error.during("ingest").in_store(&self.name);
        next.map(|sample| sample.map_err(named))
    }
}
