//! Image folders: what counts as a sample, and files that change under the reader's hands.

use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

use backend_folder::{FolderConfig, FolderFormat, FolderStore, Layout};
use loader_core::{ErrorKind, FetchRequest, NO_LABEL, Store, uri::percent_decode};
use tempfile::{TempDir, tempdir};

use crate::support::{catalog, fetch, open, read_source, read_store, run, tar, write};

fn folder(files: &[&str]) -> TempDir {
    let folder = tempdir().unwrap();
    for file in files {
        write(folder.path(), file, file.as_bytes());
    }
    folder
}

fn paths(store: &FolderStore) -> Vec<String> {
    let catalog = catalog(store);
    (0..catalog.len())
        .map(|row| catalog.row(row).path.to_string())
        .collect()
}

fn kind_of(store: &FolderStore, path: &str) -> ErrorKind {
    let outcomes = read_store(store);
    let error = outcomes[path].as_ref().unwrap_err();
    assert!(error.kind().is_of_one_sample(), "{error}");
    error.kind()
}

#[test]
fn files_beside_class_folders_are_left_out_and_counted() {
    let folder = folder(&[
        "cat/1.jpg",
        "dog/deep/2.png",
        "cover.jpg",
        "README.md",
        "labels.csv",
        "shard.tar",
        "dog/x.tar",
    ]);
    let store = open(folder.path());
    assert_eq!(paths(&store), ["cat/1.jpg", "dog/deep/2.png"]);
    assert_eq!((store.layout(), store.left_out()), (Layout::ImageFolder, 5));
    assert_eq!(&*store.summary().classes, ["cat", "dog"]);
    assert_eq!(read_source(folder.path()).1, 5);
}

#[test]
fn a_flat_folder_has_no_classes_and_no_labels() {
    let folder = folder(&["2.jpg", "1.JPG", "notes.txt", "masks/readme.txt"]);
    let store = open(folder.path());
    assert_eq!(paths(&store), ["1.JPG", "2.jpg"]);
    assert!(store.summary().classes.is_empty());
    assert_eq!((catalog(&store).label(0), store.left_out()), (NO_LABEL, 2));
}

#[test]
fn one_image_is_a_data_set_of_one_sample() {
    let folder = folder(&["a b.jpg", "b.jpg"]);
    let store = open(&folder.path().join("a b.jpg"));
    let outcomes = read_store(&store);
    assert_eq!(outcomes["a b.jpg"].as_ref().unwrap().payload, "a b.jpg");
    assert_eq!((outcomes.len(), store.left_out()), (1, 0));
}

