//! Where the parts of a row go when a data set is written out as files.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Component, PathBuf},
};

use loader_core::{Error, ErrorKind, Result, Row};

/// Relative paths of a row's parts and the number of the part that each one gets.
///
/// A file of a folder is a row of one part whose path already ends in `.` and the part's name: its path stays as it is.
/// Any other row (a sample of a tar or of an MDS set) has one file a part: `path.part`, which for a tar is what `tar -x`
/// writes below `shard/`.
///
/// # Errors
/// [`ErrorKind::Malformed`] where a path would leave the folder: it is absolute, has a component `..`, or is none.
pub fn layout_on_disk(row: &Row) -> Result<Vec<(PathBuf, usize)>> {
    if let [part] = &*row.parts
        && row
            .path
            .strip_suffix(part.name.as_bytes())
            .is_some_and(|rest| rest.ends_with(b"."))
    {
        return Ok(vec![(relative(row, row.path.to_vec())?, 0)]);
    }
    let named =
        |part: &loader_core::Part| [row.path.as_bytes(), b".", part.name.as_bytes()].concat();
    row.parts
        .iter()
        .enumerate()
        .map(|(number, part)| Ok((relative(row, named(part))?, number)))
        .collect()
}

fn relative(row: &Row, path: Vec<u8>) -> Result<PathBuf> {
    let has_zero = path.contains(&0);
    let path = PathBuf::from(OsString::from_vec(path));
    let stays = path
        .components()
        .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    let is_named = path.file_name().is_some();
    if stays && is_named && !has_zero {
        return Ok(path);
    }
    let message = "the path does not stay inside the folder that is written to";
    Err(Error::new(ErrorKind::Malformed, message).at(row.path.clone()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use loader_core::{Fields, Part, SampleKey};

    use super::*;

    fn row(path: &str, parts: &[&str]) -> Row {
        Row {
            path: path.into(),
            key: SampleKey::default(),
            nbytes: 0,
            checksum: None,
            label: 0,
            parts: Part::sequence(parts.iter().map(|name| (*name, 0))),
            fields: Fields::new(),
        }
    }

    fn paths(path: &str, parts: &[&str]) -> Vec<String> {
        let layout = layout_on_disk(&row(path, parts)).unwrap();
        layout
            .into_iter()
            .map(|(path, _)| path.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn files_keep_their_path_and_members_get_theirs_back() {
        assert_eq!(paths("cat/a.b.JPG", &["JPG"]), ["cat/a.b.JPG"]);
        assert_eq!(
            paths("shard/d/0001", &["cls", "seg.png"]),
            ["shard/d/0001.cls", "shard/d/0001.seg.png"]
        );
        assert_eq!(paths("shard/0001", &["jpg"]), ["shard/0001.jpg"]);
        assert_eq!(paths("17", &["image.jpg"]), ["17.image.jpg"]);
        assert_eq!(
            paths("shard//etc/passwd", &["jpg"])[0],
            "shard//etc/passwd.jpg"
        );
    }

    #[test]
    fn no_path_leaves_the_folder() {
        for (path, part) in [
            ("/etc/passwd", "jpg"),
            ("a/../../b", "jpg"),
            ("../x.jpg", "jpg"),
            ("a", "/../../b"),
            ("a\0", "jpg"),
        ] {
            let error = layout_on_disk(&row(path, &[part])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed, "{path}");
            assert!(error.path().is_some());
        }
        assert!(Path::new("shard//x").is_relative());
    }
}
