#![allow(clippy::unwrap_used)]

use mlx::device::{connect, pretend_gpu};

use super::*;

const KEY_HEADS: usize = 2;
const SHARED: usize = 2;
const KEY_WIDTH: usize = 24;
const VALUE_WIDTH: usize = 20;

/// Numbers of a sequence of tokens, in plain vectors.
struct Text {
    length: usize,
    /// Decays of a head: one, or one for each number of a key.
    decay_width: usize,
    queries: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    log_decays: Vec<f32>,
    betas: Vec<f32>,
}

/// A small generator with a seed: numbers evenly spread from 0 to 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.next()
    }
}

impl Text {
    /// `alike` from 0 (keys at random) to 1 (one key for all tokens).
    fn new(seed: u64, length: usize, alike: f32, log_decays: (f32, f32)) -> Self {
        let mut numbers = Numbers(seed);
        let mut units = |alike: f32| {
            let common: Vec<f32> = (0..KEY_HEADS * KEY_WIDTH).map(|_| numbers.between(-1.0, 1.0)).collect();
            let mut rows = Vec::new();
            for _ in 0..length {
                for head in common.chunks(KEY_WIDTH) {
                    let row: Vec<f32> = head
                        .iter()
                        .map(|base| alike * base + (1.0 - alike) * numbers.between(-1.0, 1.0))
                        .collect();
                    let norm = row.iter().map(|x| x * x).sum::<f32>().sqrt();
                    rows.extend(row.iter().map(|x| x / norm));
                }
            }
            rows
        };
        let (queries, keys) = (units(0.0), units(alike));
        let heads = length * KEY_HEADS * SHARED;
        Self {
            length,
            decay_width: 1,
            queries,
            keys,
            values: (0..heads * VALUE_WIDTH).map(|_| numbers.between(-1.0, 1.0)).collect(),
            log_decays: (0..heads)
                .map(|_| numbers.between(log_decays.0, log_decays.1))
                .collect(),
            betas: (0..heads).map(|_| numbers.next()).collect(),
        }
    }

    /// The same with a decay for each number of a key.
    fn by_channel(seed: u64, length: usize, alike: f32, (low, high): (f32, f32)) -> Self {
        let (mut text, mut numbers) = (Self::new(seed, length, alike, (low, high)), Numbers(seed + 1000));
        text.decay_width = KEY_WIDTH;
        let count = text.log_decays.len() * KEY_WIDTH;
        text.log_decays = (0..count).map(|_| numbers.between(low, high)).collect();
        text
    }

    /// Some of the tokens as tensors.
    fn tokens(&self, start: usize, length: usize) -> DeltaRuleInputs {
        let part = |numbers: &[f32], rows: usize, width: usize| {
            let row = rows * width;
            let part = &numbers[start * row..(start + length) * row];
            let shape = [length as i32, rows as i32, width as i32];
            Tensor::from_f32(part, if width == 1 { &shape[..2] } else { &shape })
        };
        let heads = KEY_HEADS * SHARED;
        DeltaRuleInputs {
            queries: part(&self.queries, KEY_HEADS, KEY_WIDTH),
            keys: part(&self.keys, KEY_HEADS, KEY_WIDTH),
            values: part(&self.values, heads, VALUE_WIDTH),
            log_decays: part(&self.log_decays, heads, self.decay_width),
            betas: part(&self.betas, heads, 1),
        }
    }

    /// The definition, token by token in 64 bits: outputs and the last state.
    fn by_definition(&self) -> (Vec<f64>, Vec<f64>) {
        let heads = KEY_HEADS * SHARED;
        let mut state = vec![0.0; heads * VALUE_WIDTH * KEY_WIDTH];
        let mut outputs = Vec::new();
        for token in 0..self.length {
            for head in 0..heads {
                let vector = |all: &[f32]| {
                    let start = (token * KEY_HEADS + head / SHARED) * KEY_WIDTH;
                    all[start..start + KEY_WIDTH]
                        .iter()
                        .map(|x| f64::from(*x))
                        .collect::<Vec<_>>()
                };
                let (query, key) = (vector(&self.queries), vector(&self.keys));
                let at = token * heads + head;
                let rate = f64::from(self.betas[at]);
                let decay = |number: usize| {
                    let number = number % self.decay_width;
                    f64::from(self.log_decays[at * self.decay_width + number]).exp()
                };
                for value in 0..VALUE_WIDTH {
                    let start = (head * VALUE_WIDTH + value) * KEY_WIDTH;
                    let row = &mut state[start..start + KEY_WIDTH];
                    row.iter_mut().enumerate().for_each(|(number, x)| *x *= decay(number));
                    let dot = |row: &[f64], other: &[f64]| row.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
                    let correction = rate * (f64::from(self.values[at * VALUE_WIDTH + value]) - dot(row, &key));
                    row.iter_mut().zip(&key).for_each(|(x, key)| *x += correction * key);
                    outputs.push(dot(row, &query));
                }
            }
        }
        (outputs, state)
    }