#[test]
fn the_layout_is_told_by_looking_and_an_explicit_format_wins() {
    let detect = |folder: &TempDir| Layout::detect(folder.path()).unwrap();
    assert_eq!(detect(&folder(&["a.jpg", "b.tar"])), Layout::ImageFolder);
    assert_eq!(
        detect(&folder(&["a.jpg", "b.tar", "c.tgz"])),
        Layout::WebDataset
    );
    assert_eq!(
        detect(&folder(&["train/a.tar", "val/a.tar.gz"])),
        Layout::WebDataset
    );
    assert_eq!(
        detect(&folder(&["cat/a.jpg", "b.tar", "c.tar"])),
        Layout::ImageFolder
    );
    let index = folder(&["cat/a.jpg"]);
    write(
        index.path(),
        "index.json",
        br#"{"shards": [], "version": 2}"#,
    );
    assert_eq!(detect(&index), Layout::Mds);
    write(index.path(), "index.json", br#"{"images": []}"#);
    assert_eq!(detect(&index), Layout::ImageFolder);

    let both = folder(&["a.jpg"]);
    write(
        both.path(),
        "b.tar",
        &tar(&[("1.jpg", b"x"), ("1.cls", b"4")]),
    );
    let mut config = FolderConfig::default();
    config.format = FolderFormat::WebDataset;
    assert_eq!(
        paths(&FolderStore::open(both.path(), config).unwrap()),
        ["b/1"]
    );
    assert_eq!(paths(&open(both.path())), ["a.jpg"]);
}

#[test]
fn a_path_without_a_data_set_says_so() {
    let nothing = folder(&["notes.txt", "x/y.csv"]);
    let kind = |path: &Path| {
        let error = FolderStore::open(path, FolderConfig::default()).unwrap_err();
        assert!(error.store().unwrap().starts_with("folder:"));
        error.kind()
    };
    assert_eq!(kind(nothing.path()), ErrorKind::NotFound);
    assert_eq!(kind(&nothing.path().join("absent")), ErrorKind::NotFound);
    assert_eq!(
        kind(&nothing.path().join("notes.txt")),
        ErrorKind::Unsupported
    );
    assert_eq!(
        kind(&nothing.path().join("absent-{00..02}.tar")),
        ErrorKind::NotFound
    );
}

#[test]
fn an_empty_place_that_is_said_to_be_an_image_folder_is_not_found() {
    let mut config = FolderConfig::default();
    config.format = FolderFormat::ImageFolder;
    let kind = |files: &[&str]| {
        FolderStore::open(folder(files).path(), config).map_err(|error| error.kind())
    };
    assert_eq!(kind(&["notes.txt"]).unwrap_err(), ErrorKind::NotFound);
    assert_eq!(kind(&["data.mdb"]).unwrap_err(), ErrorKind::NotFound);
    assert_eq!(kind(&["cat/none.txt"]).unwrap().summary().samples, 0);
}

#[test]
fn an_embedded_store_among_the_classes_is_no_class_and_holds_no_sample() {
    let folder = folder(&["ant/1.jpg", "cat/deep/2.jpg", "zebra/3.jpg"]);
    let before = open(folder.path()).summary();
    let elsewhere = tempdir().unwrap();
    for place in [
        folder.path().join("bee"),
        folder.path().join("cat/deep/store"),
        elsewhere.path().to_owned(),
    ] {
        for file in ["data.mdb", "lock.mdb", "4.jpg", "more/5.jpg"] {
            write(&place, file, b"x");
        }
    }
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("link")).unwrap();
    let store = open(folder.path());
    assert_eq!(store.summary(), before);
    assert_eq!(store.left_out(), 3);
    assert_eq!(&*store.summary().classes, ["ant", "cat", "zebra"]);
    assert_eq!(read_source(folder.path()).1, 3);
}

#[test]
fn names_that_are_no_utf8_are_read_and_shown() {
    let folder = folder(&["cat/1.jpg"]);
    let class = folder.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&class).unwrap();
    fs::write(class.join(OsStr::from_bytes(b"\xff.jpg")), b"bytes").unwrap();
    let store = open(folder.path());
    assert_eq!(&*store.summary().classes, ["caf%E9", "cat"]);
    assert_eq!(
        read_store(&store)["caf%E9/%FF.jpg"]
            .as_ref()
            .unwrap()
            .payload,
        "bytes"
    );
    assert_eq!(catalog(&store).find(b"caf\xe9/\xff.jpg"), Some(0));
}

#[test]
fn a_pipe_with_the_name_of_an_image_is_no_sample_and_no_hang() {
    let folder = folder(&["cat/1.jpg", "cat/2.jpg"]);
    run(Command::new("mkfifo").arg(folder.path().join("cat/pipe.jpg")));
    let store = open(folder.path());
    assert_eq!((paths(&store).len(), store.left_out()), (2, 1));
    let second = folder.path().join("cat/2.jpg");
    fs::remove_file(&second).unwrap();
    run(Command::new("mkfifo").arg(&second));
    assert_eq!(kind_of(&store, "cat/2.jpg"), ErrorKind::Changed);
}

#[test]
fn a_folder_that_nobody_may_write_to_is_read() {
    let folder = folder(&["cat/1.jpg"]);
    let set = |mode| {
        fs::set_permissions(folder.path().join("cat"), Permissions::from_mode(mode)).unwrap();
    };
    set(0o555);
    let outcomes = read_store(&open(folder.path()));
    set(0o755);
    assert_eq!(outcomes["cat/1.jpg"].as_ref().unwrap().payload, "cat/1.jpg");
}

