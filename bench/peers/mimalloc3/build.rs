// SPDX-License-Identifier: Apache-2.0
//
// mimalloc has the C library's names itself.
include!("../link.rs");

fn main() {
    link("mimalloc", &[], &[]);
}
