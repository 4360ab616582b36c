//! The Python module: built by cargo like everything else, put where the environment finds it.
//!
//! `maturin develop` does the same, but sets other variables than a plain build, so that half
//! of the workspace would be compiled twice. Wheels for users are made by maturin.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::io;
use std::path::Path;

use crate::places;
use crate::shell::{Result, Run};

/// How the module is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As the tests are: everything that they need in the same run.
    Dev,
    /// As users get it, with the command line beside it.
    Release,
}

/// Cargo with what every step has to agree on, so that nothing is built twice: the bindings are a module, which leaves
/// Python's symbols to the interpreter, and are built for the stable ABI, for which none has to be asked.
pub(crate) fn cargo() -> Run {
    Run::cargo()
        .env("PATH", places::path_with_venv())
        .env("PYO3_BUILD_EXTENSION_MODULE", "1")
        .env("PYO3_NO_PYTHON", "1")
}

/// Builds the module and makes `import farhaul` work in the environment.
pub(crate) fn build(profile: Profile) -> Result<()> {
    let folder = match profile {
        Profile::Dev => {
            cargo()
                .words("build --workspace --all-features --lib --bins --tests --examples")
                .run()?;
            "debug"
        }
        Profile::Release => {
            cargo().words("build --release --package farhaul --package bindings-py --features farhaul/cli").run()?;
            "release"
        }
    };
    let built = places::target()
        .join(folder)
        .join(format!("{DLL_PREFIX}_farhaul{DLL_SUFFIX}"));
    install(&built)
}

/// Copies the package and the library into the environment. Nothing is left among the sources, where a build of another
/// profile or target folder would be taken for this one.
fn install(built: &Path) -> Result<()> {
    let site = Run::new(places::venv_program("python"))
        .arg("-c")
        .arg("import sysconfig; print(sysconfig.get_path('purelib'))")
        .read()?;
    let package = Path::new(site.trim()).join("farhaul");
    copy_package(
        &places::root().join("bindings-py/python/farhaul"),
        built,
        &package,
    )
    .map_err(|error| format!("{} could not be made: {error}", package.display()))
}

/// Makes `package` anew from the Python sources in `sources` and the library `built`.
fn copy_package(sources: &Path, built: &Path, package: &Path) -> io::Result<()> {
    if package.exists() {
        // A running interpreter keeps the files that it has mapped: they are removed, never written over.
        fs::remove_dir_all(package)?;
    }
    copy_sources(sources, package)?;
    fs::copy(built, package.join("_farhaul.abi3.so"))?;
    Ok(())
}

/// Copies what belongs to a package, its packages inside too.
fn copy_sources(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let copy = to.join(path.file_name().expect("an entry of a folder has a name"));
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.join("__init__.py").is_file() {
            copy_sources(&path, &copy)?;
        } else if matches!(extension, Some("py" | "pyi" | "typed")) {
            fs::copy(&path, copy)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_holds_the_sources_of_today_and_the_library_just_built() {
        let folder = std::env::temp_dir().join(format!("farhaul-package-{}", std::process::id()));
        let (sources, package, built) = (
            folder.join("sources"),
            folder.join("package"),
            folder.join("built"),
        );
        fs::create_dir_all(&sources).unwrap();
        fs::create_dir_all(&package).unwrap();
        for name in [
            "__init__.py",
            "_farhaul.pyi",
            "py.typed",
            "_farhaul.abi3.so",
        ] {
            fs::write(sources.join(name), "in the tree").unwrap();
        }
        fs::write(package.join("gone.py"), "of yesterday").unwrap();
        fs::write(&built, "built").unwrap();
        copy_package(&sources, &built, &package).unwrap();
        let mut names: Vec<_> = fs::read_dir(&package)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "__init__.py",
                "_farhaul.abi3.so",
                "_farhaul.pyi",
                "py.typed"
            ]
        );
        assert_eq!(
            fs::read_to_string(package.join("_farhaul.abi3.so")).unwrap(),
            "built"
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
