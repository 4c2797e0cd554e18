//! Measurements of Pebble without a peer: the figures that are there, and no word about how large they are.

use serde_json::Value;

use crate::support::{run, run_json, text};

const SHORT: [&str; 6] = ["--model", "pebble", "--prompt-tokens", "8", "--generate", "32"];

/// The JSON lines of a short measurement.
fn measured(form: &str, more: &[&str]) -> Vec<Value> {
    let home = tempfile::tempdir().expect("a folder");
    run_json(home.path(), &[&[form, "--json"], &SHORT[..], more].concat())
}

#[test]
fn each_length_of_prompt_has_a_line_with_figures() {
    let lines = measured("speed", &["--prompt-tokens", "16", "--repeat", "1"]);
    let lengths: Vec<u64> = lines.iter().filter_map(|line| line["prompt_tokens"].as_u64()).collect();
    assert_eq!(lengths, [8, 16]);
    for line in &lines {
        let figure = |name: &str| line["ours"][name].as_f64().expect("a figure");
        assert!(
            figure("decode_tokens_per_second") > 0.0 && figure("peak_bytes") > 0.0,
            "{line}"
        );
        assert_eq!((&line["peer"], &line["decode_ratio"]), (&Value::Null, &Value::Null));
    }
}

#[test]
fn drafts_and_batches_have_a_line_for_each_size() {
    let batches = measured("batch", &["--repeat", "1"]);
    let sizes: Vec<u64> = batches.iter().filter_map(|line| line["sequences"].as_u64()).collect();
    assert_eq!(sizes, [1, 2, 4, 8, 16]);
    assert!(batches
        .iter()
        .all(|line| line["tokens_per_second"].as_f64() > Some(0.0)));
    let chosen = measured("batch", &["--repeat", "1", "--sequences", "3,2"]);
    let sizes: Vec<u64> = chosen.iter().filter_map(|line| line["sequences"].as_u64()).collect();
    assert_eq!(sizes, [3, 2]);
    let drafts = measured("lookup", &["--repeat", "1"]);
    assert!(!drafts.is_empty());
    assert!(
        drafts.iter().all(|line| line["ratio"].as_f64() > Some(0.0)),
        "{drafts:?}"
    );
}

#[test]
fn a_draft_model_is_measured_by_turns() {
    let home = tempfile::tempdir().expect("a folder");
    let args = [
        "draft",
        "--json",
        "--model",
        "pebble",
        "--noise",
        "3",
        "--always",
        "--repeat",
        "1",
        "--generate",
        "32",
    ];
    let lines = run_json(home.path(), &args);
    assert_eq!(lines[0]["same"], lines[0]["responses"], "{lines:?}");
    assert!(lines[0]["accepted"].as_u64() > Some(10), "{lines:?}");
    assert!(lines[0]["tokens_per_step"].as_f64() > Some(1.0), "{lines:?}");
}

#[test]
fn gaps_are_measured_alone_and_beside_programs() {
    let lines = measured("gaps", &[]);
    assert!(lines[0]["alone"]["tokens"].as_u64() >= Some(32), "{lines:?}");
    assert!(lines[0]["beside"]["tokens"].as_u64() > Some(0), "{lines:?}");
}

#[test]
fn a_text_is_predicted_in_chunks() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("text.txt");
    let sums: String = (1..200)
        .map(|number| format!("{number} + 1 = {}\n", number + 1))
        .collect();
    std::fs::write(&file, sums).expect("written");
    let file = file.to_str().expect("text");
    let options = [
        "perplexity",
        "--model",
        "pebble",
        "--tokens",
        "150",
        "--chunk",
        "64",
        file,
    ];
    let lines = run_json(home.path(), &[&options[..], &["--json"]].concat());
    let tokens = lines[0]["tokens"].as_array().map(Vec::len);
    // The last token of a chunk predicts nothing.
    assert_eq!((tokens, lines[0]["predictions"].as_u64()), (Some(128), Some(62)));
    // Fewer than Pebble has tokens: it predicts better than by chance.
    let perplexity = lines[0]["perplexity"].as_f64();
    assert!(perplexity > Some(1.0) && perplexity < Some(4096.0), "{perplexity:?}");
    assert!(text(&run(home.path(), &options)).contains("62 predictions"));
    let short = ["perplexity", "--model", "pebble", "--chunk", "4000", file];
    assert!(!run(home.path(), &short).status.success());
}

#[test]
fn a_measurement_of_nothing_is_refused() {
    let home = tempfile::tempdir().expect("a folder");
    for (option, value) in [("--prompt-tokens", "0"), ("--generate", "1"), ("--repeat", "0")] {
        let output = run(home.path(), &["speed", "--model", "pebble", option, value]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("ponder-bench speed --help"),
            "{said}"
        );
    }
    let table = run(
        home.path(),
        &[
            "speed",
            "--model",
            "pebble",
            "--prompt-tokens",
            "4",
            "--generate",
            "2",
            "--repeat",
            "1",
        ],
    );
    assert!(text(&table).contains("decode, tokens/s"));
}
