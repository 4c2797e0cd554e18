//! The tensors of a converted model, and where the numbers of each lie in the files of the original.

use crate::config::{Mode, Quantization};

/// The change of a piece after it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// Rows become columns.
    Turned,
    /// Half of the columns become rows: the first, or the second if true.
    TurnedHalf(bool),
    /// 1 is added to each number.
    PlusOne,
}

/// Rows of a tensor of the original that follow each other in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The file's place in [`Conversion::files`](super::Conversion::files).
    pub file: usize,
    /// Its first byte in the file.
    pub offset: u64,
    /// The type of its numbers, such as `BF16`.
    pub dtype: &'static str,
    /// Rows as they are stored.
    pub rows: u64,
    /// Numbers of a row.
    pub columns: u64,
    /// Their change.
    pub change: Change,
}

impl Piece {
    /// Bytes in the file.
    pub fn bytes(&self) -> u64 {
        self.rows * self.columns * width(self.dtype)
    }
}

/// A tensor of the original.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub file: usize,
    pub offset: u64,
    pub dtype: &'static str,
    pub shape: Vec<u64>,
}

impl Stored {
    pub fn columns(&self) -> u64 {
        self.shape.last().copied().unwrap_or(1)
    }

    pub fn rows(&self) -> u64 {
        self.shape.iter().rev().skip(1).product()
    }

    /// Rows that follow each other, from one on.
    pub fn piece(&self, from: u64, rows: u64, change: Change) -> Piece {
        Piece {
            file: self.file,
            offset: self.offset + from * self.columns() * width(self.dtype),
            dtype: self.dtype,
            rows,
            columns: self.columns(),
            change,
        }
    }

    pub fn whole(&self, change: Change) -> Vec<Piece> {
        vec![self.piece(0, self.rows(), change)]
    }
}

/// A tensor of the converted model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its name, such as `model.layers.0.mlp.up_proj.weight`.
    pub name: String,
    /// Its shape before it is quantized.
    pub shape: Vec<u64>,
    /// The type of its numbers, or of the scales if it is quantized to integers.
    pub dtype: &'static str,
    /// Its rows, one piece after another.
    pub pieces: Vec<Piece>,
    /// The format; `None` for what stays as it is.
    pub quantization: Option<Quantization>,
}

/// A tensor as a file holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// The type of its numbers.
    pub dtype: &'static str,
    /// Its shape.
    pub shape: Vec<u64>,
}

impl Part {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * width(self.dtype)
    }
}

impl Target {
    /// The tensors that the file gets: one, or words, scales and, in the affine format, biases.
    pub fn parts(&self) -> Vec<Part> {
        let part = |name: String, dtype, columns: Option<u64>| {
            let mut shape = self.shape.clone();
            if let (Some(columns), Some(last)) = (columns, shape.last_mut()) {
                *last = columns;
            }
            Part { name, dtype, shape }
        };
        let Some(format) = self.quantization else {
            return vec![part(self.name.clone(), self.dtype, None)];
        };
        let columns = self.shape.last().copied().unwrap_or(1);
        let (words, groups) = (
            columns * u64::from(format.bits) / 32,
            columns / u64::from(format.group_size),
        );
        let path = self.path();
        let weight = part(self.name.clone(), "U32", Some(words));
        match format.mode {
            Mode::Affine => vec![
                weight,
                part(format!("{path}.scales"), self.dtype, Some(groups)),
                part(format!("{path}.biases"), self.dtype, Some(groups)),
            ],
            _ => vec![weight, part(format!("{path}.scales"), "U8", Some(groups))],
        }
    }

    /// Its name without `.weight`.
    pub fn path(&self) -> &str {
        self.name.strip_suffix(".weight").unwrap_or(&self.name)
    }

    /// How many numbers it stands for.
    pub fn numbers(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// The types of numbers that are converted, as headers call them, and their bytes.
const TYPES: [(&str, u64); 12] = [
    ("BF16", 2),
    ("F16", 2),
    ("F32", 4),
    ("BOOL", 1),
    ("U8", 1),
    ("I8", 1),
    ("U16", 2),
    ("I16", 2),
    ("U32", 4),
    ("I32", 4),
    ("U64", 8),
    ("I64", 8),
];

/// The type of this name; `None` if such numbers are not converted.
pub(super) fn known_type(name: &str) -> Option<&'static str> {
    TYPES.iter().find(|(known, _)| *known == name).map(|(known, _)| *known)
}

/// Bytes of a number of a known type.
pub(super) fn width(dtype: &str) -> u64 {
    TYPES
        .iter()
        .find(|(known, _)| *known == dtype)
        .map_or(1, |(_, bytes)| *bytes)
}

/// True for numbers that are cast and quantized.
pub(super) fn is_float(dtype: &str) -> bool {
    matches!(dtype, "BF16" | "F16" | "F32")
}
