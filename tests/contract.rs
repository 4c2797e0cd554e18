//! The cases of `ui/src/testing/contract` in the real window, against the real host. The interface's own tests ask the
//! in-memory host the same.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

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
    let outcomes = window.run_async(
        &format!("{script}\ncontract.run().then(arguments[arguments.length - 1]);"),
        json!([]),
    );
    let outcomes = outcomes.as_array().expect("a list of outcomes");
    assert!(outcomes.len() > 10, "only {} cases ran", outcomes.len());
    let broken: Vec<String> = outcomes
        .iter()
        .filter_map(|outcome| Some(format!("{}: {}", outcome["name"], outcome["problem"].as_str()?)))
        .collect();
    assert!(broken.is_empty(), "the app breaks the contract:\n{}", broken.join("\n"));
    window.close();
}
