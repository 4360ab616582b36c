//! How the stores of this machine are told apart, and how each crate's store is made from an address.

use std::path::Path;

use loader_core::{Error, ErrorKind, Result};

use crate::{
    locate::not_found,
    options::OpenOptions,
    scheme::{EMBEDDED, FOLDER, Scheme},
};

#[cfg(any(feature = "embedded", feature = "folder"))]
pub(crate) mod blocking;
#[cfg(feature = "embedded")]
pub(crate) mod embedded;
#[cfg(feature = "folder")]
pub(crate) mod folder;

/// The names that `format` knows, and the scheme that each belongs to.
const FORMATS: [(&str, Scheme); 4] = [
    ("embedded", EMBEDDED),
    ("folder", FOLDER),
    ("webdataset", FOLDER),
    ("mds", FOLDER),
];

/// The scheme of the store that lies at a bare path: as `format` says, else told by looking.
pub(crate) fn of_path(path: &Path, options: &OpenOptions) -> Result<Scheme> {
    if let Some(format) = &options.format {
        return match FORMATS.iter().find(|(name, _)| name == format) {
            Some((_, scheme)) => Ok(*scheme),
            None => Err(unknown_format(format)),
        };
    }
    Ok(if is_embedded(path) { EMBEDDED } else { FOLDER })
}

/// True where an embedded store lies at a path: LMDB's file is in it.
pub(crate) fn is_embedded(path: &Path) -> bool {
    path.join("data.mdb").is_file()
}

/// Refuses a path that is not there, unless it is a brace pattern of tars.
pub(crate) fn check_there(path: &Path) -> Result<()> {
    let is_pattern = path.as_os_str().as_encoded_bytes().contains(&b'{');
    if is_pattern || path.exists() {
        Ok(())
    } else {
        Err(not_found(path))
    }
}

pub(crate) fn unknown_format(format: &str) -> Error {
    let names = FORMATS.map(|(name, _)| name);
    let error =
        Error::new(ErrorKind::Usage, format!("no format is called {format:?}")).during("open");
    let guess = crate::distance::nearest(format, names)
        .map_or(String::new(), |name| format!("did you mean {name}? "));
    error.hint(format!("{guess}the formats are {}", names.join(", ")))
}
