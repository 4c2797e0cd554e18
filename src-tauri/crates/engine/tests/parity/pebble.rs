//! Pebble against mlx-lm in 32 bit floats, the same weights on the same computer: exactly, and as it is used.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::common::oracle::{computed, python};
use crate::common::{pebble, pebble_dir, read_safetensors, RawTensor};
use engine::MlxEngine;

const TOLERANCE: f32 = 1e-3;
/// With keys and values, and rows that matrices of integers are multiplied with, in 16 bits.
const ROUNDED: f32 = 5e-2;
const CHUNKS: [Option<usize>; 3] = [Some(7), Some(128), None];

fn largest_difference(rows: &[Vec<f32>], expected: &[f32]) -> f32 {
    let found = rows.iter().flatten();
    assert_eq!(rows.iter().map(Vec::len).sum::<usize>(), expected.len());
    found
        .zip(expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |worst, difference| {
            if difference > worst || difference.is_nan() {
                difference
            } else {
                worst
            }
        })
}

fn likeliest(row: &[f32]) -> u32 {
    let best = row
        .iter()
        .enumerate()
        .fold(0, |best, (index, value)| if *value > row[best] { index } else { best });
    best as u32
}

#[test]
fn every_logit_and_every_greedy_token_agree_with_mlx_lm() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = computed("parity.safetensors").unwrap_or_else(|| {
        let file = folder.path().join("parity.safetensors");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/parity.py");
        let mut command = Command::new(python);
        // The oracle brings an MLX of its own.
        command
            .env_remove("LD_LIBRARY_PATH")
            .arg(script)
            .arg("--model")
            .arg(pebble_dir());
        let ran = command.arg("--out").arg(&file).status().unwrap();
        assert!(ran.success(), "the oracle failed: {ran}");
        file
    });
    let oracle = read_safetensors(&file);

    let exact = MlxEngine::start();
    exact.compute_exactly().unwrap();
    compare(&exact, &oracle, TOLERANCE);
    compare(&MlxEngine::start(), &oracle, ROUNDED);
}

fn compare(engine: &MlxEngine, oracle: &HashMap<String, RawTensor>, tolerance: f32) {
    let mut worst: f32 = 0.0;
    let count = oracle.keys().filter(|name| name.starts_with("prompt.")).count();
    assert_eq!(count, 20);
    for index in 0..count {
        let stored = |kind: &str| -> &RawTensor { &oracle[&format!("{kind}.{index}")] };
        let (prompt, expected, greedy) = (
            stored("prompt").ids(),
            stored("logits").floats(),
            stored("greedy").ids(),
        );
        let mut check = |rows: &[Vec<f32>], chunk: Option<usize>| {
            let difference = largest_difference(rows, &expected);
            assert!(
                difference <= tolerance,
                "prompt {index} of {} tokens in chunks of {chunk:?}: {difference}",
                prompt.len()
            );
            worst = worst.max(difference);
        };
        for chunk in CHUNKS {
            check(&engine.logits(pebble(), prompt.clone(), true, chunk).unwrap(), chunk);
        }
        // One by one, and on through the greedy tokens: each has to be the likeliest after all before it, which is what
        // a greedy run makes.
        let all: Vec<u32> = prompt.iter().chain(&greedy).copied().collect();
        let rows = engine.logits(pebble(), all, true, Some(1)).unwrap();
        check(&rows[..prompt.len()], Some(1));
        let made: Vec<u32> = rows[prompt.len() - 1..]
            .iter()
            .take(greedy.len())
            .map(|row| likeliest(row))
            .collect();
        assert_eq!(made, greedy, "prompt {index}");
    }
    println!("report: parity {count} prompts agree with mlx-lm, the largest difference of a logit is {worst:.1e}");
}
