// SPDX-License-Identifier: Apache-2.0
//
// Included by the build.rs of snmalloc and snmalloc-check: snmalloc under the C library's names, from the archive of either
// build. As in its own shared library, the C++ runtime is inside.
include!("link.rs");

const ALIASES: [(&str, &str); 16] = [
    ("malloc", "sn_malloc"),
    ("free", "sn_free"),
    ("calloc", "sn_calloc"),
    ("realloc", "sn_realloc"),
    ("memalign", "sn_memalign"),
    ("aligned_alloc", "sn_aligned_alloc"),
    ("posix_memalign", "sn_posix_memalign"),
    ("valloc", "sn_valloc"),
    ("pvalloc", "sn_pvalloc"),
    ("malloc_usable_size", "sn_malloc_usable_size"),
    ("free_sized", "sn_free_sized"),
    ("free_aligned_sized", "sn_free_aligned_sized"),
    ("_ZdlPv", "sn_free"),
    ("_ZdaPv", "sn_free"),
    ("_ZdlPvm", "sn_free_sized"),
    ("_ZdaPvm", "sn_free_sized"),
];

fn link_snmalloc(archive: &str) {
    link(archive, &ALIASES, &["dylib:+verbatim=libstdc++.a", "dylib=gcc_s"]);
}
