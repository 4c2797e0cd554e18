//! `ponder import` of GGUF files as a process: a trained model, tokenizers, and files of other programs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;

use crate::support;

/// The GGUF file of SmolLM2; `None`, with a line printed, if there is none.
fn smollm2() -> Option<PathBuf> {
    let folder = std::env::var_os("PONDER_SMOLLM2").map(PathBuf::from);
    let file = folder
        .map(|folder| folder.with_extension("gguf"))
        .filter(|file| file.is_file());
    if file.is_none() {
        println!("skipped: there is no GGUF file beside PONDER_SMOLLM2; `./dev test` provides one");
    }
    file
}

/// Runs `tests/oracle/gguf_files.py`; `None`, with a line printed, if there is no Python for it.
fn oracle(args: &[&Path]) -> Option<String> {
    let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with gguf; `./dev test` provides one");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/gguf_files.py");
    let mut command = Command::new(python);
    // It has an MLX of its own.
    command.env_remove("LD_LIBRARY_PATH").arg("-B").arg(script).args(args);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn begun(home: &Path, file: &Path) -> Child {
    let mut command = support::command(home, &["import", file.to_str().unwrap(), "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("progress"), "{line}");
    child
}

/// The error line of a run that must fail.
fn refusal(home: &Path, args: &[&str]) -> String {
    let output = support::run(home, args);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), errors.lines().count()), (Some(1), 1), "{errors}");
    errors
}

#[test]
fn a_trained_model_is_what_mlx_reads_of_its_file_and_answers() {
    let Some(file) = smollm2() else { return };
    let home = tempfile::tempdir().unwrap();
    let run = ["import", file.to_str().unwrap(), "--name", "SmolLM2", "--json"];
    let events = support::run_json(home.path(), &run);
    let imported = support::last(&events);
    let folder = home.path().join("models/SmolLM2");
    assert_eq!(imported["path"], folder.canonicalize().unwrap().to_str().unwrap());
    // Formats whose numbers stay the same.
    let formats = imported["formats"].as_array().unwrap();
    let off = formats
        .iter()
        .filter(|format| format["worst"].as_f64().unwrap() > 0.0 && format["format"] != "F32");
    assert_eq!(off.count(), 0, "{formats:?}");
    if let Some(compared) = oracle(&[Path::new("tensors"), &file, &folder]) {
        let compared: Value = serde_json::from_str(&compared).unwrap();
        assert!(compared["equal"].as_u64().unwrap() > 600, "{compared}");
        assert_eq!(compared["left"], serde_json::json!([]));
    }
    let models = &support::run_json(home.path(), &["models", "--json"])[0]["models"];
    let listed = models
        .as_array()
        .unwrap()
        .iter()
        .find(|model| model["built_in"] == false)
        .unwrap();
    assert_eq!(
        (&listed["place"], &listed["problem"]),
        (&"imported".into(), &Value::Null),
        "{listed}"
    );
    let question = "What is the capital of France?";
    let ask = [
        "ask",
        "--model",
        listed["reference"].as_str().unwrap(),
        "--temperature",
        "0",
        question,
    ];
    let answer = support::text(&support::run(home.path(), &ask));
    assert!(answer.contains("Paris"), "{answer}");
    let again = refusal(home.path(), &["import", file.to_str().unwrap()]);
    assert!(
        again.contains("imported already") && again.contains("SmolLM2"),
        "{again}"
    );
}

#[test]
fn a_stopped_or_killed_import_leaves_no_model() {
    let Some(file) = smollm2() else { return };
    let home = tempfile::tempdir().unwrap();
    let models = home.path().join("models");
    let mut child = begun(home.path(), &file);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let last: Value = serde_json::from_str(&rest.last().unwrap()).unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), &last["code"]),
        (Some(130), &"stopped".into())
    );
    assert!(names(&models).is_empty());
    let mut child = begun(home.path(), &file);
    child.kill().unwrap();
    child.wait().unwrap();
    let left = names(&models);
    assert!(left.len() == 1 && left[0].starts_with(".ponder-draft-"), "{left:?}");
    assert!(!models.join(&left[0]).join("config.json").exists());
    support::run_json(home.path(), &["import", file.to_str().unwrap(), "--json"]);
    assert_eq!(names(&models), ["SmolLM2-135M-Instruct"]);
}

/// Has a tokenizer written as GGUF files have it with this name for the steps before it, imports it, and compares the
/// tokens of texts.
fn same_tokens(folder: &Path, pre: &str) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("tokenizer.gguf");
    if oracle(&[Path::new("tokenizer"), folder, Path::new(pre), &file]).is_none() {
        return;
    }
    support::run_json(home.path(), &["import", file.to_str().unwrap(), "--json"]);
    let imported = home.path().join("models/tokenizer");
    let compared = oracle(&[Path::new("texts"), folder, &imported]).unwrap();
    let compared: Value = serde_json::from_str(&compared).unwrap();
    println!("report: tokenizer of GGUF files: {pre}, {folder:?}: {compared}");
    assert!(
        compared["equal"].as_u64().is_some_and(|equal| equal > 10_000),
        "{pre}: {compared}"
    );
}

