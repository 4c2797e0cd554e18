#![allow(clippy::unwrap_used)]

use mlx::device::{connect, pretend_gpu};

use super::*;

const GROUPS: usize = 2;
const SHARED: usize = 3;
const HEADS: usize = GROUPS * SHARED;
const WIDTH: usize = 5;
const STATE: usize = 7;

/// Numbers of a sequence of tokens, in plain vectors.
struct Text {
    length: usize,
    values: Vec<f32>,
    places: Vec<f32>,
    queries: Vec<f32>,
    steps: Vec<f32>,
    log_decays: Vec<f32>,
}

impl Text {
    /// Numbers between -1 and 1, and decays whose logarithms are `fastest` at least.
    fn new(mut seed: u64, length: usize, fastest: f32) -> Self {
        let mut next = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f32 / (1u64 << 24) as f32
        };
        let mut numbers = |count: usize| -> Vec<f32> { (0..length * count).map(|_| 2.0 * next() - 1.0).collect() };
        let [values, places, queries] = [HEADS * WIDTH, GROUPS * STATE, GROUPS * STATE].map(&mut numbers);
        let [steps, log_decays] = [HEADS, HEADS].map(&mut numbers);
        Self {
            length,
            values,
            places,
            queries,
            steps: steps.into_iter().map(f32::abs).collect(),
            log_decays: log_decays.into_iter().map(|decay| fastest * decay.abs()).collect(),
        }
    }

    fn part(&self, start: usize, end: usize) -> StateSpaceInputs {
        let tensor = |numbers: &[f32], heads: usize, width: usize| {
            let row = heads * width;
            let shape = [(end - start) as i32, heads as i32, width as i32];
            Tensor::from_f32(
                &numbers[start * row..end * row],
                &shape[..if width == 1 { 2 } else { 3 }],
            )
        };
        StateSpaceInputs {
            values: tensor(&self.values, HEADS, WIDTH),
            places: tensor(&self.places, GROUPS, STATE),
            queries: tensor(&self.queries, GROUPS, STATE),
            steps: tensor(&self.steps, HEADS, 1),
            log_decays: tensor(&self.log_decays, HEADS, 1),
        }
    }

    /// The rule itself, token by token in 64 bits.
    fn expected(&self) -> Vec<f32> {
        let mut state = vec![0f64; HEADS * WIDTH * STATE];
        let mut outputs = Vec::new();
        for token in 0..self.length {
            for head in 0..HEADS {
                let group = head / SHARED;
                let of_group =
                    |numbers: &[f32], place: usize| f64::from(numbers[(token * GROUPS + group) * STATE + place]);
                let decay = f64::from(self.log_decays[token * HEADS + head]).exp();
                let step = f64::from(self.steps[token * HEADS + head]);
                for row in 0..WIDTH {
                    let value = f64::from(self.values[(token * HEADS + head) * WIDTH + row]);
                    let carried = &mut state[(head * WIDTH + row) * STATE..][..STATE];
                    let mut read = 0.0;
                    for (place, number) in carried.iter_mut().enumerate() {
                        *number = decay * *number + step * value * of_group(&self.places, place);
                        read += *number * of_group(&self.queries, place);
                    }
                    outputs.push(read as f32);
                }
            }
        }
        outputs
    }
}

fn compare(text: &Text, cuts: &[usize]) {
    let scan = StateSpace::new();
    let (mut state, mut found, mut start) = (None, Vec::new(), 0);
    for length in cuts {
        let tokens = text.part(start, start + length);
        found.extend(scan.forward(&tokens, &mut state).unwrap().to_f32().unwrap());
        start += length;
    }
    assert_eq!(start, text.length);
    let expected = text.expected();
    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
    let worst = worst.fold(
        0.0,
        |worst: f32, off| if off.is_nan() { f32::INFINITY } else { worst.max(off) },
    );
    assert!(found.len() == expected.len() && worst < 2e-5, "{cuts:?}: {worst}");
}

fn check() {
    // Slow and fast decays, and ones after which nothing is left.
    for (seed, fastest) in [(1, -0.01), (2, -1.0), (3, -200.0)] {
        let text = Text::new(seed, 150, fastest);
        for cuts in [
            vec![150],
            vec![1; 150],
            vec![64, 64, 22],
            vec![65, 1, 63, 2, 19],
            vec![3, 147],
        ] {
            compare(&text, &cuts);
        }
    }
}

#[test]
fn at_once_in_chunks_and_step_by_step_the_scan_is_the_rule() {
    connect().unwrap();
    check();
    pretend_gpu();
    check();
}
