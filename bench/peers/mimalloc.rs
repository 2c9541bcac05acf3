// SPDX-License-Identifier: Apache-2.0
//
// Included by the build.rs of mimalloc3 and mimalloc3-secure. mimalloc has the C library's names itself. Those of its heaps are
// hidden in an archive; the lane arena_request asks for them by these.
include!("link.rs");

fn link_mimalloc3(archive: &str) {
    let heaps = [
        ("peer_heap_new", "mi_heap_new"),
        ("peer_heap_malloc", "mi_heap_malloc"),
        ("peer_heap_destroy", "mi_heap_destroy"),
    ];
    link(archive, &heaps, &[]);
}
