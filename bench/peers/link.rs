// SPDX-License-Identifier: Apache-2.0
//
// Included by every peer's build.rs: links the archive that the peer's crate has built so that the library exports it
// under the C library's names. An alias is a second name of the same address: calling it costs nothing extra.

use std::env;

/// `archive`: lib<archive>.a; `aliases`: (exported name, name in the archive); `libraries`: what the archive needs.
fn link(archive: &str, aliases: &[(&str, &str)], libraries: &[&str]) {
    let folder = env::var("CARGO_MANIFEST_DIR").unwrap();
    let exports = format!("{folder}/../exports.map");
    println!("cargo:rerun-if-changed={exports}");
    println!("cargo:rerun-if-changed={folder}/build.rs");
    println!("cargo:rerun-if-changed={folder}/../link.rs");
    println!("cargo:rustc-link-lib=static:+whole-archive={archive}");
    for library in libraries {
        println!("cargo:rustc-link-lib={library}");
    }
    // rustc's own version script hides all that is not Rust. lld, which is rustc's linker, merges a second one.
    linker(&format!("--version-script={exports}"));
    linker("--undefined-version");
    linker("-z,defs");
    for (alias, name) in aliases {
        linker(&format!("--defsym={alias}={name}"));
    }
}

fn linker(option: &str) {
    println!("cargo:rustc-link-arg-cdylib=-Wl,{option}");
}
