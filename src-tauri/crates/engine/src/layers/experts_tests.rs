#![allow(clippy::unwrap_used)]

use mlx::device::{connect, pretend_gpu};
use mlx::ops::random_uniform;
use mlx::random::RandomKey;

use super::*;
use crate::layers::Gelu;
use crate::weights::Matrix;

const EXPERTS: i32 = 5;
const HIDDEN: i32 = 6;
const WIDTH: i32 = 3;
const CHOSEN: i32 = 2;

fn random(seed: u64, shape: &[i32]) -> Tensor {
    random_uniform(&RandomKey::from_seed(seed).tensor().unwrap(), shape).unwrap()
}

fn gelu() -> Gelu {
    Gelu::new(Dtype::Float32).unwrap()
}

/// Every token through its experts, one after another.
fn one_by_one(x: &Tensor, picks: &[i32], shares: &[f32], [gate_up, bias, down]: [&Tensor; 3]) -> Vec<f32> {
    let of = |stack: &Tensor, expert: i32| stack.slice(0, expert, expert + 1).unwrap();
    let matrix = |stack: &Tensor, expert: i32| {
        let one = of(stack, expert);
        one.reshape(&[one.dim(1), one.dim(2)]).unwrap().swapaxes(0, 1).unwrap()
    };
    let rows = picks.chunks(CHOSEN as usize).zip(shares.chunks(CHOSEN as usize));
    let rows = rows.enumerate().map(|(token, (picks, shares))| {
        let x = x.slice(0, token as i32, token as i32 + 1).unwrap();
        let each = picks.iter().zip(shares).map(|(expert, share)| {
            let inside = x
                .matmul(&matrix(gate_up, *expert))
                .unwrap()
                .add(&of(bias, *expert))
                .unwrap();
            let activated = Activation::Gelu(gelu()).gated(&inside).unwrap();
            let out = activated.matmul(&matrix(down, *expert)).unwrap();
            out.mul(&Tensor::from_f32(&[*share], &[])).unwrap()
        });
        each.reduce(|a, b| a.add(&b).unwrap()).unwrap().to_f32().unwrap()
    });
    rows.flatten().collect()
}

#[test]
fn few_tokens_and_sorted_ones_go_through_their_own_experts() {
    connect().unwrap();
    let gate_up = random(1, &[EXPERTS, 2 * WIDTH, HIDDEN]);
    let down = random(2, &[EXPERTS, HIDDEN, WIDTH]);
    let bias = random(3, &[EXPERTS, 2 * WIDTH]);
    let halves = [(0, WIDTH), (WIDTH, 2 * WIDTH)].map(|(from, to)| Matrix::Plain(gate_up.slice(1, from, to).unwrap()));
    let experts = Experts {
        gate_up_proj: SwitchLinear {
            product: Product::join(halves.into(), STACKS).unwrap(),
            bias: Some(bias.clone()),
            adapters: None,
        },
        down_proj: SwitchLinear {
            product: Product::join(vec![Matrix::Plain(down.clone())], STACKS).unwrap(),
            bias: None,
            adapters: None,
        },
        activation: Activation::Gelu(gelu()),
        chosen: Tensor::from_i32(&[CHOSEN], &[]).astype(Dtype::Uint32).unwrap(),
    };
    for length in [1, 3, 31, 32, 50] {
        let x = random(length as u64, &[length, HIDDEN]);
        let picks: Vec<i32> = (0..length)
            .flat_map(|token| [(token * 3) % EXPERTS, (token * 3 + 1 + token % 4) % EXPERTS])
            .collect();
        let shares: Vec<f32> = (0..length * CHOSEN)
            .map(|index| 0.1 + (index % 7) as f32 / 10.0)
            .collect();
        let indices = Tensor::from_i32(&picks, &[length, CHOSEN])
            .astype(Dtype::Uint32)
            .unwrap();
        let found = experts
            .forward(&x, &indices, &Tensor::from_f32(&shares, &[length, CHOSEN]))
            .unwrap();
        assert_eq!(found.shape(), [length, HIDDEN]);
        let expected = one_by_one(&x, &picks, &shares, [&gate_up, &bias, &down]);
        let found = found.to_f32().unwrap();
        let worst = found
            .iter()
            .zip(&expected)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(worst < 1e-5, "{length} tokens differ by {worst}");
    }
}

#[test]
fn projections_in_different_formats_stand_side_by_side() {
    connect().unwrap();
    // Two rows of 32 numbers: 4 bit floats that are all 1 (bits 0010), and a scale of 1 (an exponent of 127).
    let words = Tensor::from_i32(&[0x2222_2222; 8], &[1, 2, 4])
        .astype(Dtype::Uint32)
        .unwrap();
    let quantized = Matrix::Quantized(QuantizedTensor {
        weight: words,
        scales: Tensor::from_i32(&[127; 2], &[1, 2, 1]).astype(Dtype::Uint8).unwrap(),
        biases: None,
        format: mlx::quantized::QuantizationFormat {
            group_size: 32,
            bits: 4,
            mode: c"mxfp4",
        },
    });
    let plain = Matrix::Plain(Tensor::from_f32(&[0.5; 32], &[1, 1, 32]));
    let product = SwitchLinear {
        product: Product::join(vec![quantized, plain], STACKS).unwrap(),
        bias: None,
        adapters: None,
    };
    let indices = Tensor::from_i32(&[0], &[1, 1]).astype(Dtype::Uint32).unwrap();
    let ones = Tensor::from_f32(&[1.0; 32], &[1, 1, 1, 32]);
    let found = product.forward(&ones, &indices, false).unwrap().to_f32().unwrap();
    assert_eq!(found, [32.0, 32.0, 16.0]);
}

#[test]
fn many_sorted_rows_are_multiplied_with_dequantised_experts_on_cuda() {
    connect().unwrap();
    kernels().compute_exactly();
    let stack = QuantizedTensor::quantize(
        &random(4, &[3, 32, 64]),
        mlx::quantized::QuantizationFormat {
            group_size: 64,
            bits: 8,
            mode: c"affine",
        },
    )
    .unwrap();
    let weight = SwitchLinear {
        product: Product::Quantized(stack.clone()),
        bias: None,
        adapters: None,
    };
    for rows in [47, 48, 60] {
        let indices: Vec<i32> = (0..rows).map(|row| row * 3 / rows).collect();
        let indices = Tensor::from_i32(&indices, &[rows]).astype(Dtype::Uint32).unwrap();
        let x = random(5, &[rows, 1, 64]);
        let packed = weight.forward(&x, &indices, true).unwrap().to_f32().unwrap();
        pretend_gpu();
        assert_eq!(dequantises(&stack, &x), rows >= 48);
        let dequantised = weight.forward(&x, &indices, true).unwrap().to_f32().unwrap();
        connect().unwrap();
        let worst = packed
            .iter()
            .zip(&dequantised)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(worst < 1e-4, "{rows} rows differ by {worst}");
    }
}
