//! `ponder` with Pebble behind mlx-lm's own server.
#![allow(clippy::unwrap_used)]

#[path = "../../remote/tests/server/mod.rs"]
mod server;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use server::Server;

fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ponder"));
    command
        .args(args)
        .env("PONDER_HOME", home)
        .env("HF_HOME", home.join("hub"))
        .stdin(Stdio::null());
    command
}

fn ponder(home: &Path, args: &[&str]) -> Output {
    command(home, args).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The pieces of an answer in JSON lines, joined.
fn said(output: &Output) -> String {
    text(output)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["type"] == "text")
        .map(|event| event["text"].as_str().unwrap().to_owned())
        .collect()
}

/// The last JSON line of a run.
fn last(output: &Output) -> Value {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    serde_json::from_str(text.lines().last().expect("a line")).unwrap()
}

#[test]
fn a_model_behind_an_endpoint_answers_on_the_command_line() {
    let Some(server) = Server::start(&["--key", "sk-right"]) else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert_eq!(
        last(&ponder(home, &["endpoints", "list", "--json"]))["endpoints"],
        serde_json::json!([])
    );
    assert!(text(&ponder(home, &["endpoints", "add", "lab", &server.url])).contains("on this computer"));
    assert!(text(&ponder(home, &["endpoints", "add", "far", "http://192.0.2.1/v1"])).contains("leaves this computer"));
    for wrong in [
        ["lab", "http://127.0.0.1:1/v1"],
        ["a/b", "http://127.0.0.1:1/v1"],
        ["other", "ftp://127.0.0.1"],
    ] {
        let refused = ponder(home, &["endpoints", "add", wrong[0], wrong[1]]);
        assert!(!refused.status.success(), "{wrong:?}");
    }

    let model = format!("endpoint:lab/{}", server.model());
    let sum = [
        "ask",
        "--json",
        "--temperature",
        "0",
        "--thinking",
        "off",
        "--model",
        &model,
        "What is 347 + 589?",
    ];
    let refused = command(home, &sum).env("PONDER_KEY_LAB", "sk-wrong").output().unwrap();
    assert_eq!(
        (refused.status.success(), last(&refused)["code"].as_str()),
        (false, Some("key_refused"))
    );
    let answer = command(home, &sum).env("PONDER_KEY_LAB", "sk-right").output().unwrap();
    assert!(said(&answer).contains("936"), "{answer:?}");
    assert_eq!(
        (last(&answer)["type"].as_str(), &last(&answer)["model_revision"]),
        (Some("done"), &Value::Null)
    );
    assert!(last(&answer)["usage"]["completion_tokens"].as_u64().unwrap() > 3);

    // Offline, what is served on this computer answers and nothing goes further.
    let offline = |model: &str| {
        let mut asked = command(
            home,
            &["ask", "--json", "--thinking", "off", "--model", model, "What is 347 + 589?"],
        );
        asked.env("PONDER_KEY_LAB", "sk-right").env("HF_HUB_OFFLINE", "1").output().unwrap()
    };
    assert!(said(&offline(&model)).contains("936"));
    assert_eq!(last(&offline("endpoint:far/model"))["code"], "offline");

    let listed = command(home, &["models"])
        .env("PONDER_KEY_LAB", "sk-right")
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .unwrap();
    let row = |beginning: &str| text(&listed).lines().find(|line| line.starts_with(beginning)).map(str::to_owned);
    assert!(row(&model).unwrap().contains("on this computer"), "{listed:?}");
    assert!(row("endpoint:far").unwrap().contains("does not answer"), "{listed:?}");

    text(&ponder(home, &["endpoints", "remove", "lab"]));
    let gone = ponder(home, &sum);
    assert_eq!(last(&gone)["code"], "model_not_found");
    assert!(!ponder(home, &["endpoints", "remove", "lab"]).status.success());
    // No key is ever written into the data folder.
    for file in std::fs::read_dir(home)
        .unwrap()
        .filter_map(Result::ok)
        .filter(|file| file.path().is_file())
    {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(8).any(|part| part == b"sk-right"), "{:?}", file.path());
    }
}