    /// The rule, in steps of these lengths.
    fn by_rule(&self, cuts: &[usize]) -> (Vec<f32>, Vec<f32>) {
        let rule = DeltaRule::new();
        let (mut state, mut outputs, mut start) = (None, Vec::new(), 0);
        for length in cuts {
            let tokens = self.tokens(start, *length);
            outputs.extend(rule.forward(&tokens, &mut state).unwrap().to_f32().unwrap());
            start += length;
        }
        assert_eq!(start, self.length);
        (outputs, state.unwrap().to_f32().unwrap())
    }
}

fn distance(found: &[f32], wanted: &[f64]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    let worst = found.iter().zip(wanted).map(|(a, b)| (f64::from(*a) - b).abs());
    // `max` would pass over what is not a number.
    worst.fold(0.0, |worst, one| if one <= worst { worst } else { one })
}

const DECAYS: [(f32, f32); 5] = [(-1e-6, 0.0), (-0.1, 0.0), (-3.0, 0.0), (-200.0, 0.0), (-300.0, -100.0)];

#[test]
fn chunks_equal_the_definition() {
    connect().unwrap();
    let mut seed = 1;
    for length in [1, 2, 15, 16, 17, 33, 63, 64, 65, 128, 200] {
        for alike in [0.0, 0.9, 0.999, 1.0] {
            for decays in DECAYS {
                seed += 1;
                for text in [
                    Text::new(seed, length, alike, decays),
                    Text::by_channel(seed, length, alike, decays),
                ] {
                    let ((wanted, last), (found, state)) = (text.by_definition(), text.by_rule(&[length]));
                    let (outputs, states) = (distance(&found, &wanted), distance(&state, &last));
                    let told = format!(
                        "length {length}, {} decays, keys alike {alike}, {decays:?}: {outputs:e} {states:e}",
                        text.decay_width
                    );
                    assert!(outputs < 1e-5 && states < 1e-5, "{told}");
                }
            }
        }
    }
}

#[test]
fn one_by_one_and_mixed_cuts_equal_the_definition() {
    connect().unwrap();
    for on_gpu in [false, true] {
        if on_gpu {
            pretend_gpu();
        }
        for (seed, decays) in DECAYS.into_iter().enumerate() {
            let text = Text::new(seed as u64, 90, 0.9, decays);
            let (wanted, last) = text.by_definition();
            for cuts in [
                vec![1; 90],
                vec![64, 26],
                vec![1, 70, 1, 1, 17],
                vec![7; 90 / 7].into_iter().chain([6]).collect(),
            ] {
                let (found, state) = text.by_rule(&cuts);
                let (outputs, states) = (distance(&found, &wanted), distance(&state, &last));
                assert!(
                    outputs < 1e-5 && states < 1e-5,
                    "{cuts:?}, decays {decays:?}: {outputs:e} {states:e}"
                );
            }
        }
    }
}

#[test]
fn a_full_correction_of_one_key_keeps_the_last_value() {
    // With a rate of 1 and no decay, asking for the key gives the value of the token itself, whatever came before: the
    // system's solution is exact only if nothing cancels.
    connect().unwrap();
    let mut text = Text::new(5, 64, 1.0, (0.0, 0.0));
    text.betas.fill(1.0);
    text.queries = text.keys.clone();
    let (found, _) = text.by_rule(&[64]);
    let worst = found
        .iter()
        .zip(&text.values)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    // A few roundings of 32-bit sums over 64 tokens, whose order is the BLAS library's own.
    assert!(worst < 1e-5, "{worst:e}");
}
