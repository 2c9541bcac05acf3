// SPDX-License-Identifier: Apache-2.0
//
// mimalloc has the C library's names itself. Those of its heaps are hidden in an archive; the lane arena_request asks for
// them by these.
include!("../link.rs");

fn main() {
    let heaps = [
        ("peer_heap_new", "mi_heap_new"),
        ("peer_heap_malloc", "mi_heap_malloc"),
        ("peer_heap_destroy", "mi_heap_destroy"),
    ];
    link("mimalloc-secure", &heaps, &[]);
}
