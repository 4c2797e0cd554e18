//! Tiny random models of every family, and what mlx-lm computes with them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::{read_safetensors, RawTensor};

/// The Python that has mlx-lm; `None`, with a line printed, if the environment names none.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("PONDER_ORACLE_PYTHON");
    if python.is_none() {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with mlx-lm; `./dev test` provides one");
    }
    python.map(PathBuf::from)
}

/// A file or folder of what `./dev test` had mlx-lm compute for the seed of this run, once for all tests.
pub fn computed(name: &str) -> Option<PathBuf> {
    std::env::var_os("PONDER_ORACLE_FIGURES").map(|folder| Path::new(&folder).join(name))
}

/// The seed of this run.
pub fn seed() -> u64 {
    std::env::var("PONDER_SEED").map_or(20_261_121, |seed| seed.parse().unwrap())
}

/// A model that was written.
#[derive(Debug, Clone, Deserialize)]
pub struct Variant {
    pub name: String,
    pub model_type: String,
    /// True if a router chooses among experts.
    pub experts: bool,
    pub quantized: bool,
    /// True if there is a copy in which all but the quantized weights are 32 bit floats; else the model is such itself,
    /// or is not quantized.
    pub packed_in_f32: bool,
    /// True if reading token by token has to give the result of reading all at once.
    pub steps_alike: bool,
}

#[derive(Deserialize)]
struct Table {
    versions: std::collections::BTreeMap<String, String>,
    variants: Vec<Variant>,
}

/// A folder of models and figures.
pub struct Written {
    folder: PathBuf,
    /// Removes the folder, if it is of this test alone.
    _own: Option<tempfile::TempDir>,
    /// The programs that wrote it, such as `mlx 0.32.4, mlx-lm 0.32.2`.
    pub versions: String,
    pub variants: Vec<Variant>,
}

/// Runs the oracle's script for a folder of models and figures.
pub fn write(python: &Path, script: &str, folder: &Path, seed: u64, only: &[&str], flags: &[&str]) {
    let mut command = Command::new(python);
    // The oracle brings an MLX of its own.
    command
        .env_remove("LD_LIBRARY_PATH")
        .arg(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../../tests/oracle")
                .join(script),
        )
        .arg("--out")
        .arg(folder)
        .args(["--seed", &seed.to_string()])
        .args(flags);
    if !only.is_empty() {
        command.args(["--only", &only.join(",")]);
    }
    let ran = command.output().unwrap();
    assert!(
        ran.status.success(),
        "the oracle failed: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// The results of mlx-lm for one variant.
pub struct Figures {
    pub prompt: Vec<u32>,
    pub greedy: Vec<u32>,
    /// By how much each greedy token's logit was above the next.
    pub margins: Vec<f32>,
    /// In 32 bit floats, all positions one after another.
    pub logits: Vec<f32>,
    /// The same, read token by token.
    pub steps: Vec<f32>,
    /// In the file's own number format.
    pub native: Option<Vec<f32>>,
}

impl Written {
    /// Has the variants called `only` written, or all of them. `folders` leaves out what mlx-lm computes.
    pub fn new(python: &Path, seed_of_models: u64, only: &[&str], folders: bool) -> Self {
        if let Some(folder) = computed("families").filter(|_| seed_of_models == seed()) {
            return Self::read(folder, None, only);
        }
        let flags: &[&str] = if folders { &["--folders"] } else { &[] };
        Self::made(python, seed_of_models, only, flags)
    }

    /// Has models written that are less tiny, and nothing computed.
    pub fn larger(python: &Path, only: &[&str]) -> Self {
        Self::made(python, seed(), only, &["--folders", "--larger"])
    }

    fn made(python: &Path, seed_of_models: u64, only: &[&str], flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(python, "families.py", folder.path(), seed_of_models, only, flags);
        Self::read(folder.path().to_owned(), Some(folder), only)
    }

    fn read(folder: PathBuf, own: Option<tempfile::TempDir>, only: &[&str]) -> Self {
        let table = std::fs::read_to_string(folder.join("table.json")).unwrap();
        let mut table: Table = serde_json::from_str(&table).unwrap();
        table
            .variants
            .retain(|variant| only.is_empty() || only.contains(&variant.name.as_str()));
        let versions: Vec<String> = table
            .versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        Self {
            folder,
            _own: own,
            versions: versions.join(", "),
            variants: table.variants,
        }
    }

    /// The model's folder.
    pub fn model(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder in which only packed weights are no 32 bit floats.
    pub fn packed_in_f32(&self, variant: &Variant) -> PathBuf {
        self.model(&if variant.packed_in_f32 {
            format!("{}.f32", variant.name)
        } else {
            variant.name.clone()
        })
    }

    /// The results of mlx-lm.
    pub fn figures(&self, name: &str) -> Figures {
        let mut stored = read_safetensors(&self.folder.join(format!("{name}.safetensors")));
        let logits = stored["logits"].floats();
        Figures {
            prompt: stored["prompt"].ids(),
            greedy: stored["greedy"].ids(),
            margins: stored["margins"].floats(),
            steps: stored
                .remove("steps")
                .as_ref()
                .map_or_else(|| logits.clone(), RawTensor::floats),
            native: stored.remove("native").as_ref().map(RawTensor::floats),
            logits,
        }
    }
}
