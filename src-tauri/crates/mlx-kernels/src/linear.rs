//! A few rows times a matrix, as in decoding: each weight is read once for all rows.

use mlx::fused::{GateActivation, Rows};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::gate::number;
use crate::kernel::{find, Kernel, Key};
use crate::product_compare::compare_product;
use crate::program::Program;
use crate::row;
use crate::tiles::Tiles;

/// `x` `[rows, inputs]` times the transpose of the matrix, `[rows, outputs]`; with `gated`, the curve of the first half
/// of that times the second half, else with `bias` `[1, outputs]` added. `None` if no kernel can be used.
pub fn linear(
    x: &Tensor,
    matrix: Rows<'_>,
    bias: Option<&Tensor>,
    gated: Option<GateActivation>,
) -> Result<Option<Tensor>> {
    let &[rows, inputs] = x.shape() else {
        return Ok(None);
    };
    let Some(program) = program(rows) else {
        return Ok(None);
    };
    let bias_fits = bias.is_none_or(|bias| bias.dtype() == x.dtype());
    if rows == 1 && bias_fits {
        if let Some(product) = row::linear(x, matrix, bias, gated)? {
            return Ok(Some(product));
        }
    }
    let tiles = Tiles::new(matrix, inputs, x.dtype(), gated.is_some()).filter(|_| bias_fits);
    let Some(tiles) = tiles.filter(|tiles| warps(tiles, rows, gated.is_some()).is_some()) else {
        return Ok(None);
    };
    let is = |given: bool| i32::from(given);
    let (code, shift) = tiles.code;
    let numbers = [
        code,
        shift,
        is(gated.is_some()),
        gated.map_or(0, number),
        is(bias.is_some()),
    ];
    let kernel = find(Key::new(program, x.dtype(), numbers), |kernel| {
        // Fewer rows than a part has, and all of them.
        let counts = match program {
            Program::Rows32 => [17, 29, 32],
            Program::Rows16 => [9, 13, 16],
            _ => [1, 5, 8],
        };
        compare_product(
            x.dtype(),
            (matrix, bias.is_some(), gated),
            counts,
            |x, matrix, bias| match Tiles::new(matrix, x.dim(1), x.dtype(), gated.is_some()) {
                Some(tiles) => launch(kernel, x, tiles, bias, gated.is_some()),
                None => Ok(None),
            },
        )
    });
    match kernel {
        Some(kernel) => launch(&kernel, x, tiles, bias, gated.is_some()),
        None => Ok(None),
    }
}

/// The program for this many rows; `None` if MLX's own products are faster.
fn program(rows: i32) -> Option<Program> {
    match rows {
        ..=8 => Some(Program::Rows8),
        9..=16 => Some(Program::Rows16),
        17..=32 => Some(Program::Rows32),
        _ => None,
    }
}

/// Warps of a block.
fn warps(tiles: &Tiles<'_>, rows: i32, gated: bool) -> Option<i32> {
    let halves = if gated { 2 } else { 1 };
    // Many rows take so many registers that there are fewer warps.
    let most = tiles.most_warps(gated).min(if rows > 16 { 8 / halves } else { 8 });
    tiles.warps(most, halves, 1, 0).map(|warps| warps * halves)
}

fn launch(kernel: &Kernel, x: &Tensor, tiles: Tiles<'_>, bias: Option<&Tensor>, gated: bool) -> Result<Option<Tensor>> {
    let (rows, outputs) = (x.dim(0), tiles.outputs / if gated { 2 } else { 1 });
    let Some(warps) = warps(&tiles, rows, gated) else {
        return Ok(None);
    };
    let inputs = [x, tiles.weight, tiles.scales, tiles.biases, bias.unwrap_or(x)];
    let made = [(&[rows, outputs][..], x.dtype())];
    let [made] = kernel.launch(inputs, made, (tiles.count(gated), 1), warps * 32)?;
    Ok(Some(made))
}
