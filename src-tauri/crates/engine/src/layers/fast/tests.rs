//! Each faster way that a CPU can compute, beside the plain one.

use checkpoint::config::rope::RopeConfig;
use mlx::device::{connect, pretend_gpu};
use mlx::ops::Mask;
use mlx::tensor::Tensor;
use mlx::Dtype;

use crate::cache::KvView;
use crate::layers::fast::rms_norm::FoldedNorm;
use crate::layers::{scaled_dot_product_attention, Rope, Rotation};
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
fn a_folded_norm_is_the_norm() {
    connect().unwrap();
    let weight = numbers(&[64]);
    let folded = FoldedNorm::new(&weight, 1e-5).unwrap();
    for rows in [1, 7] {
        let x = numbers(&[rows, 64]);
        let plain = x.fast_rms_norm(Some(&weight), 1e-5).unwrap();
        is_close(&folded.forward(&x).unwrap(), &plain, &format!("{rows} rows"));
    }
}

#[test]
fn a_product_with_a_rotation_turns_as_the_kernel_does() {
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
            let x = numbers(&[1, 4, 1, 32]);
            let folded = rope.at(offset, 1);
            assert!(matches!(folded, Rotation::Matrix(_)), "{of}");
            let kernel = Rotation::Kernel {
                offset: offset as i32,
                base: None,
                place: None,
            };
            let plain = rope.forward(&x, &kernel).unwrap();
            is_close(&rope.forward(&x, &folded).unwrap(), &plain, &of);
            let several = numbers(&[2, 4, 1, 32]);
            let each = rope.forward(&several, &rope.at_each(&[offset, offset])).unwrap();
            let alone = rope.forward(&several.slice(0, 1, 2).unwrap(), &kernel).unwrap();
            is_close(&each.slice(0, 1, 2).unwrap(), &alone, &of);
        }
    }
}

#[test]
fn attention_by_products_is_attention() {
    connect().unwrap();
    let (keys, values) = (numbers(&[1, 2, 40, 32]), numbers(&[1, 2, 40, 16]));
    let view = KvView::Plain {
        keys: keys.clone(),
        values: values.clone(),
    };
    let compare = |length: i32, scale: f32, mask: &Mask| {
        let queries = numbers(&[1, 6, length, 32]);
        let plain = queries.fast_attention(&keys, &values, scale, mask, None).unwrap();
        let plain = plain
            .transpose(&[0, 2, 1, 3])
            .unwrap()
            .reshape(&[length, 6 * 16])
            .unwrap();
        let fast = scaled_dot_product_attention(&queries, &view, scale, mask, None).unwrap();
        is_close(&fast, &plain, &format!("{length} queries"));
    };
    compare(1, 1.0, &Mask::None);
    // More queries are composed on a GPU, under a mask that not all of them share.
    pretend_gpu();
    let seen: Vec<bool> = (0..5 * 40).map(|place| place % 40 <= 35 + place / 40).collect();
    compare(5, 0.25, &Mask::Array(Tensor::from_bool(&seen, &[5, 40])));
}
