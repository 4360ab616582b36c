//! `cargo xtask`: the one entry to every development command.
//!
//! Nothing here needs more than Rust to start with; [`setup`] brings the rest.
#![allow(
    clippy::print_stdout,
    reason = "a command-line tool talks on standard output"
)]

mod bench;
mod demo;
mod numbers;
mod places;
mod python;
mod setup;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  demo                      the main job on real photographs, from nothing, in a few minutes
  test [--quick] [--only STEP]…
                            every check and test, in CI's order; --quick leaves the slow ones out
  tidy                      the rules of the house that no other tool knows
  setup [demo|test|bench]   what those commands install by themselves (default: test)
  python [--release]        build the Python module into target/venv
  bench local [--quick]     speed and memory against the rivals on this machine's own disk
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\nxtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> shell::Result<()> {
    let (command, rest) = words.split_first().unwrap_or((&"help", &[]));
    match (*command, rest) {
        ("demo", rest) => demo::run(rest),
        ("test", rest) => test::run(rest),
        ("tidy", []) => tidy::run(),
        ("setup", []) => setup::run(setup::Purpose::Test),
        ("setup", [purpose]) => setup::run(purpose.parse()?),
        ("python", []) => python::build(python::Profile::Dev),
        ("python", ["--release"]) => python::build(python::Profile::Release),
        ("bench", rest) => bench::run(rest),
        ("help" | "--help" | "-h", _) => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("no such command: {}\n\n{USAGE}", words.join(" "))),
    }
}
