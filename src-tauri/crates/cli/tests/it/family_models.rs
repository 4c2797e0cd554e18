//! Tiny random models of every family, as a person has them in folders.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::serving::scripts;

/// Folders of models, and one for the data of a program that uses them.
pub struct FamilyModels {
    pub folders: Vec<PathBuf>,
    pub home: TempDir,
}

/// The models that `./dev test` had written, or else some written now; `None` without a Python to write them with. A
/// sixth of them, unless the tests run with `--full`: each takes several processes, and the engine's own tests use all.
pub fn family_models() -> Option<FamilyModels> {
    let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with mlx-lm; `./dev test` provides one");
        return None;
    };
    let home = tempfile::tempdir().expect("a folder");
    let models = match std::env::var_os("PONDER_ORACLE_FIGURES") {
        Some(figures) => Path::new(&figures).join("families"),
        None => {
            let models = home.path().join("families");
            let seed = std::env::var("PONDER_SEED").unwrap_or_else(|_| "20261121".into());
            let mut writer = Command::new(python);
            writer
                .env_remove("LD_LIBRARY_PATH")
                .arg(scripts().join("../oracle/families.py"))
                .arg("--out")
                .arg(&models);
            let written = writer.args(["--seed", &seed, "--folders"]).output();
            let written = written.expect("the writer starts");
            assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
            models
        }
    };
    let table = std::fs::read_to_string(models.join("table.json")).expect("a table");
    let table: Value = serde_json::from_str(&table).expect("JSON");
    let every = if std::env::var_os("PONDER_FULL").is_some() {
        1
    } else {
        6
    };
    let variants = table["variants"].as_array().expect("a list").iter().step_by(every);
    let folders = variants.map(|variant| models.join(variant["name"].as_str().expect("a name")));
    Some(FamilyModels {
        folders: folders.collect(),
        home,
    })
}
