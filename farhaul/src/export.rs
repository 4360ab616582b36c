//! Export: the data set as the files that it came from.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{ErrorKind as Io, Read, Write},
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use backend_folder::layout_on_disk;
use loader_core::{Error, ErrorKind, Result, Row, Sample};
use serde::Serialize;

use crate::{
    dataset::Dataset,
    sweep::sweep,
    task::{Cancel, Outcome, Progress},
};

/// What an export did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExportReport {
    /// Samples that are there now.
    pub samples: u64,
    /// Bytes of them, also of files that were there already.
    pub bytes: u64,
}

/// Writes every sample below a folder: files of a folder at their paths, members of a tar as `tar -x` writes them below the
/// name of their shard. Classes of an image folder that have no samples become empty folders; names of labels that a set of
/// tars never uses do not, since `tar -x` makes none.
///
/// Each file appears whole or not at all. A file that is there with the same bytes stays; one with other bytes is a
/// [`ErrorKind::Conflict`] unless `overwrite` is set. No path and no link leads out of the folder.
///
/// # Errors
/// In the outcome: the first sample that cannot be read or written, [`ErrorKind::Cancelled`]. What was written stays.
pub fn export(
    data: &Dataset,
    folder: &Path,
    overwrite: bool,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Outcome<ExportReport> {
    let mut report = ExportReport::default();
    progress.started("export", Some(data.len()));
    let result = (|| {
        fs::create_dir_all(folder).map_err(|error| failed("the folder cannot be made", error))?;
        let target = Target {
            folder,
            overwrite,
            temporary: AtomicU64::new(0),
        };
        let catalog = data.catalog()?;
        let (mut labels, mut has_classes) = (BTreeSet::new(), true);
        let work = |row: Row, sample: Result<Sample>| {
            let (label, is_file) = (row.label, is_file(&row));
            target
                .write(&row, sample)
                .map(|bytes| (label, is_file, bytes))
                .map_err(|error| error.at(row.path))
        };
        sweep(data, &*catalog, cancel, work, |written| {
            let (label, is_file, bytes) = written?;
            labels.insert(label);
            has_classes &= is_file;
            report.samples += 1;
            report.bytes += bytes;
            progress.advanced(1, bytes);
            Ok(())
        })?;
        let classes = data.summary().classes;
        let unused = (0_i64..)
            .zip(&*classes)
            .filter(|(label, _)| has_classes && !labels.contains(label));
        for (_, name) in unused {
            target.empty_class(name)?;
        }
        Ok(())
    })();
    progress.finished();
    Outcome::new(report, result, "export")
}

/// True for a row of an image folder: the path is that of the file, which is its one part. A tar's keys end before the dot.
fn is_file(row: &Row) -> bool {
    let [part] = &row.parts[..] else {
        return false;
    };
    let path = row.path.as_bytes().strip_suffix(part.name.as_bytes());
    path.is_some_and(|path| path.ends_with(b"."))
}

struct Target<'a> {
    folder: &'a Path,
    overwrite: bool,
    /// Numbers the temporary files of this process.
    temporary: AtomicU64,
}

impl Target<'_> {
    fn write(&self, row: &Row, sample: Result<Sample>) -> Result<u64> {
        let sample = sample?;
        let mut bytes = 0;
        for (path, part) in layout_on_disk(row)? {
            let part = &row.parts[part];
            let range = usize::try_from(part.offset)
                .ok()
                .zip(usize::try_from(part.offset.saturating_add(part.nbytes)).ok());
            let Some(content) = range.and_then(|(start, end)| sample.payload.get(start..end))
            else {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    "the payload is shorter than its parts say",
                ));
            };
            self.write_file(&path, content)?;
            bytes += part.nbytes;
        }
        Ok(bytes)
    }

    fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        let parent = self.make_folders(path.parent().unwrap_or(Path::new("")))?;
        let name = path
            .file_name()
            .ok_or_else(|| Error::new(ErrorKind::Malformed, "the path names no file"))?;
        let place = parent.join(name);
        match fs::symlink_metadata(&place) {
            Ok(found) if !found.is_file() && !found.is_symlink() => {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "a folder is there where the file shall be",
                ));
            }
            Ok(found) if found.is_file() && same(&place, found.len(), content)? => return Ok(()),
            Ok(_) if !self.overwrite => {
                return Err(
                    Error::new(ErrorKind::Conflict, "another file is there already")
                        .hint("export into an empty folder, or replace files with --overwrite"),
                );
            }
            Ok(_) => {}
            Err(error) if error.kind() == Io::NotFound => {}
            Err(error) => return Err(failed("the file cannot be looked at", error)),
        }
        let number = self.temporary.fetch_add(1, Ordering::Relaxed);
        let temporary = parent.join(format!(".farhaul-{}-{number}.part", std::process::id()));
        let written = File::create_new(&temporary)
            .and_then(|mut file| file.write_all(content))
            .and_then(|()| fs::rename(&temporary, &place));
        written.map_err(|error| {
            // What is left of a failed file is in nobody's interest; that it cannot be removed changes nothing.
            let _ = fs::remove_file(&temporary);
            failed("the file cannot be written", error)
        })
    }

    /// Makes the folders of a relative path one by one and follows no link: one that was there before could lead anywhere.
    fn make_folders(&self, path: &Path) -> Result<PathBuf> {
        let mut folder = self.folder.to_owned();
        for component in path
            .components()
            .filter(|component| *component != Component::CurDir)
        {
            folder.push(component);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == Io::AlreadyExists => {
                    let found = fs::symlink_metadata(&folder)
                        .map_err(|error| failed("the folder cannot be looked at", error))?;
                    if !found.is_dir() {
                        return Err(Error::new(
                            ErrorKind::Conflict,
                            "a file or link is there where a folder shall be",
                        ));
                    }
                }
                made => made.map_err(|error| failed("the folder cannot be made", error))?,
            }
        }
        Ok(folder)
    }

    fn empty_class(&self, name: &str) -> Result<()> {
        let stays = Path::new(name)
            .components()
            .all(|component| matches!(component, Component::Normal(_)));
        if !stays || name.is_empty() {
            return Err(Error::new(
                ErrorKind::Malformed,
                format!("the class {name:?} cannot be the name of a folder"),
            ));
        }
        self.make_folders(Path::new(name)).map(|_| ())
    }
}

