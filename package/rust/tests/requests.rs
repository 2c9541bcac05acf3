// SPDX-License-Identifier: Apache-2.0
//
// Each request of GlobalAlloc, asked of the heap itself, beside the program's own allocator: sizes and alignments, the
// content that must stay, and what cannot be had. Called by cargo test; below a second.
use hakozuna::Hakozuna;
use std::alloc::{GlobalAlloc, Layout};
use std::slice;

const HEAP: Hakozuna = Hakozuna;
const SIZES: [usize; 6] = [1, 17, 1000, 4096, 40_000, 300_000];
const ALIGNMENTS: [usize; 7] = [1, 8, 16, 32, 4096, 65_536, 1 << 21];

fn layouts() -> impl Iterator<Item = Layout> {
    SIZES
        .into_iter()
        .flat_map(|size| ALIGNMENTS.into_iter().map(move |alignment| Layout::from_size_align(size, alignment).unwrap()))
}

fn check(block: *mut u8, layout: Layout) {
    assert!(!block.is_null(), "{layout:?}");
    assert_eq!(block as usize % layout.align(), 0, "{layout:?}");
    assert!(HEAP.owns(block), "{layout:?}");
}

#[test]
fn blocks_are_aligned_and_apart() {
    let blocks: Vec<(*mut u8, Layout)> = layouts()
        .map(|layout| unsafe {
            let block = HEAP.alloc(layout);
            check(block, layout);
            block.write_bytes(layout.size() as u8, layout.size());
            (block, layout)
        })
        .collect();
    for (block, layout) in blocks {
        unsafe {
            assert!(slice::from_raw_parts(block, layout.size()).iter().all(|byte| *byte == layout.size() as u8));
            HEAP.dealloc(block, layout);
        }
    }
}

#[test]
fn zeroed_blocks_are_zero_also_where_others_lay() {
    for layout in layouts() {
        for _ in 0..3 {
            unsafe {
                let block = HEAP.alloc_zeroed(layout);
                check(block, layout);
                assert!(slice::from_raw_parts(block, layout.size()).iter().all(|byte| *byte == 0), "{layout:?}");
                block.write_bytes(0xee, layout.size());
                HEAP.dealloc(block, layout);
            }
        }
    }
}

#[test]
fn resized_blocks_keep_content_and_alignment() {
    for layout in layouts() {
        for size in SIZES {
            unsafe {
                let block = HEAP.alloc(layout);
                for at in 0..layout.size() {
                    block.add(at).write((at % 251) as u8);
                }
                let moved = HEAP.realloc(block, layout, size);
                let resized = Layout::from_size_align(size, layout.align()).unwrap();
                check(moved, resized);
                let kept = slice::from_raw_parts(moved, size.min(layout.size()));
                assert!(kept.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8), "{layout:?} {size}");
                HEAP.dealloc(moved, resized);
            }
        }
    }
}

#[test]
fn what_cannot_be_had_is_null_and_the_block_stays() {
    let large = (isize::MAX as usize) & !0xffff;
    for alignment in [1, 4096] {
        let layout = Layout::from_size_align(100, alignment).unwrap();
        let impossible = Layout::from_size_align(large, alignment).unwrap();
        unsafe {
            assert!(HEAP.alloc(impossible).is_null());
            assert!(HEAP.alloc_zeroed(impossible).is_null());
            let block = HEAP.alloc(layout);
            block.write(42);
            assert!(HEAP.realloc(block, layout, large).is_null());
            assert_eq!(block.read(), 42);
            HEAP.dealloc(block, layout);
        }
    }
}

#[test]
fn what_others_allocate_is_not_ours() {
    let other = Box::new([0_u8; 100]); // of the system's allocator, in this program
    assert!(!HEAP.owns(&*other));
}
