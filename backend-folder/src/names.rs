//! What a name says: picture, archive or junk; and how a member of a tar is called.

use serde::{Deserialize, Serialize};

/// Extensions of pictures, compared without case.
const IMAGE_EXTENSIONS: [&str; 10] = [
    "jpg", "jpeg", "jpe", "jfif", "png", "webp", "tif", "tiff", "gif", "bmp",
];

/// Suffixes of shards, the longer ones first, compared without case.
const TAR_SUFFIXES: [&str; 3] = [".tar.gz", ".tgz", ".tar"];

/// Where the path of a tar member is cut into the sample's key and the part's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySplit {
    /// At the first dot of the last component, as WebDataset does: `a/Track 2.0.jpg` is part `0.jpg` of `a/Track 2`.
    #[default]
    FirstDot,
    /// At the last dot: `a/Track 2.0.jpg` is part `jpg` of `a/Track 2.0`.
    LastDot,
}

impl KeySplit {
    /// Key and part name of a member; `None` where the member is no part of a sample: a folder, a name without a dot,
    /// a hidden name or folder, the junk of operating systems.
    pub fn split(self, member: &[u8]) -> Option<(&[u8], &[u8])> {
        let path = without_leading_dot(member);
        if path.split(|byte| *byte == b'/').any(is_hidden_component) {
            return None;
        }
        let start = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |slash| slash + 1);
        let last = &path[start..];
        if is_junk(last) {
            return None;
        }
        let dot = match self {
            Self::FirstDot => last.iter().position(|byte| *byte == b'.')?,
            Self::LastDot => last.iter().rposition(|byte| *byte == b'.')?,
        };
        let part = &last[dot + 1..];
        (dot > 0 && !part.is_empty()).then(|| (&path[..start + dot], part))
    }
}

/// A member's path without the `./` that `tar -c .` puts before it.
pub(crate) fn without_leading_dot(mut path: &[u8]) -> &[u8] {
    while let Some(rest) = path.strip_prefix(b"./") {
        path = rest;
    }
    path
}

/// A name that says hidden or junk, whether it is a file or a folder.
pub(crate) fn is_junk(name: &[u8]) -> bool {
    name.first() == Some(&b'.')
        || [&b"__MACOSX"[..], b"Thumbs.db", b"desktop.ini"]
            .iter()
            .any(|junk| name.eq_ignore_ascii_case(junk))
}

fn is_hidden_component(component: &[u8]) -> bool {
    component != b"."
        && component != b".."
        && (component.first() == Some(&b'.') || component == b"__MACOSX")
}

/// The extension of a picture as it is written; `None` for any other name.
pub(crate) fn image_extension(name: &[u8]) -> Option<&str> {
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    let extension = str::from_utf8(&name[dot + 1..]).ok()?;
    IMAGE_EXTENSIONS
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
        .then_some(extension)
}

/// The name of a shard without the suffix of an archive; `None` where it has none.
pub(crate) fn shard_stem(name: &[u8]) -> Option<&[u8]> {
    TAR_SUFFIXES.iter().find_map(|suffix| {
        let at = name.len().checked_sub(suffix.len())?;
        let stem = &name[..at];
        let whole = !stem.is_empty() && !stem.ends_with(b"/");
        (whole && name[at..].eq_ignore_ascii_case(suffix.as_bytes())).then_some(stem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(member: &str) -> Option<(&str, &str)> {
        split(KeySplit::FirstDot, member)
    }

    fn split(rule: KeySplit, member: &str) -> Option<(&str, &str)> {
        let (key, part) = rule.split(member.as_bytes())?;
        Some((str::from_utf8(key).unwrap(), str::from_utf8(part).unwrap()))
    }

    #[test]
    fn a_dot_in_a_folder_never_splits() {
        assert_eq!(
            first("/some/path/22.0/1.1.png"),
            Some(("/some/path/22.0/1", "1.png"))
        );
        assert_eq!(first("./train.v1/0001.cls"), Some(("train.v1/0001", "cls")));
    }

    #[test]
    fn the_option_splits_at_the_last_dot() {
        let member = "Track 2.0 (Clean).mp3";
        assert_eq!(first(member), Some(("Track 2", "0 (Clean).mp3")));
        assert_eq!(
            split(KeySplit::LastDot, member),
            Some(("Track 2.0 (Clean)", "mp3"))
        );
    }

    #[test]
    fn folders_hidden_names_and_names_without_a_dot_are_no_parts() {
        for member in [
            "a/",
            "README",
            "._0001.jpg",
            "a/.DS_Store",
            ".git/x.jpg",
            "__MACOSX/a.jpg",
            "a.",
            "",
            "./",
            "a/Thumbs.db",
        ] {
            assert_eq!(first(member), None, "{member}");
        }
    }

    #[test]
    fn extensions_count_without_case() {
        assert_eq!(image_extension(b"x/a.b.JPeG"), Some("JPeG"));
        assert_eq!(image_extension(b"a.txt"), None);
        assert_eq!(image_extension(b"jpg"), None);
        assert_eq!(shard_stem(b"a/b.TAR.GZ"), Some(&b"a/b"[..]));
        assert_eq!(shard_stem(b"a/.tar"), None);
        assert_eq!(shard_stem(b"a.tgz"), Some(&b"a"[..]));
    }
}
