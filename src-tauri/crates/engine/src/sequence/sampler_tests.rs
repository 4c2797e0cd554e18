#![allow(clippy::unwrap_used)]

use mlx::device::connect;

use super::*;

const ASKED: [f32; 4] = [0.4, 0.3, 0.15, 0.15];

fn logs(shares: &[f32]) -> Tensor {
    connect().unwrap();
    Tensor::from_f32(
        &shares.iter().map(|share| share.ln()).collect::<Vec<_>>(),
        &[1, shares.len() as i32],
    )
}

fn shares(logprobs: &Tensor) -> Vec<f32> {
    logprobs.softmax(-1, true).unwrap().to_f32().unwrap()
}

fn assert_close(found: &[f32], expected: &[f32]) {
    let close = found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(close, "{found:?} is not {expected:?}");
}

#[test]
fn top_p_keeps_the_smallest_set_with_the_mass() {
    let one = [0.9, 0.0, 0.0, 0.1];
    assert_close(&shares(&top_p(&logs(&one), 0.3).unwrap()), &[1.0, 0.0, 0.0, 0.0]);
    assert_close(&shares(&top_p(&logs(&one), 0.95).unwrap()), &one);
    let two = [0.0, 0.5, 0.4, 0.1];
    assert_close(&shares(&top_p(&logs(&two), 0.4).unwrap()), &[0.0, 1.0, 0.0, 0.0]);
    assert_close(
        &shares(&top_p(&logs(&two), 0.6).unwrap()),
        &[0.0, 5.0 / 9.0, 4.0 / 9.0, 0.0],
    );
    assert_close(&shares(&top_p(&logs(&two), 0.95).unwrap()), &two);
}

#[test]
fn top_p_keeps_ties_with_the_last_kept() {
    assert_close(&shares(&top_p(&logs(&[0.25; 4]), 0.3).unwrap()), &[0.25; 4]);
}

#[test]
fn min_p_is_relative_to_the_likeliest() {
    let one = [0.9, 0.0, 0.0, 0.1];
    assert_close(&shares(&min_p(&logs(&one), 0.8).unwrap()), &[1.0, 0.0, 0.0, 0.0]);
    assert_close(&shares(&min_p(&logs(&one), 0.05).unwrap()), &one);
}

#[test]
fn top_k_keeps_k() {
    assert_close(
        &shares(&top_k(&logs(&[0.9, 0.0, 0.0, 0.1]), 1).unwrap()),
        &[1.0, 0.0, 0.0, 0.0],
    );
    assert_close(
        &shares(&top_k(&logs(&[0.6, 0.0, 0.1, 0.3]), 2).unwrap()),
        &[2.0 / 3.0, 0.0, 0.0, 1.0 / 3.0],
    );
}

#[test]
fn xtc_removes_all_but_the_least_likely_above_the_threshold() {
    let chance = || Tensor::from_f32(&[0.5], &[]);
    let with = |threshold, kept: Option<&Tensor>| shares(&xtc(&logs(&ASKED), &chance(), 1.0, threshold, kept).unwrap());
    assert_close(&with(0.2, None), &[0.0, 0.5, 0.25, 0.25]);
    assert_close(&with(0.1, None), &[0.0, 0.0, 0.5, 0.5]);
    let kept = row_of(&[0]);
    assert_close(&with(0.1, Some(&kept)), &[4.0 / 7.0, 0.0, 1.5 / 7.0, 1.5 / 7.0]);
    assert_close(&shares(&xtc(&logs(&ASKED), &chance(), 0.4, 0.1, None).unwrap()), &ASKED);
}

#[test]
fn presence_counts_once_and_frequency_every_time() {
    connect().unwrap();
    let logits = Tensor::zeros(&[1, 4], Dtype::Float32).unwrap();
    let recent = row_of(&[0, 0, 0, 1, 1]);
    assert_close(
        &presence(&logits, &recent, 0.5).unwrap().to_f32().unwrap(),
        &[-0.5, -0.5, 0.0, 0.0],
    );
    assert_close(
        &frequency(&logits, &recent, 0.5).unwrap().to_f32().unwrap(),
        &[-1.5, -1.0, 0.0, 0.0],
    );
}

