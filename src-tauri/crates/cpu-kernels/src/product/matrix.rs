//! A matrix in memory.
#![allow(unsafe_code)]

use crate::format::{Coding, Format, Number};
use crate::primitive::View;

/// Rows of numbers in a format, one per output.
#[derive(Clone, Copy)]
pub struct Matrix {
    /// How numbers are stored.
    pub format: Format,
    /// Numbers of a row.
    pub inputs: usize,
    /// The first row, and the bytes from row to row.
    weight: (*const u8, usize),
    scales: (*const u8, usize),
    biases: (*const u8, usize),
}

// SAFETY: it is only read, by threads that are done before the arrays go.
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl Matrix {
    /// The matrix in these arrays, whose last two axes are rows and what they hold. Plain numbers are all in `weight`.
    pub fn new(format: Format, inputs: usize, weight: &View, scales: Option<&View>, biases: Option<&View>) -> Self {
        let part = |view: Option<&View>, bytes: usize| {
            view.map_or((std::ptr::null(), 0), |view| {
                (view.data::<u8>().cast_const(), view.last_stride(1) * bytes)
            })
        };
        Self {
            format,
            inputs,
            weight: part(Some(weight), format.word_bytes()),
            scales: part(scales, format.scales.bytes()),
            biases: part(biases, format.scales.bytes()),
        }
    }

    /// The matrix with so many inputs, and the first row of each part with the bytes from row to row.
    #[cfg(test)]
    pub fn of_parts(
        format: Format,
        inputs: usize,
        weight: (*const u8, usize),
        scales: (*const u8, usize),
        biases: (*const u8, usize),
    ) -> Self {
        Self {
            format,
            inputs,
            weight,
            scales,
            biases,
        }
    }

    /// Bytes from row to row.
    pub fn row_bytes(&self) -> usize {
        self.weight.1
    }

    /// The first number, if all are 32 bit floats in rows of so many that follow each other.
    pub fn floats(&self, width: usize) -> Option<*const f32> {
        let plain = self.format.coding == Coding::Plain(Number::F32);
        (plain && self.inputs == width && self.weight.1 == 4 * width).then_some(self.weight.0.cast())
    }

    /// Scales of a row.
    pub fn groups(&self) -> usize {
        self.inputs.checked_div(self.format.group).unwrap_or(0)
    }

    /// True if the scales of a row follow those of the row before.
    pub fn has_adjoining_scales(&self) -> bool {
        let row = self.groups() * self.format.scales.bytes();
        self.scales.1 == row && (self.biases.1 == row || !self.format.has_biases())
    }

    /// The numbers of a row.
    ///
    /// # Safety
    ///
    /// There is such a row. The same for the two below.
    #[inline(always)]
    pub unsafe fn row(&self, row: usize) -> *const u8 {
        self.weight.0.add(row * self.weight.1)
    }

    /// The scales of a row.
    #[inline(always)]
    pub unsafe fn scales(&self, row: usize) -> *const u8 {
        self.scales.0.add(row * self.scales.1)
    }

    /// The biases of a row.
    #[inline(always)]
    pub unsafe fn biases(&self, row: usize) -> *const u8 {
        self.biases.0.add(row * self.biases.1)
    }
}
