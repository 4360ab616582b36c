//! What lies at a path, told by looking at it.

use std::{
    fs::{self, File},
    io::{self, BufReader},
    os::unix::{ffi::OsStrExt, fs::FileExt},
    path::{Path, PathBuf},
};

use loader_core::{Error, ErrorKind, Result};
use serde::Deserialize;

use crate::{
    class_names,
    config::{ListOptions, SourceFormat},
    failure,
    files::FileListing,
    names, pattern,
    tar::is_gzip,
    tars::{self, Shard, TarListing},
    walk::{FileBatch, Found, walk},
};

/// The layouts of data sets that a folder may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Image files: in class folders, flat, or a single one.
    ImageFolder,
    /// WebDataset tars.
    WebDataset,
    /// `MosaicML` streaming: read at ingest alone.
    Mds,
}

impl Layout {
    /// Looks at a path: class folders with images are an image folder; else the more numerous of root-level images and tars
    /// decides, images where they are as many; an `index.json` that names shards is MDS. A single file is an image or a tar
    /// by its name, then by its first bytes. A path with braces that is not there is a pattern of tars.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where there is nothing, or nothing that is known; what the operating system says.
    pub fn detect(path: &Path) -> Result<Self> {
        Ok(match look(path, SourceFormat::Auto, 4)? {
            Place::File(_) | Place::Folder(_) => Self::ImageFolder,
            Place::Tars(..) => Self::WebDataset,
            Place::Mds => Self::Mds,
        })
    }
}

/// What was listed.
#[derive(Debug)]
pub(crate) enum Listing {
    Files(FileListing),
    Tars(TarListing),
    Mds,
}

/// Lists what lies at `path`.
///
/// # Errors
/// As [`Layout::detect`] and the listing of each layout.
pub(crate) fn list(path: &Path, format: SourceFormat, options: ListOptions) -> Result<Listing> {
    Ok(match look(path, format, options.threads)? {
        Place::File(file) => Listing::Files(FileListing::of_file(&file, options.max_sample_bytes)?),
        Place::Folder(found) => Listing::Files(FileListing::of_folder(
            path,
            found,
            options.max_sample_bytes,
        )?),
        Place::Tars(shards, others) => {
            let mut listing = tars::list(shards, options)?;
            listing.left_out += others;
            if path.is_dir() {
                listing.classes = class_names::beside(path)?;
            }
            Listing::Tars(listing)
        }
        Place::Mds => Listing::Mds,
    })
}

enum Place {
    File(PathBuf),
    Folder(Found),
    /// The shards, and how many other things there are.
    Tars(Vec<Shard>, u64),
    Mds,
}

fn look(path: &Path, format: SourceFormat, threads: usize) -> Result<Place> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && pattern::is_pattern(path.as_os_str().as_bytes()) =>
        {
            return shards_of_pattern(path).map(|shards| Place::Tars(shards, 0));
        }
        Err(error) => return Err(failure::listing("cannot open", path, error)),
    };
    if !metadata.is_dir() {
        return look_at_file(path, format);
    }
    match format {
        SourceFormat::Mds => return Ok(Place::Mds),
        SourceFormat::Auto if is_mds(path)? => return Ok(Place::Mds),
        _ => {}
    }
    let found = walk(path, threads)?;
    let tars = found
        .tars
        .iter()
        .map(|batch| batch.paths.len())
        .sum::<usize>();
    let images = images(&found);
    let is_nothing = images == 0 && tars == 0 && found.top_folders.is_empty();
    let is_tars = match format {
        SourceFormat::Folder if is_nothing => return Err(nothing(path)),
        SourceFormat::Auto => by_number(path, &found, tars)?,
        SourceFormat::WebDataset if tars == 0 => {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("no tar lies below {}", failure::shown(path)),
            ));
        }
        SourceFormat::WebDataset => true,
        SourceFormat::Folder | SourceFormat::Mds => false,
    };
    if !is_tars {
        return Ok(Place::Folder(found));
    }
    let others = found.things - tars as u64;
    Ok(Place::Tars(shards_of(path, &found.tars), others))
}

/// True where the folder holds tars more than images.
fn by_number(path: &Path, found: &Found, tars: usize) -> Result<bool> {
    let rows = |batch: &FileBatch| batch.paths.len();
    let is_nested =
        |batch: &FileBatch| (0..rows(batch)).any(|row| batch.paths.path(row).contains(&b'/'));
    if found.images.iter().any(is_nested)
        || found.broken.iter().any(|link| link.path.contains(&b'/'))
    {
        return Ok(false);
    }
    let images = images(found);
    if images == 0 && tars == 0 {
        return Err(nothing(path));
    }
    Ok(tars > images)
}

