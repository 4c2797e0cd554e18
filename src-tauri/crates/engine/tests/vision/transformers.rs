//! Models that see beside transformers itself, which is what the repairs of the other oracle go by. `./dev test --full`
//! installs it.

use std::path::Path;
use std::process::Command;

use crate::common::oracle::{python, seed};
use crate::common::vision::{apart, Written};
use crate::common::{read_safetensors, source};
use engine::MlxEngine;

/// A row of each kind of tower and of positions, in the layout of the original repositories, which transformers reads.
const ROWS: [&str; 12] = [
    "gemma3-original",
    "gemma4-original",
    "glm4v-original",
    "glm_ocr-original",
    "idefics3-original",
    "internvl-original",
    "lfm2_vl-original",
    "mistral3-original",
    "paddleocr_vl-original",
    "qwen2_5_vl-original",
    "qwen3_vl-original",
    "qwen3_vl_moe-original",
];

/// How far a logit may be off in 32 bit floats; logits spread over about ten.
const EXACT: f32 = 2e-3;

#[test]
fn models_see_what_transformers_sees() {
    let Some(python) = python() else { return };
    let Some(torch) = std::env::var_os("PONDER_TRANSFORMERS_PYTHON") else {
        println!("skipped: PONDER_TRANSFORMERS_PYTHON names no Python with torch; `./dev test --full` provides one");
        return;
    };
    let written = Written::new(&python, seed(), &ROWS);
    let computed = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/beside_transformers.py");
    let mut command = Command::new(torch);
    // It brings libraries of its own.
    command
        .env_remove("LD_LIBRARY_PATH")
        .arg(script)
        .arg("--models")
        .arg(written.folder());
    command
        .arg("--out")
        .arg(computed.path())
        .args(["--only", &ROWS.join(",")]);
    let ran = command.output().unwrap();
    assert!(
        ran.status.success(),
        "transformers failed: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let engine = MlxEngine::start();
    let (mut worst, mut failed) = (0.0f32, Vec::new());
    for row in &written.rows {
        let model = source(&written.model(&row.name));
        for case in &row.cases {
            let figures = written.figures(row, case);
            let stored = computed.path().join(format!("{}.{}.safetensors", row.name, case.case));
            let expected = read_safetensors(&stored).remove("logits").unwrap().floats();
            let tokens = figures.ids.len();
            let prompt = (figures.ids, figures.images, tokens);
            let rows = engine.image_logits(model.clone(), prompt, true, None, None).unwrap();
            let found = apart(&rows.concat(), &expected);
            println!("{:24} {:6} {found:8.1e}", row.name, case.case);
            worst = worst.max(found);
            if found > EXACT {
                failed.push(format!("{} {}: {found:.1e}", row.name, case.case));
            }
        }
    }
    println!(
        "report: vision beside transformers: {} rows; the largest difference in 32 bit floats is {worst:.1e}",
        written.rows.len()
    );
    assert!(failed.is_empty(), "these differ from transformers: {failed:?}");
}
