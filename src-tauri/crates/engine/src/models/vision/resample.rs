//! Learned positions for grids of another size than they were learned on: each axis is resampled by a small matrix that
//! is computed on the host, so that a grid costs two products.

use mlx::tensor::Tensor;
use mlx::Result;

/// The interpolation between the values of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resampling {
    /// The one in which a cell of the grid begins (MiniCPM-V).
    Nearest,
    /// Between the two neighbors, cells of both grids covering the same square.
    Linear,
    /// The same, for a grid that is taken to be a tenth of a cell larger, as HunyuanOCR's own code asks for it, by a
    /// factor.
    LinearWidened,
    /// The same as the first, averaged over all that a cell covers if the grid is smaller than the table (`antialias`).
    LinearAntialiased,
    /// Between the two neighbors, with the outermost cells of both grids on each other (`align_corners`).
    LinearAligned,
    /// By four neighbors, those beyond the border being the border's.
    Cubic,
    /// By four neighbors within the border, and by all that a cell covers if the grid is smaller than the table
    /// (`antialias`).
    CubicAntialiased,
}

/// The slope of cubic sampling in torch.
const CUBIC: f64 = -0.75;

/// The same with `antialias`.
const CUBIC_ANTIALIASED: f64 = -0.5;

impl Resampling {
    /// The table `[table rows, table columns, width]` for a grid, `[rows · columns, width]`, in 32 bit floats.
    pub fn apply(self, table: &Tensor, (rows, columns): (u32, u32)) -> Result<Tensor> {
        let (rows, columns) = (rows as i32, columns as i32);
        let &[height, across, width] = table.shape() else {
            unreachable!("tables have three axes")
        };
        if (height, across) == (rows, columns) && self != Self::LinearWidened {
            return table.reshape(&[rows * columns, width]);
        }
        let down = Tensor::from_f32(&self.matrix(height, rows), &[rows, height]);
        let over = Tensor::from_f32(&self.matrix(across, columns), &[1, columns, across]);
        let stretched = down.matmul(&table.reshape(&[height, across * width])?)?;
        over.matmul(&stretched.reshape(&[rows, across, width])?)?
            .reshape(&[rows * columns, width])
    }

    /// `[to, from]`: the share that each cell of the table has in each cell of the grid.
    pub fn matrix(self, from: i32, to: i32) -> Vec<f32> {
        let mut matrix = vec![0.0; (to * from) as usize];
        for (cell, row) in matrix.chunks_mut(from as usize).enumerate() {
            for (index, share) in self.shares(cell as f64, f64::from(from), f64::from(to)) {
                let index = (index.max(0.0) as usize).min(from as usize - 1);
                row[index] += share as f32;
            }
        }
        matrix
    }

    /// The cells of the table that make `cell` of the grid, which may lie beyond the border, and their shares.
    fn shares(self, cell: f64, from: f64, to: f64) -> Vec<(f64, f64)> {
        let scale = match self {
            Self::LinearWidened => from / (to + 0.1),
            _ => from / to,
        };
        let place = match self {
            Self::LinearAligned if to > 1.0 => cell * (from - 1.0) / (to - 1.0),
            Self::LinearAligned => 0.0,
            Self::Nearest => (cell * from / to).floor(),
            Self::Linear | Self::LinearWidened | Self::LinearAntialiased | Self::Cubic | Self::CubicAntialiased => {
                (cell + 0.5) * scale - 0.5
            }
        };
        let (first, part) = (place.floor(), place - place.floor());
        match self {
            Self::LinearAntialiased if scale > 1.0 => {
                let (low, high) = (
                    (place - scale + 1.0).floor().max(0.0),
                    (place + scale + 1.0).floor().min(from),
                );
                let cells = (low as i64..high as i64).map(|index| index as f64);
                let shares: Vec<_> = cells
                    .map(|index| (index, (1.0 - ((index - place) / scale).abs()).max(0.0)))
                    .collect();
                let total: f64 = shares.iter().map(|(_, share)| share).sum();
                shares
                    .into_iter()
                    .map(|(index, share)| (index, share / total))
                    .collect()
            }
            Self::CubicAntialiased => {
                let wide = scale.max(1.0);
                let (low, high) = (
                    (place - 2.0 * wide + 1.0).floor().max(0.0),
                    (place + 2.0 * wide + 1.0).floor().min(from),
                );
                let weight = |x: f64| match x {
                    _ if x < 1.0 => ((CUBIC_ANTIALIASED + 2.0) * x - (CUBIC_ANTIALIASED + 3.0)) * x * x + 1.0,
                    _ if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * CUBIC_ANTIALIASED,
                    _ => 0.0,
                };
                let cells = (low as i64..high as i64).map(|index| index as f64);
                let shares: Vec<_> = cells
                    .map(|index| (index, weight(((index - place) / wide).abs())))
                    .collect();
                let total: f64 = shares.iter().map(|(_, share)| share).sum();
                shares
                    .into_iter()
                    .map(|(index, share)| (index, share / total))
                    .collect()
            }
            Self::Cubic => {
                let near = |x: f64| ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0;
                let far = |x: f64| ((CUBIC * x - 5.0 * CUBIC) * x + 8.0 * CUBIC) * x - 4.0 * CUBIC;
                vec![
                    (first - 1.0, far(part + 1.0)),
                    (first, near(part)),
                    (first + 1.0, near(1.0 - part)),
                    (first + 2.0, far(2.0 - part)),
                ]
            }
            _ => vec![(first, 1.0 - part), (first + 1.0, part)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Resampling;

    #[test]
    fn shares_of_a_cell_make_one() {
        for kind in [
            Resampling::Nearest,
            Resampling::Linear,
            Resampling::LinearWidened,
            Resampling::LinearAntialiased,
            Resampling::LinearAligned,
            Resampling::Cubic,
            Resampling::CubicAntialiased,
        ] {
            for (from, to) in [(4, 4), (4, 7), (16, 3), (27, 1), (1, 5)] {
                for row in kind.matrix(from, to).chunks(from as usize) {
                    assert!(
                        (row.iter().sum::<f32>() - 1.0).abs() < 1e-5,
                        "{kind:?} {from} {to}: {row:?}"
                    );
                }
            }
        }
    }

    /// `[0, 1, 4, 9]` at other sizes by hand, from the formulas of torch's `interpolate`.
    #[test]
    fn values_between_those_of_a_table_are_those_of_torch() {
        let sampled = |kind: Resampling, to: i32| -> Vec<f32> {
            let values = [0.0, 1.0, 4.0, 9.0];
            let rows = kind.matrix(4, to);
            rows.chunks(4)
                .map(|row| row.iter().zip(values).map(|(share, value)| share * value).sum())
                .collect()
        };
        let close = |found: Vec<f32>, expected: &[f32]| {
            assert!(
                found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4),
                "{found:?}"
            );
        };
        // `bucketize` of the parts of the grid before each cell, of which a third lies in the second of four cells.
        close(sampled(Resampling::Nearest, 3), &[0.0, 1.0, 4.0]);
        close(sampled(Resampling::Linear, 2), &[0.5, 6.5]);
        // 4 / 2.1 cells of the table in each of the grid: the first lies at 0.452, the second at 2.357.
        close(sampled(Resampling::LinearWidened, 2), &[0.452_381, 5.785_714]);
        close(sampled(Resampling::LinearAligned, 3), &[0.0, 2.5, 9.0]);
        close(sampled(Resampling::LinearAntialiased, 2), &[1.0, 5.714_286]);
        close(sampled(Resampling::Cubic, 2), &[0.218_75, 6.781_25]);
    }
}
