// SPDX-License-Identifier: Apache-2.0
//
// jemalloc has the C library's names itself.
include!("../link.rs");

fn main() {
    link("jemalloc_pic", &[], &[]);
}
