//! Rotary positions as products on a CPU, and as kernels that fuse them take them.

use mlx::device::{device, Device};
use mlx::tensor::Tensor;

use crate::kernels::kernels;
use crate::layers::{Rope, Rotation};

impl Rope {
    /// The turning of one position as one matrix, on a CPU alone: it has no kernel and would run two dozen operations
    /// per layer instead. `base` replaces the periods.
    pub(in crate::layers) fn folded(&self, offset: usize, length: usize, base: Option<f64>) -> Option<Rotation> {
        let folded = device() == Device::Cpu && length == 1;
        folded.then(|| Rotation::Matrix(Tensor::from_f32(&self.matrix(offset, base), &[self.width, self.width])))
    }

    /// The same for one position of each of several sequences, which have read `offsets`.
    pub(in crate::layers) fn folded_each(&self, offsets: &[usize]) -> Option<Rotation> {
        if device() != Device::Cpu {
            return None;
        }
        let matrices: Vec<f32> = offsets
            .iter()
            .flat_map(|offset| self.matrix(*offset, self.base(offset + 1)))
            .collect();
        let shape = [offsets.len() as i32, self.width, self.width];
        Some(Rotation::Matrices(Tensor::from_f32(&matrices, &shape)))
    }

    /// The first position `[1]` for kernels of our own, if there are any.
    pub(in crate::layers) fn first_position(&self, offset: usize) -> Option<Tensor> {
        kernels()
            .are_available()
            .then(|| Tensor::from_i32(&[offset as i32], &[1]))
    }

    /// The inputs of our own kernel that rotates heads the same way: how many elements, whether neighbors rotate
    /// against each other, periods, and the first position `[1]`. `None` if it cannot.
    pub(in crate::layers) fn turning<'a>(
        &'a self,
        rotation: &'a Rotation,
    ) -> Option<(i32, bool, &'a Tensor, &'a Tensor)> {
        match rotation {
            Rotation::Kernel {
                base: None,
                place: Some(place),
                ..
            } if self.amplitude.is_none() => {
                Some((self.config.dims as i32, self.config.traditional, &self.periods, place))
            }
            _ => None,
        }
    }

    /// The rotation of one position, `[width, width]`.
    fn matrix(&self, offset: usize, base: Option<f64>) -> Vec<f32> {
        let (width, dims) = (self.width as usize, self.config.dims as usize);
        let amplitude = if self.amplitude.is_some() {
            self.config.amplitude
        } else {
            1.0
        };
        let mut matrix = vec![0.0; width * width];
        for still in dims..width {
            matrix[still * width + still] = 1.0;
        }
        for (pair, period) in self.config.periods.iter().enumerate() {
            let period = base.map_or(*period, |base| base.powf(2.0 * pair as f64 / dims as f64) as f32);
            let (sin, cos) = (offset as f32 / period).sin_cos();
            let (one, other) = if self.config.traditional {
                (2 * pair, 2 * pair + 1)
            } else {
                (pair, pair + dims / 2)
            };
            matrix[one * width + one] = amplitude * cos;
            matrix[one * width + other] = amplitude * sin;
            matrix[other * width + one] = -amplitude * sin;
            matrix[other * width + other] = amplitude * cos;
        }
        matrix
    }
}
