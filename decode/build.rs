//! Compiles the C that stands between `src/jpeg/handle.rs` and libjpeg-turbo.

use std::{env, path::Path};

fn main() {
    println!("cargo:rerun-if-changed=src/jpeg/shim.c");
    let mut build = cc::Build::new();
    // turbojpeg-sys tells where it installed the headers of the library that it links.
    let include =
        env::var("DEP_TURBOJPEG_INCLUDE").expect("turbojpeg-sys names its include folders");
    for folder in include.split(',') {
        build.include(Path::new(folder));
    }
    build
        .file("src/jpeg/shim.c")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("farhaul_jpeg_shim");
}
