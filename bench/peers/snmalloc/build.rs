// SPDX-License-Identifier: Apache-2.0
include!("../snmalloc.rs");

fn main() {
    link_snmalloc("snmallocshim-rust");
}
