//! What goes in comes out: files and members byte for byte.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use conformance::cases::{Cases, Kind, generate};

use crate::support::{assert_same_tree, bytes, photographs, run, text};

#[test]
fn a_folder_with_odd_names_comes_out_as_it_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let (source, store, out) = (
        folder.path().join("source"),
        folder.path().join("store"),
        folder.path().join("out"),
    );
    for (number, path) in (0..).zip([
        " leading space/\u{65e5}\u{672c}\u{8a9e}.jpg",
        "-dash/bild \u{fc} %20.JPG",
        "100% +plus & hash#/quote'\".jpeg",
        "e\u{301}clair/deep/deeper/\u{1f600}.png",
        "\u{e9}clair/new\nline.webp",
        "b\\s/a:b.jpg",
    ]) {
        fs::create_dir_all(source.join(path).parent().unwrap()).unwrap();
        fs::write(source.join(path), bytes(number, 5000)).unwrap();
    }
    fs::create_dir(source.join("empty class")).unwrap();
    let uri = format!("embedded:{}", text(&store));
    run(["ingest", text(&source), "--to", &uri]).exits(0);
    run(["verify", &uri]).exits(0);
    run(["export", &uri, "--to", text(&out)]).exits(0);
    assert_same_tree(&source, &out);

    // Once more into the same folder changes nothing; from the store into another store neither.
    run(["export", &uri, "--to", text(&out)]).exits(0);
    let (copy, third) = (folder.path().join("copy"), folder.path().join("third"));
    run(["ingest", text(&store), "--to", text(&copy)]).exits(0);
    run(["export", text(&copy), "--to", text(&third)]).exits(0);
    assert_same_tree(&source, &third);
    let fingerprint =
        |path: &Path| run(["info", text(path), "--json"]).json()["fingerprint"].clone();
    assert_eq!(fingerprint(&source), fingerprint(&store));
    assert_eq!(fingerprint(&store), fingerprint(&copy));
}

#[test]
fn links_become_files() {
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("source"), folder.path().join("out"));
    photographs(&source, 4, 100);
    symlink(source.join("ant/00000.jpg"), source.join("ant/link.jpg")).unwrap();
    run(["export", text(&source), "--to", text(&out)]).exits(0);
    assert!(
        out.join("ant/link.jpg")
            .symlink_metadata()
            .unwrap()
            .is_file()
    );
    assert_eq!(fs::read(out.join("ant/link.jpg")).unwrap(), bytes(0, 100));
}

/// What `tar -x` gives for a shard, readable whatever modes are in it.
fn extracted(shard: &Path, into: &Path) {
    fs::create_dir_all(into).unwrap();
    let run = |command: &mut Command| {
        let done = command.output().unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    run(Command::new("tar")
        .arg("-xf")
        .arg(shard)
        .arg("-C")
        .arg(into));
    run(Command::new("chmod").args(["-R", "u+rwX"]).arg(into));
}

fn stem(name: &str) -> &str {
    name.trim_end_matches(".gz").trim_end_matches(".tar")
}

#[test]
fn tars_come_out_as_tar_extracts_them() {
    let folder = tempfile::tempdir().unwrap();
    let cases: Cases = generate(&folder.path().join("cases"));
    // Others hold samples that are refused, or members that are no samples, which tar writes and an export does not.
    let whole = [
        "tar_control",
        "tar_gzip",
        "tar_gnu_longname",
        "tar_pax_longname",
        "tar_pax_unicode",
        "tar_pax_global",
        "tar_subdirs",
        "tar_dotted",
        "tar_hardlink",
    ];
    let mut compared = 0;
    for case in cases
        .cases
        .iter()
        .filter(|case| case.kind == Kind::Tar && whole.contains(&case.name.as_str()))
    {
        let at = folder.path().join(&case.name);
        let (store, out, wanted) = (at.join("store"), at.join("out"), at.join("wanted"));
        let shard = case.at(&cases);
        run(["ingest", text(&shard), "--to", text(&store)]).exits(0);
        run(["verify", text(&store), "--decode"]).exits(0);
        run(["export", text(&store), "--to", text(&out)]).exits(0);
        extracted(
            &shard,
            &wanted.join(stem(case.path.rsplit('/').next().unwrap())),
        );
        assert_same_tree(&wanted, &out);
        if case.name != "tar_gzip" {
            let in_place = at.join("in_place");
            run(["export", text(&shard), "--to", text(&in_place)]).exits(0);
            assert_same_tree(&wanted, &in_place);
        }
        compared += 1;
    }
    assert_eq!(compared, whole.len());
}

#[test]
fn a_brace_pattern_names_several_tars() {
    let folder = tempfile::tempdir().unwrap();
    let (source, out, wanted) = (
        folder.path().join("source"),
        folder.path().join("out"),
        folder.path().join("wanted"),
    );
    for shard in 0..3 {
        let members = folder.path().join(format!("members-{shard}"));
        fs::create_dir_all(&members).unwrap();
        fs::create_dir_all(&source).unwrap();
        for number in 0..3 {
            fs::write(
                members.join(format!("{number}.jpg")),
                bytes(shard * 10 + number, 700),
            )
            .unwrap();
            fs::write(members.join(format!("{number}.cls")), number.to_string()).unwrap();
        }
        let tar = source.join(format!("train-{shard:03}.tar"));
        let done = Command::new("tar")
            .arg("-cf")
            .arg(&tar)
            .arg("-C")
            .arg(&members)
            .args(["."])
            .status()
            .unwrap();
        assert!(done.success());
        extracted(&tar, &wanted.join(format!("train-{shard:03}")));
    }
    let pattern = format!("{}/train-{{000..002}}.tar", text(&source));
    let store = folder.path().join("store");
    assert_eq!(
        run(["ingest", &pattern, "--to", text(&store), "--json"])
            .exits(0)
            .json()["samples"],
        9
    );
    run(["export", text(&store), "--to", text(&out)]).exits(0);
    assert_same_tree(&wanted, &out);
    assert_eq!(
        run(["info", &pattern, "--json"]).exits(0).json()["samples"],
        9
    );
}

#[test]
fn an_export_replaces_no_file_unless_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("source"), folder.path().join("out"));
    photographs(&source, 8, 100);
    fs::create_dir_all(out.join("bee")).unwrap();
    fs::write(out.join("bee/00001.jpg"), "mine").unwrap();
    let ran = run(["export", text(&source), "--to", text(&out), "--json"]).exits(1);
    assert_eq!(
        (&ran.json()["error"]["kind"], &ran.json()["error"]["key"]),
        (&"conflict".into(), &"bee/00001.jpg".into())
    );
    assert_eq!(fs::read(out.join("bee/00001.jpg")).unwrap(), b"mine");
    run(["export", text(&source), "--to", text(&out), "--overwrite"]).exits(0);
    assert_same_tree(&source, &out);
}

#[test]
fn an_export_never_follows_a_link_out_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (source, out, other) = (
        folder.path().join("source"),
        folder.path().join("out"),
        folder.path().join("other"),
    );
    photographs(&source, 4, 100);
    fs::create_dir_all(&out).unwrap();
    fs::create_dir_all(&other).unwrap();
    symlink(&other, out.join("ant")).unwrap();
    let ran = run([
        "export",
        text(&source),
        "--to",
        text(&out),
        "--overwrite",
        "--json",
    ])
    .exits(1);
    assert_eq!(ran.json()["error"]["kind"], "conflict");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
}
