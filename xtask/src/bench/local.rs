//! `cargo xtask bench local`: speed and memory on files of this machine, against the loaders that people have.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Asked;
use super::measurement::{Party, last_json};
use super::pairs::{Comparison, median};
use super::report::{self, Figure};
use crate::numbers;
use crate::places;
use crate::python::{self, Profile};
use crate::setup::{self, Purpose};
use crate::shell::{Result, Run};

/// A folder of photographs and the store made from it.
struct Files {
    folder: String,
    store: String,
}

/// Sets up, makes the files, measures, keeps the results.
pub(super) fn run(asked: &Asked) -> Result<()> {
    setup::run(Purpose::Bench)?;
    python::build(Profile::Release)?;
    python::cargo()
        .words("build --release --package bench")
        .run()?;
    let (prefix, tenth) = if asked.quick { ("quick-", 10) } else { ("", 1) };
    let set = |name: &str, count: u32, size, mean_bytes| {
        make(&format!("{prefix}{name}"), count / tenth, size, mean_bytes)
    };
    let small = set("photos", 8000, "500x375", 100_000)?;
    // Two sizes of one picture: as a site serves it, and as a camera writes it. What Huffman decoding costs goes with
    // the bytes, and what DCT scaling saves with the pixels.
    let large = [
        (
            "2000×1500 photographs of 0.45 MB, decoded, the same crop",
            set("large-served", 400, "2000x1500", 400_000)?,
        ),
        (
            "2000×1500 photographs of 1 MB, decoded, the same crop",
            set("large-camera", 400, "2000x1500", 900_000)?,
        ),
    ];
    let mut outcomes = Vec::new();
    for comparison in comparisons(&small, &large) {
        if asked
            .only
            .as_ref()
            .is_some_and(|words| !comparison.name.contains(words.as_str()))
        {
            continue;
        }
        println!("\n{}, {} threads", comparison.name, comparison.threads);
        outcomes.push(comparison.run(asked.pairs)?);
    }
    let mut figures = Vec::new();
    if asked.only.is_none() {
        println!("\nsingle figures");
        figures.push(first_batch(&small, asked.pairs)?);
        figures.extend(memory(&small)?);
        figures.extend(core_figures()?);
    }
    let machine = machine()?;
    let page = report::page(&machine, &outcomes, &figures);
    println!("\n{page}");
    if asked.quick || asked.only.is_some() {
        println!("a part only: nothing is kept");
        return Ok(());
    }
    let record = json!({
        "machine": machine,
        "pairs": asked.pairs,
        "comparisons": outcomes.iter().map(super::pairs::Outcome::record).collect::<Vec<_>>(),
        "figures": figures.iter().map(record_of).collect::<Vec<_>>(),
    });
    keep(&machine, &record, &page)
}

fn record_of(figure: &Figure) -> Value {
    json!({"name": figure.name, "measured": figure.measured, "mark": figure.mark, "met": figure.met})
}

/// Makes the photographs and ingests them; both are there already after the first time.
fn make(name: &str, count: u32, size: &str, mean_bytes: u32) -> Result<Files> {
    let place = places::target().join("bench");
    fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let folder = place.join(name);
    Run::new(places::venv_program("python"))
        .arg("demo/make_photos.py")
        .arg(&folder)
        .args([
            "--count",
            &count.to_string(),
            "--size",
            size,
            "--bytes",
            &mean_bytes.to_string(),
        ])
        .run()?;
    let store = format!("embedded:{}", place.join(format!("{name}-store")).display());
    Run::new(places::target().join("release/farhaul"))
        .arg("ingest")
        .arg(&folder)
        .args(["--to", &store])
        .run()?;
    Ok(Files {
        folder: folder.display().to_string(),
        store,
    })
}