fn same(path: &Path, nbytes: u64, content: &[u8]) -> Result<bool> {
    if nbytes != content.len() as u64 {
        return Ok(false);
    }
    let mut found = Vec::with_capacity(content.len());
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut found));
    read.map_err(|error| failed("the file that is there cannot be read", error))?;
    Ok(found == content)
}

fn failed(message: &'static str, error: std::io::Error) -> Error {
    match Error::io(message, error) {
        // A name that the file system cannot have, or a folder that went away meanwhile, is no vanished data set.
        error if error.kind() == ErrorKind::NotFound => {
            Error::new(ErrorKind::Io, message).caused_by(error)
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use loader_core::{Fields, NewSample, Part, memory::MemoryStore};

    use super::*;
    use crate::task::Silent;

    fn exported(path: &str, classes: &[&str], folder: &Path) -> Outcome<ExportReport> {
        let sample = NewSample {
            path: path.into(),
            label: 0,
            parts: Part::sequence([("jpg", 3)]),
            payload: "abc".into(),
            fields: Fields::new(),
        };
        let classes = classes.iter().map(|name| (*name).to_owned()).collect();
        let store = MemoryStore::from_samples([sample], classes).unwrap();
        export(
            &Dataset::over(Arc::new(store)).unwrap(),
            folder,
            true,
            &Silent,
            &Cancel::default(),
        )
    }

    #[test]
    fn nothing_is_written_outside_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        for path in ["../x.jpg", "/x.jpg", "a/../../x.jpg", "../../x"] {
            let error = exported(path, &[], &inside).error.unwrap();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{path}");
            assert_eq!(error.operation(), "export");
        }
        for class in ["../out", "/out", ""] {
            let error = exported("a/x.jpg", &["a", class], &inside).error.unwrap();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{class}");
        }
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["inside"]);
    }

    #[test]
    fn a_failed_file_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/x.jpg")).unwrap();
        let error = exported("a/x.jpg", &[], folder.path()).error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let long = format!("a/{}.jpg", "n".repeat(300));
        assert_eq!(
            exported(&long, &[], folder.path()).error.unwrap().kind(),
            ErrorKind::Io
        );
        assert_eq!(fs::read_dir(folder.path().join("a")).unwrap().count(), 1);
    }

    #[test]
    fn labels_that_a_set_of_tars_never_uses_make_no_folders() {
        let folder = tempfile::tempdir().unwrap();
        let report = exported("shard/x", &["a", "none", ""], folder.path())
            .into_result()
            .unwrap();
        assert_eq!(report.samples, 1);
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["shard"]);
        assert_eq!(fs::read(folder.path().join("shard/x.jpg")).unwrap(), b"abc");
    }

    #[test]
    fn a_data_set_without_samples_is_its_class_folders() {
        let folder = tempfile::tempdir().unwrap();
        let store = MemoryStore::from_samples([], vec!["a".into(), "b".into()]).unwrap();
        let data = Dataset::over(Arc::new(store)).unwrap();
        let outcome = export(&data, folder.path(), false, &Silent, &Cancel::default());
        assert_eq!(outcome.into_result().unwrap().samples, 0);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn classes_without_samples_become_empty_folders() {
        let folder = tempfile::tempdir().unwrap();
        let report = exported("a/x.jpg", &["a", "none"], folder.path())
            .into_result()
            .unwrap();
        assert_eq!((report.samples, report.bytes), (1, 3));
        assert_eq!(fs::read(folder.path().join("a/x.jpg")).unwrap(), b"abc");
        assert_eq!(fs::read_dir(folder.path().join("none")).unwrap().count(), 0);
    }
}
