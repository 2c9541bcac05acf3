// SPDX-License-Identifier: Apache-2.0
//
// Work for rustc whose output is the same every time; compiled and run by rust.sh. Rust's System allocator is malloc,
// and posix_memalign where a type wants more alignment.
use std::alloc::System;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;
use std::sync::{mpsc, Arc, Mutex};
use std::thread;

#[global_allocator]
static GLOBAL: System = System;

#[repr(align(256))]
#[derive(Clone)]
struct Aligned([u64; 32]);

struct Numbers(u64);

impl Numbers {
    fn next(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

enum Thing {
    Text(String),
    List(Vec<u64>),
    Map(BTreeMap<u64, Box<u64>>),
    Aligned(Box<Aligned>),
}

impl Thing {
    fn new(kind: u64, numbers: &mut Numbers) -> Thing {
        match kind {
            0 => Thing::Text("x".repeat(numbers.next(3000) as usize)),
            1 => Thing::List((0..numbers.next(400)).collect()),
            2 => Thing::Map((0..numbers.next(60)).map(|i| (i * 7 % 61, Box::new(i))).collect()),
            _ => Thing::Aligned(Box::new(Aligned([kind; 32]))),
        }
    }

    fn sum(&self) -> u64 {
        match self {
            Thing::Text(text) => text.len() as u64,
            Thing::List(list) => list.iter().sum(),
            Thing::Map(map) => map.iter().map(|(key, value)| key * 3 + **value).sum(),
            Thing::Aligned(one) => {
                assert_eq!(&**one as *const Aligned as usize % 256, 0);
                one.0.iter().sum()
            }
        }
    }
}

fn churn(seed: u64) -> u64 {
    let mut numbers = Numbers(seed);
    let mut live: HashMap<u64, Thing> = HashMap::new();
    for _ in 0..60000 {
        let key = numbers.next(800);
        match numbers.next(5) {
            4 => drop(live.remove(&key)),
            kind => drop(live.insert(key, Thing::new(kind, &mut numbers))),
        }
    }
    live.iter().map(|(key, thing)| key.wrapping_mul(31).wrapping_add(thing.sum())).fold(0, u64::wrapping_add)
}

fn main() {
    let workers: Vec<_> = (0..6).map(|seed| thread::spawn(move || churn(seed))).collect();
    for worker in workers {
        println!("{}", worker.join().unwrap());
    }

    // Made by some threads, dropped by another.
    let (sender, receiver) = mpsc::channel::<Thing>();
    for seed in 0..4 {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut numbers = Numbers(seed);
            for i in 0..10000 {
                sender.send(Thing::new(i % 4, &mut numbers)).unwrap();
            }
        });
    }
    drop(sender);
    println!("{}", receiver.iter().map(|thing| thing.sum()).sum::<u64>());

    let shared = Arc::new(Mutex::new(VecDeque::new()));
    thread::scope(|scope| {
        for i in 0..100u64 {
            let shared = &shared;
            scope.spawn(move || shared.lock().unwrap().push_back(vec![i; 1000]));
        }
    });
    println!("{}", shared.lock().unwrap().iter().map(|list| list.iter().sum::<u64>()).sum::<u64>());

    let mut text = String::new();
    for i in 0..200000 {
        write!(text, "{},", i).unwrap();
    }
    let mut list: Vec<&str> = text.split(',').collect();
    list.sort();
    println!("{} {}", list.len(), list[77777]);
}
