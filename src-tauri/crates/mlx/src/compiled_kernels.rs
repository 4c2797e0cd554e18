//! Settings that MLX reads from the environment before it computes for the first time, all of them for NVIDIA cards: the
//! folder that keeps the kernels that it compiles at run time, and how it computes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::device;

/// The variable that names the folder; MLX reads it once.
const FOLDER: &str = "MLX_PTX_CACHE_DIR";

/// Keeps kernels that are compiled for an NVIDIA card in `cache_dir`, where MLX's default is a temporary folder: each
/// of MLX's takes 10 to 30 seconds. MLX finds them by their name alone, so those of another MLX or card have another
/// folder. A folder named in the environment stays. Called before MLX computes for the first time.
pub fn keep(cache_dir: &Path) {
    if cfg!(target_os = "linux") && std::env::var_os(FOLDER).is_none() {
        std::env::set_var(FOLDER, cache_dir.join("cuda-kernels").join(platform()));
    }
}

/// The folder that keeps them, if one was named.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Lets MLX compute for as long as it is asked to: on CUDA it refuses every further step once it has seen 800 graphs
/// that were not in its cache, which it takes for thrashing but counts since the start of the process. Called before
/// MLX computes for the first time.
pub fn disable_cache_thrashing_check() {
    const VARIABLE: &str = "MLX_ENABLE_CACHE_THRASHING_CHECK";
    if cfg!(target_os = "linux") && std::env::var_os(VARIABLE).is_none() {
        std::env::set_var(VARIABLE, "0");
    }
}

/// Lets products of 32 bit floats have 32 bits, of which MLX leaves 13 out by default on CUDA (TF32). Those that are left
/// in a model of 16 bits are recurrences, which add up what is left out. Called before MLX computes for the first time.
pub fn multiply_in_32_bits() {
    const VARIABLE: &str = "MLX_ENABLE_TF32";
    if cfg!(target_os = "linux") && std::env::var_os(VARIABLE).is_none() {
        std::env::set_var(VARIABLE, "0");
    }
}

/// MLX's version and the cards of this computer, as the name of a folder.
fn platform() -> String {
    let mut cards: Vec<String> = fs::read_dir("/proc/driver/nvidia/gpus")
        .into_iter()
        .flatten()
        .filter_map(|card| fs::read_to_string(card.ok()?.path().join("information")).ok())
        .filter_map(|text| {
            Some(
                text.lines()
                    .find_map(|line| line.strip_prefix("Model:"))?
                    .trim()
                    .to_lowercase(),
            )
        })
        .collect();
    cards.sort();
    cards.dedup();
    let parts = std::iter::once(format!("mlx {}", device::version().unwrap_or_default())).chain(cards);
    let letter = |letter: char| match letter.is_ascii_alphanumeric() || letter == '.' {
        true => letter,
        false => '-',
    };
    parts.collect::<Vec<_>>().join(" ").chars().map(letter).collect()
}
