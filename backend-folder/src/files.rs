//! The rows of an image folder, in flat buffers: 28 bytes a row and its path.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use loader_core::{
    Catalog, Error, ErrorKind, Fields, NO_LABEL, Part, Result, Row, SampleKey,
    identity::display_bytes,
};
use unicode_normalization::UnicodeNormalization;

use crate::{
    failure::{self, Problem},
    names,
    paths::PathTable,
    read,
    walk::{BrokenLink, FileBatch, Found},
};

/// Image files below one folder, sorted by path.
#[derive(Debug)]
pub(crate) struct FileCatalog {
    root: PathBuf,
    paths: PathTable,
    sizes: Vec<u64>,
    modified: Vec<i64>,
    classes: Vec<i32>,
    problems: BTreeMap<u32, Problem>,
    max_sample_bytes: u64,
}

/// A catalogue and what else the listing says.
#[derive(Debug)]
pub(crate) struct FileListing {
    pub(crate) catalog: FileCatalog,
    pub(crate) classes: Vec<String>,
    pub(crate) left_out: u64,
    pub(crate) warnings: Vec<String>,
}

impl FileListing {
    /// The pictures that a walk found: by class folder where there are any in folders, else the flat ones without a label.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`] above 2³² rows.
    pub(crate) fn of_folder(root: &Path, found: Found, max_sample_bytes: u32) -> Result<Self> {
        let Found {
            images,
            broken,
            mut top_folders,
            things,
            loops,
            ..
        } = found;
        top_folders.sort_unstable();
        let (nested, flat) = count(&images, &broken);
        let by_class = nested > 0 || flat == 0;
        let folders = if by_class { top_folders } else { Vec::new() };

        // A batch is one folder's files in order, so that the stable sort finds long runs.
        let mut order = Vec::new();
        for (number, batch) in images.iter().enumerate() {
            let rows = (0..batch.paths.len())
                .filter(|row| !by_class || batch.paths.path(*row).contains(&b'/'));
            order.extend(rows.map(|row| Source::File(number, row)));
        }
        let broken: Vec<_> = broken
            .iter()
            .filter(|link| !by_class || link.path.contains(&b'/'))
            .collect();
        order.extend((0..broken.len()).map(Source::Broken));
        let path_of = |source: &Source| match *source {
            Source::File(batch, row) => images[batch].paths.path(row),
            Source::Broken(number) => &broken[number].path[..],
        };
        order.sort_by(|left, right| path_of(left).cmp(path_of(right)));
        if u32::try_from(order.len()).is_err() {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("{} images in one folder", order.len()),
            ));
        }

        let bytes = order.iter().map(|source| path_of(source).len()).sum();
        let mut catalog = FileCatalog::empty(root, order.len(), bytes, max_sample_bytes);
        for source in &order {
            let path = path_of(source);
            let class = class_of(path, &folders);
            match *source {
                Source::File(batch, row) => catalog.push(
                    path,
                    images[batch].sizes[row],
                    images[batch].modified[row],
                    class,
                ),
                Source::Broken(number) => {
                    let (link, target) =
                        (display_bytes(path), display_bytes(&broken[number].target));
                    let (kind, why) = if broken[number].is_denied {
                        (ErrorKind::PermissionDenied, "may not be looked at")
                    } else {
                        (ErrorKind::Vanished, "is not there")
                    };
                    let message = format!("the link {link} leads to {target}, which {why}");
                    catalog
                        .problems
                        .insert(row_number(catalog.sizes.len()), Problem::new(kind, message));
                    catalog.push(path, 0, 0, class);
                }
            }
        }
        let mut warnings = alike(&folders);
        warnings.extend(loops.iter().map(|path| {
            format!("the link {path} leads to a folder that it lies in and is not followed")
        }));
        let left_out = things - order.len() as u64;
        Ok(Self {
            catalog,
            classes: folders.iter().map(|name| display_bytes(name)).collect(),
            left_out,
            warnings,
        })
    }

    /// One file as a data set of one sample without a label.
    pub(crate) fn of_file(path: &Path, max_sample_bytes: u32) -> Result<Self> {
        let metadata = std::fs::metadata(path)
            .map_err(|error| failure::listing("cannot look at", path, error))?;
        let name = path.file_name().unwrap_or_default().as_bytes();
        let root = path.parent().unwrap_or(Path::new(""));
        let mut catalog = FileCatalog::empty(root, 1, name.len(), max_sample_bytes);
        catalog.push(name, metadata.len(), failure::nanoseconds(&metadata), None);
        Ok(Self {
            catalog,
            classes: Vec::new(),
            left_out: 0,
            warnings: Vec::new(),
        })
    }
}

/// Where a row comes from before all are in order.
enum Source {
    File(usize, usize),
    Broken(usize),
}

fn count(images: &[FileBatch], broken: &[BrokenLink]) -> (usize, usize) {
    let files = images
        .iter()
        .flat_map(|batch| (0..batch.paths.len()).map(|row| batch.paths.path(row)));
    let all = files.chain(broken.iter().map(|link| &link.path[..]));
    all.fold((0, 0), |(nested, flat), path| {
        if path.contains(&b'/') {
            (nested + 1, flat)
        } else {
            (nested, flat + 1)
        }
    })
}

