//! One row times matrices: how blocks and warps share the work (`cuda/row.cuh`), and the product alone.

use mlx::fused::{GateActivation, Rows};
use mlx::tensor::Tensor;
use mlx::Result;

use crate::gate::number;
use crate::kernel::{find, Kernel, Key};
use crate::product_compare::compare_product;
use crate::program::Program;
use crate::tiles::Tiles;

/// Bytes of a row of a matrix that a warp reads at once.
const PASS: i32 = 256;
/// Warps of a block at most, beyond which a warp takes several passes.
const MAX_WARPS: i32 = 10;
/// The most warps of a block that has passes of several experts.
pub const MAX_SUM_WARPS: i32 = 16;
/// Multiprocessors of a large card, and warps that one has at once.
const PROCESSORS: i32 = 132;
const OF_PROCESSOR: i32 = 20;
/// Bytes of shared memory for x: all of a block but what its warps leave.
const ROOM: i32 = 48 * 1024 - 256 - 2 * 16 * 16 * 4;
/// Bytes of zeros that x begins with.
const ZEROS: i32 = 256;
/// Outputs of a tile.
const TILE: i32 = 16;

/// How a row is multiplied.
#[derive(Clone, Copy)]
pub struct RowPlan {
    /// Parts of the inputs that a warp reads at once.
    pub passes: i32,
    /// Tiles that the outputs make.
    tiles: i32,
    /// Bytes of x in shared memory.
    bytes: i32,
}

impl RowPlan {
    /// The plan for a row; with `gated`, both halves of the outputs are made together. `None` if x does not fit, or the
    /// numbers are plain.
    pub fn new(tiles: &Tiles<'_>, gated: bool) -> Option<Self> {
        let group = tiles.group?;
        let passes = (tiles.bytes + PASS - 1) / PASS;
        // x has 16 bytes for a word of the matrix.
        let sums = passes * (tiles.inputs * PASS / tiles.bytes) / group * 4;
        let plan = Self {
            passes,
            tiles: (tiles.outputs + TILE - 1) / TILE,
            bytes: ZEROS + passes * PASS * 4 + sums,
        };
        let halves = if gated { 2 } else { 1 };
        let fits = tiles.outputs / halves >= TILE / halves && plan.bytes <= ROOM;
        fits.then_some(plan)
    }

    /// True if as many rows fit beside each other.
    pub fn fits(&self, rows: i32) -> bool {
        rows * self.bytes <= ROOM
    }

    /// Warps of a block for so many passes.
    pub fn warps(passes: i32, most: i32) -> i32 {
        let turns = (passes + most - 1) / most;
        (passes + turns - 1) / turns
    }

    /// Blocks of as many warps that make the tiles of `matrices` in even turns, for each of those.
    pub fn blocks(&self, warps: i32, matrices: i32) -> i32 {
        let at_once = (PROCESSORS * (OF_PROCESSOR / warps).max(1) / matrices).max(1);
        let turns = (self.tiles + at_once - 1) / at_once;
        (self.tiles + turns - 1) / turns
    }

    /// Warps of a block for one row.
    pub fn warps_of_one(&self) -> i32 {
        Self::warps(self.passes, MAX_WARPS)
    }
}

/// `x` `[1, inputs]` times the transpose of the matrix, as `linear::linear`. `None` if no kernel can be used.
pub fn linear(
    x: &Tensor,
    matrix: Rows<'_>,
    bias: Option<&Tensor>,
    gated: Option<GateActivation>,
) -> Result<Option<Tensor>> {
    let tiles = Tiles::new(matrix, x.dim(1), x.dtype(), gated.is_some());
    let Some((tiles, plan)) = tiles.and_then(|tiles| Some((tiles, RowPlan::new(&tiles, gated.is_some())?))) else {
        return Ok(None);
    };
    let (code, shift) = tiles.code;
    let is = |given: bool| i32::from(given);
    let numbers = [
        code,
        shift,
        is(gated.is_some()),
        gated.map_or(0, number),
        is(bias.is_some()),
    ];
    let kernel = find(Key::new(Program::Row, x.dtype(), numbers), |kernel| {
        compare_product(x.dtype(), (matrix, bias.is_some(), gated), [1; 3], |x, matrix, bias| {
            let tiles = Tiles::new(matrix, x.dim(1), x.dtype(), gated.is_some());
            let plan = tiles.and_then(|tiles| Some((tiles, RowPlan::new(&tiles, gated.is_some())?)));
            plan.map(|(tiles, plan)| launch(kernel, x, tiles, plan, bias, gated.is_some()))
                .transpose()
        })
    });
    kernel
        .map(|kernel| launch(&kernel, x, tiles, plan, bias, gated.is_some()))
        .transpose()
}

fn launch(
    kernel: &Kernel,
    x: &Tensor,
    tiles: Tiles<'_>,
    plan: RowPlan,
    bias: Option<&Tensor>,
    gated: bool,
) -> Result<Tensor> {
    let outputs = tiles.outputs / if gated { 2 } else { 1 };
    let warps = plan.warps_of_one();
    let inputs = [x, tiles.weight, tiles.scales, tiles.biases, bias.unwrap_or(x)];
    let made = [(&[1, outputs][..], x.dtype())];
    let [made] = kernel.launch(inputs, made, (plan.blocks(warps, 1), 1), warps * 32)?;
    Ok(made)
}
