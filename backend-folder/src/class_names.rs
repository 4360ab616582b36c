//! Names of the classes of a set of tars: a text file beside them, where there is one.

use std::{fs, io, path::Path};

use loader_core::{Error, ErrorKind, Result, identity::display_bytes};

use crate::failure;

/// Names under which such a file is looked for, the first that is there counts.
const FILES: [&str; 2] = ["classnames.txt", "classes.txt"];

/// Largest file that is read, bytes.
const LARGEST: u64 = 16 << 20;

/// One name a line, the line of label 0 first; none where no such file is there.
///
/// # Errors
/// What the operating system says, and [`ErrorKind::TooLarge`].
pub(crate) fn beside(folder: &Path) -> Result<Vec<String>> {
    for name in FILES {
        let path = folder.join(name);
        let failed = |error| failure::listing("cannot read", &path, error);
        match fs::metadata(&path) {
            Ok(metadata) if !metadata.is_file() => {}
            Ok(metadata) if metadata.len() > LARGEST => {
                let message = format!("{} has {} bytes", failure::shown(&path), metadata.len());
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            Ok(_) => return Ok(lines(&fs::read(&path).map_err(failed)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(Vec::new())
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if text.is_empty() {
        return Vec::new();
    }
    let line = |line: &[u8]| display_bytes(line.strip_suffix(b"\r").unwrap_or(line));
    text.split(|byte| *byte == b'\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_class_whatever_ends_it() {
        assert_eq!(lines(b"cat\r\n\ndog"), ["cat", "", "dog"]);
        assert_eq!(lines(b"\xef\xbb\xbfcat\n"), ["cat"]);
        assert!(lines(b"").is_empty());
    }
}
