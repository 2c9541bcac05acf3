// SPDX-License-Identifier: Apache-2.0
//
// TCMalloc under the C library's names.
include!("../link.rs");

/// The C functions, then operator new and delete by their names in the object file.
const ALIASES: [(&str, &str); 38] = [
    ("malloc", "TCMallocInternalMalloc"),
    ("free", "TCMallocInternalFree"),
    ("calloc", "TCMallocInternalCalloc"),
    ("realloc", "TCMallocInternalRealloc"),
    ("memalign", "TCMallocInternalMemalign"),
    ("aligned_alloc", "TCMallocInternalAlignedAlloc"),
    ("posix_memalign", "TCMallocInternalPosixMemalign"),
    ("valloc", "TCMallocInternalValloc"),
    ("pvalloc", "TCMallocInternalPvalloc"),
    ("malloc_usable_size", "TCMallocInternalMallocSize"),
    ("reallocarray", "TCMallocInternalReallocArray"),
    ("free_sized", "TCMallocInternalFreeSized"),
    ("free_aligned_sized", "TCMallocInternalFreeAlignedSized"),
    ("mallinfo", "TCMallocInternalMallInfo"),
    ("mallinfo2", "TCMallocInternalMallInfo2"),
    ("mallopt", "TCMallocInternalMallOpt"),
    ("malloc_stats", "TCMallocInternalMallocStats"),
    ("malloc_trim", "TCMallocInternalMallocTrim"),
    ("_Znwm", "TCMallocInternalNew"),
    ("_Znam", "TCMallocInternalNewArray"),
    ("_ZnwmRKSt9nothrow_t", "TCMallocInternalNewNothrow"),
    ("_ZnamRKSt9nothrow_t", "TCMallocInternalNewArrayNothrow"),
    ("_ZnwmSt11align_val_t", "TCMallocInternalNewAligned"),
    ("_ZnamSt11align_val_t", "TCMallocInternalNewArrayAligned"),
    ("_ZnwmSt11align_val_tRKSt9nothrow_t", "TCMallocInternalNewAlignedNothrow"),
    ("_ZnamSt11align_val_tRKSt9nothrow_t", "TCMallocInternalNewArrayAlignedNothrow"),
    ("_ZdlPv", "TCMallocInternalDelete"),
    ("_ZdaPv", "TCMallocInternalDeleteArray"),
    ("_ZdlPvm", "TCMallocInternalDeleteSized"),
    ("_ZdaPvm", "TCMallocInternalDeleteArraySized"),
    ("_ZdlPvRKSt9nothrow_t", "TCMallocInternalDeleteNothrow"),
    ("_ZdaPvRKSt9nothrow_t", "TCMallocInternalDeleteArrayNothrow"),
    ("_ZdlPvSt11align_val_t", "TCMallocInternalDeleteAligned"),
    ("_ZdaPvSt11align_val_t", "TCMallocInternalDeleteArrayAligned"),
    ("_ZdlPvSt11align_val_tRKSt9nothrow_t", "TCMallocInternalDeleteAlignedNothrow"),
    ("_ZdaPvSt11align_val_tRKSt9nothrow_t", "TCMallocInternalDeleteArrayAlignedNothrow"),
    ("_ZdlPvmSt11align_val_t", "TCMallocInternalDeleteSizedAligned"),
    ("_ZdaPvmSt11align_val_t", "TCMallocInternalDeleteArraySizedAligned"),
];

fn main() {
    link("tcmalloc", &ALIASES, &["dylib=stdc++", "dylib=m", "dylib=gcc_s"]);
}
