// SPDX-License-Identifier: Apache-2.0
//
// A program whose global allocator it is, with threads that free each other's blocks. Called by cargo test; below a
// second.
use hakozuna::Hakozuna;
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

#[global_allocator]
static HEAP: Hakozuna = Hakozuna;

#[repr(align(256))]
struct Wide(#[allow(dead_code)] u8);

#[test]
fn what_rust_allocates_is_ours() {
    assert!(HEAP.owns(&*Box::new(7_u64)));
    assert!(HEAP.owns(vec![0_u8; 1 << 20].as_ptr()));
    assert!(HEAP.owns(String::from("text").as_ptr()));
    let wide = Box::new(Wide(1));
    assert!(HEAP.owns(&*wide));
    assert_eq!(std::ptr::addr_of!(*wide) as usize % 256, 0);
    let local = 0;
    assert!(!HEAP.owns(&local));
}

#[test]
fn the_line_is_the_one_that_was_asked_for() {
    assert_eq!(HEAP.version(), env!("CARGO_PKG_VERSION"));
    if let Ok(line) = std::env::var("HZ_TEST_LINE") {
        assert_eq!(HEAP.line(), line);
    }
}

#[test]
fn threads_free_blocks_of_others() {
    let (sender, receiver) = mpsc::sync_channel::<BTreeMap<usize, Vec<usize>>>(16);
    let makers: Vec<_> = (0..4)
        .map(|maker| {
            let sender = sender.clone();
            thread::spawn(move || {
                for round in 0..200_usize {
                    sender.send((0..50).map(|key| (key, vec![maker + key; round % 64 + 1])).collect()).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let mut sum = 0;
    for map in receiver {
        assert!(map.values().all(|values| HEAP.owns(values.as_ptr())));
        sum += map.iter().map(|(key, values)| values[0] - key).sum::<usize>();
    }
    for maker in makers {
        maker.join().unwrap();
    }
    assert_eq!(sum, (1 + 2 + 3) * 200 * 50);
    HEAP.trim(0);
}
