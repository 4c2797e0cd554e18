#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::rc::Rc;

use mlx::device::connect;
use protocol::KvBits;

use super::*;

const HEADS: i32 = 2;
const WINDOW: u32 = 20;

/// Made-up numbers between -1 and 1, `[1, heads, positions, width]`, the same for the same first position.
pub(crate) fn numbers(first: usize, positions: usize, width: i32, seed: usize) -> Tensor {
    let size = HEADS as usize * positions * width as usize;
    let value = |index: usize| {
        let (head, rest) = (
            index / (positions * width as usize),
            index % (positions * width as usize),
        );
        let position = first + rest / width as usize;
        let mixed = (head * 7919 + position * 104_729 + (rest % width as usize) * 1299 + seed * 31) % 2003;
        mixed as f32 / 1001.0 - 1.0
    };
    let values: Vec<f32> = (0..size).map(value).collect();
    Tensor::from_f32(&values, &[1, HEADS, positions as i32, width])
}

fn read(cache: &mut Cache, positions: usize) -> Vec<f32> {
    let first = cache.offset();
    let seen = cache
        .update(&numbers(first, positions, 32, 1), &numbers(first, positions, 64, 2))
        .unwrap();
    let (keys, values) = seen.dequantized().unwrap();
    keys.to_f32()
        .unwrap()
        .into_iter()
        .chain(values.to_f32().unwrap())
        .collect()
}

/// One cache of each kind that attention has.
fn caches() -> Vec<Cache> {
    connect().unwrap();
    vec![
        Cache::Plain(PlainCache::default()),
        Cache::Plain(PlainCache::default()).quantized(Some(KvBits::Eight)),
        Cache::Plain(PlainCache::default()).quantized(Some(KvBits::Four)),
        Cache::Rotating(RotatingCache::new(WINDOW)),
    ]
}

fn frozen(cache: &mut Cache, counter: &ByteCounter) -> FrozenCache {
    let copy = cache.freeze(counter).unwrap();
    Block::materialize(copy.blocks().iter()).unwrap();
    copy
}

/// The visible positions do not depend on their order, in which a ring differs from a copy.
fn sorted(mut values: Vec<f32>) -> Vec<f32> {
    values.sort_by(f32::total_cmp);
    values
}

#[test]
fn a_copy_goes_on_as_the_original_does() {
    let counter = ByteCounter::default();
    for chunks in [
        vec![1; 9],
        vec![5, 300, 1, 1],
        vec![256],
        vec![19, 1, 1, 1],
        vec![600, 7],
        vec![20],
        vec![1; 41],
    ] {
        for mut cache in caches() {
            chunks.iter().for_each(|chunk| drop(read(&mut cache, *chunk)));
            let copy = frozen(&mut cache, &counter);
            let offset = cache.offset();
            assert!(copy.can_trim_to(offset) && !copy.can_trim_to(offset + 1));
            // Twice, because continuing from a copy must not change it; the original continues as well.
            for mut again in [copy.thaw(offset).unwrap(), copy.thaw(offset).unwrap(), cache] {
                assert_eq!(again.offset(), offset);
                let mut never_stopped = fresh_like(&again);
                chunks.iter().for_each(|chunk| drop(read(&mut never_stopped, *chunk)));
                for next in [1, 1, 6, 1, 270, 1] {
                    let array = |cache: &Cache| matches!(cache.mask(next, None).unwrap(), Mask::Array(_));
                    assert_eq!(array(&again), array(&never_stopped));
                    assert_eq!(
                        sorted(read(&mut again, next)),
                        sorted(read(&mut never_stopped, next)),
                        "{chunks:?} then {next}"
                    );
                }
            }
        }
    }
    assert_eq!(counter.bytes(), 0, "nothing of the copies is left");
}

/// An empty cache of the same kind.
fn fresh_like(cache: &Cache) -> Cache {
    let kind = std::mem::discriminant(cache);
    let bits = |width: &Cache| match width {
        Cache::Quantized(cache) => cache.bits(),
        _ => KvBits::Eight,
    };
    caches()
        .into_iter()
        .find(|other| std::mem::discriminant(other) == kind && bits(other) == bits(cache))
        .unwrap()
}

