//! `ponder logits` and `ponder ask` on a tiny random model of each family, as a person has them in a folder.

mod ponder;

use std::path::Path;
use std::process::Command;

use ponder::run_json;
use serde_json::Value;

fn rows(answer: &[Value]) -> Vec<Vec<f64>> {
    serde_json::from_value(answer[0]["logits"].clone()).expect("a list of numbers per position")
}

#[test]
fn every_family_gives_logits_and_answers() {
    let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with mlx-lm; `./dev test` provides one");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    // `./dev test` has them written once for all tests.
    let models = match std::env::var_os("PONDER_ORACLE_FIGURES") {
        Some(figures) => Path::new(&figures).join("families"),
        None => {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/families.py");
            let seed = std::env::var("PONDER_SEED").unwrap_or_else(|_| "20261121".into());
            let mut writer = Command::new(python);
            writer
                .env_remove("LD_LIBRARY_PATH")
                .arg(script)
                .arg("--out")
                .arg(folder.path());
            let written = writer
                .args(["--seed", &seed, "--folders"])
                .output()
                .expect("the writer starts");
            assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
            folder.path().to_owned()
        }
    };

    let home = folder.path().join("home");
    let table = std::fs::read_to_string(models.join("table.json")).expect("a table");
    let table: Value = serde_json::from_str(&table).expect("JSON");
    // Each is asked in four processes; the engine's own tests go through all of them every time.
    let every = if std::env::var_os("PONDER_FULL").is_some() {
        1
    } else {
        6
    };
    let all = table["variants"].as_array().expect("a list");
    let variants: Vec<&Value> = all.iter().step_by(every).collect();
    let mut tokens = 0;
    for variant in &variants {
        let name = variant["name"].as_str().expect("a name");
        let model = models.join(name);
        let model = model.to_str().expect("text");
        let logits = ["logits", "--model", model, "--tokens", "1,20,300,4,55", "--all"];
        let all = rows(&run_json(&home, &logits));
        assert_eq!((all.len(), all[0].len()), (5, 320), "{name}");
        let steps = rows(&run_json(&home, &[&logits[..], &["--chunk", "2"]].concat()));
        let furthest = all
            .iter()
            .flatten()
            .zip(steps.iter().flatten())
            .map(|(a, b)| (a - b).abs());
        let furthest = furthest.fold(0.0, f64::max);
        assert!(furthest < 1e-2, "{name}: chunks differ by {furthest}");
        let packed = rows(&run_json(&home, &[&logits[..], &["--kv-bits", "8"]].concat()));
        assert!(packed.iter().flatten().all(|logit| logit.is_finite()), "{name}");

        let ask = [
            "ask",
            "--json",
            "--model",
            model,
            "--temperature",
            "0",
            "--max-tokens",
            "12",
            "Hello!",
        ];
        let events = run_json(&home, &ask);
        let done = events.last().expect("there are events");
        assert_eq!(done["type"], "done", "{name}: {events:?}");
        tokens += done["usage"]["completion_tokens"].as_u64().expect("a count");
    }
    // A random model may end at once; not all do.
    assert!(tokens > 6 * variants.len() as u64, "{tokens} tokens");
    println!(
        "report: ponder logits and ponder ask answered for {} kinds of model with {tokens} tokens",
        variants.len()
    );
}
