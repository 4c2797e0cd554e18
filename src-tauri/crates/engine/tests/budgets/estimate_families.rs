//! The predicted memory of a small model of every type and MLX's measurement, for the column of `docs/models.md`.

use std::collections::HashSet;

use checkpoint::{weight_files, ModelConfig};
use engine::MlxEngine;
use protocol::Sampling;

use crate::common::measured;
use crate::common::oracle::{python, seed, Variant, Written};
use crate::common::source;
use crate::estimate::compared;

/// The daily ones: full attention, windows with experts, and recurrent layers.
const FAMILIES: [&str; 3] = ["qwen3", "gpt-oss", "qwen3.5"];

/// Prompts of these lengths are read: a chunk and a part of one, and several chunks.
const PROMPTS: [usize; 2] = [600, 1300];

/// How far a daily one may be off. `docs/models.md` has the others.
const TOLERANCE: f64 = 0.15;

/// Models that are written at once.
const AT_ONCE: usize = 12;

/// The first variant of each type that is not quantized, or else the first: beside few bytes of weights everything else
/// would count for more than in a real model.
fn chosen(variants: &[Variant]) -> Vec<&str> {
    let mut known = HashSet::new();
    let (packed, plain): (Vec<_>, Vec<_>) = variants.iter().partition(|variant| variant.quantized);
    let new = plain
        .into_iter()
        .chain(packed)
        .filter(|variant| known.insert(&variant.model_type));
    new.map(|variant| variant.name.as_str()).collect()
}

#[test]
fn predictions_for_every_type_are_near_what_is_measured() {
    let Some(python) = python() else { return };
    let _alone = crate::ALONE.blocking_lock();
    let (engine, mut wrong) = (MlxEngine::start(), Vec::new());
    let only = measured::or_all(&FAMILIES);
    let all = Written::new(&python, seed(), &only, true);
    for names in chosen(&all.variants).chunks(AT_ONCE) {
        let written = Written::larger(&python, names);
        for Variant { name, model_type, .. } in &written.variants {
            let folder = written.model(name);
            let mut config = ModelConfig::read(&folder).unwrap();
            // No image is shown.
            config.vision = None;
            let sizes = weight_files(&folder).unwrap().into_iter();
            let stored = sizes
                .map(|file| std::fs::metadata(folder.join(file)).unwrap().len())
                .sum();
            let prompts = PROMPTS.map(|prompt| prompt.min(config.context as usize - 4));
            let found = engine
                .bench(source(&folder), prompts.to_vec(), 1, Sampling::greedy())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            for (prompt, figures) in prompts.into_iter().zip(found) {
                let of = format!("{name} ({model_type})");
                let off = compared(&of, &config, stored, prompt, figures.peak_bytes);
                measured::keep("memory", model_type, off.abs() as f32);
                if off.abs() > TOLERANCE {
                    wrong.push((name.clone(), prompt, off));
                }
            }
        }
    }
    assert!(wrong.is_empty() || measured::wanted(), "{wrong:?}");
}
