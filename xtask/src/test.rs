//! `cargo xtask test`: every check and test, in one order, stopping at the first that fails.
//!
//! One profile and one set of features serve all steps, so that nothing is compiled twice.

use std::time::{Duration, Instant};

use crate::places;
use crate::python::{self, Profile};
use crate::setup::{self, Purpose};
use crate::shell::{Result, Run};
use crate::tidy;

/// One step: its name on the command line, whether `--quick` leaves it out, what it does.
struct Step {
    name: &'static str,
    slow: bool,
    run: fn() -> Result<()>,
}

const STEPS: [Step; 16] = [
    Step {
        name: "setup",
        slow: false,
        run: || setup::run(Purpose::Test),
    },
    Step {
        name: "tidy",
        slow: false,
        run: tidy::run,
    },
    Step {
        name: "rustfmt",
        slow: false,
        run: || python::cargo().words("fmt --all --check").run(),
    },
    Step {
        name: "typos",
        slow: false,
        run: || tool("typos", ""),
    },
    Step {
        name: "taplo",
        slow: false,
        run: || tool("taplo", "fmt --check --colors never"),
    },
    Step {
        name: "clippy",
        slow: false,
        run: clippy,
    },
    Step {
        name: "build",
        slow: false,
        run: || python::build(Profile::Dev),
    },
    Step {
        name: "nextest",
        slow: false,
        run: || {
            python::cargo()
                .words("nextest run --workspace --all-features")
                .run()
        },
    },
    Step {
        name: "doctest",
        slow: true,
        run: || {
            python::cargo()
                .words("test --doc --workspace --all-features")
                .run()
        },
    },
    Step {
        name: "features",
        slow: true,
        run: features,
    },
    Step {
        name: "rustdoc",
        slow: true,
        run: rustdoc,
    },
    Step {
        name: "deny",
        slow: true,
        run: || {
            python::cargo()
                .words("deny check licenses bans sources")
                .run()
        },
    },
    Step {
        name: "shear",
        slow: true,
        run: || python::cargo().words("shear").run(),
    },
    Step {
        name: "ruff",
        slow: false,
        run: ruff,
    },
    Step {
        name: "mypy",
        slow: false,
        run: mypy,
    },
    Step {
        name: "pytest",
        slow: false,
        run: pytest,
    },
];

/// Runs the steps that `words` leave: all of them, those not slow, or the named ones.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let chosen = choose(words)?;
    let began = Instant::now();
    let mut done: Vec<(&str, Duration)> = Vec::new();
    for step in &chosen {
        println!(
            "\n=== {} ({} of {})",
            step.name,
            done.len() + 1,
            chosen.len()
        );
        let started = Instant::now();
        let result = (step.run)();
        done.push((step.name, started.elapsed()));
        if let Err(message) = result {
            summarize(&done, began.elapsed());
            return Err(format!(
                "{message}\n{} failed; again, alone: cargo xtask test --only {}",
                step.name, step.name
            ));
        }
        println!(
            "--- {} took {:.1} s",
            step.name,
            started.elapsed().as_secs_f64()
        );
    }
    summarize(&done, began.elapsed());
    println!("all {} steps passed", done.len());
    Ok(())
}

fn choose(words: &[&str]) -> Result<Vec<&'static Step>> {
    let mut quick = false;
    let mut only = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => quick = true,
            "--only" => only.push(*words.next().ok_or("--only needs the name of a step")?),
            other => {
                return Err(format!(
                    "test does not know `{other}`; it takes --quick and --only STEP"
                ));
            }
        }
    }
    if let Some(unknown) = only
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(format!(
            "no step is called `{unknown}`; there are {}",
            names.join(", ")
        ));
    }
    Ok(STEPS
        .iter()
        .filter(|step| only.contains(&step.name) || only.is_empty() && !(quick && step.slow))
        .collect())
}

fn summarize(done: &[(&str, Duration)], total: Duration) {
    println!();
    for (name, time) in done {
        println!("{name:>10} {:7.1} s", time.as_secs_f64());
    }
    println!("{:>10} {:7.1} s", "total", total.as_secs_f64());
}

/// A program of the Python environment, by words.
fn tool(name: &str, line: &str) -> Result<()> {
    Run::new(places::venv_program(name))
        .env("PATH", places::path_with_venv())
        .words(line)
        .run()
}

fn clippy() -> Result<()> {
    python::cargo()
        .words("clippy --workspace --all-targets --all-features -- -D warnings")
        .run()
}

/// The facade with each of its features alone, with none, and with every pair of them.
fn features() -> Result<()> {
    python::cargo()
        .words("hack clippy --package farhaul --all-targets --feature-powerset --depth 2 -- -D warnings")
        .run()
}

fn rustdoc() -> Result<()> {
    python::cargo()
        .env("RUSTDOCFLAGS", "-D warnings")
        .words("doc --workspace --all-features --no-deps --document-private-items")
        .run()
}

fn ruff() -> Result<()> {
    tool("ruff", "check --no-cache .")?;
    tool("ruff", "format --no-cache --check .")
}

fn mypy() -> Result<()> {
    let cache = places::target().join("mypy");
    let mypy =
        || Run::new(places::venv_program("python")).current_dir(places::root().join("bindings-py"));
    mypy()
        .words("-m mypy --strict --cache-dir")
        .arg(&cache)
        .words("python/farhaul")
        .run()?;
    mypy()
        .env("MYPY_CACHE_DIR", &cache)
        .words("-m mypy.stubtest farhaul._farhaul")
        .run()
}

fn pytest() -> Result<()> {
    Run::new(places::venv_program("python"))
        .current_dir(places::root().join("bindings-py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .words("-m pytest -p no:cacheprovider --timeout 300 --durations 5 tests")
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<&'static str> {
        choose(words)
            .unwrap()
            .into_iter()
            .map(|step| step.name)
            .collect()
    }

    #[test]
    fn without_words_every_step_runs_and_setup_is_first() {
        let all = names(&[]);
        assert_eq!(all.len(), STEPS.len());
        assert_eq!(all[0], "setup");
    }

    #[test]
    fn quick_leaves_the_slow_steps_out_and_no_other() {
        let quick = names(&["--quick"]);
        assert!(quick.contains(&"nextest") && quick.contains(&"pytest"));
        assert!(!quick.contains(&"features"));
    }

    #[test]
    fn only_takes_steps_by_name_and_refuses_unknown_ones() {
        assert_eq!(
            names(&["--only", "tidy", "--only", "clippy"]),
            ["tidy", "clippy"]
        );
        assert!(choose(&["--only", "tidi"]).err().unwrap().contains("tidy"));
        assert!(choose(&["--fast"]).is_err());
    }

    #[test]
    fn no_two_steps_share_a_name() {
        let mut names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }
}
