//! The figures of model types for the table of `docs/models.md`: `./dev model-figures` names a file that the tests add
//! to, and lets those that check a few families every day check all of them.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

fn file() -> Option<PathBuf> {
    std::env::var_os("PONDER_MODEL_FIGURES").map(PathBuf::from)
}

/// True if figures are wanted.
pub fn wanted() -> bool {
    file().is_some()
}

/// These variants, or all of them if figures are wanted.
pub fn or_all<'a>(daily: &[&'a str]) -> Vec<&'a str> {
    match wanted() {
        true => Vec::new(),
        false => daily.to_vec(),
    }
}

/// Adds a figure of a model type: the largest difference of a logit, or 0 where tokens are the same.
pub fn keep(check: &str, model_type: &str, figure: f32) {
    let Some(file) = file() else { return };
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    writeln!(file, "{model_type}\t{check}\t{figure:.1e}").unwrap();
}