#[test]
fn a_file_that_changes_or_goes_is_a_typed_error_of_that_sample() {
    let folder = folder(&[
        "c/grown.jpg",
        "c/cut.jpg",
        "c/touched.jpg",
        "c/gone.jpg",
        "c/folder.jpg",
        "c/same.jpg",
    ]);
    let store = open(folder.path());
    let at = |name: &str| folder.path().join("c").join(name);
    fs::write(at("grown.jpg"), vec![1; 100_000]).unwrap();
    fs::write(at("cut.jpg"), b"c").unwrap();
    let later = SystemTime::now() + Duration::from_secs(5);
    File::options()
        .write(true)
        .open(at("touched.jpg"))
        .unwrap()
        .set_modified(later)
        .unwrap();
    for gone in ["gone.jpg", "folder.jpg"] {
        fs::remove_file(at(gone)).unwrap();
    }
    fs::create_dir(at("folder.jpg")).unwrap();
    assert_eq!(kind_of(&store, "c/grown.jpg"), ErrorKind::Changed);
    assert_eq!(kind_of(&store, "c/cut.jpg"), ErrorKind::Changed);
    assert_eq!(kind_of(&store, "c/touched.jpg"), ErrorKind::Changed);
    assert_eq!(kind_of(&store, "c/gone.jpg"), ErrorKind::Vanished);
    assert_eq!(kind_of(&store, "c/folder.jpg"), ErrorKind::Changed);
    assert_eq!(
        read_store(&store)["c/same.jpg"].as_ref().unwrap().payload,
        "c/same.jpg"
    );
    // Opened anew it is another data set, with other keys.
    let again = open(folder.path());
    assert_ne!(again.summary().fingerprint, store.summary().fingerprint);
}

#[test]
fn an_empty_file_and_one_above_the_limit_fail_alone() {
    let folder = folder(&["c/good.jpg"]);
    write(folder.path(), "c/empty.jpg", b"");
    let huge = File::create(folder.path().join("c/huge.jpg")).unwrap();
    huge.set_len(1 << 40).unwrap();
    let outcomes = read_store(&open(folder.path()));
    let kind = |path: &str| {
        outcomes[path]
            .as_ref()
            .map_or_else(loader_core::Error::kind, |_| panic!("{path} is an error"))
    };
    assert_eq!(
        (kind("c/empty.jpg"), kind("c/huge.jpg")),
        (ErrorKind::Empty, ErrorKind::TooLarge)
    );
    assert!(outcomes["c/good.jpg"].is_ok());
}

#[test]
fn many_files_of_one_folder_come_in_path_order() {
    let folder = tempdir().unwrap();
    for number in 0..3000 {
        write(
            folder.path(),
            &format!("c{}/{number}.jpg", number % 2),
            number.to_string().as_bytes(),
        );
    }
    let store = open(folder.path());
    let paths = paths(&store);
    assert_eq!(paths.len(), 3000);
    assert!(paths.is_sorted());
    let fingerprint = store.summary().fingerprint;
    let outcomes = fetch(
        &store,
        FetchRequest::rows(fingerprint, vec![2999, 0, 1500, 0]),
    );
    let name = |target: usize| outcomes[&target].as_ref().unwrap().path.to_string();
    assert_eq!(
        [name(0), name(1), name(2), name(3)],
        [2999, 0, 1500, 0].map(|row: usize| paths[row].clone())
    );
}

#[test]
fn a_loop_of_links_between_folders_ends() {
    let folder = folder(&["a/1.jpg", "b/2.jpg"]);
    for (link, target) in [
        ("a/b", "../b"),
        ("b/a", "../a"),
        ("a/self", "."),
        ("b/top", ".."),
    ] {
        std::os::unix::fs::symlink(target, folder.path().join(link)).unwrap();
    }
    let store = open(folder.path());
    assert_eq!(
        paths(&store),
        ["a/1.jpg", "a/b/2.jpg", "b/2.jpg", "b/a/1.jpg"]
    );
    assert!(store.warnings().len() >= 4);
}

#[test]
fn what_a_store_is_called_is_a_uri_that_opens_it_again() {
    let parent = tempdir().unwrap();
    for name in [&b"a b%20#?"[..], "b\u{e4}ume".as_bytes(), b"x\xff%\xfe\n"] {
        let place = parent.path().join(OsStr::from_bytes(name));
        write(&place, "c/1.jpg", b"x");
        let uri = open(&place).to_string();
        assert!(
            uri.is_ascii() && !uri.contains([' ', '?', '#', '\n']),
            "{uri}"
        );
        let path = percent_decode(uri.strip_prefix("folder:").unwrap()).unwrap();
        assert_eq!(Path::new(OsStr::from_bytes(&path)), place);
    }
}