#[test]
fn a_copy_can_be_cut_where_nothing_is_lost() {
    let counter = ByteCounter::default();
    for mut cache in caches() {
        let turns = matches!(cache, Cache::Rotating(_));
        read(&mut cache, 12);
        let early = frozen(&mut cache, &counter);
        read(&mut cache, 600);
        let late = frozen(&mut cache, &counter);
        assert_eq!(late.can_trim_to(300), !turns, "a window that has turned cannot go back");
        for (copy, cuts) in [
            (&early, vec![1, 7, 12]),
            (
                &late,
                if turns {
                    vec![]
                } else {
                    vec![1, 255, 256, 257, 512, 611]
                },
            ),
        ] {
            for cut in cuts {
                assert!(copy.can_trim_to(cut));
                let (mut again, mut never_more) = (copy.thaw(cut).unwrap(), fresh_like(&cache));
                read(&mut never_more, cut);
                assert_eq!(
                    sorted(read(&mut again, 3)),
                    sorted(read(&mut never_more, 3)),
                    "cut at {cut}"
                );
                assert_eq!(sorted(read(&mut again, 1)), sorted(read(&mut never_more, 1)));
            }
        }
    }
}

#[test]
fn positions_that_are_taken_back_leave_nothing() {
    let counter = ByteCounter::default();
    for chunks in [
        vec![3],
        vec![1; 9],
        vec![19, 1, 1],
        vec![20],
        vec![254],
        vec![300, 1],
        vec![1; 41],
    ] {
        for mut cache in caches() {
            chunks.iter().for_each(|chunk| drop(read(&mut cache, *chunk)));
            let mut never_read = fresh_like(&cache);
            chunks.iter().for_each(|chunk| drop(read(&mut never_read, *chunk)));
            for (count, dropped) in [(4, 3), (8, 7), (8, 1), (2, 1), (5, 4)] {
                read(&mut cache, count);
                cache.drop_last(dropped).unwrap();
                read(&mut never_read, count - dropped);
                assert_eq!(cache.offset(), never_read.offset());
                let mut copy = frozen(&mut cache, &counter).thaw(cache.offset()).unwrap();
                for next in [1, 6, 1] {
                    let expected = sorted(read(&mut never_read, next));
                    assert_eq!(
                        sorted(read(&mut cache, next)),
                        expected,
                        "{chunks:?}, {dropped} of {count}"
                    );
                    assert_eq!(sorted(read(&mut copy, next)), expected, "from a copy");
                }
            }
        }
    }
}

#[test]
fn copies_share_their_blocks_and_each_is_counted_once() {
    let counter = ByteCounter::default();
    let mut cache = Cache::Plain(PlainCache::default());
    connect().unwrap();
    let position = u64::from(HEADS as u32 * (32 + 64) * 2);
    read(&mut cache, 700);
    let first = frozen(&mut cache, &counter);
    assert_eq!(counter.bytes(), 700 * position);
    read(&mut cache, 100);
    let second = frozen(&mut cache, &counter);
    // The third block is full now; the first copy keeps its own shorter one.
    assert_eq!(counter.bytes(), (700 - 512 + 800) * position);
    let mut resumed = first.thaw(600).unwrap();
    read(&mut resumed, 1);
    let third = frozen(&mut resumed, &counter);
    let blocks: HashSet<_> = [&first, &second, &third]
        .iter()
        .flat_map(|copy| copy.blocks())
        .map(Rc::as_ptr)
        .collect();
    assert_eq!(blocks.len(), 2 + 1 + 2 + 1);
    drop((first, second, third));
    assert_eq!(
        counter.bytes(),
        (512 + 256) * position,
        "what the caches share is still theirs"
    );
    drop((cache, resumed));
    assert_eq!(counter.bytes(), 0);
}

#[test]
fn heads_that_cannot_be_packed_stay_whole() {
    connect().unwrap();
    for (width, quantized) in [
        (32, true),
        (64, true),
        (96, true),
        (128, true),
        (16, false),
        (80, false),
    ] {
        let mut cache = Cache::Plain(PlainCache::default()).quantized(Some(KvBits::Four));
        cache
            .update(&numbers(0, 3, width, 1), &numbers(0, 3, width, 2))
            .unwrap();
        assert_eq!(matches!(cache, Cache::Quantized(_)), quantized, "{width}");
        assert_eq!(cache.offset(), 3);
    }
}
