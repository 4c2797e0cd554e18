//! Hostile files of every kind, given to the program and to a server of it that lives all the while (tests/hostile): a
//! fixed tenth of them, and all with `./dev hostile` or `./dev test --full hostile_files`. A program of its own,
//! because that takes an hour.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The example of the crate `prompt` that writes templates. A build of the whole workspace has made it; one of this
/// crate alone has not.
fn templates(ponder: &Path) -> PathBuf {
    let name = format!("hostile_templates{}", std::env::consts::EXE_SUFFIX);
    let program = ponder.parent().unwrap().join("examples").join(name);
    if !program.exists() {
        let build = ["build", "--quiet", "-p", "prompt", "--example", "hostile_templates"];
        assert!(Command::new("cargo").args(build).status().unwrap().success());
    }
    program
}

#[test]
fn hostile_files_do_no_harm() {
    let ponder = Path::new(env!("CARGO_BIN_EXE_ponder"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/hostile/run.py");
    let mut run = Command::new("python3");
    run.arg("-B").arg(script).arg(ponder).arg(templates(ponder));
    if std::env::var_os("PONDER_FULL").is_none() {
        run.arg("--tenth");
    }
    // Its lines begin with `report:`, which `./dev test` shows.
    assert!(run.status().expect("python3 runs").success());
}
