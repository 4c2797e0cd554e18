//! From the residual stream to a projection: the pending part is added to the stream, the sum normed and projected, all
//! in one launch.

use mlx::fused::{Epilogue, ResidualInput, Rows};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{added, common_eps, difference, noise, NoiseRows};
use crate::gate::{compose, number};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;
use crate::row::RowPlan;
use crate::tiles::{sizes, NoiseMatrix, Tiles, FEW_TILES, TILE};

/// Blocks at most: each makes the row itself, so that many outputs are made by few, one after another.
const MAX_BLOCKS: i32 = 528;
/// Bytes of the sums that two turns of a block leave (`norm_linear.cuh`).
const LEFT: i32 = 2 * 12 * (TILE + 4) * 4;

/// The normed row times the transpose of the matrix, `[1, outputs]`, and the row before its norm. `None` if no kernel
/// can be used.
pub fn norm_linear(row: ResidualInput<'_>, matrix: Rows<'_>, after: Epilogue<'_>) -> Result<Option<(Tensor, Tensor)>> {
    let (&[1, inputs], dtype) = (row.h.shape(), row.h.dtype()) else {
        return Ok(None);
    };
    let (kind, curve, other) = match after {
        Epilogue::Plain => (0, None, None),
        Epilogue::Gated(curve) => (1, Some(curve), None),
        Epilogue::Times(curve, other) => (2, Some(curve), Some(other)),
    };
    let Some(eps) = common_eps(row, [other, None]) else {
        return Ok(None);
    };
    let tiles = Tiles::new(matrix, inputs, dtype, kind == 1);
    let Some(tiles) = tiles.filter(|tiles| shares(tiles, kind == 1).is_some()) else {
        return Ok(None);
    };
    let parts = [row.inner.is_some(), row.factor.is_some(), row.outer.is_some()];
    let parts = parts.iter().rev().fold(0, |bits, given| bits * 2 + i32::from(*given));
    let numbers = [tiles.code.0, tiles.code.1, parts, kind, curve.map_or(0, number), eps];
    let kernel = find(Key::new(Program::NormLinear, dtype, numbers), |kernel| {
        compare(kernel, row, matrix, after)
    });
    match kernel {
        Some(kernel) => launch(&kernel, row, tiles, after),
        None => Ok(None),
    }
}

/// Blocks, and the warps of one; `None` if the row and the scales leave too little room for them.
fn shares(tiles: &Tiles<'_>, gated: bool) -> Option<(i32, i32)> {
    if tiles.group.is_some() {
        let plan = RowPlan::new(tiles, gated)?;
        let warps = plan.warps_of_one();
        return Some((plan.blocks(warps, 1), warps));
    }
    let halves = if gated { 2 } else { 1 };
    let most = match (gated, tiles.count(gated)) {
        (true, _) => 2,
        (false, ..FEW_TILES) => 6,
        (false, FEW_TILES..=MAX_BLOCKS) => 4,
        (false, _) => 5,
    };
    let warps = tiles.warps(most, halves, 2, LEFT + 2 * tiles.inputs)?;
    let turns = (tiles.count(gated) + MAX_BLOCKS - 1) / MAX_BLOCKS;
    let blocks = (tiles.count(gated) + turns - 1) / turns;
    (warps * halves >= tiles.slots().min(3)).then_some((blocks, warps * halves))
}

fn launch(
    kernel: &Kernel,
    row: ResidualInput<'_>,
    tiles: Tiles<'_>,
    after: Epilogue<'_>,
) -> Result<Option<(Tensor, Tensor)>> {
    let gated = matches!(after, Epilogue::Gated(_));
    let Some((blocks, warps)) = shares(&tiles, gated) else {
        return Ok(None);
    };
    let h = row.h;
    let (inner, outer) = (row.inner.map_or(h, |norm| norm.0), row.outer.map_or(h, |norm| norm.0));
    let other = match after {
        Epilogue::Times(_, other) => other,
        _ => h,
    };
    let inputs = [
        h,
        row.x,
        inner,
        row.factor.unwrap_or(h),
        outer,
        tiles.weight,
        tiles.scales,
        tiles.biases,
        other,
    ];
    let outputs = tiles.outputs / if gated { 2 } else { 1 };
    let results = [(&[1, outputs][..], h.dtype()), (h.shape(), h.dtype())];
    let [y, sum] = kernel.launch(inputs, results, (blocks, 1), warps * 32)?;
    Ok(Some((y, sum)))
}

/// Compares on random numbers in the place of these.
fn compare(kernel: &Kernel, like: ResidualInput<'_>, matrix: Rows<'_>, after: Epilogue<'_>) -> Result<f32> {
    let dtype = like.h.dtype();
    let gated = matches!(after, Epilogue::Gated(_));
    let mut apart: f32 = 0.0;
    // The last one makes blocks take several turns.
    let several = (sizes(matrix)[0].0 / 5, 16 * MAX_BLOCKS * 5 + 1000);
    for (inputs, outputs) in sizes(matrix).into_iter().chain([several]) {
        let rows_of_noise = NoiseRows::new(1, inputs, dtype, 41)?;
        let (row, other) = (rows_of_noise.like(like), noise(&[1, outputs], dtype, 44)?);
        let after = match after {
            Epilogue::Times(curve, _) => Epilogue::Times(curve, &other),
            same => same,
        };
        let matrix = NoiseMatrix::like(matrix, &[outputs, inputs], dtype, 47)?;
        let Some(tiles) = Tiles::new(matrix.rows(), inputs, dtype, gated) else {
            return Ok(f32::INFINITY);
        };
        let Some((made, sum)) = launch(kernel, row, tiles, after)? else {
            return Ok(f32::INFINITY);
        };
        let (wanted_sum, normed) = added(row)?;
        let product = normed.astype(Dtype::Float32)?.matmul(&matrix.transposed()?)?;
        let half = outputs / 2;
        let wanted = match after {
            Epilogue::Plain => product,
            Epilogue::Gated(curve) => compose(curve, &product.slice(1, 0, half)?, &product.slice(1, half, outputs)?)?,
            Epilogue::Times(curve, other) => compose(curve, &product, other)?,
        };
        apart = apart
            .max(difference(&made, &wanted)?)
            .max(difference(&sum, &wanted_sum)?);
    }
    Ok(apart)
}
