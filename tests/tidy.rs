//! What ARCHITECTURE.md promises, checked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const LONGEST_FILE: usize = 500;

fn output(command: &mut Command) -> String {
    let output = command.current_dir(ROOT).output().expect("the command starts");
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Tracked and new source files, generated ones left out.
fn sources() -> Vec<PathBuf> {
    output(Command::new("git").args(["ls-files", "--cached", "--others", "--exclude-standard"]))
        .lines()
        .filter(|path| !path.starts_with("ui/src/bindings/") && !path.starts_with("src-tauri/pebble/training/"))
        .filter(|path| {
            ["rs", "ts", "svelte", "css", "sql", "py"]
                .iter()
                .any(|ending| path.ends_with(&format!(".{ending}")))
        })
        .map(|path| Path::new(ROOT).join(path))
        .filter(|path| path.is_file())
        .collect()
}

#[test]
fn no_source_file_is_longer_than_it_should_be() {
    // The texts of one language are a list in one file, however many there are.
    let catalogues = Path::new(ROOT).join("ui/src/messages");
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|path| path.parent() != Some(catalogues.as_path()))
        .filter_map(|path| {
            let lines = fs::read_to_string(&path).expect("sources are text").lines().count();
            (lines > LONGEST_FILE).then(|| format!("{} has {lines} lines", path.display()))
        })
        .collect();
    assert!(
        long.is_empty(),
        "look for the noun that wants a file of its own:\n{}",
        long.join("\n")
    );
}

#[test]
fn arrows_between_rooms_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("protocol", &[] as &[&str]),
        ("documents", &["protocol"]),
        ("files", &[]),
        ("prompt", &["checkpoint", "protocol"]),
        ("checkpoint", &["protocol"]),
        ("constraint", &["protocol"]),
        ("engine", &["checkpoint", "constraint", "media", "prompt", "protocol"]),
        ("engine-socket", &["protocol"]),
        ("history", &["files", "protocol"]),
        ("chat", &["documents", "history", "media", "protocol"]),
        ("hub", &["checkpoint", "files", "net", "prompt", "protocol"]),
        ("hub-imitation", &[]),
        ("image-io", &[]),
        ("media", &["checkpoint", "image-io", "protocol"]),
        ("net", &["files", "protocol"]),
        ("power", &["protocol"]),
        ("remote", &["media", "net", "prompt", "protocol"]),
        ("random-models", &["protocol"]),
        ("server", &["constraint", "media", "protocol"]),
        (
            "cli",
            &[
                "chat",
                "checkpoint",
                "documents",
                "engine",
                "engine-socket",
                "hub",
                "media",
                "net",
                "prompt",
                "protocol",
                "random-models",
                "remote",
                "server",
            ],
        ),
        (
            "ponder-app",
            &[
                "chat",
                "engine",
                "engine-socket",
                "files",
                "hub",
                "net",
                "power",
                "protocol",
                "remote",
                "server",
            ],
        ),
    ]);
    let only_room: BTreeMap<&str, &str> = BTreeMap::from([
        ("mlx-rs", "engine"),
        ("mlx-sys", "engine"),
        ("reqwest", "net"),
        ("keyring", "net"),
        ("sqlx", "history"),
        ("tauri", "ponder-app"),
        ("tokenizers", "prompt"),
        ("image", "media"),
        ("hyper", "server"),
    ]);

    let metadata: Value = serde_json::from_str(&output(Command::new("cargo").args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ])))
    .expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let rooms: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    assert_eq!(
        rooms,
        allowed.keys().copied().collect(),
        "a room came or went: say in ARCHITECTURE.md which arrows it has"
    );

    for package in packages {
        let room = package["name"].as_str().expect("a package has a name");
        for dependency in package["dependencies"].as_array().expect("a list") {
            // What only tests use draws no arrow.
            if dependency["kind"] == "dev" {
                continue;
            }
            let name = dependency["name"].as_str().expect("a dependency has a name");
            if rooms.contains(name) {
                assert!(allowed[room].contains(&name), "{room} must not lean on {name}");
            }
            if let Some(only) = only_room.get(name) {
                assert_eq!(&room, only, "only {only} knows {name}");
            }
        }
    }
}

#[test]
fn generated_types_of_the_window_are_fresh() {
    let fresh = tempfile::tempdir().expect("a temporary folder");
    // `./dev test` has built the program that writes them; cargo would build it anew, with the features of that room alone.
    let mut writer = match std::env::var_os("PONDER_PROTOCOL_TESTS") {
        Some(program) => Command::new(program),
        None => {
            let mut cargo = Command::new("cargo");
            cargo.args(["test", "--quiet", "-p", "protocol"]);
            cargo
        }
    };
    output(writer.arg("export_bindings").env("TS_RS_EXPORT_DIR", fresh.path()));
    let committed = Path::new(ROOT).join("ui/src/bindings");
    let (fresh, committed) = (read_tree(fresh.path()), read_tree(&committed));
    assert_eq!(
        fresh.keys().collect::<Vec<_>>(),
        committed.keys().collect::<Vec<_>>(),
        "run `cargo test -p protocol` and commit ui/src/bindings"
    );
    for (name, text) in &fresh {
        assert_eq!(
            Some(text),
            committed.get(name),
            "{name} is stale: run `cargo test -p protocol` and commit ui/src/bindings"
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
                let name = entry.path().strip_prefix(folder).expect("inside").to_string_lossy().into_owned();
                found.insert(name, fs::read_to_string(entry.path()).expect("text"));
            }
        }
    }
    found
}

#[test]
fn one_file_of_the_window_knows_tauri() {
    let knowing: Vec<String> = sources()
        .into_iter()
        .filter(|path| {
            path.starts_with(Path::new(ROOT).join("ui/src")) && fs::read_to_string(path).is_ok_and(|text| text.contains("@tauri-apps/"))
        })
        .map(|path| path.strip_prefix(ROOT).expect("inside").display().to_string())
        .collect();
    assert_eq!(knowing, ["ui/src/platform/tauri.ts"]);
}

#[test]
fn unsafe_code_lives_in_the_engine_and_where_macos_is_called() {
    for path in sources()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
    {
        let inside = path.strip_prefix(ROOT).expect("inside").display().to_string();
        let may = ["src-tauri/crates/engine/", "src-tauri/crates/image-io/", "src-tauri/crates/power/"];
        if !may.iter().any(|room| inside.starts_with(room)) && inside != "tests/tidy.rs" {
            let text = fs::read_to_string(&path).expect("text");
            assert!(
                !text.contains("unsafe {") && !text.contains("unsafe fn"),
                "{inside} has unsafe code"
            );
        }
    }
}
