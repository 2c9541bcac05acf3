// SPDX-License-Identifier: Apache-2.0
//
// With ENABLE_OVERRIDE rpmalloc has the C library's names itself.
include!("../link.rs");

fn main() {
    link("rpmalloc", &[], &[]);
}
