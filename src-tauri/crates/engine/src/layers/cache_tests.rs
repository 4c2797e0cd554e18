//! Layers over the caches that they keep.
#![allow(clippy::unwrap_used)]

use mlx::device::{connect, pretend_gpu};
use mlx::tensor::Tensor;
use protocol::KvBits;

use crate::cache::tests::numbers;
use crate::cache::{ByteCounter, Cache, KvView, PlainCache, RecurrentCache};
use crate::layers::{scaled_dot_product_attention, ShortConv};

#[test]
fn a_copy_goes_on_where_it_was_made_and_nowhere_else() {
    connect().unwrap();
    let conv = ShortConv::new(&Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3, 1]), None).unwrap();
    let read = |cache: &mut Cache, numbers: &[f32]| {
        let (x, cache) = (
            Tensor::from_f32(numbers, &[numbers.len() as i32 / 2, 2]),
            cache.recurrent(),
        );
        cache.advance(numbers.len() / 2);
        conv.forward(&x, &mut cache.conv).unwrap().to_f32().unwrap()
    };
    let (counter, mut cache) = (ByteCounter::default(), Cache::Recurrent(RecurrentCache::default()));
    read(&mut cache, &[0.5, -1.0, 2.0, 3.0, -4.0, 0.25]);
    let copy = cache.freeze(&counter).unwrap();
    assert_eq!(counter.bytes(), 16);
    let first = read(&mut cache, &[7.0, -2.0]);
    read(&mut cache, &[1.0, 1.0]);
    assert!(copy.can_trim_to(3) && !copy.can_trim_to(2) && !copy.can_trim_to(4));
    let mut resumed = copy.thaw(3).unwrap();
    assert_eq!((resumed.offset(), cache.offset()), (3, 5));
    assert_eq!(read(&mut resumed, &[7.0, -2.0]), first);
}

#[test]
fn attention_over_packed_keys_is_that_over_what_they_stand_for() {
    connect().unwrap();
    let sinks = Tensor::from_f32(&[0.3, -1.0, 2.0, 0.0, 0.5, -0.2], &[6]);
    for gpu in [false, true] {
        if gpu {
            pretend_gpu();
        }
        for (bits, length, sinks, scale) in [
            (KvBits::Eight, 1, None, 1.0),
            (KvBits::Four, 1, Some(&sinks), 0.125),
            (KvBits::Eight, 9, Some(&sinks), 0.125),
            (KvBits::Four, 9, None, 1.0),
        ] {
            let mut cache = Cache::Plain(PlainCache::default()).quantized(Some(bits));
            cache.update(&numbers(0, 40, 32, 1), &numbers(0, 40, 64, 2)).unwrap();
            let mask = cache.mask(length, None).unwrap();
            let first = cache.offset();
            let seen = cache
                .update(&numbers(first, length, 32, 1), &numbers(first, length, 64, 2))
                .unwrap();
            let (keys, values) = seen.dequantized().unwrap();
            let queries: Vec<f32> = (0..6 * length * 32)
                .map(|index| ((index * 37) % 101) as f32 / 50.0 - 1.0)
                .collect();
            let queries = Tensor::from_f32(&queries, &[1, 6, length as i32, 32]);
            let quantized = scaled_dot_product_attention(&queries, &seen, scale, &mask, sinks).unwrap();
            assert_eq!(quantized.shape(), [length as i32, 6 * 64]);
            let plain =
                scaled_dot_product_attention(&queries, &KvView::Plain { keys, values }, scale, &mask, sinks).unwrap();
            let pairs = quantized.to_f32().unwrap().into_iter().zip(plain.to_f32().unwrap());
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-5, "{bits:?}, {length} queries: {worst}");
        }
    }
}
