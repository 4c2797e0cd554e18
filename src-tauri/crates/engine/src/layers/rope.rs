//! Rotary positions: the two halves of a head turn against each other by angles that grow with the position.

use crate::error::Result;
use crate::layers::Parameters;
use crate::tensor::{device, Device, Tensor};

/// The turning of one kind of layer.
pub struct Rope {
    width: i32,
    /// Angle per position of each pair; 0 for pairs that keep still.
    speeds: Vec<f32>,
    /// One over the speeds, as MLX's kernel takes them.
    periods: Tensor,
}

/// The turning at one place of a sequence, for all layers of a kind.
pub enum Rotation {
    /// Angles are made by MLX's kernel, from this position on.
    Kernel(i32),
    /// The rotation of one position as one matrix `[width, width]`. The CPU has no kernel and would run two dozen
    /// operations per layer instead.
    Matrix(Tensor),
}

impl Rope {
    /// Heads of this width, of which the first `partial` turns with periods that are powers of `theta` over the whole width.
    /// The other pairs keep still (`proportional` ropes); with `partial` 1 it is the ordinary rope.
    pub fn new(width: u32, theta: f32, partial: f32) -> Self {
        let turning = (partial * width as f32) as usize / 2;
        let period = |pair: usize| theta.powf(2.0 * pair as f32 / width as f32);
        let periods: Vec<f32> = (0..width as usize / 2)
            .map(|pair| if pair < turning { period(pair) } else { f32::INFINITY })
            .collect();
        Self {
            width: width as i32,
            speeds: periods.iter().map(|period| 1.0 / period).collect(),
            periods: Tensor::from_f32(&periods, &[periods.len() as i32]),
        }
    }

    /// The turning of `length` positions from `offset` on.
    pub fn at(&self, offset: usize, length: usize) -> Rotation {
        if device() != Device::Cpu || length > 1 {
            return Rotation::Kernel(offset as i32);
        }
        let (width, half) = (self.width as usize, self.speeds.len());
        let mut matrix = vec![0.0; width * width];
        for (pair, speed) in self.speeds.iter().enumerate() {
            let (sin, cos) = (offset as f32 * speed).sin_cos();
            let other = pair + half;
            matrix[pair * width + pair] = cos;
            matrix[pair * width + other] = sin;
            matrix[other * width + pair] = -sin;
            matrix[other * width + other] = cos;
        }
        Rotation::Matrix(Tensor::from_f32(&matrix, &[self.width, self.width]))
    }

    /// Turns heads `[1, heads, length, width]`.
    pub fn forward(&self, x: &Tensor, rotation: &Rotation) -> Result<Tensor> {
        match rotation {
            Rotation::Kernel(offset) => x.fast_rope(self.width, None, Some(&self.periods), *offset),
            Rotation::Matrix(matrix) => x.matmul(matrix),
        }
    }
}

impl Parameters for Rope {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            width: _,
            speeds: _,
            periods,
        } = self;
        visitor(periods);
    }
}
