//! Each faster way that a CPU can compute, beside the plain one.

use checkpoint::config::rope::RopeConfig;
use mlx::device::{connect, pretend_gpu};
use mlx::fused::Rows;
use mlx::ops::Mask;
use mlx::tensor::Tensor;
use mlx::Dtype;

use crate::cache::KvView;
use crate::kernels::kernels;
use crate::layers::{scaled_dot_product_attention, RmsNorm, Rope};
use crate::products::product_check::{activations, relative};

fn numbers(shape: &[i32]) -> Tensor {
    activations(shape, Dtype::Float32).unwrap()
}

fn is_close(fast: &Tensor, plain: &Tensor, of: &str) {
    assert_eq!(fast.shape(), plain.shape(), "{of}");
    let difference = relative(fast, plain).unwrap();
    assert!(difference < 1e-5, "{of}: {difference}");
}

#[test]
fn norms_are_those_of_mlx() {
    connect().unwrap();
    let heads = numbers(&[3, 64]);
    for (shape, factors) in [
        (&[1, 64][..], numbers(&[64])),
        (&[7, 64], numbers(&[64])),
        (&[5, 3, 64], heads),
    ] {
        let x = numbers(shape);
        let plain = x.fast_rms_norm(None, 1e-5).unwrap().mul(&factors).unwrap();
        let norm = RmsNorm::new(factors, 1e-5);
        is_close(&norm.forward(&x).unwrap(), &plain, &format!("{shape:?}"));
    }
}

#[test]
fn rows_whose_numbers_lie_apart_are_read_in_their_order() {
    connect().unwrap();
    let (turned, matrix) = (numbers(&[64, 3]), numbers(&[9, 64]));
    let x = turned.swapaxes(0, 1).unwrap();
    let plain = x.contiguous().unwrap().matmul(&matrix.swapaxes(0, 1).unwrap()).unwrap();
    let fast = kernels().linear(&x, Rows::Plain(&matrix), None).unwrap();
    is_close(&fast.expect("a CPU has a kernel for it"), &plain, "turned rows");
}

/// Heads `[1, heads, length, width]` from a position on, turned in 64 bits.
fn turned(config: &RopeConfig, x: &Tensor, offset: usize) -> Tensor {
    let (length, width) = (x.dim(2) as usize, x.dim(3) as usize);
    let mut numbers = x.contiguous().unwrap().to_f32().unwrap();
    for (row, head) in numbers.chunks_exact_mut(width).enumerate() {
        let position = (offset + row % length) as f64;
        for (pair, period) in config.periods.iter().enumerate() {
            let (sin, cos) = (position / f64::from(*period)).sin_cos();
            let (one, other) = match config.traditional {
                true => (2 * pair, 2 * pair + 1),
                false => (pair, pair + config.dims as usize / 2),
            };
            let (a, b) = (f64::from(head[one]), f64::from(head[other]));
            (head[one], head[other]) = ((a * cos - b * sin) as f32, (b * cos + a * sin) as f32);
        }
    }
    Tensor::from_f32(&numbers, x.shape())
}

#[test]
fn heads_turn_by_their_positions() {
    connect().unwrap();
    for (dims, traditional) in [(32, false), (32, true), (16, false)] {
        let config = RopeConfig {
            dims,
            traditional,
            periods: (0..dims / 2)
                .map(|pair| 10_000f32.powf(2.0 * pair as f32 / dims as f32))
                .collect(),
            amplitude: 1.0,
            dynamic: None,
            sections: None,
            golden: false,
        };
        let rope = Rope::new(&config, 32, Dtype::Float32).unwrap();
        for offset in [0, 3, 999] {
            let of = format!("{dims} numbers at {offset}");
            let x = numbers(&[1, 4, 5, 32]);
            let exact = |x: &Tensor| turned(&config, x, offset);
            is_close(&rope.forward(&x, &rope.at(offset, 5)).unwrap(), &exact(&x), &of);
            let several = numbers(&[2, 4, 1, 32]);
            let each = rope.forward(&several, &rope.at_each(&[7, offset])).unwrap();
            let alone = exact(&several.slice(0, 1, 2).unwrap());
            is_close(&each.slice(0, 1, 2).unwrap(), &alone, &of);
        }
    }
}

#[test]
fn attention_is_that_of_mlx() {
    connect().unwrap();
    let (keys, values) = (numbers(&[1, 2, 300, 32]), numbers(&[1, 2, 300, 64]));
    // Parts of longer buffers, as caches hand them out.
    let view = |positions: i32| KvView::Plain {
        keys: keys.slice(2, 0, positions).unwrap(),
        values: values.slice(2, 0, positions).unwrap(),
    };
    let sinks = numbers(&[6]);
    for positions in [1, 5, 64, 65, 300] {
        for length in [1, 2, 5].into_iter().filter(|length| *length <= positions) {
            let seen: Vec<bool> = (0..length * positions)
                .map(|place| place % 3 > 0 || place % positions == 0)
                .collect();
            let array = Mask::Array(Tensor::from_bool(&seen, &[length, positions]));
            for (mask, sinks) in [
                (Mask::None, None),
                (Mask::Causal, None),
                (array, None),
                (Mask::Causal, Some(&sinks)),
            ] {
                let queries = numbers(&[1, 6, length, 32]);
                let view = view(positions);
                let KvView::Plain { keys, values } = &view else {
                    unreachable!()
                };
                let plain = queries.fast_attention(keys, values, 0.3, &mask, sinks).unwrap();
                let plain = plain
                    .transpose(&[0, 2, 1, 3])
                    .unwrap()
                    .reshape(&[length, 6 * 64])
                    .unwrap();
                let found = scaled_dot_product_attention(&queries, &view, 0.3, &mask, sinks).unwrap();
                is_close(&found, &plain, &format!("{length} queries of {positions}"));
            }
        }
    }
}

#[test]
fn attention_by_products_is_attention() {
    connect().unwrap();
    let (keys, values) = (numbers(&[1, 2, 40, 32]), numbers(&[1, 2, 40, 16]));
    // Queries that do not share a mask are composed on a GPU.
    pretend_gpu();
    let seen: Vec<bool> = (0..5 * 40).map(|place| place % 40 <= 35 + place / 40).collect();
    let mask = Mask::Array(Tensor::from_bool(&seen, &[5, 40]));
    let queries = numbers(&[1, 6, 5, 32]);
    let plain = queries.fast_attention(&keys, &values, 0.25, &mask, None).unwrap();
    let plain = plain.transpose(&[0, 2, 1, 3]).unwrap().reshape(&[5, 6 * 16]).unwrap();
    let view = KvView::Plain { keys, values };
    let found = scaled_dot_product_attention(&queries, &view, 0.25, &mask, None).unwrap();
    is_close(&found, &plain, "5 queries");
}
