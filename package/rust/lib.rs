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
use core::{fmt, mem, ptr, slice, str};

// What include/hakozuna/hakozuna.h declares: C's int is i32 wherever it runs.
extern "C" {
    fn hz_malloc(size: usize) -> *mut c_void;
    fn hz_calloc(count: usize, size: usize) -> *mut c_void;
    fn hz_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn hz_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn hz_aligned_calloc(alignment: usize, count: usize, size: usize) -> *mut c_void;
    fn hz_aligned_realloc(block: *mut c_void, alignment: usize, size: usize) -> *mut c_void;
    fn hz_free_sized(block: *mut c_void, size: usize);
    fn hz_free_aligned_sized(block: *mut c_void, alignment: usize, size: usize);
    fn hz_good_size(size: usize) -> usize;
    fn hz_owns(block: *const c_void) -> i32;
    fn hz_trim(pad: usize) -> i32;
    fn hz_stats(out: *mut Stats, size: usize);
    fn hz_ctl(key: *const u8, set: *const u8, get: *mut u8, get_bytes: usize) -> i32;
    fn hz_write_profile() -> i32;
    fn hz_write_heap_profile(path: *const u8) -> i32;
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

    // With the size, which the heap compares: what Rust says of a block is true, so a mismatch is a bug elsewhere.
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.align() <= ALIGNMENT {
            hz_free_sized(block.cast(), layout.size());
        } else {
            hz_free_aligned_sized(block.cast(), layout.align(), layout.size());
        }
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

    /// The bytes that an allocation of `size` bytes really gets: a buffer may as well have them.
    #[must_use]
    pub fn good_size(&self, size: usize) -> usize {
        // SAFETY: it allocates nothing.
        unsafe { hz_good_size(size) }
    }

    /// What the heap did and holds now.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static HEAP: hakozuna::Hakozuna = hakozuna::Hakozuna;
    /// let before = HEAP.stats().bytes_live;
    /// let buffer = vec![0_u8; 1 << 20];
    /// assert!(HEAP.stats().bytes_live >= before + (1 << 20));
    /// # drop(buffer);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut now = Stats::default();
        // SAFETY: as much is written as there is.
        unsafe { hz_stats(&mut now, mem::size_of::<Stats>()) };
        now
    }

    /// What a knob is now, into `answer`. The keys are those of the project's `doc/knobs.md`; 2,100 bytes do for each.
    ///
    /// # Errors
    /// Where there is no such key, or nothing of it in the line.
    pub fn get<'a>(&self, key: &str, answer: &'a mut [u8]) -> Result<&'a str, Refused> {
        let key = Word::of(key)?;
        // SAFETY: the key ends in 0, and as much is written as there is room for.
        let error = unsafe { hz_ctl(key.start(), ptr::null(), answer.as_mut_ptr(), answer.len()) };
        if error != 0 {
            return Err(Refused::of(error));
        }
        let length = answer.iter().position(|byte| *byte == 0).unwrap_or(0);
        str::from_utf8(&answer[..length]).map_err(|_| Refused::NotUnderstood)
    }

    /// Sets a knob, from now on; or has something done, as `set("purge", "")`.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static HEAP: hakozuna::Hakozuna = hakozuna::Hakozuna;
    /// HEAP.set("limit_soft", "256M")?;
    /// assert_eq!(HEAP.get("limit_soft", &mut [0; 64])?, "268435456");
    /// # HEAP.set("limit_soft", "0")?;
    /// # Ok::<(), hakozuna::Refused>(())
    /// ```
    ///
    /// # Errors
    /// Where the key or the value is not understood, or it cannot be set now.
    pub fn set(&self, key: &str, value: &str) -> Result<(), Refused> {
        let (key, value) = (Word::of(key)?, Word::of(value)?);
        // SAFETY: both end in 0, and nothing is asked back.
        match unsafe { hz_ctl(key.start(), value.start(), ptr::null_mut(), 0) } {
            0 => Ok(()),
            error => Err(Refused::of(error)),
        }
    }

    /// Writes the profile of sizes so far to the file that `HZ_PROFILE` names; says whether it was written.
    #[allow(clippy::must_use_candidate)]
    pub fn write_profile(&self) -> bool {
        // SAFETY: it may be called at any time.
        unsafe { hz_write_profile() != 0 }
    }

    /// Writes the heap profile so far to a file, or to the one that `HZ_PROFILE_HEAP_FILE` names; says whether it was
    /// written. `HZ_PROFILE_HEAP=1`, or `set("profile_heap", "512K")`, begins one; `hz prof` shows it.
    #[allow(clippy::must_use_candidate)]
    pub fn write_heap_profile(&self, path: Option<&str>) -> bool {
        let word = match path.map(Word::of) {
            Some(Err(_)) => return false,
            Some(Ok(word)) => Some(word),
            None => None,
        };
        // SAFETY: the path ends in 0, or is null.
        unsafe { hz_write_heap_profile(word.as_ref().map_or(ptr::null(), Word::start)) != 0 }
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

/// What the heap did and holds, as `hz_stats_t` in `hakozuna/hakozuna.h`, which says more of each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
#[non_exhaustive]
pub struct Stats {
    /// 1: operations are counted (`HZ_STATS=1`); else those counts stand at 0.
    pub counting: u64,
    pub alloc_small: u64,
    pub alloc_medium: u64,
    pub alloc_large: u64,
    pub free_small: u64,
    pub free_medium: u64,
    pub free_large: u64,
    pub refills: u64,
    pub flushes: u64,
    pub remote_sent: u64,
    pub remote_collected: u64,
    pub remote_waiting: u64,
    pub spans_acquired: u64,
    pub spans_retired: u64,
    pub purges: u64,
    /// Live and cached.
    pub bytes_held: u64,
    /// The program's blocks.
    pub bytes_live: u64,
    /// Free, and kept by threads or between them.
    pub bytes_cached: u64,
    /// Free in the arena, and still backed by memory.
    pub bytes_dirty: u64,
    /// Given back to the operating system so far.
    pub bytes_purged: u64,
    /// The heap's own.
    pub bytes_metadata: u64,
    /// The most bytes in spans so far.
    pub bytes_peak: u64,
    pub threads: u64,
    pub revocations: u64,
    pub remote_refused: u64,
    pub classes_dealt: u64,
    pub policy_tight: u64,
    pub policy_turns: u64,
    pub preset_moves: u64,
}

/// Why a knob was not told, or not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such key.
    NoSuchKey,
    /// It is read at the start alone.
    StartOnly,
    /// The value, or a word of more than 1,023 bytes, is not understood.
    NotUnderstood,
    /// The line has nothing of it.
    NotHere,
    /// There is no memory for it.
    NoMemory,
    /// Another thread is at it.
    Busy,
    /// What was to be written could not be.
    NotWritten,
    /// Another error, as errno has them.
    Other(i32),
}

