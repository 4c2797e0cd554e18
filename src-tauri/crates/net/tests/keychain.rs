//! The system's own keychain, in a session of its own so that nobody's secrets are touched.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;

use api::TokenSource;
use net::{Environment, Keychain, Net, Settings, SystemKeychain};

/// Starts this test program again to run the ignored test of this name, and gives what it printed.
fn again(test: &str, session: &str, home: &std::path::Path) -> String {
    let program = std::env::current_exe().unwrap();
    let run = format!(
        "{session} '{}' --exact {test} --ignored --nocapture 2>&1",
        program.display()
    );
    let output = Command::new("sh")
        .args(["-c", &run])
        .env("HOME", home)
        .env("XDG_DATA_HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/at/all")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_token_is_kept_in_the_secret_service() {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !there("gnome-keyring-daemon") || !there("dbus-run-session") {
        println!(
            "report: the system's keychain was not tried, because gnome-keyring or a session bus is not installed"
        );
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let session =
        "dbus-run-session -- sh -c 'printf pass | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec \"$0\" \"$@\"'";
    let printed = again("in_a_session_with_a_keychain", session, home.path());
    assert!(printed.contains("1 passed"), "{printed}");
}

#[test]
#[ignore = "run by `a_token_is_kept_in_the_secret_service`"]
fn in_a_session_with_a_keychain() {
    let (keychain, name) = (SystemKeychain, "https://hub.invalid");
    assert_eq!(keychain.get(name), Ok(None));
    keychain.forget(name).unwrap();
    keychain.set(name, "hf_one").unwrap();
    keychain.set(name, "hf_two").unwrap();
    assert_eq!(keychain.get(name), Ok(Some("hf_two".into())));
    assert_eq!(keychain.get("https://another.invalid"), Ok(None));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let net = Net::open(Settings {
        folder: None,
        environment: Environment::of(&[("HF_ENDPOINT", name)]),
        keychain: Arc::new(SystemKeychain),
    });
    assert_eq!(runtime.block_on(net.settings()).token, TokenSource::Keychain);
    runtime.block_on(net.forget_token()).unwrap();
    assert_eq!(runtime.block_on(net.settings()).token, TokenSource::None);
    assert_eq!(keychain.get(name), Ok(None));
}

#[test]
fn without_a_session_the_sentence_says_what_else_there_is() {
    let home = tempfile::tempdir().unwrap();
    let printed = again("in_a_session_without_a_keychain", "", home.path());
    assert!(printed.contains("1 passed"), "{printed}");
}

#[test]
#[ignore = "run by `without_a_session_the_sentence_says_what_else_there_is`"]
fn in_a_session_without_a_keychain() {
    let error = SystemKeychain.set("https://hub.invalid", "hf_one").unwrap_err();
    assert!(
        error.to_string().contains("HF_TOKEN") && !error.to_string().contains("hf_one"),
        "{error}"
    );
}
