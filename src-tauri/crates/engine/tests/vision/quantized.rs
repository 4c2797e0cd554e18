//! Towers and language parts with packed weights, through the operations that GPUs get: on a processor these are made
//! numbers at load.

use crate::common::oracle::{python, seed};
use crate::common::source;
use crate::common::vision::{apart, Written};
use engine::MlxEngine;

/// One of each kind of tower packed, and of each kind of language part.
const ROWS: [&str; 20] = [
    "falcon_ocr-4bit",
    "gemma3-4bit",
    "gemma3-tower8",
    "gemma3n-4bit",
    "gemma3n-tower8",
    "glm4v-4bit",
    "glm4v-tower8",
    "glm_ocr-tower8",
    "hunyuan_vl-4bit",
    "hunyuan_vl-tower8",
    "internvl-4bit",
    "internvl_chat-tower8",
    "lfm2_vl-4bit",
    "lfm2_vl-tower8",
    "mistral3-4bit",
    "mistral3-tower8",
    "mllama-4bit",
    "mllama-tower8",
    "paddleocr_vl-tower8",
    "smolvlm-tower8",
];

/// How far a logit may be off in 32 bit floats; logits spread over about ten.
const EXACT: f32 = 2e-3;

/// Chunks that a prompt is read in.
const CHUNK: usize = 7;

#[test]
fn packed_weights_see_through_the_operations_of_gpus() {
    let Some(python) = python() else { return };
    let written = Written::new(&python, seed(), &ROWS);
    let engine = MlxEngine::start();
    engine.pretend_gpu().unwrap();
    let (mut worst, mut failed) = (0.0f32, Vec::new());
    for row in &written.rows {
        let model = source(&written.model(&row.name));
        for case in &row.cases {
            let figures = written.figures(row, case);
            let prompt = (figures.ids.clone(), figures.images.clone(), figures.ids.len());
            let rows = engine
                .image_logits(model.clone(), prompt, true, Some(CHUNK), None)
                .unwrap();
            let found = apart(&rows.concat(), &figures.logits);
            println!("{:24} {:6} {found:8.1e}", row.name, case.case);
            worst = worst.max(found);
            if found > EXACT {
                failed.push(format!("{} {}: {found:.1e}", row.name, case.case));
            }
        }
    }
    println!(
        "report: packed vision: {} rows; the largest difference in 32 bit floats is {worst:.1e}",
        written.rows.len()
    );
    assert!(failed.is_empty(), "these differ from the oracle: {failed:?}");
}
