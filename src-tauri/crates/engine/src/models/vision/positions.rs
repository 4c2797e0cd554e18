//! Learned positions of patches, stretched from the table's grid to a view's.

use crate::error::Result;
use crate::layers::Embedding;
use crate::sequence::ids_tensor;
use crate::tensor::Tensor;

/// Rows of a table and the share of each, for every patch: the sum over all corners is the patch's position.
pub struct Corners {
    /// For each corner the row of every patch.
    rows: Vec<Vec<u32>>,
    /// For each corner its share at every patch.
    shares: Vec<Vec<f32>>,
}

impl Corners {
    /// Linear between the rows of a square table of `side`, whose corners are those of the view; `places` are rows and columns of patches in
    /// their order, out of `grid`.
    pub fn linear(side: u32, grid: (u32, u32), places: &[(u32, u32)]) -> Self {
        let along = |at: u32, length: u32| {
            let place = match length {
                0 | 1 => 0.0,
                _ => (side - 1) as f32 * at as f32 / (length - 1) as f32,
            };
            let low = (place as u32).min(side - 1);
            (low, (low + 1).min(side - 1), place - low as f32)
        };
        let (mut rows, mut shares) = (vec![Vec::new(); 4], vec![Vec::new(); 4]);
        for (row, column) in places {
            let ((top, bottom, down), (left, right, across)) = (along(*row, grid.0), along(*column, grid.1));
            let corners = [
                (top * side + left, (1.0 - down) * (1.0 - across)),
                (top * side + right, (1.0 - down) * across),
                (bottom * side + left, down * (1.0 - across)),
                (bottom * side + right, down * across),
            ];
            for (corner, (row, share)) in corners.into_iter().enumerate() {
                rows[corner].push(row);
                shares[corner].push(share);
            }
        }
        Self { rows, shares }
    }

    /// The positions `[patches, width]` that a table gives.
    pub fn of(&self, table: &Embedding) -> Result<Option<Tensor>> {
        let mut sum: Option<Tensor> = None;
        for (rows, shares) in self.rows.iter().zip(&self.shares) {
            let corner = table.forward(&ids_tensor(rows))?;
            let shares = Tensor::from_f32(shares, &[shares.len() as i32, 1]).astype(corner.dtype())?;
            let part = corner.mul(&shares)?;
            sum = Some(match sum {
                Some(sum) => sum.add(&part)?,
                None => part,
            });
        }
        Ok(sum)
    }
}
