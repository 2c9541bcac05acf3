// SPDX-License-Identifier: Apache-2.0
//
// Programs as they are: rayon, whose threads steal each other's work, and tokio, whose tasks change threads between two
// looks at a block. Called by cargo test; below a second.
use hakozuna::Hakozuna;
use rayon::prelude::*;
use std::collections::HashMap;

#[global_allocator]
static HEAP: Hakozuna = Hakozuna;

#[test]
fn rayon_sorts_and_collects() {
    let words: Vec<String> =
        (0..50_000_u32).into_par_iter().map(|n| format!("{:08}", n.wrapping_mul(2_654_435_761))).collect();
    let mut sorted = words.clone();
    sorted.par_sort_unstable();
    assert!(sorted.windows(2).all(|two| two[0] <= two[1]));
    let lengths: HashMap<usize, usize> = words
        .par_iter()
        .fold(HashMap::new, |mut counts, word| {
            *counts.entry(word.len()).or_insert(0) += 1;
            counts
        })
        .reduce(HashMap::new, |mut one, other| {
            for (length, count) in other {
                *one.entry(length).or_insert(0) += count;
            }
            one
        });
    assert_eq!(lengths.values().sum::<usize>(), words.len());
    assert!(HEAP.owns(words[0].as_ptr()));
}

#[test]
fn tokio_passes_blocks_between_tasks() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
    let sum = runtime.block_on(async {
        let (sender, mut receiver) = tokio::sync::mpsc::channel::<Vec<u64>>(8);
        for task in 0..20_u64 {
            let sender = sender.clone();
            tokio::spawn(async move {
                for round in 0..100_u64 {
                    sender.send((0..round % 50 + 1).map(|n| n + task).collect()).await.unwrap();
                    tokio::task::yield_now().await;
                }
            });
        }
        drop(sender);
        let mut sum = 0;
        while let Some(numbers) = receiver.recv().await {
            assert!(HEAP.owns(numbers.as_ptr()));
            sum += numbers[0];
        }
        sum
    });
    assert_eq!(sum, (0..20).sum::<u64>() * 100);
}
