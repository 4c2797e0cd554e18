//! Rotary positions by kernels of our own.

use mlx::tensor::Tensor;
use mlx::Result;

use crate::kernels::kernels;
use crate::layers::{Rope, Rotation};

impl Rope {
    /// The first position `[1]` for kernels of our own, if there are any.
    pub(in crate::layers) fn first_position(&self, offset: usize) -> Option<Tensor> {
        kernels().are_available().then(|| self.positions(&[offset]))
    }

    /// The positions `[sequences]` of the next token of each: in a step that is being recorded those of every step to
    /// come, unless the periods change with them.
    pub(in crate::layers) fn positions(&self, offsets: &[usize]) -> Tensor {
        let recorded = || kernels().recorded_positions();
        let recorded = (!self.is_dynamic()).then(recorded).flatten();
        recorded.unwrap_or_else(|| {
            let positions: Vec<i32> = offsets.iter().map(|offset| *offset as i32).collect();
            Tensor::from_i32(&positions, &[offsets.len() as i32])
        })
    }

    /// The inputs of our own kernel that rotates heads the same way: how many elements, whether neighbors rotate
    /// against each other, periods, and the first position `[1]` or those of all sequences. `None` if it cannot.
    pub(in crate::layers) fn turning<'a>(
        &'a self,
        rotation: &'a Rotation,
    ) -> Option<(i32, bool, &'a Tensor, &'a Tensor)> {
        let positions = match rotation {
            Rotation::Kernel {
                base: None,
                place: Some(place),
                ..
            } => place,
            Rotation::Positions(positions) => positions,
            _ => return None,
        };
        let (dims, traditional) = (self.config.dims as i32, self.config.traditional);
        let plain = self.amplitude.is_none();
        plain.then_some((dims, traditional, &self.periods, positions))
    }

    /// Heads turned by our own kernel, if there is one. `base` replaces the periods.
    pub(in crate::layers) fn rotated(
        &self,
        x: &Tensor,
        base: Option<f32>,
        positions: Option<&Tensor>,
    ) -> Result<Option<Tensor>> {
        let Some(positions) = positions else { return Ok(None) };
        let (dims, traditional) = (self.config.dims, self.config.traditional);
        let period = |base: f32| {
            let periods: Vec<f32> = (0..dims / 2)
                .map(|pair| f64::from(base).powf(2.0 * f64::from(pair) / f64::from(dims)) as f32)
                .collect();
            Tensor::from_f32(&periods, &[periods.len() as i32])
        };
        let own = base.map(period);
        kernels().rotate(
            x,
            dims as i32,
            traditional,
            own.as_ref().unwrap_or(&self.periods),
            positions,
        )
    }
}
