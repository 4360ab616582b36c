//! What a user's text names: which scheme, and where.

use std::{
    borrow::Cow,
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use loader_core::{
    Error, ErrorKind, Result,
    identity::display_bytes,
    uri::{Uri, percent_decode, percent_encode, split_scheme},
};

use crate::{
    distance::nearest,
    scheme::{Reach, Scheme, available, known},
};

/// Where a data set is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Address {
    /// On this machine.
    Path(PathBuf),
    /// Behind a network.
    Network(Box<Uri>),
}

impl Address {
    /// The whole URI without credentials, as the stores show it too.
    pub(crate) fn uri(&self, scheme: &str) -> String {
        match self {
            Self::Network(uri) => uri.to_string(),
            Self::Path(path) => {
                format!(
                    "{scheme}:{}",
                    percent_encode(path.as_os_str().as_encoded_bytes())
                )
            }
        }
    }

    #[cfg(any(feature = "embedded", feature = "folder"))]
    /// The path of a scheme that has one.
    pub(crate) fn into_path(self) -> Result<PathBuf> {
        match self {
            Self::Path(path) => Ok(path),
            Self::Network(uri) => Err(usage(format!(
                "{}: is followed by a path, not by a host",
                uri.scheme
            ))),
        }
    }
}

/// A scheme and an address, or a bare path that is told by looking.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Place {
    Bare(PathBuf),
    Scheme(Scheme, Address),
}

impl Place {
    /// What it is called in errors: a URI without credentials, or the bare path.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Bare(path) => display_bytes(path.as_os_str().as_encoded_bytes()),
            Self::Scheme(scheme, address) => address.uri(scheme.name),
        }
    }
}

/// Reads a text as design says: a known scheme first, then literally as a path.
pub(crate) fn place(text: &str) -> Result<Place> {
    if text.is_empty() {
        return Err(
            usage("the URI is empty").hint("give a path, or one of: ".to_owned() + &available())
        );
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return Ok(Place::Bare(text.into()));
    };
    let lower = scheme.to_ascii_lowercase();
    match known().find(|known| known.name == lower) {
        Some(known) if known.reach == Reach::Path => Ok(Place::Scheme(
            known,
            Address::Path(local_path(known.name, rest)?),
        )),
        Some(known) => Ok(Place::Scheme(
            known,
            Address::Network(Box::new(Uri::parse(text)?)),
        )),
        // Names with a colon are rare, but a path that is there is what was meant.
        None if !rest.starts_with("//") && Path::new(text).exists() => Ok(Place::Bare(text.into())),
        None => Err(unknown_scheme(&lower, rest)),
    }
}

fn local_path(scheme: &str, rest: &str) -> Result<PathBuf> {
    if rest.starts_with("//") && !rest.starts_with("///") {
        return Err(usage(format!(
            "{scheme}: has no host, a path follows the colon at once"
        ))
        .hint(format!(
            "write {scheme}:/absolute/path or {scheme}:relative/path"
        )));
    }
    let bytes = percent_decode(rest)?;
    if bytes.is_empty() {
        return Err(usage(format!("no path follows {scheme}:"))
            .hint(format!("write {scheme}:/absolute/path")));
    }
    if bytes.contains(&0) {
        return Err(usage("a path cannot hold a zero byte"));
    }
    Ok(OsString::from_vec(bytes).into())
}

/// Only the scheme is shown: what follows may hold a password.
fn unknown_scheme(scheme: &str, rest: &str) -> Error {
    if scheme.len() == 1 {
        return usage(format!("{scheme}: looks like a drive of Windows"))
            .hint("write the path as this machine knows it, as in /data/set");
    }
    let error = usage(format!("no store has the scheme {scheme}:"));
    let guess = nearest(scheme, known().map(|known| known.name));
    let guess = guess.map_or(String::new(), |known| format!("did you mean {known}:? "));
    let path = if rest.starts_with("//") {
        ""
    } else {
        "; a path with a colon in it is written ./NAME"
    };
    error.hint(format!("{guess}this build has {}{path}", available()))
}

