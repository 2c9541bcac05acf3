// SPDX-License-Identifier: Apache-2.0
//
// Builds the static library of one line, that of the direct API, by the project's own CMake files. Called by cargo; ten
// seconds of one processor for most lines, five for hz7.
use std::env;

const LINES: [&str; 8] = ["hz3", "hz3-fast", "hz4", "hz5", "hz6", "hz7", "hz8", "secure"];

fn main() {
    let asked: Vec<&str> = LINES
        .into_iter()
        .filter(|line| {
            let feature = line.to_uppercase().replace('-', "_");
            env::var_os(format!("CARGO_FEATURE_{feature}")).is_some()
        })
        .collect();
    assert!(asked.len() < 2, "a program has one heap, and the features ask for {}", asked.join(" and "));
    let line = asked.first().copied().unwrap_or("hakozuna");
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    if env::var_os("DOCS_RS").is_some() {
        return; // the documentation is made, or the Rust alone looked at: nothing is linked
    }

    let library = format!("hakozuna-{line}-direct");
    let built = cmake::Config::new(".")
        .profile("RelWithDebInfo") // also for a debug build of the program: it is no part of what is looked into
        .define("HZ_LINES_ENABLED", line)
        .define("HZ_DROP_IN", "OFF")
        .define("HZ_BUILD_TESTS", "OFF")
        .define("HZ_BUILD_BENCH", "OFF")
        .build_target(&library)
        .build();
    println!("cargo:rustc-link-search=native={}/build", built.display());
    println!("cargo:rustc-link-lib=static={library}");
    for part in ["CMakeLists.txt", "cmake", "include", "package/rust/build.rs", "src"] {
        println!("cargo:rerun-if-changed={part}");
    }
}
