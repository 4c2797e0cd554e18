//! `ponder-bench logits` with Pebble, and with tiny random models of every family.

use engine::MlxEngine;
use serde_json::{json, Value};

use crate::family_models::family_models;
use crate::support::pebble::text;
use crate::support::run_json;
use crate::vision_models::{engine_alone, image, models, QUESTION};

/// The logits of each of some tokens.
fn rows(answer: &[Value]) -> Vec<Vec<f64>> {
    serde_json::from_value(answer[0]["logits"].clone()).expect("a list of numbers per position")
}

/// The largest difference between two lists of logits.
fn apart<'a>(one: impl IntoIterator<Item = &'a f64>, other: impl IntoIterator<Item = &'a f64>) -> f64 {
    let both = one.into_iter().zip(other);
    both.map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
}

#[test]
fn logits_can_be_read_for_every_position() {
    let home = tempfile::tempdir().expect("a folder");
    let logits = ["logits", "--model", "pebble", "--tokens", "2,105,200"];
    let all = rows(&run_json(home.path(), &[&logits[..], &["--all"]].concat()));
    let last = run_json(home.path(), &[&logits[..], &["--chunk", "1"]].concat());
    let last: Vec<f64> = serde_json::from_value(last[0]["logits"].clone()).expect("a list of numbers");
    assert_eq!((all.len(), all[0].len(), last.len()), (3, 4096, 4096));
    // Keys and values are rounded to 16 bits on a CPU.
    assert!(apart(&all[2], &last) < 2e-2);
}

#[test]
fn every_family_gives_logits() {
    let Some(models) = family_models() else { return };
    let home = models.home.path();
    for model in &models.folders {
        let logits = ["logits", "--model", text(model), "--tokens", "1,20,300,4,55", "--all"];
        let all = rows(&run_json(home, &logits));
        assert_eq!((all.len(), all[0].len()), (5, 320), "{model:?}");
        let steps = rows(&run_json(home, &[&logits[..], &["--chunk", "2"]].concat()));
        let furthest = apart(all.iter().flatten(), steps.iter().flatten());
        assert!(furthest < 1e-2, "{model:?}: chunks differ by {furthest}");
        let packed = rows(&run_json(home, &[&logits[..], &["--kv-bits", "8"]].concat()));
        assert!(packed.iter().flatten().all(|logit| logit.is_finite()), "{model:?}");
    }
    println!("report: ponder-bench logits of {} kinds of model", models.folders.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_family_that_sees_gives_the_logits_of_its_answer() {
    let Some(models) = models() else { return };
    let home = tempfile::tempdir().unwrap();
    let (file, question) = (home.path().join("0.jpg"), home.path().join("question.json"));
    let bytes = image(96, 96, 40);
    std::fs::write(&file, &*bytes).unwrap();
    std::fs::write(&question, json!([{"role": "user", "content": QUESTION}]).to_string()).unwrap();
    for (name, _) in &models.rows {
        let model = models.folder.join(name);
        let alone = engine_alone(&MlxEngine::start(), &model, &[&bytes]).await;
        let asked = [
            "logits",
            "--model",
            text(&model),
            "--messages",
            text(&question),
            "--image",
            text(&file),
        ];
        let logits = run_json(home.path(), &asked);
        let logits: Vec<f64> = serde_json::from_value(logits[0]["logits"].clone()).unwrap();
        let likeliest = (0..logits.len()).max_by(|one, other| logits[*one].total_cmp(&logits[*other]));
        assert_eq!(
            likeliest.map(|token| token as u64),
            alone.tokens.first().copied(),
            "{name}"
        );
    }
}
