//! The arrows between rooms, and code that only one room may have.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use tidy::{output, read, sources};

#[test]
fn arrows_between_rooms_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("protocol", &[] as &[&str]),
        ("api", &["protocol"]),
        ("command", &[]),
        ("openai-wire", &["protocol"]),
        ("documents", &["protocol", "sandbox"]),
        ("files", &[]),
        ("prompt", &["checkpoint", "protocol", "sandbox"]),
        ("checkpoint", &["protocol"]),
        ("constraint", &["protocol"]),
        ("mlx", &["mlx-derive"]),
        ("mlx-derive", &[]),
        ("cpu-kernels", &["mlx"]),
        ("mlx-kernels", &["mlx"]),
        (
            "engine",
            &[
                "checkpoint",
                "constraint",
                "cpu-kernels",
                "files",
                "media",
                "mlx",
                "mlx-kernels",
                "prompt",
                "protocol",
            ],
        ),
        ("engine-socket", &["protocol"]),
        ("sqlite", &["files"]),
        ("history", &["api", "files", "protocol", "sqlite"]),
        (
            "knowledge",
            &["api", "documents", "files", "media", "protocol", "sqlite"],
        ),
        ("chat", &["api", "documents", "history", "media", "protocol"]),
        ("hub", &["api", "checkpoint", "files", "net", "prompt", "protocol"]),
        ("hub-imitation", &[]),
        ("one-build", &[]),
        ("tidy", &[]),
        ("image-io", &[]),
        ("sandbox", &[]),
        ("media", &["checkpoint", "image-io", "protocol", "sandbox"]),
        ("net", &["api", "files", "protocol"]),
        ("power", &["api"]),
        ("remote", &["api", "media", "net", "prompt", "protocol"]),
        ("random-models", &["protocol"]),
        ("tools", &["api", "documents", "files", "net", "protocol", "sandbox"]),
        (
            "server",
            &["api", "constraint", "documents", "media", "openai-wire", "protocol"],
        ),
        (
            "cli",
            &[
                "api",
                "chat",
                "documents",
                "engine",
                "engine-socket",
                "hub",
                "knowledge",
                "media",
                "net",
                "openai-wire",
                "prompt",
                "protocol",
                "remote",
                "sandbox",
                "server",
                "tools",
            ],
        ),
        (
            "bench",
            &[
                "checkpoint",
                "cli",
                "engine",
                "hub",
                "media",
                "prompt",
                "protocol",
                "random-models",
            ],
        ),
        (
            "ponder-app",
            &[
                "api",
                "chat",
                "command",
                "documents",
                "engine",
                "engine-socket",
                "files",
                "hub",
                "knowledge",
                "media",
                "net",
                "power",
                "prompt",
                "protocol",
                "remote",
                "sandbox",
                "server",
                "tools",
            ],
        ),
    ]);
    let only_rooms: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("mlx-rs", &["mlx"] as &[&str]),
        ("mlx-sys", &["mlx"]),
        ("libloading", &["mlx-kernels"]),
        ("reqwest", &["net"]),
        ("keyring", &["net"]),
        ("sqlx", &["history", "knowledge", "sqlite"]),
        ("tauri", &["ponder-app"]),
        ("tokenizers", &["prompt"]),
        ("image", &["media"]),
        ("hyper", &["server"]),
        ("rmcp", &["tools"]),
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
            // Dependencies of tests draw no arrow.
            if dependency["kind"] == "dev" {
                continue;
            }
            let name = dependency["name"].as_str().expect("a dependency has a name");
            if rooms.contains(name) {
                assert!(allowed[room].contains(&name), "{room} must not lean on {name}");
            }
            if let Some(only) = only_rooms.get(name) {
                assert!(only.contains(&room), "only {} knows {name}", only.join(" and "));
            }
        }
    }
}

#[test]
fn one_file_of_the_window_knows_tauri() {
    let knowing: Vec<String> = sources()
        .into_iter()
        .filter(|path| path.starts_with("ui/src/") && read(path).contains("@tauri-apps/"))
        .collect();
    assert_eq!(knowing, ["ui/src/host/tauri.ts"]);
}

#[test]
fn unsafe_code_lives_where_mlx_and_macos_are_called() {
    let may = [
        "src-tauri/crates/cpu-kernels/",
        "src-tauri/crates/image-io/",
        "src-tauri/crates/mlx/",
        "src-tauri/crates/mlx-kernels/",
        "src-tauri/crates/power/",
    ];
    for path in sources()
        .into_iter()
        .filter(|path| path.ends_with(".rs") && !path.starts_with("tests/tidy/"))
    {
        if !may.iter().any(|room| path.starts_with(room)) {
            let text = read(&path);
            assert!(
                !text.contains("unsafe {") && !text.contains("unsafe fn"),
                "{path} has unsafe code"
            );
        }
    }
}

/// Features of crates, by cargo's own account, if some rooms are left out. `edges` are kinds of dependencies.
fn features_of_all(edges: &str, left_out: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["tree", "--workspace", "--offline", "--edges", edges]);
    cargo.args(["--prefix", "none", "--format", "{p}|{f}"]);
    for room in left_out {
        cargo.args(["--exclude", room]);
    }
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    for line in output(&mut cargo).lines() {
        let Some((package, features)) = line.split_once('|') else {
            continue;
        };
        found
            .entry(package.to_owned())
            .or_default()
            .insert(features.replace(" (*)", ""));
    }
    found
}

/// Features of third-party crates in tests.
fn features(left_out: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = features_of_all("normal,build,dev", left_out);
    // The name of a room is followed by its folder.
    found.retain(|package, _| !package.contains('/'));
    found
}

#[test]
fn the_installed_programs_have_no_benches() {
    let releases: Vec<String> = read("dev")
        .lines()
        .filter(|line| line.trim_start().starts_with("build_release ") && !line.contains("ponder-bench"))
        .map(str::to_owned)
        .collect();
    assert!(!releases.is_empty());
    assert!(
        releases.iter().all(|line| line.contains("--exclude bench")),
        "{releases:?}"
    );
    let rooms = features_of_all("normal,build", &["bench"]);
    let engine = rooms.iter().find(|(package, _)| package.starts_with("engine v"));
    let (_, chosen) = engine.expect("the engine is installed");
    for feature in chosen.iter().flat_map(|features| features.split(',')) {
        assert!(!["bench", "test-support"].contains(&feature), "{chosen:?}");
    }
}

#[test]
fn the_fast_tests_share_what_is_built_for_all() {
    let all = features(&[]);
    let twice: Vec<String> = features(&[
        "engine",
        "mlx",
        "mlx-kernels",
        "cpu-kernels",
        "cli",
        "ponder-app",
        "bench",
    ])
    .iter()
    .filter(|(package, chosen)| !chosen.is_subset(&all[*package]))
    .map(|(package, chosen)| format!("{package}: {chosen:?} here, {:?} there", all[package]))
    .collect();
    assert!(
        twice.is_empty(),
        "the crate one-build is to give these their features:\n{}",
        twice.join("\n")
    );
}