#[test]
fn tokenizers_make_the_same_tokens() {
    let Some(folder) = std::env::var_os("PONDER_SMOLLM2").map(PathBuf::from) else {
        println!("skipped: PONDER_SMOLLM2 names no folder of SmolLM2; `./dev test` provides one");
        return;
    };
    same_tokens(&folder, "smollm");
}

#[test]
fn tokenizers_of_larger_models_make_the_same_tokens() {
    let Some(packages) = std::env::var_os("PONDER_TOKENIZERS").map(PathBuf::from) else {
        println!("skipped: PONDER_TOKENIZERS names no folder of packages; `./dev test --full` provides one");
        return;
    };
    for (package, pre) in [
        ("llama2", "spm"),
        ("gemma3", "spm"),
        ("gemma3", "gemma4"),
        ("llama3", "llama-bpe"),
        ("qwen3", "qwen2"),
        ("gptoss", "gpt-4o"),
        ("deepseek_v3", "deepseek-v3"),
    ] {
        same_tokens(&packages.join(format!("tokenizer-{package}/models")), pre);
    }
}

#[test]
fn models_of_other_programs_are_listed_and_imported_by_name() {
    let Some(file) = smollm2() else { return };
    let home = tempfile::tempdir().unwrap();
    let (user, hash) = (home.path().join("user"), "ab".repeat(32));
    let ollama = user.join(".ollama/models");
    let manifests = ollama.join("manifests/registry.ollama.ai");
    let layer = |kind: &str, digest: &str| {
        format!(r#"{{"mediaType": "application/vnd.ollama.image.{kind}", "digest": "{digest}", "size": 1}}"#)
    };
    let manifest = |path: &str, layers: &[String]| {
        let path = manifests.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!(r#"{{"layers": [{}]}}"#, layers.join(", "))).unwrap();
    };
    manifest(
        "library/smollm2/135m",
        &[
            layer("model", &format!("sha256:{hash}")),
            layer("template", "sha256:00"),
        ],
    );
    manifest(
        "library/outside/latest",
        &[layer("model", "sha256:../../../etc/passwd")],
    );
    manifest("someone/empty/latest", &[]);
    fs::create_dir_all(ollama.join("blobs")).unwrap();
    symlink(&file, ollama.join("blobs").join(format!("sha256-{hash}"))).unwrap();
    let studio = user.join(".lmstudio/models/owner/repository");
    fs::create_dir_all(&studio).unwrap();
    fs::write(studio.join("broken.gguf"), b"GGUF").unwrap();
    fs::write(studio.join("mmproj-x.gguf"), b"GGUF").unwrap();
    let ponder = |args: &[&str]| {
        let mut command = support::command(home.path(), args);
        command.env("HOME", &user).env_remove("OLLAMA_MODELS").output().unwrap()
    };
    let listed = support::lines(&ponder(&["import", "--json"]));
    let models = listed[0]["models"].as_array().unwrap();
    let found: Vec<(&str, bool)> = models
        .iter()
        .map(|model| (model["reference"].as_str().unwrap(), model["problem"].is_null()))
        .collect();
    let expected = [
        ("lmstudio:owner/repository/broken", false),
        ("ollama:outside:latest", false),
        ("ollama:smollm2:135m", true),
        ("ollama:someone/empty:latest", false),
    ];
    assert_eq!(found, expected);
    let text = support::text(&ponder(&["import"]));
    assert!(
        text.contains("ollama:smollm2:135m") && text.contains("cannot be imported: "),
        "{text}"
    );
    let imported = support::text(&ponder(&["import", "ollama:smollm2:135m"]));
    assert!(imported.contains("Use it with --model"), "{imported}");
    assert_eq!(names(&home.path().join("models")), ["smollm2-135m"]);
    for (reference, words) in [
        ("ollama:outside", "names no file"),
        ("ollama:other", "there is no ollama:other"),
    ] {
        let output = ponder(&["import", reference]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && errors.contains(words), "{errors}");
    }
}

#[test]
fn hostile_files_are_refused_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("x.gguf");
    for (bytes, words) in [
        (&b"GGUF"[..], "ends within its version"),
        (b"not a model", "does not begin with GGUF"),
        (b"", "ends within"),
        (
            b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f\0\0\0\0\0\0\0\0",
            "claims to have",
        ),
        (
            b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            "does not name its architecture",
        ),
    ] {
        fs::write(&file, bytes).unwrap();
        let errors = refusal(home.path(), &["import", file.to_str().unwrap()]);
        assert!(errors.contains(words), "{errors}");
    }
    refusal(
        home.path(),
        &["import", home.path().join("missing.gguf").to_str().unwrap()],
    );
    assert!(names(&home.path().join("models")).is_empty());
}