/// Everything that is compared, with the marks that were set before it was built.
fn comparisons(small: &Files, large: &[(&'static str, Files)]) -> Vec<Comparison> {
    let party = |script: &'static str, files: &str, threads: u8, more: &str| {
        let mut arguments = vec![
            files.to_owned(),
            "--threads".to_owned(),
            threads.to_string(),
        ];
        arguments.extend(more.split_whitespace().map(str::to_owned));
        Party { script, arguments }
    };
    let decoders = |files: &Files, threads: u8, more: &str| {
        [
            "torchvision_decode",
            "pillow_decode",
            "dali_decode",
            "tfdata_decode",
        ]
        .map(|script| party(script, &files.folder, threads, more))
        .to_vec()
    };
    let mut all = Vec::new();
    for (threads, store_mark, folder_mark) in [(2, Some(3.0), Some(2.0)), (1, None, None)] {
        let epochs = "--epochs 3";
        let rival = party("torch_raw", &small.folder, threads, epochs);
        let folder = format!("folder:{}", small.folder);
        for (name, files, mark) in [
            (
                "raw bytes, shuffled, embedded store",
                &small.store,
                store_mark,
            ),
            ("raw bytes, shuffled, folder in place", &folder, folder_mark),
        ] {
            let ours = party("farhaul_loader", files, threads, &format!("--raw {epochs}"));
            all.push(Comparison {
                name,
                threads,
                mark,
                ours,
                rivals: vec![rival.clone()],
            });
        }
    }
    for threads in [2, 1] {
        all.push(Comparison {
            name: "decoded, 224 random-resized-crop, antialiased",
            threads,
            mark: Some(1.4),
            ours: party("farhaul_loader", &small.store, threads, ""),
            rivals: decoders(small, threads, ""),
        });
    }
    for (name, files) in large {
        for threads in [2, 1] {
            let batch = "--batch 64";
            all.push(Comparison {
                name,
                threads,
                mark: Some(2.0),
                ours: party("farhaul_loader", &files.store, threads, batch),
                rivals: decoders(files, threads, batch),
            });
        }
    }
    all
}

fn first_batch(files: &Files, runs: usize) -> Result<Figure> {
    let mut seconds = Vec::new();
    for _ in 0..runs {
        let output = Run::new(places::venv_program("python"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .args(["bench/peers/farhaul_start.py", &files.store])
            .read()?;
        let value = last_json(&output).and_then(|record| record["first_batch_s"].as_f64());
        seconds.push(value.ok_or_else(|| format!("farhaul_start printed {output}"))?);
    }
    let middle = median(&seconds);
    Ok(Figure {
        name: "from `open` to the first decoded batch of 256, embedded store".into(),
        measured: format!("{middle:.3} s"),
        mark: "≤0.3 s".into(),
        met: middle <= 0.3,
    })
}

fn memory(files: &Files) -> Result<Vec<Figure>> {
    const FIXED_MEGABYTES: f64 = 150.0;
    let mut figures = Vec::new();
    for (kind, more) in [("decoded", ""), ("raw", "--raw")] {
        for megabytes in [128.0, 512.0, 2000.0] {
            let mut arguments = vec![
                files.store.clone(),
                "--memory".to_owned(),
                format!("{megabytes}MB"),
            ];
            arguments.extend(more.split_whitespace().map(str::to_owned));
            let measured = Party {
                script: "farhaul_loader",
                arguments,
            }
            .measure()?;
            let peak = measured.peak_bytes / 1e6;
            figures.push(Figure {
                name: format!(
                    "anonymous and shared memory, {kind}, budget {megabytes} MB, Python included"
                ),
                measured: format!("{peak:.0} MB"),
                mark: format!("≤{} MB", megabytes + FIXED_MEGABYTES),
                met: peak <= megabytes + FIXED_MEGABYTES,
            });
        }
    }
    Ok(figures)
}

/// The plan and the index, measured by the `bench` program.
fn core_figures() -> Result<Vec<Figure>> {
    let program = || Run::new(places::target().join("release/bench"));
    let plan = program().arg("plan").read()?;
    let plan = last_json(&plan).ok_or("bench plan printed no JSON")?;
    let index = program().arg("index").read()?;
    let index = last_json(&index).ok_or("bench index printed no JSON")?;
    let number = |value: &Value| value.as_f64().unwrap_or(f64::INFINITY);
    let mut figures: Vec<Figure> = plan
        .as_array()
        .ok_or("bench plan printed no list")?
        .iter()
        .map(|size| Figure {
            name: format!(
                "a position of a plan of {} samples (starting an epoch: {:.0} ns)",
                size["samples"],
                number(&size["start_of_epoch_ns"])
            ),
            measured: format!("{:.0} ns", number(&size["position_ns"])),
            mark: "≤100 ns".into(),
            met: number(&size["position_ns"]) <= 100.0,
        })
        .collect();
    let bytes = number(&index["bytes_a_sample_without_path"]);
    figures.push(Figure {
        name: format!(
            "the index, a sample beside its path (10⁶ samples open in {:.1} ms, mapped)",
            number(&index["open_ms"])
        ),
        measured: format!("{bytes:.0} bytes"),
        mark: "≤64 bytes".into(),
        met: bytes <= 64.0,
    });
    Ok(figures)
}

/// Where and with what this was measured.
fn machine() -> Result<Value> {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("unknown");
    let line = |program: &str, words: &str| {
        Run::new(program)
            .words(words)
            .read()
            .map(|text| text.trim().to_owned())
    };
    let frozen = Run::new(places::venv_program("python"))
        .words("-m pip list --format=freeze --disable-pip-version-check")
        .read()?;
    Ok(json!({
        "date": line("date", "-u +%Y-%m-%d")?,
        "cores": std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        "processor": model.trim_start_matches([' ', '\t', ':']),
        "kernel": line("uname", "-r")?,
        "commit": line("git", "rev-parse --short HEAD")?,
        "versions": versions(&frozen),
    }))
}

/// The rivals' versions, in a sentence.
fn versions(frozen: &str) -> String {
    const RIVALS: [&str; 5] = [
        "torch",
        "torchvision",
        "tensorflow-cpu",
        "nvidia-dali-cuda130",
        "pillow",
    ];
    let version = |name: &str| {
        let normal = |text: &str| text.replace('_', "-").to_lowercase();
        frozen.lines().find_map(|line| {
            line.split_once("==")
                .filter(|(package, _)| normal(package) == name)
                .map(|(_, version)| version)
        })
    };
    let known: Vec<String> = RIVALS
        .iter()
        .filter_map(|name| Some(format!("{name} {}", version(name)?)))
        .collect();
    format!("Rivals: {}.", known.join(", "))
}

/// Writes the record under its date and the page that is always the newest.
fn keep(machine: &Value, record: &Value, page: &str) -> Result<()> {
    let folder: PathBuf = places::root().join("bench/results");
    let date = machine["date"].as_str().unwrap_or("undated");
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let text = serde_json::to_string_pretty(record)
        .expect("a record of numbers and texts has a JSON form");
    write(
        &folder.join(format!("local-{date}.json")),
        &format!("{text}\n"),
    )?;
    write(&folder.join("local.md"), page)?;
    let readme = places::root().join("README.md");
    let text = fs::read_to_string(&readme).map_err(|error| format!("README.md: {error}"))?;
    write(
        &readme,
        &numbers::put(&text, page).ok_or("README.md has no place for the numbers")?,
    )?;
    println!("kept in bench/results: local-{date}.json, local.md; README.md has the tables");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(name: &str) -> Files {
        Files {
            folder: format!("/{name}"),
            store: format!("embedded:/{name}-store"),
        }
    }

    #[test]
    fn every_script_of_a_comparison_is_there_and_gets_the_same_cores() {
        for comparison in comparisons(&files("small"), &[("large", files("large"))]) {
            for party in std::iter::once(&comparison.ours).chain(&comparison.rivals) {
                let script = places::root().join(format!("bench/peers/{}.py", party.script));
                assert!(script.is_file(), "{}", script.display());
                let at = party
                    .arguments
                    .iter()
                    .position(|word| word == "--threads")
                    .unwrap();
                assert_eq!(party.arguments[at + 1], comparison.threads.to_string());
            }
        }
    }

    #[test]
    fn rivals_read_the_very_files_that_ours_were_made_from() {
        for comparison in comparisons(&files("small"), &[("large", files("large"))]) {
            for rival in &comparison.rivals {
                assert!(
                    comparison.ours.arguments[0].contains(&rival.arguments[0]),
                    "{}",
                    comparison.name
                );
            }
        }
    }

    #[test]
    fn versions_are_those_of_the_rivals_however_their_names_are_written() {
        let frozen = "numpy==2.4\ntensorflow_cpu==2.21.0\nTorch==2.15.0\n";
        assert_eq!(
            versions(frozen),
            "Rivals: torch 2.15.0, tensorflow-cpu 2.21.0."
        );
    }
}