fn class_of(path: &[u8], folders: &[Vec<u8>]) -> Option<usize> {
    let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    folders
        .binary_search_by(|folder| folder.as_slice().cmp(first))
        .ok()
}

/// Class names that differ in their Unicode normal form alone: two classes, and most likely a mistake.
fn alike(folders: &[Vec<u8>]) -> Vec<String> {
    let mut by_form: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in folders
        .iter()
        .filter_map(|folder| str::from_utf8(folder).ok())
    {
        by_form
            .entry(folder.nfc().collect())
            .or_default()
            .push(folder.escape_unicode().to_string());
    }
    let twins = by_form.into_iter().filter(|(_, names)| names.len() > 1);
    twins
        .map(|(name, names)| {
            format!(
                "class folders that look alike are {} classes: {name}, written as {}",
                names.len(),
                names.join(" and ")
            )
        })
        .collect()
}

impl FileCatalog {
    fn empty(root: &Path, rows: usize, bytes: usize, max_sample_bytes: u32) -> Self {
        Self {
            root: root.to_owned(),
            paths: PathTable::with_capacity(rows, bytes),
            sizes: Vec::with_capacity(rows),
            modified: Vec::with_capacity(rows),
            classes: Vec::with_capacity(rows),
            problems: BTreeMap::new(),
            max_sample_bytes: max_sample_bytes.into(),
        }
    }

    fn push(&mut self, path: &[u8], size: u64, modified: i64, class: Option<usize>) {
        self.paths.push(&[path]);
        self.sizes.push(size);
        self.modified.push(modified);
        self.classes.push(
            class
                .and_then(|class| i32::try_from(class).ok())
                .unwrap_or(-1),
        );
    }

    pub(crate) fn path(&self, row: usize) -> &[u8] {
        self.paths.path(row)
    }

    fn file(&self, row: usize) -> PathBuf {
        self.root.join(OsStr::from_bytes(self.path(row)))
    }

    /// True where the file is there, changed or not; a link that leads nowhere is not.
    pub(crate) fn is_there(&self, row: usize) -> bool {
        self.file(row).exists()
    }

    pub(crate) fn key(&self, row: usize) -> SampleKey {
        SampleKey::of_file(self.path(row), self.sizes[row], self.modified[row].into())
    }

    pub(crate) fn parts(&self, row: usize) -> Arc<[Part]> {
        Part::sequence([(part_name(self.path(row)), self.sizes[row])])
    }

    /// Reads a row's file, which must be what it was when it was listed.
    ///
    /// # Errors
    /// `Vanished`, `Changed`, `Empty`, `TooLarge`, or what the operating system says.
    pub(crate) fn read(&self, row: usize) -> Result<Bytes> {
        if let Some(problem) = self.problems.get(&row_number(row)) {
            return Err(problem.error(self.path(row)));
        }
        let path = self.file(row);
        let file = read::open(&path)?;
        let nbytes = self.sizes[row];
        let mut payload = read::buffer(nbytes, self.max_sample_bytes)?;
        read::append(
            &file,
            0,
            payload.capacity().min(index(nbytes)),
            &mut payload,
        )
        .map_err(|error| failure::reading(&path, error))?;
        // Afterwards: what was read before somebody wrote is not what is there now.
        read::check_unchanged(&file, &path, nbytes, self.modified[row])?;
        if nbytes == 0 {
            return Err(Error::new(ErrorKind::Empty, "the file has no bytes"));
        }
        Ok(payload.into())
    }
}

impl Catalog for FileCatalog {
    fn len(&self) -> u64 {
        self.sizes.len() as u64
    }

    fn nbytes(&self, row: u64) -> u64 {
        self.sizes[index(row)]
    }

    fn label(&self, row: u64) -> i64 {
        let class = self.classes[index(row)];
        if class < 0 { NO_LABEL } else { class.into() }
    }

    fn key(&self, row: u64) -> SampleKey {
        self.key(index(row))
    }

    fn row(&self, row: u64) -> Row {
        let number = index(row);
        Row {
            path: self.path(number).into(),
            key: self.key(number),
            nbytes: self.sizes[number],
            checksum: None,
            label: self.label(row),
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

/// The extension as written; a file without one, opened by force, is a part called `data`.
fn part_name(path: &[u8]) -> &str {
    names::image_extension(path).unwrap_or("data")
}

pub(crate) fn row_number(row: usize) -> u32 {
    u32::try_from(row).expect("a listing has fewer than 2^32 rows")
}

pub(crate) fn index(row: u64) -> usize {
    usize::try_from(row).expect("a row number fits a word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_takes_28_bytes_and_its_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("c")).unwrap();
        for number in 0..500 {
            std::fs::write(folder.path().join(format!("c/{number:06}.jpg")), b"x").unwrap();
        }
        let found = crate::walk::walk(folder.path(), 2).unwrap();
        let catalog = FileListing::of_folder(folder.path(), found, 1000)
            .unwrap()
            .catalog;
        let numbers = catalog.sizes.capacity() * 8
            + catalog.modified.capacity() * 8
            + catalog.classes.capacity() * 4;
        assert_eq!(
            numbers + catalog.paths.capacity_bytes(),
            500 * (28 + "c/000000.jpg".len())
        );
    }
}
