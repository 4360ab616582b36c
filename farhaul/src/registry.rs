//! Which scheme is answered by which crate. An explicit table: nothing runs before `main`.

use std::{path::Path, sync::Arc};

use futures_util::future::BoxFuture;
use loader_core::{
    Error, ErrorKind, Result, Source, Store, StoreWriter,
    wrap::{retry::Retry, timeout::Timeout},
};

use crate::{
    backend,
    dataset::Dataset,
    destination::Destination,
    locate::{Address, Place, place},
    options::OpenOptions,
    runtime::Runtime,
    scheme::{EMBEDDED, OPTIONAL, Scheme, available},
    store_source::StoreSource,
};

/// How a crate's store is opened and, where it can be, made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backend {
    /// The schemes that it answers.
    pub(crate) schemes: &'static [Scheme],
    pub(crate) open: Open,
    /// `None` where the store cannot be written.
    pub(crate) create: Option<Create>,
}

pub(crate) type Open = fn(Address, OpenOptions) -> BoxFuture<'static, Result<Arc<dyn Store>>>;
pub(crate) type Create =
    fn(Address, OpenOptions) -> BoxFuture<'static, Result<Arc<dyn StoreWriter>>>;

/// The backends of this build: one line each.
pub(crate) const BACKENDS: &[Backend] = &[
    #[cfg(feature = "embedded")]
    backend::embedded::BACKEND,
    #[cfg(feature = "folder")]
    backend::folder::BACKEND,
];

/// Opens a data set by its URI or path, and waits for it.
///
/// A path is taken literally and told by looking: an embedded store, a folder of images, tars (a folder of them, one, or a
/// brace pattern). Behind a scheme `%XX` is decoded.
///
/// # Errors
/// [`ErrorKind::Usage`] for a URI that makes no sense or whose scheme is not in this build, saying what was probably meant;
/// [`ErrorKind::NotFound`] where nothing is there; else what the store met.
pub fn open(uri: &str, options: &OpenOptions) -> Result<Dataset> {
    open_place(place(uri)?, options)
}

/// Opens what lies at a path, which need not be UTF-8. Else like [`open`].
///
/// # Errors
/// Those of [`open`].
pub fn open_at(path: &Path, options: &OpenOptions) -> Result<Dataset> {
    open_place(Place::Bare(path.to_owned()), options)
}

fn open_place(place: Place, options: &OpenOptions) -> Result<Dataset> {
    let name = place.name();
    open_unnamed(place, options).map_err(|error| error.in_store(name))
}

fn open_unnamed(place: Place, options: &OpenOptions) -> Result<Dataset> {
    let (scheme, address) = match place {
        Place::Bare(path) => (backend::of_path(&path, options)?, Address::Path(path)),
        Place::Scheme(scheme, address) => (scheme, address),
    };
    let backend = backend(scheme)?;
    if let Address::Path(path) = &address {
        backend::check_there(path)?;
    }
    let uri = address.uri(scheme.name);
    let runtime = Arc::new(Runtime::start()?);
    #[cfg(feature = "folder")]
    if let Address::Path(path) = &address
        && scheme == crate::scheme::FOLDER
    {
        let (path, options) = (path.clone(), options.clone());
        let opened = async move { backend::folder::open_in_place(&path, &options) };
        let store = runtime
            .wait(opened)?
            .map_err(|error| error.during("open"))?;
        let warnings = store.warnings().to_vec();
        return Ok(Dataset::new(uri, Arc::new(store), warnings, runtime));
    }
    let store = runtime
        .wait((backend.open)(address, options.clone()))?
        .map_err(|error| error.during("open"))?;
    Ok(Dataset::new(
        uri,
        wrapped(store, options),
        Vec::new(),
        runtime,
    ))
}

/// Opens what an ingest reads: whatever [`open`] opens, and beyond that gzip tars and MDS sets at a path.
///
/// # Errors
/// Those of [`open`].
pub fn open_source(uri: &str, options: &OpenOptions) -> Result<Box<dyn Source>> {
    source_at(place(uri)?, options)
}

/// Opens what lies at a path, which need not be UTF-8. Else like [`open_source`].
///
/// # Errors
/// Those of [`open`].
pub fn open_source_at(path: &Path, options: &OpenOptions) -> Result<Box<dyn Source>> {
    source_at(Place::Bare(path.to_owned()), options)
}

fn source_at(place: Place, options: &OpenOptions) -> Result<Box<dyn Source>> {
    let name = place.name();
    source_unnamed(place, options).map_err(|error| error.in_store(name))
}

fn source_unnamed(place: Place, options: &OpenOptions) -> Result<Box<dyn Source>> {
    #[cfg(feature = "folder")]
    {
        use crate::scheme::FOLDER;

        let path = match &place {
            Place::Bare(path) if backend::of_path(path, options)? == FOLDER => Some(path),
            Place::Scheme(scheme, Address::Path(path)) if *scheme == FOLDER => Some(path),
            _ => None,
        };
        if let Some(path) = path {
            backend::check_there(path)?;
            return backend::folder::open_source(path, options);
        }
    }
    Ok(Box::new(StoreSource::new(open_place(place, options)?)?))
}