impl Refused {
    fn of(error: i32) -> Self {
        match error {
            2 => Self::NoSuchKey,
            1 => Self::StartOnly,
            22 => Self::NotUnderstood,
            95 => Self::NotHere,
            12 => Self::NoMemory,
            16 => Self::Busy,
            5 => Self::NotWritten,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchKey => to.write_str("there is no such key"),
            Self::StartOnly => to.write_str("it is read at the start alone"),
            Self::NotUnderstood => to.write_str("the value is not understood"),
            Self::NotHere => to.write_str("the line has nothing of it"),
            Self::NoMemory => to.write_str("there is no memory for it"),
            Self::Busy => to.write_str("another thread is at it"),
            Self::NotWritten => to.write_str("it could not be written"),
            Self::Other(error) => write!(to, "error {error}"),
        }
    }
}

/// A word with a 0 behind it, as C wants it, without an allocation.
struct Word([u8; 1024]);

impl Word {
    fn of(text: &str) -> Result<Self, Refused> {
        let mut word = Self([0; 1024]);
        if text.len() >= word.0.len() || text.as_bytes().contains(&0) {
            return Err(Refused::NotUnderstood);
        }
        word.0[..text.len()].copy_from_slice(text.as_bytes());
        Ok(word)
    }
    fn start(&self) -> *const u8 {
        self.0.as_ptr()
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