/// A path that is not there, with what may have been meant.
pub(crate) fn not_found(path: &Path) -> Error {
    let shown = display_bytes(path.as_os_str().as_encoded_bytes());
    let error = Error::new(ErrorKind::NotFound, format!("{shown:?} is not there")).during("open");
    let hint: Option<Cow<'static, str>> = if shown.starts_with('~') {
        Some("a quoted ~ is not replaced by the shell: write the whole path".into())
    } else if shown.contains('\\') {
        Some("components of a path are separated by / here".into())
    } else {
        sibling(path).map(|name| format!("did you mean {name:?}?").into())
    };
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn sibling(path: &Path) -> Option<String> {
    const LOOKED_AT: usize = 10_000;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let entries = parent.read_dir().ok()?.take(LOOKED_AT).flatten();
    let names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    nearest(
        path.file_name()?.to_str()?,
        names.iter().map(String::as_str),
    )
    .map(str::to_owned)
}

fn usage(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Usage, message).during("open")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Error {
        let error = place(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        error
    }

    #[test]
    fn a_bare_path_is_taken_literally() {
        for text in [
            "/a%20b",
            "set",
            "./a:b",
            "b\u{e4}ume/k\u{131}z",
            "x-{000..003}.tar",
            "100%",
        ] {
            assert_eq!(place(text).unwrap(), Place::Bare(text.into()));
        }
    }

    #[test]
    fn a_path_behind_a_scheme_is_percent_decoded() {
        let path = |text| match place(text).unwrap() {
            Place::Scheme(scheme, Address::Path(path)) => {
                (scheme.name, path.into_os_string().into_vec())
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(
            path("embedded:/a%20b%FF"),
            ("embedded", b"/a b\xff".to_vec())
        );
        assert_eq!(path("FOLDER:rel?x"), ("folder", b"rel?x".to_vec()));
        assert_eq!(path("folder:///a"), ("folder", b"///a".to_vec()));
        for (text, words) in [
            ("embedded:100%", "hexadecimal"),
            ("embedded:", "no path"),
            ("folder://a/b", "no host"),
            ("", "empty"),
        ] {
            assert!(refused(text).to_string().contains(words), "{text}");
        }
        refused("folder:a%00b");
    }

    #[test]
    fn the_uri_of_a_path_leads_back_to_it() {
        for bytes in [
            &b"/a%20b"[..],
            b"rel/100%",
            "b\u{e4}ume \n?#".as_bytes(),
            b"x\xff%\xfe",
        ] {
            let address = Address::Path(OsString::from_vec(bytes.to_vec()).into());
            let Place::Scheme(scheme, again) = place(&address.uri("embedded")).unwrap() else {
                panic!("it has a scheme")
            };
            assert_eq!((scheme.name, again), ("embedded", address));
        }
        assert_eq!(
            Address::Path("b\u{e4}ume/100%".into()).uri("folder"),
            "folder:b%C3%A4ume/100%25"
        );
    }

    #[test]
    fn unknown_schemes_are_answered_with_what_was_meant_and_what_there_is() {
        let advice = |text| refused(text).advice().unwrap().to_owned();
        assert!(advice("embeded:/x").starts_with("did you mean embedded:? this build has "));
        assert!(advice("embeded:/x").contains("./NAME"));
        assert!(advice("casandra://bob:hunter2@h/x").starts_with("did you mean cassandra:?"));
        assert!(advice("mongodb://h/x").starts_with("this build has"));
        assert!(refused("C:\\data").to_string().contains("Windows"));
        assert!(!format!("{:?}", refused("casandra://bob:hunter2@h/x")).contains("hunter2"));
    }

    #[test]
    fn a_path_with_a_colon_that_is_there_needs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("a:b");
        std::fs::create_dir(&name).unwrap();
        assert_eq!(place(name.to_str().unwrap()).unwrap(), Place::Bare(name));
    }

    #[test]
    fn a_missing_path_is_answered_with_its_neighbour() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("flowers")).unwrap();
        let error = not_found(&folder.path().join("flower"));
        assert_eq!(error.advice(), Some("did you mean \"flowers\"?"));
        assert!(not_found(Path::new("~/x")).advice().unwrap().contains('~'));
        assert!(not_found(Path::new("a\\b")).advice().unwrap().contains('/'));
    }
}
