// SPDX-License-Identifier: Apache-2.0
include!("../mimalloc.rs");

fn main() {
    link_mimalloc3("mimalloc-secure");
}
