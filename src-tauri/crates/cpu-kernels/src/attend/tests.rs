//! Attention by every instruction set of this processor, beside its formula in 64 bits.

use super::tile::{attend_part, rows, Part, Sums};
use super::wide::{self, attend_block};
use crate::format::Number;
use crate::isa::{for_isa, Isa};
use crate::lanes::plain::{from_bf16, from_f16};
use crate::primitive::View;

/// Numbers between −1 and 1 without a pattern, the same every time.
fn noise(count: usize, seed: u32) -> Vec<f32> {
    let number = |place: u32| ((place.wrapping_mul(2_654_435_761) ^ seed) % 10_007) as f32 / 5003.5 - 1.0;
    (0..count as u32)
        .map(|place| number(place.wrapping_mul(seed)))
        .collect()
}

/// Numbers as an array has them, and as they are then.
fn stored(number: Number, numbers: &[f32]) -> (Vec<u8>, Vec<f32>) {
    let short = |short: u16, wide: f32| (short.to_le_bytes().to_vec(), wide);
    let pairs = numbers.iter().map(|value| match number {
        Number::F16 => {
            // Ten bits of the mantissa, and between 1/4 and 1, so that the exponent is a normal one.
            let bits = value.to_bits();
            let half = (bits >> 16 & 0x8000 | (bits >> 23 & 1 | 12) << 10 | bits >> 13 & 0x3FF) as u16;
            short(half, from_f16(half))
        }
        Number::Bf16 => {
            let half = (value.to_bits() >> 16) as u16;
            short(half, from_bf16(half))
        }
        _ => (value.to_le_bytes().to_vec(), *value),
    });
    let (bytes, values): (Vec<Vec<u8>>, Vec<f32>) = pairs.unzip();
    (bytes.concat(), values)
}

/// Shapes and what is seen.
#[derive(Debug, Clone, Copy)]
struct Case {
    number: Number,
    /// Heads of queries and of keys.
    heads: [usize; 2],
    length: usize,
    positions: usize,
    /// Of keys and of values.
    widths: [usize; 2],
    causal: bool,
    masked: bool,
    sink: Option<f32>,
}

