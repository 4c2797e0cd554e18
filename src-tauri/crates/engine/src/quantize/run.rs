//! One quantization, from the check of the original to the folder that appears at the end.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use checkpoint::conversion::{Conversion, Recipe};
use checkpoint::{Mode, WEIGHT_INDEX};
use files::DraftFolder;
use protocol::CancelFlag;
use serde_json::Value;

use super::other_files::{other_files, OtherFile};
use super::weights::write_weights;
use crate::error::{catch_panic, Error, Result};
use crate::handle::MlxEngine;

/// Bytes that stay free on the disk.
const MARGIN: u64 = 64 << 20;

/// The progress of a quantization.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuantizeProgress {
    /// The tensor that is written.
    pub tensor: String,
    /// Bytes of the original that were read.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// A quantized copy of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized {
    /// Bytes of the weights that were read.
    pub source_bytes: u64,
    /// Bytes of the new weight files.
    pub bytes: u64,
    /// Bits of all weights by their number.
    pub bits_per_weight: f64,
    /// Paths of matrices that stay as they are, because no group divides their rows.
    pub undivided: Vec<String>,
}

/// A recipe of mlx-lm's: 4 bits in groups of 64 unless given, where the format leaves a choice; `sensitive_bits` for
/// the matrices that lose most.
///
/// # Errors
/// If MLX has no such format, or mlx-lm no such mixture.
pub fn recipe(
    mode: Mode,
    bits: Option<u32>,
    group_size: Option<u32>,
    sensitive_bits: Option<u32>,
) -> protocol::Result<Recipe> {
    Ok(Recipe::new(mode, bits, group_size, sensitive_bits)?)
}

impl MlxEngine {
    /// Writes a quantized copy of the model in `source` as the folder `target`, which appears when all of it is on the
    /// disk. The weights are those of `mlx_lm.convert`; a vision encoder is copied. Answers go on meanwhile. Blocks; not
    /// for async code.
    ///
    /// # Errors
    /// If the original is broken or quantized already, the target exists, the disk is too small or the recipe does not
    /// fit. Nothing new is left then, and the original is never changed.
    pub fn quantize(
        &self,
        source: &Path,
        target: &Path,
        recipe: Recipe,
        stop: CancelFlag,
        mut progress: impl FnMut(QuantizeProgress),
    ) -> protocol::Result<Quantized> {
        Ok(catch_panic(|| {
            quantize(self, source, target, &recipe, &stop, &mut progress)
        })?)
    }
}

/// The size of a quantized copy: bytes of its weight files, and bits of all weights by their number. Reads the headers of
/// the original alone.
///
/// # Errors
/// As [`MlxEngine::quantize`], of those that show before anything is written.
pub fn size_of_copy(source: &Path, recipe: &Recipe) -> protocol::Result<(u64, f64)> {
    let conversion = Conversion::plan(source, recipe).map_err(Error::from)?;
    Ok((conversion.bytes(), bits_per_weight(&conversion)))
}

fn bits_per_weight(conversion: &Conversion) -> f64 {
    let numbers: u64 = conversion.targets.iter().map(|target| target.numbers()).sum();
    conversion.bytes() as f64 * 8.0 / numbers.max(1) as f64
}

fn quantize(
    engine: &MlxEngine,
    source: &Path,
    target: &Path,
    recipe: &Recipe,
    stop: &CancelFlag,
    progress: &mut dyn FnMut(QuantizeProgress),
) -> Result<Quantized> {
    let conversion = Conversion::plan(source, recipe)?;
    if fs::symlink_metadata(target).is_ok() {
        return Err(Error::TargetExists(target.to_owned()));
    }
    let unreadable = |error: io::Error| Error::Unreadable {
        file: source.display().to_string(),
        reason: error.to_string(),
    };
    let others = other_files(source).map_err(unreadable)?;
    let other_bytes: u64 = others.iter().map(|file| file.bytes).sum();
    check_space(target, conversion.bytes() + other_bytes)?;
    let draft = DraftFolder::create(target).map_err(|error| Error::not_written(target, error))?;
    copy(&others, source, draft.path(), stop)?;
    let mut told = QuantizeProgress {
        total: conversion.source_bytes(),
        ..QuantizeProgress::default()
    };
    write_weights(engine, &conversion, source, draft.path(), &mut |bytes, tensor| {
        told.done += bytes;
        if told.tensor != tensor {
            tensor.clone_into(&mut told.tensor);
        }
        progress(told.clone());
        running(stop)
    })?;
    write_json(&draft.path().join(WEIGHT_INDEX), &conversion.index)?;
    // Last, because a folder without it is no model.
    write_json(&draft.path().join("config.json"), &conversion.config)?;
    draft.finish().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::TargetExists(target.to_owned()),
        _ => Error::not_written(target, error),
    })?;
    Ok(Quantized {
        source_bytes: conversion.source_bytes(),
        bytes: conversion.bytes(),
        bits_per_weight: bits_per_weight(&conversion),
        undivided: conversion.undivided,
    })
}

fn running(stop: &CancelFlag) -> Result<()> {
    match stop.is_cancelled() {
        true => Err(Error::Stopped),
        false => Ok(()),
    }
}

fn check_space(target: &Path, needed: u64) -> Result<()> {
    let folder = target.parent().unwrap_or(target);
    match files::free_space(folder) {
        Ok(free) if free < needed.saturating_add(MARGIN) => Err(Error::DiskFull {
            path: folder.to_owned(),
            needed,
            free,
        }),
        // If the file system does not say, writing decides.
        _ => Ok(()),
    }
}

fn copy(others: &[OtherFile], source: &Path, folder: &Path, stop: &CancelFlag) -> Result<()> {
    for file in others {
        running(stop)?;
        let (from, to) = (source.join(&file.path), folder.join(&file.path));
        let failed = |error| Error::not_written(&to, error);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut original = File::open(&from).map_err(|error| Error::Unreadable {
            file: file.path.display().to_string(),
            reason: error.to_string(),
        })?;
        let mut copied = File::create_new(&to).map_err(failed)?;
        io::copy(&mut original, &mut copied).map_err(failed)?;
        copied.sync_all().map_err(failed)?;
    }
    Ok(())
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    let failed = |error| Error::not_written(path, error);
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(format!("{value:#}\n").as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)
}
