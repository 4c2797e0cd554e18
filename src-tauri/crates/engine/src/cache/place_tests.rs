//! Caches that a recorded step writes in place, beside such as plain steps write.

#![allow(clippy::unwrap_used)]

use mlx::device::{connect, pretend_gpu};
use mlx::recording::CacheShape;
use mlx::Dtype;

use super::tests::numbers;
use super::*;

const WIDTH: i32 = 32;
const WINDOW: u32 = 20;
const SHAPE: CacheShape = CacheShape {
    dtype: Dtype::Float32,
    heads: 2,
    width: WIDTH,
};

/// Caches on a CPU keep their numbers in 16 bits.
fn connect_as_gpu() {
    connect().unwrap();
    pretend_gpu();
}

fn keys(first: usize, count: usize) -> Tensor {
    numbers(first, count, WIDTH, 1)
}

fn values(first: usize, count: usize) -> Tensor {
    numbers(first, count, WIDTH, 2)
}

/// Writes the next positions as a recorded step would; false if it may not.
fn write(cache: &mut Cache, count: usize) -> bool {
    let first = cache.offset();
    let window = match cache {
        Cache::Rotating(_) => WINDOW as usize,
        _ => usize::MAX,
    };
    let Some(place) = cache.place(SHAPE, count as i32).unwrap() else {
        return false;
    };
    for (buffer, rows) in [(place.keys, keys(first, count)), (place.values, values(first, count))] {
        let (places, rows) = (buffer.dim(2) as usize, rows.to_f32().unwrap());
        for head in 0..2 {
            for position in 0..count {
                let row = (head * count + position) * WIDTH as usize;
                let to = (head * places + (first + position) % window) * WIDTH as usize;
                buffer.overwrite(to, &rows[row..row + WIDTH as usize]).unwrap();
            }
        }
    }
    cache.count_written(count as i32);
    true
}

fn read(cache: &mut Cache, count: usize) -> Vec<f32> {
    let first = cache.offset();
    let seen = cache.update(&keys(first, count), &values(first, count)).unwrap();
    let (keys, values) = seen.dequantized().unwrap();
    // A ring has its positions in another order.
    let mut all: Vec<f32> = [keys.to_f32().unwrap(), values.to_f32().unwrap()].concat();
    all.sort_by(f32::total_cmp);
    all
}

#[test]
fn what_a_recorded_step_writes_is_seen_by_plain_ones() {
    connect_as_gpu();
    let kinds: [fn() -> Cache; 2] = [
        || Cache::Plain(PlainCache::default()),
        || Cache::Rotating(RotatingCache::new(WINDOW)),
    ];
    for new in kinds {
        // From nothing, after a long prompt, and over the end of a buffer and of a window; several at once where they
        // fit.
        for (prompt, written) in [
            (0, vec![1; 45]),
            (0, vec![8, 1, 8, 1]),
            (5, vec![1; 40]),
            (19, vec![1, 1, 1]),
            (20, vec![1; 25]),
            (250, vec![1; 12]),
            (250, vec![32, 1]),
        ] {
            let counter = ByteCounter::default();
            let (mut plain, mut recorded) = (new(), new());
            for cache in [&mut plain, &mut recorded] {
                if prompt > 0 {
                    read(cache, prompt);
                }
            }
            for count in written {
                let before = recorded.offset();
                if !write(&mut recorded, count) {
                    assert!(
                        count > 1 && before + count > WINDOW as usize,
                        "only a window may refuse"
                    );
                    read(&mut recorded, count);
                }
                read(&mut plain, count);
            }
            let copy = recorded.freeze(&counter).unwrap();
            Block::materialize(copy.blocks().iter()).unwrap();
            let read_by = plain.offset();
            assert_eq!(recorded.offset(), read_by);
            // The copy keeps what it has while the cache goes on.
            assert!(write(&mut recorded, 1));
            let mut thawed = copy.thaw(read_by).unwrap();
            let wanted = read(&mut plain, 1);
            assert_eq!(read(&mut thawed, 1), wanted, "a copy after {prompt}");
            assert!(write(&mut recorded, 1));
            read(&mut plain, 1);
            assert_eq!(read(&mut recorded, 3), read(&mut plain, 3), "after {prompt}");
        }
    }
}

#[test]
fn a_cache_keeps_its_place_as_long_as_there_is_room() {
    connect_as_gpu();
    for mut cache in [
        Cache::Plain(PlainCache::default()),
        Cache::Rotating(RotatingCache::new(WINDOW)),
    ] {
        assert!(write(&mut cache, 1));
        let id = |cache: &mut Cache| cache.place(SHAPE, 1).unwrap().map(|place| place.keys.id());
        let first = id(&mut cache);
        for _ in 0..30 {
            assert!(write(&mut cache, 1));
            assert_eq!(id(&mut cache), first);
        }
        // A plain step makes tensors anew.
        read(&mut cache, 1);
        assert_ne!(id(&mut cache), first);
    }
    let mut quantized = Cache::Plain(PlainCache::default()).quantized(Some(protocol::KvBits::Eight));
    assert!(quantized.place(SHAPE, 1).unwrap().is_none());
}
