//! The weights of a converted model, written a piece at a time: no tensor is in memory whole.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use checkpoint::conversion::{Change, Conversion, Piece, Shard, Target};
use checkpoint::{Mode, Quantization};
use mlx::memory::clear_after_chunk;
use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::tensor::Tensor;
use mlx::Dtype;

use crate::error::{Error, Result};
use crate::handle::MlxEngine;
use crate::weights::dtype_of;

/// Bytes that are read at once: answers that run wait as long as these are quantized.
const AT_ONCE: u64 = 8 << 20;

/// The most bytes of rows that are turned, and of a single row.
const MOST_AT_ONCE: u64 = 256 << 20;

/// Gets the bytes read since it was called the last time, and the tensor; an error from it ends the conversion.
pub type Tell<'a> = dyn FnMut(u64, &str) -> Result<()> + 'a;

/// Writes all weight files into `folder`, and forces them to the disk. `engine` computes between the steps of answers;
/// files are read and written here.
pub fn write_weights(
    engine: &MlxEngine,
    conversion: &Conversion,
    source: &Path,
    folder: &Path,
    tell: &mut Tell<'_>,
) -> Result<()> {
    let mut originals = Originals {
        paths: conversion.files.iter().map(|name| source.join(name)).collect(),
        open: None,
    };
    for shard in &conversion.shards {
        let path = folder.join(&shard.name);
        write_shard(engine, conversion, shard, &path, &mut originals, tell)?;
    }
    Ok(())
}

fn write_shard(
    engine: &MlxEngine,
    conversion: &Conversion,
    shard: &Shard,
    path: &Path,
    originals: &mut Originals,
    tell: &mut Tell<'_>,
) -> Result<()> {
    let failed = |source: io::Error| Error::not_written(path, source);
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(&shard.header).map_err(failed)?;
    for (index, offsets) in &shard.targets {
        let mut places = offsets.clone();
        let mut write = |part: usize, bytes: &[u8]| -> Result<()> {
            file.seek(SeekFrom::Start(places[part])).map_err(failed)?;
            file.write_all(bytes).map_err(failed)?;
            places[part] += bytes.len() as u64;
            Ok(())
        };
        let target = &conversion.targets[*index];
        for piece in &target.pieces {
            for piece in portions(piece, &target.name)? {
                let bytes = originals.read(&piece)?;
                match is_copied(target, &piece) {
                    true => write(0, &bytes)?,
                    false => {
                        let work = Work::new(target, &piece)?;
                        let parts = engine.compute(move || work.parts(&bytes))?;
                        for (part, bytes) in parts.iter().enumerate() {
                            write(part, bytes)?;
                        }
                    }
                }
                tell(piece.bytes(), &target.name)?;
            }
        }
        engine.compute(|| Ok(clear_after_chunk()?))?;
    }
    file.sync_all().map_err(failed)
}

/// Pieces of no more rows than are read at once. Groups lie within rows, so rows are quantized alike alone and
/// together.
fn portions(piece: &Piece, name: &str) -> Result<Vec<Piece>> {
    let row = Piece { rows: 1, ..*piece }.bytes().max(1);
    let most = match piece.change {
        Change::None | Change::PlusOne => (AT_ONCE / row).max(1),
        Change::Turned | Change::TurnedHalf(_) => piece.rows,
    };
    if row.saturating_mul(most.min(piece.rows)) > MOST_AT_ONCE {
        return Err(Error::Unsupported(format!("rows of {row} bytes in `{name}`")));
    }
    let portions = (0..piece.rows).step_by(usize::try_from(most.max(1)).unwrap_or(usize::MAX));
    let portion = |from: u64| Piece {
        offset: piece.offset + from * row,
        rows: most.min(piece.rows - from),
        ..*piece
    };
    Ok(portions.map(portion).collect())
}

/// True if a piece stays as it is, byte for byte.
fn is_copied(target: &Target, piece: &Piece) -> bool {
    target.quantization.is_none() && target.dtype == piece.dtype && piece.change == Change::None
}

