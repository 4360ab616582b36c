//! What a fresh machine lacks: the C tools of the build, and a Python environment with pinned packages.
//!
//! Every requirements file lists all that it needs, dependencies too, and is installed with
//! `--no-deps`: the same versions everywhere, no resolver, and of torch's many gigabytes only
//! the shared libraries that importing it opens.

use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

use crate::places;
use crate::shell::{Result, Run};

/// Which command is to be made possible; each includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// NumPy and Pillow: the README's first command.
    Demo,
    /// Every check and test.
    Test,
    /// The rivals.
    Bench,
}

impl FromStr for Purpose {
    type Err = String;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "demo" => Ok(Self::Demo),
            "test" => Ok(Self::Test),
            "bench" => Ok(Self::Bench),
            other => Err(format!("setup knows demo, test and bench, not `{other}`")),
        }
    }
}

impl Purpose {
    /// The requirements files, in the order of installing.
    fn requirements(self) -> &'static [&'static str] {
        const ALL: [&str; 4] = ["demo", "test", "torch", "bench"];
        match self {
            Self::Demo => &ALL[..1],
            Self::Test => &ALL[..3],
            Self::Bench => &ALL[..],
        }
    }
}

/// Makes this machine able to do what `purpose` needs; does nothing where it already is.
pub(crate) fn run(purpose: Purpose) -> Result<()> {
    system_packages()?;
    environment()?;
    for name in purpose.requirements() {
        install(name)?;
    }
    Ok(())
}

/// What the build runs besides Rust, and the Debian package that brings it.
const PROGRAMS: [(&str, &str, &str); 3] = [
    ("cc", "--version", "gcc libc6-dev"),
    ("cmake", "--version", "cmake make"),
    ("nasm", "-v", "nasm"),
];

fn system_packages() -> Result<()> {
    let mut packages: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, version, _)| !Run::new(program).arg(version).succeeds())
        .flat_map(|(_, _, packages)| packages.split(' '))
        .collect();
    if python().is_none() {
        packages.extend(["python3", "python3-venv"]);
    }
    if packages.is_empty() {
        return Ok(());
    }
    let wanted = packages.join(" ");
    let is_root = Run::new("id")
        .arg("-u")
        .read()
        .is_ok_and(|id| id.trim() == "0");
    if !is_root || !Run::new("apt-get").arg("--version").succeeds() {
        return Err(format!(
            "this machine lacks what the Debian packages `{wanted}` bring; install them \
             (sudo apt-get install {wanted}) and run this again"
        ));
    }
    let apt = || Run::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive");
    apt().words("-q update").run()?;
    apt()
        .words("-q install -y --no-install-recommends")
        .args(packages)
        .run()?;
    match python() {
        Some(_) => Ok(()),
        None => Err("Python 3.11 or newer with its venv module is needed; this system's packages bring an older one".into()),
    }
}

/// The first Python on the path that is new enough and can make environments.
fn python() -> Option<&'static str> {
    const NAMES: [&str; 6] = [
        "python3",
        "python3.11",
        "python3.12",
        "python3.13",
        "python3.14",
        "python",
    ];
    const CHECK: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";
    NAMES
        .into_iter()
        .find(|name| Run::new(name).arg("-c").arg(CHECK).succeeds())
}

fn environment() -> Result<()> {
    if Run::new(places::venv_program("python"))
        .words("-m pip --version")
        .succeeds()
    {
        return Ok(());
    }
    let python = python().ok_or("no Python 3.11 or newer with its venv module is on the path")?;
    Run::new(python)
        .words("-m venv --clear")
        .arg(places::venv())
        .run()
}

/// Installs one requirements file, unless the environment has it as it is now.
fn install(name: &str) -> Result<()> {
    let file = places::root()
        .join("xtask/requirements")
        .join(format!("{name}.txt"));
    let wanted =
        fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let stamp = places::venv().join(format!("requirements-{name}.txt"));
    if is_installed(&stamp, &wanted) {
        return Ok(());
    }
    let started = Instant::now();
    Run::new(places::venv_program("python"))
        .words(
            "-m pip install --quiet --no-deps --no-input --disable-pip-version-check --requirement",
        )
        .arg(&file)
        .run()?;
    println!("  installed in {:.0} s", started.elapsed().as_secs_f64());
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn is_installed(stamp: &Path, wanted: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|installed| installed == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purpose_includes_the_ones_before_it() {
        let [demo, test, bench] =
            [Purpose::Demo, Purpose::Test, Purpose::Bench].map(Purpose::requirements);
        assert!(test.starts_with(demo));
        assert!(bench.starts_with(test));
        assert!(!demo.contains(&"torch"), "the demo needs NumPy, not torch");
    }

    #[test]
    fn every_requirement_is_pinned() {
        for name in Purpose::Bench.requirements() {
            let file = places::root()
                .join("xtask/requirements")
                .join(format!("{name}.txt"));
            let text = fs::read_to_string(&file).unwrap();
            for line in text
                .lines()
                .filter(|line| !line.starts_with('#') && !line.is_empty())
            {
                assert_eq!(line.matches("==").count(), 1, "{name}.txt: {line}");
            }
        }
    }

    #[test]
    fn a_changed_requirements_file_is_installed_again() {
        let stamp = std::env::temp_dir().join(format!("farhaul-stamp-{}", std::process::id()));
        assert!(!is_installed(&stamp, "numpy==1\n"));
        fs::write(&stamp, "numpy==1\n").unwrap();
        assert!(is_installed(&stamp, "numpy==1\n"));
        assert!(!is_installed(&stamp, "numpy==2\n"));
        fs::remove_file(&stamp).unwrap();
    }
}