/// How many images there are, links with the name of one included.
fn images(found: &Found) -> usize {
    let rows = |batch: &FileBatch| batch.paths.len();
    found.images.iter().map(rows).sum::<usize>() + found.broken.len()
}

fn nothing(path: &Path) -> Error {
    let message = format!("{} holds neither images nor tars", failure::shown(path));
    Error::new(ErrorKind::NotFound, message)
        .hint("images are files ending in jpg, jpeg, png, webp, tif, gif or bmp, best in one folder a class")
}

fn look_at_file(path: &Path, format: SourceFormat) -> Result<Place> {
    let name = path.as_os_str().as_bytes();
    let is_tar = match format {
        SourceFormat::Folder => false,
        SourceFormat::WebDataset => true,
        SourceFormat::Mds => {
            let message = format!(
                "{} is a file; an MDS set is a folder with an index.json",
                failure::shown(path)
            );
            return Err(Error::new(ErrorKind::Usage, message));
        }
        SourceFormat::Auto if names::image_extension(name).is_some() => false,
        SourceFormat::Auto if names::shard_stem(name).is_some() || looks_like_tar(path)? => true,
        SourceFormat::Auto => {
            let message = format!(
                "{} is neither an image nor a tar by its name and its first bytes",
                failure::shown(path)
            );
            return Err(Error::new(ErrorKind::Unsupported, message)
                .hint("name the format to read it all the same"));
        }
    };
    if is_tar {
        Ok(Place::Tars(vec![shard(path, file_name(path))?], 0))
    } else {
        Ok(Place::File(path.to_owned()))
    }
}

fn looks_like_tar(path: &Path) -> Result<bool> {
    let failed = |error| failure::listing("cannot read", path, error);
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Ok(false);
    }
    let file = File::open(path).map_err(failed)?;
    let mut magic = [0; 5];
    let is_ustar = file.read_exact_at(&mut magic, 257).is_ok() && &magic == b"ustar";
    Ok(is_ustar || is_gzip(&file).map_err(failed)?)
}

/// True where a folder has an `index.json` that names shards.
fn is_mds(folder: &Path) -> Result<bool> {
    /// What tells an index from any other JSON.
    #[derive(Deserialize)]
    struct Index {
        #[serde(rename = "shards")]
        _shards: Vec<serde::de::IgnoredAny>,
    }
    let path = folder.join("index.json");
    // Anything but a file would be no index, and a pipe would never end.
    if !fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(false);
    }
    match File::open(&path) {
        // Nothing of it is kept, however large it is.
        Ok(file) => Ok(serde_json::from_reader::<_, Index>(BufReader::new(file)).is_ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failure::listing("cannot read", &path, error)),
    }
}

fn shards_of(root: &Path, batches: &[FileBatch]) -> Vec<Shard> {
    let mut shards = Vec::new();
    for batch in batches {
        for row in 0..batch.paths.len() {
            let name = batch.paths.path(row);
            shards.push(Shard {
                name: names::shard_stem(name).unwrap_or(name).to_vec(),
                path: root.join(std::ffi::OsStr::from_bytes(name)),
                nbytes: batch.sizes[row],
                modified: batch.modified[row],
                is_gzip: false,
            });
        }
    }
    shards
}

fn shards_of_pattern(path: &Path) -> Result<Vec<Shard>> {
    let pattern = path.as_os_str().as_bytes();
    let base = pattern::base(pattern);
    let names = pattern::expand(pattern)?;
    names
        .iter()
        .map(|name| {
            shard(
                Path::new(std::ffi::OsStr::from_bytes(name)),
                &name[base.len()..],
            )
        })
        .collect()
}

fn shard(path: &Path, relative: &[u8]) -> Result<Shard> {
    let metadata =
        fs::metadata(path).map_err(|error| failure::listing("cannot open", path, error))?;
    if !metadata.is_file() {
        return Err(Error::new(
            ErrorKind::Usage,
            format!("{} is no file", failure::shown(path)),
        ));
    }
    Ok(Shard {
        name: names::shard_stem(relative).unwrap_or(relative).to_vec(),
        path: path.to_owned(),
        nbytes: metadata.len(),
        modified: failure::nanoseconds(&metadata),
        is_gzip: false,
    })
}

fn file_name(path: &Path) -> &[u8] {
    path.file_name().unwrap_or(path.as_os_str()).as_bytes()
}
