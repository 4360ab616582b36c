//! The Python module: built by cargo like everything else, put where the environment finds it.
//!
//! `maturin develop` does the same, but sets other variables than a plain build, so that half
//! of the workspace would be compiled twice. Wheels for users are made by maturin.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
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

/// Copies the library beside the Python sources and names these in the environment.
fn install(built: &Path) -> Result<()> {
    let sources = places::root().join("bindings-py/python");
    let module = sources.join("farhaul/_farhaul.abi3.so");
    // A new file, never the old one's bytes: a running interpreter may have that one mapped.
    let _ = fs::remove_file(&module);
    fs::copy(built, &module)
        .map_err(|error| format!("{} to {}: {error}", built.display(), module.display()))?;
    let site = Run::new(places::venv_program("python"))
        .arg("-c")
        .arg("import sysconfig; print(sysconfig.get_path('purelib'))")
        .read()?;
    let link = Path::new(site.trim()).join("farhaul.pth");
    fs::write(&link, format!("{}\n", sources.display()))
        .map_err(|error| format!("{}: {error}", link.display()))
}
