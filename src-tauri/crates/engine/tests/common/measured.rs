//! The figures of model types for the table of `docs/models.md`: `./dev model-figures` names a file that the tests add
//! to, and lets those that check a few families every day check all of them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::LazyLock;

fn file() -> Option<PathBuf> {
    std::env::var_os("PONDER_MODEL_FIGURES").map(PathBuf::from)
}

/// True if figures are wanted.
pub fn wanted() -> bool {
    file().is_some()
}

/// These variants, or if figures are wanted those that `PONDER_ORACLE_ONLY` names, or all.
pub fn or_all<'a>(daily: &[&'a str]) -> Vec<&'a str> {
    static ONLY: LazyLock<String> = LazyLock::new(|| std::env::var("PONDER_ORACLE_ONLY").unwrap_or_default());
    match wanted() {
        true => ONLY.split(',').filter(|name| !name.is_empty()).collect(),
        false => daily.to_vec(),
    }
}

/// Adds a figure of a model type: the largest difference of a logit, or 0 where tokens are the same.
pub fn keep(check: &str, model_type: &str, figure: f32) {
    let Some(file) = file() else { return };
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    writeln!(file, "{model_type}\t{check}\t{figure:.1e}").unwrap();
}
