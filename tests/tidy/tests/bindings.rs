//! The window's generated types and constants.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tidy::{output, root};

#[test]
fn generated_types_of_the_window_are_fresh() {
    let fresh = tempfile::tempdir().expect("a temporary folder");
    // `./dev test` has built the program that writes them; cargo would build it again with the features of that crate
    // alone.
    let mut writer = match std::env::var_os("PONDER_API_TESTS") {
        Some(program) => Command::new(program),
        None => {
            let mut cargo = Command::new("cargo");
            cargo.args(["test", "--quiet", "-p", "api"]);
            cargo
        }
    };
    output(writer.arg("export_bindings").env("TS_RS_EXPORT_DIR", fresh.path()));
    let committed = root().join("ui/src/bindings");
    let (fresh, committed) = (read_tree(fresh.path()), read_tree(&committed));
    assert_eq!(
        fresh.keys().collect::<Vec<_>>(),
        committed.keys().collect::<Vec<_>>(),
        "run `cargo test -p api` and commit ui/src/bindings"
    );
    for (name, text) in &fresh {
        assert_eq!(
            Some(text),
            committed.get(name),
            "{name} is stale: run `cargo test -p api` and commit ui/src/bindings"
        );
    }
}

fn read_tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("a folder").flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                let name = entry
                    .path()
                    .strip_prefix(folder)
                    .expect("inside")
                    .to_string_lossy()
                    .into_owned();
                found.insert(name, fs::read_to_string(entry.path()).expect("text"));
            }
        }
    }
    found
}
