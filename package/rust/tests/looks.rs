// SPDX-License-Identifier: Apache-2.0
//
// What a program asks of its heap beside memory: figures, knobs, profiles. Called by cargo test; below a second.
use hakozuna::{Hakozuna, Refused};

#[global_allocator]
static HEAP: Hakozuna = Hakozuna;

#[test]
fn live_bytes_follow_what_is_allocated() {
    let before = HEAP.stats();
    let blocks: Vec<Box<[u8; 1000]>> = (0..1000).map(|_| Box::new([1; 1000])).collect();
    let during = HEAP.stats();
    assert!(during.bytes_live >= before.bytes_live + 900_000, "{before:?} {during:?}");
    assert!(during.bytes_peak >= during.bytes_live);
    drop(blocks);
    HEAP.trim(0);
    assert!(HEAP.stats().bytes_live < during.bytes_live - 800_000);
}

#[test]
fn a_good_size_is_the_room_of_the_block() {
    for size in [1, 17, 1000, 1025, 40_000, 1 << 20] {
        assert!(HEAP.good_size(size) >= size);
        assert_eq!(HEAP.good_size(HEAP.good_size(size)), HEAP.good_size(size));
    }
}

#[test]
fn knobs_are_told_and_set() {
    let mut answer = [0; 64];
    HEAP.set("retain", "150").unwrap();
    assert_eq!(HEAP.get("retain", &mut answer), Ok("150"));
    assert_eq!(HEAP.set("retain", "banana"), Err(Refused::NotUnderstood));
    assert_eq!(HEAP.set("no_such_knob", "1"), Err(Refused::NoSuchKey));
    assert_eq!(HEAP.get("no\0knob", &mut answer), Err(Refused::NotUnderstood));
    assert_eq!(HEAP.set("stats", "1"), Err(Refused::StartOnly));
    assert_eq!(HEAP.set(&"x".repeat(5000), ""), Err(Refused::NotUnderstood));
    assert_eq!(Refused::NoSuchKey.to_string(), "there is no such key");
    HEAP.set("purge", "").unwrap();
}

#[test]
fn a_heap_profile_is_written() {
    let folder = std::env::temp_dir().join(format!("hakozuna-looks-{}", std::process::id()));
    let path = folder.to_str().unwrap();
    if HEAP.set("profile_heap", "1K").is_err() {
        return; // the line keeps none
    }
    let blocks: Vec<Vec<u8>> = (0..1000).map(|size| vec![0; size]).collect();
    assert!(HEAP.write_heap_profile(Some(path)));
    assert!(std::fs::metadata(path).unwrap().len() > 0);
    std::fs::remove_file(path).unwrap();
    assert!(!HEAP.write_heap_profile(Some("/no/such/folder/profile")));
    HEAP.set("profile_heap", "0").unwrap();
    drop(blocks);
    assert!(!HEAP.write_profile(), "no file was named for it");
}
