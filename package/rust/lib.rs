// SPDX-License-Identifier: Apache-2.0
//! Hakozuna as the global allocator of a Rust program, on Linux with glibc:
//!
//! ```
//! #[global_allocator]
//! static HEAP: hakozuna::Hakozuna = hakozuna::Hakozuna;
//!
//! assert_eq!(vec![1, 2, 3].len(), 3);
//! ```
//!
//! It serves what Rust allocates, beside whatever malloc the program's C parts use. It is built from C++ sources, which
//! asks for CMake and a C++20 compiler. A feature chooses another line than the default one, which is made for every
//! program: `hz7` is small, `hz8` is for processes that are to be small; what each is for stands in the project's `doc/lines.md`.
//! The variables of the environment that it reads (`HZ_STATS=1` and others) are described in its `doc/knobs.md`.
#![no_std]
#![warn(missing_docs)]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::{slice, str};

// What include/hakozuna/hakozuna.h declares: C's int is i32 wherever it runs.
extern "C" {
    fn hz_malloc(size: usize) -> *mut c_void;
    fn hz_calloc(count: usize, size: usize) -> *mut c_void;
    fn hz_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn hz_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn hz_aligned_calloc(alignment: usize, count: usize, size: usize) -> *mut c_void;
    fn hz_aligned_realloc(block: *mut c_void, alignment: usize, size: usize) -> *mut c_void;
    fn hz_free(block: *mut c_void);
    fn hz_owns(block: *const c_void) -> i32;
    fn hz_trim(pad: usize) -> i32;
    fn hz_version() -> *const u8;
    fn hz_line() -> *const u8;
}

/// What every block is aligned to; more is asked for in another way.
const ALIGNMENT: usize = 16;

/// The heap, of which a program has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hakozuna;

// SAFETY: the functions of the C library's kind keep what GlobalAlloc asks for, do not unwind, and take back each
// other's blocks; each branch asks for the layout's alignment.
unsafe impl GlobalAlloc for Hakozuna {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            hz_malloc(layout.size()).cast()
        } else {
            hz_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            hz_calloc(1, layout.size()).cast()
        } else {
            hz_aligned_calloc(layout.align(), 1, layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        hz_free(block.cast());
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            hz_realloc(block.cast(), size).cast()
        } else {
            hz_aligned_realloc(block.cast(), layout.align(), size).cast()
        }
    }
}

impl Hakozuna {
    /// Whether this is the address of a slot of the heap, live or free.
    #[must_use]
    pub fn owns<T: ?Sized>(&self, address: *const T) -> bool {
        // SAFETY: an address is asked for, and nothing is read there.
        unsafe { hz_owns(address.cast()) != 0 }
    }

    /// Gives every free page that can be found back to the operating system, but for `pad` bytes; says whether it gave
    /// any.
    #[allow(clippy::must_use_candidate)]
    pub fn trim(&self, pad: usize) -> bool {
        // SAFETY: it may be called at any time.
        unsafe { hz_trim(pad) != 0 }
    }

    /// The version of the library.
    #[must_use]
    pub fn version(&self) -> &'static str {
        // SAFETY: the library answers with a literal.
        unsafe { text(hz_version()) }
    }

    /// The name of the line.
    #[must_use]
    pub fn line(&self) -> &'static str {
        // SAFETY: the library answers with a literal.
        unsafe { text(hz_line()) }
    }
}

/// A literal of C, in ASCII.
unsafe fn text(start: *const u8) -> &'static str {
    let mut length = 0;
    while *start.add(length) != 0 {
        length += 1;
    }
    str::from_utf8_unchecked(slice::from_raw_parts(start, length))
}