#[test]
fn repetition_pulls_towards_zero_from_above_and_away_from_below() {
    connect().unwrap();
    let logits = Tensor::from_f32(&[2.0, -2.0, 1.0, 0.0], &[1, 4]);
    let changed = repetition(&logits, &row_of(&[0, 1, 1]), 2.0).unwrap();
    assert_close(&changed.to_f32().unwrap(), &[1.0, -4.0, 1.0, 0.0]);
}

fn draws(sampling: &Sampling, count: usize) -> Vec<u32> {
    connect().unwrap();
    let config = SamplerConfig::new(sampling, &Sampling::default(), 4).unwrap();
    let mut sampler = Sampler::new(config, &[0], &[], 4).unwrap();
    let input = Tensor::from_i32(&[0], &[1]);
    (0..count)
        .map(|_| sampler.sample(&input, logs(&ASKED)).unwrap().to_u32().unwrap()[0])
        .collect()
}

#[test]
fn draws_follow_the_distribution_at_the_asked_temperature() {
    let sampling = Sampling {
        temperature: Some(0.5),
        seed: Some(7),
        ..Sampling::default()
    };
    let drawn = draws(&sampling, 4000);
    // At temperature 0.5 shares are squared.
    let sum: f32 = ASKED.iter().map(|share| share * share).sum();
    for (token, share) in ASKED.iter().enumerate() {
        let found = drawn.iter().filter(|other| **other == token as u32).count() as f32 / drawn.len() as f32;
        assert!((found - share * share / sum).abs() < 0.03, "token {token}: {found}");
    }
}

#[test]
fn a_seed_repeats_and_other_seeds_differ() {
    let with = |seed| {
        draws(
            &Sampling {
                temperature: Some(1.0),
                seed: Some(seed),
                ..Sampling::default()
            },
            40,
        )
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn a_bias_and_a_penalty_move_the_likeliest_token() {
    let bias = Sampling {
        logit_bias: [(3, 5.0)].into(),
        ..Sampling::greedy()
    };
    assert_eq!(draws(&bias, 2), [3, 3]);
    let penalty = Sampling {
        presence_penalty: Some(5.0),
        ..Sampling::greedy()
    };
    assert_eq!(draws(&penalty, 1), [1], "token 0 was the input and is penalised");
}

#[test]
fn a_top_k_or_penalty_context_beyond_all_tokens_means_all() {
    let plain = Sampling {
        temperature: Some(1.0),
        presence_penalty: Some(0.5),
        penalty_context: Some(1000),
        seed: Some(7),
        ..Sampling::default()
    };
    let beyond = Sampling {
        top_k: Some(u32::MAX),
        penalty_context: Some(u32::MAX),
        ..plain.clone()
    };
    assert_eq!(draws(&beyond, 40), draws(&plain, 40));
}

#[test]
fn the_coldest_temperatures_take_the_likeliest_token() {
    for temperature in [1e-3, 1e-5, 1e-40] {
        let cold = Sampling {
            temperature: Some(temperature),
            ..Sampling::default()
        };
        assert_eq!(draws(&cold, 5), [0; 5], "{temperature}");
    }
}

#[test]
fn values_that_make_no_sense_are_refused_by_name() {
    let refused = |sampling: Sampling| {
        SamplerConfig::new(&sampling, &Sampling::default(), 4)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(Sampling {
        temperature: Some(-1.0),
        ..Sampling::default()
    })
    .contains("temperature"));
    assert!(refused(Sampling {
        temperature: Some(f32::NAN),
        ..Sampling::default()
    })
    .contains("temperature"));
    assert!(refused(Sampling {
        top_p: Some(1.5),
        ..Sampling::default()
    })
    .contains("top_p"));
    assert!(refused(Sampling {
        min_p: Some(f32::INFINITY),
        ..Sampling::default()
    })
    .contains("min_p"));
    assert!(refused(Sampling {
        xtc_threshold: Some(0.9),
        ..Sampling::default()
    })
    .contains("xtc_threshold"));
    assert!(refused(Sampling {
        logit_bias: [(4, 1.0)].into(),
        ..Sampling::default()
    })
    .contains("token 4"));
}
