//! `ponder` with Pebble behind mlx-lm's own server.

use std::process::Output;

use serde_json::Value;

use crate::server::Server;
use crate::support::{command, joined, last, lines, run, text};

fn said(output: &Output) -> String {
    joined(&lines(output), "text")
}

fn end(output: &Output) -> Value {
    last(&lines(output)).clone()
}

#[test]
fn a_model_behind_an_endpoint_answers_on_the_command_line() {
    let Some(server) = Server::start(&["--key", "sk-right"]) else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert_eq!(
        end(&run(home, &["endpoints", "list", "--json"]))["endpoints"],
        serde_json::json!([])
    );
    assert!(text(&run(home, &["endpoints", "add", "lab", &server.url])).contains("on this computer"));
    // A key that others can read is warned of; nothing else is.
    for (name, url, key, warned) in [
        ("far", "http://192.0.2.1/v1", "sk-far", true),
        ("keyless", "http://192.0.2.1/v1", "", false),
        ("safe", "https://192.0.2.1/v1", "sk-safe", false),
    ] {
        let key_of = format!("PONDER_KEY_{}", name.to_uppercase());
        let added = command(home, &["endpoints", "add", name, url])
            .env(key_of, key)
            .output()
            .unwrap();
        assert!(text(&added).contains("Messages and images are sent to"), "{added:?}");
        let errors = String::from_utf8_lossy(&added.stderr);
        assert_eq!(errors.contains("can read its key"), warned, "{name}: {errors}");
        assert_eq!(errors.contains("Its key is not sent"), warned, "{name}: {errors}");
    }
    for wrong in [
        ["lab", "http://127.0.0.1:1/v1"],
        ["a/b", "http://127.0.0.1:1/v1"],
        ["other", "ftp://127.0.0.1"],
    ] {
        let refused = run(home, &["endpoints", "add", wrong[0], wrong[1]]);
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
        (refused.status.success(), end(&refused)["code"].as_str()),
        (false, Some("key_refused"))
    );
    let answer = command(home, &sum).env("PONDER_KEY_LAB", "sk-right").output().unwrap();
    assert!(said(&answer).contains("936"), "{answer:?}");
    assert_eq!(
        (end(&answer)["type"].as_str(), &end(&answer)["model_revision"]),
        (Some("done"), &Value::Null)
    );
    assert!(end(&answer)["usage"]["completion_tokens"].as_u64().unwrap() > 3);

    // Offline, what is served on this computer answers and nothing goes further.
    let offline = |model: &str| {
        let mut asked = command(
            home,
            &[
                "ask",
                "--json",
                "--thinking",
                "off",
                "--model",
                model,
                "What is 347 + 589?",
            ],
        );
        asked
            .env("PONDER_KEY_LAB", "sk-right")
            .env("HF_HUB_OFFLINE", "1")
            .output()
            .unwrap()
    };
    assert!(said(&offline(&model)).contains("936"));
    assert_eq!(end(&offline("endpoint:far/model"))["code"], "offline");

    let listed = command(home, &["models"])
        .env("PONDER_KEY_LAB", "sk-right")
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .unwrap();
    let row = |beginning: &str| {
        text(&listed)
            .lines()
            .find(|line| line.starts_with(beginning))
            .map(str::to_owned)
    };
    assert!(row(&model).unwrap().contains("on this computer"), "{listed:?}");
    assert!(row("endpoint:far").unwrap().contains("unavailable"), "{listed:?}");

    text(&run(home, &["endpoints", "remove", "lab"]));
    let gone = run(home, &sum);
    assert_eq!(end(&gone)["code"], "model_not_found");
    assert!(!run(home, &["endpoints", "remove", "lab"]).status.success());
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

/// A session with a keychain of its own, in which a command runs.
const WITH_KEYCHAIN: &str =
    "printf pass | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec \"$0\" \"$@\"";

#[test]
fn an_endpoint_is_added_together_with_its_key() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let add = ["endpoints", "add", "lab", "http://127.0.0.1:1/v1"];
    let there = |program: &str| std::process::Command::new(program).arg("--version").output().is_ok();
    // Without a keychain it is refused by the keychain's name, and nothing is added.
    let refused = command(&home.join("other"), &add)
        .env("PONDER_ENDPOINT_KEY", "sk-right")
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("keychain"),
        "{refused:?}"
    );
    assert_eq!(
        end(&run(&home.join("other"), &["endpoints", "list", "--json"]))["endpoints"],
        serde_json::json!([])
    );

    // One that would be sent unencrypted is refused before a keychain is asked.
    let far = ["endpoints", "add", "far", "http://192.0.2.1/v1"];
    for (allowed, said) in [(&[][..], "--unencrypted-key"), (&["--unencrypted-key"][..], "keychain")] {
        let refused = command(&home.join("other"), &[&far[..], allowed].concat())
            .env("PONDER_ENDPOINT_KEY", "sk-right")
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1));
        assert!(errors.contains(said), "{errors}");
    }

    if !there("gnome-keyring-daemon") || !there("dbus-run-session") {
        println!("report: no key was stored, because gnome-keyring or a session bus is not installed");
        return;
    }
    let mut session = std::process::Command::new("dbus-run-session");
    let added = session
        .args(["--", "sh", "-c", WITH_KEYCHAIN, crate::PROGRAM])
        .args(add)
        .env("PONDER_HOME", home.join("data"))
        .env("PONDER_ENDPOINT_KEY", "sk-right")
        .env("HOME", home)
        .env("XDG_DATA_HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .output()
        .unwrap();
    assert!(text(&added).contains("Added lab"), "{added:?}");
    let data = home.join("data");
    let listed = &end(&run(&data, &["endpoints", "list", "--json"]))["endpoints"];
    assert_eq!(listed[0]["endpoint"]["has_key"], true, "{listed}");
}