fn compare(case: Case, seed: u32) {
    let Case {
        number,
        heads: [heads, key_heads],
        length,
        positions,
        widths: [width, value_width],
        causal,
        masked,
        sink,
    } = case;
    let (group, scale) = (heads / key_heads, (width as f32).sqrt().recip());
    let mut queries = noise(heads * length * width, seed);
    let (mut key_bytes, keys) = stored(number, &noise(key_heads * positions * width, seed + 2));
    let (mut value_bytes, values) = stored(number, &noise(key_heads * positions * value_width, seed + 4));
    let mut seen: Vec<u8> = noise(length * positions, seed + 6)
        .iter()
        .map(|number| u8::from(*number > 0.3))
        .collect();
    let sees = |query: usize, position: usize| match masked {
        true => seen[query * positions + position] != 0,
        false => !causal || position <= positions - length + query,
    };
    let of = |numbers: &[f32], row: usize, width: usize| -> Vec<f64> {
        numbers[row * width..][..width]
            .iter()
            .map(|number| f64::from(*number))
            .collect()
    };
    let right = |head: usize, query: usize| -> Vec<f64> {
        let asked = of(&queries, head * length + query, width);
        let (mut total, mut sums) = (sink.map_or(0.0, |sink| f64::from(sink).exp()), vec![0.0; value_width]);
        for position in (0..positions).filter(|position| sees(query, *position)) {
            let row = head / group * positions + position;
            let product: f64 = asked
                .iter()
                .zip(of(&keys, row, width))
                .map(|(one, two)| one * two)
                .sum();
            let weight = (product * f64::from(scale)).exp();
            total += weight;
            let value = of(&values, row, value_width);
            sums.iter_mut()
                .zip(value)
                .for_each(|(sum, value)| *sum += weight * value);
        }
        sums.iter()
            .map(|sum| if total > 0.0 { sum / total } else { 0.0 })
            .collect()
    };
    let rights: Vec<Vec<f64>> = (0..heads * length)
        .map(|row| right(row / length, row % length))
        .collect();
    let view = |bytes: &mut [u8], heads: usize, rows: usize, width: usize| View::of(bytes, &[1, heads, rows, width]);
    let queries = View::of(&mut queries, &[1, heads, length, width]);
    let keys = view(&mut key_bytes, key_heads, positions, width);
    let values = view(&mut value_bytes, key_heads, positions, value_width);
    let seen = View::of(&mut seen, &[length, positions]);
    let most_off = |found: &[f32], right: &[f64]| {
        let off = |(found, right): (&f32, &f64)| (f64::from(*found) - right).abs();
        found.iter().zip(right).map(off).fold(0.0, f64::max)
    };
    for isa in Isa::available() {
        if number == Number::F32 && !causal && !masked && sink.is_none() {
            let stride = heads * value_width;
            let mut found = vec![f32::NAN; length * stride];
            for (head, first) in
                (0..heads).flat_map(|head| (0..length).step_by(wide::queries(isa)).map(move |first| (head, first)))
            {
                let block = wide::Block {
                    queries: &queries,
                    keys: &keys,
                    values: &values,
                    scale,
                    heads: [head, head / group],
                    first,
                    to: found[first * stride + head * value_width..].as_mut_ptr(),
                    stride,
                };
                // SAFETY: the arrays live, and there is room for all queries.
                unsafe { for_isa!(isa, attend_block(&block)) };
            }
            for (place, found) in found.chunks_exact(value_width).enumerate() {
                let off = most_off(found, &rights[place % heads * length + place / heads]);
                assert!(off < 3e-6, "{case:?}, {isa:?}, in lanes, head {}: {off}", place % heads);
            }
        }
        let all = group * length;
        for (head, first) in (0..key_heads).flat_map(|head| (0..all).step_by(rows(isa)).map(move |first| (head, first)))
        {
            let own = first..all.min(first + rows(isa));
            // Two threads have a half each.
            let [mut sums, other] = [0..positions / 2, positions / 2..positions].map(|positions| {
                let mut sums = Sums::new(rows(isa), value_width);
                let part = Part {
                    queries: &queries,
                    keys: &keys,
                    values: &values,
                    seen: masked.then_some(&seen),
                    number,
                    scale,
                    causal,
                    head,
                    group,
                    rows: own.clone(),
                    positions,
                };
                // SAFETY: the arrays live and have these rows and positions.
                unsafe { for_isa!(isa, attend_part(&part, &mut sums)) };
                sums
            });
            sums.merge(&other);
            for row in own {
                let mut found = vec![f32::NAN; value_width];
                sums.write(row - first, sink, &mut found);
                let right = &rights[(head * group + row % group) * length + row / group];
                let off = most_off(&found, right);
                assert!(off < 3e-6, "{case:?}, {isa:?}, row {row} of head {head}: {off}");
            }
        }
    }
}

#[test]
fn every_instruction_set_attends_as_the_formula() {
    let mut seed = 1;
    for number in [Number::F32, Number::F16, Number::Bf16] {
        for (heads, length, positions, widths) in [
            ([1, 1], 1, 1, [32, 32]),
            ([6, 2], 1, 70, [64, 64]),
            ([4, 1], 1, 131, [32, 96]),
            ([8, 8], 3, 64, [64, 32]),
            ([4, 2], 17, 90, [32, 64]),
            ([2, 2], 70, 201, [32, 32]),
        ] {
            for (causal, masked, sink) in [(false, false, None), (true, false, Some(0.5)), (false, true, None)] {
                seed += 2;
                let case = Case {
                    number,
                    heads,
                    length,
                    positions,
                    widths,
                    causal,
                    masked,
                    sink,
                };
                compare(case, seed);
            }
        }
    }
}
