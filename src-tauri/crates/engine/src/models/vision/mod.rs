//! Vision towers: each kind is a file of the same name as its description in `checkpoint::config::vision`, made of shared parts.

mod attention;
mod block;
mod glm;
mod internvit;
mod patches;
mod pixtral;
mod resample;
mod rope;
mod siglip;

use crate::error::Result;
use crate::layers::Embedding;
use crate::tensor::Tensor;
use crate::weights::Weights;

/// The first of these paths below which a tensor of this name lies; the first of all if none does, which its loading will then name.
fn first_that_has(weights: &Weights<'_>, paths: &[&str], name: &str) -> String {
    let found = paths.iter().find(|path| weights.has(&format!("{path}.{name}")));
    found.or(paths.first()).map_or_else(String::new, |path| (*path).to_owned())
}

/// Loads learned positions `path` as `[side, side, width]`, dequantised.
fn table(weights: &mut Weights<'_>, path: &str, side: u32, width: i32) -> Result<Tensor> {
    let side = side as i32;
    let rows = match Embedding::load(weights, path, side * side, width)? {
        Embedding::Plain(rows) => rows,
        Embedding::Quantized(rows) => rows.dequantize()?,
    };
    let table = rows.reshape(&[side, side, width])?;
    weights.materialize([&table])?;
    Ok(table)
}