/// The numbers of a piece, and what becomes of them.
struct Work {
    rows: i32,
    columns: i32,
    change: Change,
    stored: Dtype,
    made: Dtype,
    format: Option<QuantizationFormat>,
}

impl Work {
    fn new(target: &Target, piece: &Piece) -> Result<Self> {
        let length = |length: u64| {
            i32::try_from(length).map_err(|_| Error::Unsupported(format!("{length} rows in `{}`", target.name)))
        };
        Ok(Self {
            rows: length(piece.rows)?,
            columns: length(piece.columns)?,
            change: piece.change,
            stored: known(piece.dtype)?,
            made: known(target.dtype)?,
            format: target.quantization.map(format_of),
        })
    }

    /// The bytes of the target's parts: the numbers, or what they are quantized to.
    fn parts(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let numbers = Tensor::from_bytes(bytes, &[self.rows, self.columns], self.stored)?;
        let numbers = match self.change {
            Change::None => numbers,
            Change::Turned => numbers.swapaxes(0, 1)?,
            Change::TurnedHalf(second) => {
                let start = if second { self.columns / 2 } else { 0 };
                numbers.slice(1, start, start + self.columns / 2)?.swapaxes(0, 1)?
            }
            Change::PlusOne => numbers.add(&Tensor::scalar(1.0, self.stored)?)?,
        };
        let numbers = numbers.astype(self.made)?;
        let parts = match self.format {
            None => vec![numbers],
            Some(format) => {
                let QuantizedTensor {
                    weight, scales, biases, ..
                } = QuantizedTensor::quantize(&numbers.contiguous()?, format)?;
                [Some(weight), Some(scales), biases].into_iter().flatten().collect()
            }
        };
        Ok(parts.iter().map(Tensor::to_bytes).collect::<mlx::Result<_>>()?)
    }
}

fn known(dtype: &str) -> Result<Dtype> {
    dtype_of(dtype).ok_or_else(|| Error::Unsupported(format!("numbers of type {dtype}")))
}

fn format_of(format: Quantization) -> QuantizationFormat {
    QuantizationFormat {
        group_size: format.group_size as i32,
        bits: format.bits as i32,
        mode: match format.mode {
            Mode::Affine => c"affine",
            Mode::Mxfp4 => c"mxfp4",
            Mode::Mxfp8 => c"mxfp8",
            Mode::Nvfp4 => c"nvfp4",
        },
    }
}

/// The weight files of the original, of which the one read last is open.
struct Originals {
    paths: Vec<PathBuf>,
    open: Option<(usize, File)>,
}

impl Originals {
    fn read(&mut self, piece: &Piece) -> Result<Vec<u8>> {
        let path = &self.paths[piece.file];
        let name = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let failed = |error: io::Error| Error::Unreadable {
            file: name(),
            reason: error.to_string(),
        };
        let mut file = match self.open.take() {
            Some((index, file)) if index == piece.file => file,
            _ => File::open(path).map_err(failed)?,
        };
        let mut bytes = vec![0; usize::try_from(piece.bytes()).unwrap_or(usize::MAX)];
        file.seek(SeekFrom::Start(piece.offset)).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::BrokenFile {
                file: name(),
                reason: "it became shorter while it was read".into(),
            },
            _ => failed(error),
        })?;
        self.open = Some((piece.file, file));
        Ok(bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_at_once_than_rows_allow() {
        let piece = Piece {
            file: 0,
            offset: 100,
            dtype: "BF16",
            rows: 40_000,
            columns: 1024,
            change: Change::None,
        };
        let all = portions(&piece, "a").unwrap();
        assert_eq!(
            all.iter().map(|part| part.rows).collect::<Vec<_>>(),
            [4_096, 4_096, 4_096, 4_096, 4_096, 4_096, 4_096, 4_096, 4_096, 3_136]
        );
        assert_eq!(all[1].offset, 100 + 4_096 * 2048);
        let turned = Piece {
            change: Change::Turned,
            ..piece
        };
        assert_eq!(portions(&turned, "a").unwrap(), [turned]);
        let too_much = Piece {
            rows: 200_000,
            ..turned
        };
        assert!(matches!(portions(&too_much, "a"), Err(Error::Unsupported(_))));
    }
}
