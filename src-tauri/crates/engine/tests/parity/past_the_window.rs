//! Reading token by token, in chunks and at once is the same, also at the end of the sliding window, when the caches
//! wrap around.

use crate::common::oracle::{python, seed, Written};
use crate::common::{pebble, source};
use engine::{bench_prompt, MlxEngine};
use protocol::KvBits;

fn assert_close(found: &[Vec<f32>], expected: &[Vec<f32>], name: &str) {
    assert_eq!(found.len(), expected.len());
    for (position, (a, b)) in found.iter().zip(expected).enumerate() {
        let difference = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference < 1e-3, "{name}: position {position} differs by {difference}");
    }
}

#[test]
fn decoding_equals_one_forward_pass_past_the_window() {
    let engine = MlxEngine::start();
    engine.compute_exactly().unwrap();
    // More than two windows of 128, so that the ring has turned.
    let tokens = bench_prompt(300, 4096);
    let whole = engine.logits(pebble(), tokens.clone(), true, None).unwrap();
    for chunk in [1, 7, 100, 128, 129] {
        let parts = engine.logits(pebble(), tokens.clone(), true, Some(chunk)).unwrap();
        assert_close(&parts, &whole, &format!("chunks of {chunk}"));
    }
    let last = engine.logits(pebble(), tokens, false, Some(64)).unwrap();
    assert_close(&last, &whole[299..], "the last alone");
}

#[test]
fn tokens_that_do_not_exist_are_refused() {
    let engine = MlxEngine::start();
    for (tokens, chunk) in [
        (vec![], None),
        (vec![4096], None),
        (vec![1; 5000], None),
        (vec![1], Some(0)),
    ] {
        assert!(engine.logits(pebble(), tokens, false, chunk).is_err());
    }
}

#[test]
fn the_operations_of_gpus_agree_with_themselves_past_the_window() {
    let engine = MlxEngine::start();
    let tokens = bench_prompt(140, 4096);
    let exact = engine.logits(pebble(), tokens.clone(), true, None).unwrap();
    engine.pretend_gpu().unwrap();
    let likeliest = |row: &Vec<f32>| row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
    for chunk in [Some(1), Some(100)] {
        let rows = engine.logits(pebble(), tokens.clone(), true, chunk).unwrap();
        let agree = rows
            .iter()
            .zip(&exact)
            .filter(|(a, b)| likeliest(a) == likeliest(b))
            .count();
        // Sixteen bits round, and these tokens are noise: nearly all is what can agree.
        assert!(agree >= 126, "chunks of {chunk:?}: {agree} of 140 positions agree");
    }
}

#[test]
fn every_family_reads_in_chunks_what_it_reads_at_once_past_the_blocks_of_its_caches() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &[], true);
    let engine = MlxEngine::start();
    engine.compute_exactly().unwrap();
    // More than the 256 positions that a cache grows by, and more than any window; one token short of three chunks.
    let tokens: Vec<u32> = bench_prompt(386, 320);
    let every = if std::env::var_os("PONDER_FULL").is_some() {
        1
    } else {
        10
    };
    for variant in written
        .variants
        .iter()
        .step_by(every)
        .filter(|variant| variant.steps_alike)
    {
        let name = &variant.name;
        let model = source(&written.model(name));
        let whole = engine.logits(model.clone(), tokens.clone(), true, None).unwrap();
        let parts = engine.logits(model.clone(), tokens.clone(), true, Some(129)).unwrap();
        let apart = furthest(&whole, &parts);
        // A router that is nearly undecided may choose another expert for a rounding.
        assert!(apart[380] < 2e-3, "{name}: {:?}", &apart[380..]);
        let packed = engine
            .kv_logits(model.clone(), tokens.clone(), true, Some(129), Some(KvBits::Eight))
            .unwrap();
        let apart = furthest(&whole, &packed);
        assert!(apart[300] < 1.0, "{name} with packed keys: {:?}", &apart[300..]);
    }
}

/// The largest difference of each position, smallest first.
fn furthest(found: &[Vec<f32>], expected: &[Vec<f32>]) -> Vec<f32> {
    let of = |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let mut differences: Vec<f32> = found.iter().zip(expected).map(of).collect();
    differences.sort_by(f32::total_cmp);
    differences
}