/// Opens a data set for writing, making it where it is not there. A bare path is an embedded store.
///
/// # Errors
/// [`ErrorKind::Usage`] for a URI that makes no sense or a store that is only read; else what the store met.
pub fn create(uri: &str, options: &OpenOptions) -> Result<Destination> {
    create_place(place(uri)?, options)
}

/// Makes an embedded store at a path, which need not be UTF-8. Else like [`create`].
///
/// # Errors
/// Those of [`create`].
pub fn create_at(path: &Path, options: &OpenOptions) -> Result<Destination> {
    create_place(Place::Bare(path.to_owned()), options)
}

fn create_place(place: Place, options: &OpenOptions) -> Result<Destination> {
    let name = place.name();
    create_unnamed(place, options).map_err(|error| error.in_store(name))
}

fn create_unnamed(place: Place, options: &OpenOptions) -> Result<Destination> {
    let (scheme, address) = match place {
        Place::Bare(path) => (EMBEDDED, Address::Path(path)),
        Place::Scheme(scheme, address) => (scheme, address),
    };
    let Some(create) = backend(scheme)?.create else {
        return Err(Error::new(
            ErrorKind::Usage,
            format!(
                "{}: is only read, nothing can be ingested into it",
                scheme.name
            ),
        )
        .during("create")
        .hint("ingest into embedded:PATH; a folder of files is written by export"));
    };
    let runtime = Arc::new(Runtime::start()?);
    let writer = runtime
        .wait(create(address, options.clone()))?
        .map_err(|error| error.during("create"))?;
    Ok(Destination::new(writer, runtime))
}

/// Over a distance requests get lost: they are timed out and tried again. On this machine neither helps.
fn wrapped(store: Arc<dyn Store>, options: &OpenOptions) -> Arc<dyn Store> {
    if store.capability().local {
        return store;
    }
    let timed = Arc::new(Timeout::new(store, options.timeout.clone()));
    Arc::new(Retry::new(timed, options.retry.clone(), Arc::default()))
}

fn backend(scheme: Scheme) -> Result<Backend> {
    if let Some(backend) = BACKENDS
        .iter()
        .find(|backend| backend.schemes.contains(&scheme))
    {
        return Ok(*backend);
    }
    let Scheme { name, feature, .. } = scheme;
    let message = format!("this build of farhaul has no {name}: it lacks the feature `{feature}`");
    let remedy = if OPTIONAL.contains(&scheme) {
        format!("build farhaul with `--features {feature}`")
    } else {
        format!("a later version brings the feature `{feature}`")
    };
    Err(Error::new(ErrorKind::Usage, message)
        .during("open")
        .hint(format!("{remedy}; this build has {}", available())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_of_a_feature_that_is_off_is_answered_with_the_feature() {
        let error = open("rediss://host/0/set", &OpenOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("`redis`"), "{error}");
        assert!(
            error
                .advice()
                .unwrap()
                .starts_with("a later version brings")
        );
        #[cfg(not(feature = "embedded"))]
        {
            let error = open("embedded:x", &OpenOptions::default()).unwrap_err();
            assert!(
                error
                    .advice()
                    .unwrap()
                    .starts_with("build farhaul with `--features embedded`")
            );
            let error = create("x", &OpenOptions::default()).unwrap_err();
            assert!(error.to_string().contains("`embedded`"), "{error}");
        }
        #[cfg(not(feature = "folder"))]
        assert!(
            open("folder:x", &OpenOptions::default())
                .unwrap_err()
                .to_string()
                .contains("`folder`")
        );
    }

    #[test]
    fn no_two_backends_answer_one_scheme() {
        let mut names: Vec<_> = BACKENDS
            .iter()
            .flat_map(|backend| backend.schemes)
            .map(|scheme| scheme.name)
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[cfg(feature = "folder")]
    #[test]
    fn a_path_that_is_not_there_is_not_found() {
        let error = open("/none/such", &OpenOptions::default()).unwrap_err();
        assert_eq!(
            (error.kind(), error.operation()),
            (ErrorKind::NotFound, "open")
        );
    }
    #[test]
    fn over_a_distance_passing_failures_are_asked_for_again_and_on_this_machine_not() {
        use conformance::{
            fault::{Fault, FaultyStore, Script},
            lanes::{LaneScript, LanedStore},
            samples::{DataSet, Form},
        };
        use loader_core::memory::MemoryStore;

        let set = DataSet::many(Form::Any, 5);
        let script = Script::new().first(2, 1, Fault::Fail(ErrorKind::Unavailable));
        let near = MemoryStore::from_samples(set.samples, set.classes).unwrap();
        let faulty = Arc::new(FaultyStore::new(Arc::new(near), script.clone()));
        let near = Dataset::over(wrapped(faulty, &OpenOptions::default())).unwrap();
        assert_eq!(near.sample(2).unwrap_err().kind(), ErrorKind::Unavailable);

        let set = DataSet::many(Form::Any, 5);
        let store = MemoryStore::from_samples(set.samples, set.classes).unwrap();
        let faulty = Arc::new(FaultyStore::new(Arc::new(store), script));
        let far = LanedStore::new(
            faulty,
            [LaneScript::healthy(std::time::Duration::from_millis(1))],
        );
        assert!(!far.capability().local);
        let far = Dataset::over(wrapped(Arc::new(far), &OpenOptions::default())).unwrap();
        far.sample(2).unwrap();
    }
}
