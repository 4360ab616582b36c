//! `cargo xtask demo`: the main job on real photographs, from a bare clone, in a few minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::places;
use crate::python::{self, Profile};
use crate::setup::{self, Purpose};
use crate::shell::{Result, Run};

/// How many photographs are made.
const COUNT: &str = "4000";

/// Sets up, makes the photographs, ingests and verifies them, and reads an epoch in Python.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    if !words.is_empty() {
        return Err(format!("demo takes no options, not `{}`", words.join(" ")));
    }
    let began = Instant::now();
    let folder = places::target().join("demo");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let [photos, store, picture] =
        ["photos", "store", "contact-sheet.png"].map(|name| shown(&folder.join(name)));
    let uri = format!("embedded:{store}");

    println!(
        "1. What this needs: a C compiler, cmake, nasm, and NumPy in an environment of its own"
    );
    setup::run(Purpose::Demo)?;
    println!("\n2. The command line and the Python module");
    let built = Instant::now();
    python::build(Profile::Release)?;
    let built = built.elapsed();
    println!("\n3. {COUNT} photographs, cut from the few in demo/photos");
    let interpreter =
        || Run::new(places::venv_program("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    interpreter()
        .arg("demo/make_photos.py")
        .arg(&photos)
        .args(["--count", COUNT])
        .run()?;
    println!("\n4. Into the embedded store, and every payload against its checksum");
    let farhaul = || Run::new(places::target().join("release/farhaul"));
    farhaul().args(["ingest", &photos, "--to", &uri]).run()?;
    farhaul().args(["verify", &uri]).run()?;
    println!("\n5. One epoch in Python: shuffled, cropped at random, batches of 256");
    interpreter()
        .args([
            "demo/epoch.py",
            &uri,
            "--folder",
            &photos,
            "--picture",
            &picture,
        ])
        .run()?;
    println!("\n{}", summary(&picture, built, began.elapsed()));
    Ok(())
}

fn summary(picture: &str, built: Duration, total: Duration) -> String {
    format!(
        "The first images of one batch: {picture}\n\
         All of it took {:.0} s, of which {:.0} s went into compiling.\n\
         Next: `cargo xtask test` runs every check; README.md shows the loader in ten lines.",
        total.as_secs_f64(),
        built.as_secs_f64()
    )
}

/// A path as a person at the root would type it.
fn shown(path: &Path) -> String {
    let short: PathBuf = path.strip_prefix(places::root()).unwrap_or(path).to_owned();
    short.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_root_are_shown_from_there() {
        assert_eq!(shown(&places::root().join("target/demo")), "target/demo");
        assert_eq!(shown(Path::new("/elsewhere/demo")), "/elsewhere/demo");
    }

    #[test]
    fn the_demo_refuses_options_that_it_does_not_have() {
        assert!(run(&["--fast"]).unwrap_err().contains("--fast"));
    }
}
