//! Reads the source as text, for the tests of the rules that documents promise.

pub mod modules;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The root of the checkout under test.
pub fn root() -> PathBuf {
    let folder = std::env::current_dir().expect("a current folder");
    let root = folder
        .ancestors()
        .find(|folder| folder.join("tauri.conf.json").is_file());
    root.expect("the tests run within a checkout").to_owned()
}

/// The standard output of a command, run in the root.
///
/// # Panics
/// If the command fails; its standard error is the message.
pub fn output(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().expect("the command starts");
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Paths of tracked and new files, relative to the root.
pub fn files() -> Vec<String> {
    output(Command::new("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]))
        .lines()
        .filter(|path| root().join(path).is_file())
        .map(str::to_owned)
        .collect()
}

/// Paths of source files that are written by hand.
pub fn sources() -> Vec<String> {
    let endings = ["rs", "ts", "svelte", "css", "sql", "py", "sh"];
    let generated = [
        "ui/src/bindings/",
        "ui/src/host/generated.ts",
        "src-tauri/pebble/training/",
        "src-tauri/mlx/bindings.rs",
    ];
    files()
        .into_iter()
        .filter(|path| !generated.iter().any(|folder| path.starts_with(folder)))
        .filter(|path| {
            path.rsplit_once('.')
                .is_some_and(|(_, ending)| endings.contains(&ending))
        })
        .collect()
}

/// The text of a file of the checkout.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path} cannot be read: {error}"))
}
