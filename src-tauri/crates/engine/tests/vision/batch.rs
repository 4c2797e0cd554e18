//! Sequences with different numbers of images decode together as each does alone.

use crate::common::oracle::{python, seed};
use crate::common::vision::Written;
use crate::common::{measured, source};
use engine::MlxEngine;
use protocol::KvBits;

/// How far a logit may be off in 32 bit floats; with keys and values in few bits a rounding may tip one of them.
const BOUNDS: [(Option<KvBits>, f32); 3] = [(None, 2e-3), (Some(KvBits::Eight), 0.1), (Some(KvBits::Four), 0.1)];

/// A row of each kind of tower and of positions.
const ROWS: [&str; 33] = [
    "aya_vision",
    "deepseek_vl_v2",
    "deepseekocr",
    "dots_ocr",
    "ernie4_5_moe_vl",
    "falcon_ocr",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gemma4-26b",
    "glm4v",
    "glm_ocr",
    "granite4_vision",
    "hunyuan_vl",
    "idefics2",
    "internvl",
    "kimi_vl",
    "lfm2_vl",
    "llava_next",
    "minicpmv4_6",
    "mistral3",
    "mllama",
    "molmo2",
    "nemotron_h_nano_omni",
    "paddleocr_vl",
    "paligemma",
    "phi3_v",
    "phi4mm",
    "qwen2_5_vl",
    "qwen3_5",
    "qwen3_vl",
    "qwen3_vl_moe",
    "smolvlm",
];

#[test]
fn sequences_with_images_decode_together_as_each_does_alone() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &measured::or_all(&ROWS));
    let (cpu, gpu) = (MlxEngine::start(), MlxEngine::start());
    gpu.pretend_gpu().unwrap();
    let (mut worst, mut failures) = (0.0f32, Vec::new());
    // Several rows times packed weights are rounded otherwise than one.
    let rows: Vec<_> = written.rows.iter().filter(|row| !row.packed).collect();
    for row in &rows {
        let (mut worst_of_row, before) = (0.0f32, failures.len());
        let model = source(&written.model(&row.name));
        let prompts: Vec<_> = row
            .cases
            .iter()
            .map(|case| {
                let figures = written.figures(row, case);
                (figures.ids, figures.images)
            })
            .collect();
        for (bits, bound) in BOUNDS {
            for (index, decoded) in cpu
                .decode_images_together(model.clone(), prompts.clone(), 8, bits)
                .unwrap()
                .iter()
                .enumerate()
            {
                if decoded.alone != decoded.together || decoded.apart > bound {
                    failures.push(format!(
                        "{}, {bits:?}, {}: {decoded:?}",
                        row.name, row.cases[index].case
                    ));
                }
                if bits.is_none() {
                    worst_of_row = worst_of_row.max(decoded.apart);
                }
            }
        }
        // By the operations of GPUs, whose rotations of several sequences are others.
        for (index, decoded) in gpu
            .decode_images_together(model, prompts, 8, None)
            .unwrap()
            .iter()
            .enumerate()
        {
            if decoded.apart > 2e-3 {
                failures.push(format!(
                    "{}, {}, by the operations of GPUs: {decoded:?}",
                    row.name, row.cases[index].case
                ));
            }
        }
        worst = worst.max(worst_of_row);
        if failures.len() == before {
            measured::keep("batch", &row.model_type, worst_of_row);
        }
        let encoded = cpu.inspect().unwrap().encoded_images;
        let images: usize = row
            .cases
            .iter()
            .map(|case| written.figures(row, case).images.len())
            .max()
            .unwrap();
        assert!(encoded >= images, "{}: {encoded} images were encoded", row.name);
    }
    println!(
        "report: vision batch of {} rows: the largest difference of a logit is {worst:.1e}",
        rows.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_look_ends_between_two_layers_and_leaves_nothing() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &["gemma4", "qwen3_vl"]);
    for row in &written.rows {
        let (engine, model) = (MlxEngine::start(), source(&written.model(&row.name)));
        let image = written.figures(row, &row.cases[1]).images.remove(0);
        for layers in [0, 1] {
            let looked = engine
                .cancel_image_encoding(model.clone(), image.clone(), layers)
                .unwrap();
            assert_eq!(looked, (true, layers + 1), "{}", row.name);
        }
        // Nothing of it was kept: the next look goes through both layers, the one after it through none.
        assert_eq!(
            engine.cancel_image_encoding(model.clone(), image.clone(), 9).unwrap(),
            (false, 2),
            "{}",
            row.name
        );
        assert_eq!(
            engine.cancel_image_encoding(model, image, 9).unwrap(),
            (false, 0),
            "{}",
            row.name
        );
    }
}
