// SPDX-License-Identifier: Apache-2.0
//
// hardened_malloc has the C library's names itself.
include!("../link.rs");

fn main() {
    link("hardened_malloc", &[], &[]);
}
