#![allow(clippy::unwrap_used)]

use mlx::device::connect;
use mlx::tensor::Tensor;

use super::*;
use crate::cache::{PlainCache, RotatingCache};

/// A model of one layer with full attention and, if `slides`, one with a window of 16.
fn model(slides: bool) -> Vec<Cache> {
    connect().unwrap();
    let mut caches = vec![Cache::Plain(PlainCache::default())];
    caches.extend(slides.then(|| Cache::Rotating(RotatingCache::new(16))));
    caches
}

fn read(caches: &mut [Cache], positions: usize) {
    for cache in caches {
        let rows = Tensor::from_f32(&vec![1.0; positions * 32], &[1, 1, positions as i32, 32]);
        cache.update(&rows, &rows).unwrap();
    }
}

/// Bytes of one position of one layer.
const POSITION: u64 = 2 * 32 * 2;

fn tokens(chat: u32, length: usize) -> Vec<u32> {
    (0..length as u32)
        .map(|index| if index < 10 { index } else { chat * 1000 + index })
        .collect()
}

fn keep(store: &mut PrefixCache, slides: bool, tokens: &[u32]) {
    let mut caches = model(slides);
    read(&mut caches, tokens.len());
    store.insert(tokens, None, &mut caches).unwrap();
}

fn known(store: &mut PrefixCache, tokens: &[u32]) -> usize {
    match store.lookup(tokens, tokens.len() - 1, None).unwrap() {
        Some((positions, caches)) => {
            assert!(caches.iter().all(|cache| cache.offset() == positions));
            positions
        }
        None => 0,
    }
}

#[test]
fn the_longest_beginning_is_gone_on_from() {
    let mut store = PrefixCache::with_budget(1 << 30);
    for length in [12, 30, 50] {
        keep(&mut store, true, &tokens(1, length));
    }
    assert_eq!(store.lengths(), [12, 30, 50]);
    assert_eq!(known(&mut store, &tokens(1, 60)), 50);
    assert_eq!(
        known(&mut store, &tokens(1, 50)),
        30,
        "one token has to be left to read"
    );
    assert_eq!(known(&mut store, &tokens(1, 45)), 30, "a window cannot go back");
    assert_eq!(known(&mut store, &tokens(2, 60)), 10, "one that has not turned can");
    assert_eq!(known(&mut store, &[7; 20]), 0);
    let other_bits = store.lookup(&tokens(1, 60), 59, Some(KvBits::Eight)).unwrap();
    assert!(other_bits.is_none());
}

#[test]
fn full_attention_alone_needs_one_copy_for_each_branch() {
    let mut store = PrefixCache::with_budget(1 << 30);
    for length in [12, 50, 30] {
        keep(&mut store, false, &tokens(1, length));
    }
    assert_eq!(store.lengths(), [50], "what it contains is superfluous");
    keep(&mut store, false, &tokens(2, 40));
    assert_eq!(store.lengths(), [40, 50]);
    assert_eq!(known(&mut store, &tokens(1, 45)), 44);
    assert_eq!(known(&mut store, &tokens(3, 45)), 10);
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    // Room for three copies of 40 positions in one layer and their ids.
    let mut store = PrefixCache::with_budget(3 * 40 * (POSITION + 4));
    for chat in 1..=3 {
        keep(&mut store, false, &tokens(chat, 40));
    }
    assert_eq!(known(&mut store, &tokens(1, 41)), 40);
    keep(&mut store, false, &tokens(4, 40));
    let found: Vec<usize> = (1..=4).map(|chat| known(&mut store, &tokens(chat, 41))).collect();
    assert_eq!(found, [40, 10, 40, 40], "the second was used longest ago");
    assert!(store.bytes() <= 3 * 40 * (POSITION + 4));
    store.set_budget(0);
    assert_eq!((store.bytes(), store.tensors(), store.lengths().len()), (0, 0, 0));
    keep(&mut store, false, &tokens(1, 40));
    assert_eq!(store.lengths().len(), 0, "without a budget nothing is kept");
}

#[test]
fn a_copy_larger_than_the_budget_keeps_its_beginning() {
    let mut store = PrefixCache::with_budget(600 * (POSITION + 4));
    let mut caches = model(false);
    read(&mut caches, 1000);
    store.insert(&tokens(1, 1000), None, &mut caches).unwrap();
    drop(caches);
    assert_eq!(store.lengths(), [512], "whole blocks");
    assert!(store.bytes() <= 600 * (POSITION + 4), "{}", store.bytes());
    assert_eq!(known(&mut store, &tokens(1, 1000)), 512);
    keep(&mut store, true, &tokens(2, 1000));
    assert_eq!(store.lengths(), [512], "a window has no beginning to keep");
}

#[test]
fn a_copy_that_nothing_continued_for_its_time_goes() {
    let mut store = PrefixCache::with_budget(1 << 30);
    assert_eq!(store.expiry(), None);
    keep(&mut store, true, &tokens(1, 50));
    keep(&mut store, true, &tokens(2, 40));
    assert!(!store.drop_unused(Instant::now()));
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(known(&mut store, &tokens(1, 60)), 50);
    let of_the_other = store.expiry().unwrap();
    assert!(store.drop_unused(of_the_other));
    assert_eq!(store.lengths(), [50]);
    assert!(store.expiry().unwrap() > of_the_other);
    assert!(store.drop_unused(Instant::now() + UNUSED));
    assert_eq!((store.bytes(), store.expiry()), (0, None));
}
