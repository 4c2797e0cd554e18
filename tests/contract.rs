//! The cases of `ui/src/testing/contract` in the real window, against the real host. The interface's own tests ask the
//! in-memory host the same.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{json, Value};

use crate::support::driver::Window;

#[test]
fn the_app_keeps_the_promises_that_the_in_memory_host_makes() {
    let home = tempfile::tempdir().expect("a folder");
    let built = home.path().join("contract");
    let output = Command::new("node_modules/.bin/vite")
        .args(["build", "--config", "vite.contract.ts", "--outDir"])
        .arg(&built)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("ui"))
        .output()
        .expect("the interface's packages are installed; ./dev test does it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let script = fs::read_to_string(built.join("contract.js")).expect("it was built");

    let window = Window::open(home.path());
    // Cases that ask in a dialog of the system expect what the in-memory host answers.
    window.answer_dialogs("yes");
    let (mut broken, mut reached, mut ran) = (Vec::new(), Vec::new(), 0);
    for (name, opened_by) in [
        ("chat", None),
        ("models", Some(("models", "Models"))),
        ("settings", Some(("settings", "Settings"))),
        ("quick", Some(("quick-entry", "Quick entry"))),
    ] {
        if let Some((command, title)) = opened_by {
            let script = "window.__TAURI_INTERNALS__.invoke('run_command', { command: arguments[0] })";
            window.run(script, json!([command]));
            window.switch_to(title);
        }
        let outcomes = call(&window, &script, "run", name);
        ran += outcomes.len();
        broken.extend(
            outcomes
                .iter()
                .filter_map(|outcome| Some(format!("{}: {}", outcome["name"], outcome["problem"].as_str()?))),
        );
        reached.extend(
            call(&window, &script, "reachable", name)
                .iter()
                .map(|outcome| format!("{name}: {outcome}")),
        );
    }
    assert!(ran > 40, "only {ran} cases ran");
    assert!(broken.is_empty(), "the app breaks the contract:\n{}", broken.join("\n"));
    assert!(
        reached.is_empty(),
        "pages call what they may not:\n{}",
        reached.join("\n")
    );
    window.close();
}

/// Calls a function of the contract with the name of the window whose page it runs in.
fn call(window: &Window, script: &str, function: &str, name: &str) -> Vec<Value> {
    let done = "arguments[arguments.length - 1]";
    let script =
        format!("{script}\ncontract.{function}(arguments[0]).then({done}, (reason) => {done}([String(reason)]));");
    let outcome = window.run_async(&script, json!([name]));
    outcome.as_array().expect("a list").clone()
}
