//! The shared cases can be made and read.

use conformance::cases::{self, Kind, Outcome};

#[test]
fn the_generator_makes_what_its_manifest_says() {
    let folder = tempfile::tempdir().unwrap();
    let cases = cases::generate(&folder.path().join("cases"));
    assert_eq!(cases.cases.len(), 59);
    assert_eq!(
        cases
            .cases
            .iter()
            .map(|case| case.samples.len())
            .sum::<usize>(),
        128
    );
    for case in &cases.cases {
        assert!(
            case.at(&cases).exists() || case.shard_outcome == Some(Outcome::Error),
            "{}",
            case.name
        );
        if case.kind == Kind::Image {
            let [sample] = &case.samples[..] else {
                panic!("an image is one sample")
            };
            let bytes = case.at(&cases).metadata().unwrap().len();
            assert_eq!(Some(bytes), sample.bytes, "{}", case.name);
        }
        for sample in &case.samples {
            assert!(
                sample.outcome != Outcome::Ok || sample.mean.is_some(),
                "{}",
                case.name
            );
        }
    }
}

#[test]
fn the_real_files_are_those_of_their_table() {
    let Some(files) = cases::real_files() else {
        return;
    };
    assert_eq!(files.len(), 27);
    for file in &files {
        assert_eq!(
            file.path.metadata().unwrap().len(),
            file.bytes,
            "{}",
            file.name
        );
        assert_eq!(file.sha256.len(), 64);
        assert_eq!(
            file.outcome() == Some(Outcome::Ok),
            file.mean.is_some() && file.expected == "ok",
            "{}",
            file.name
        );
    }
    let cmyk = files
        .iter()
        .find(|file| file.name == "pil_sample_cmyk.jpg")
        .unwrap();
    assert_eq!(
        (cmyk.shape, cmyk.mean),
        (Some([100, 100, 3]), Some([30.23, 5.44, 7.39]))
    );
}
