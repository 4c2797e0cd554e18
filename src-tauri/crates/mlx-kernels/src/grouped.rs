//! Many rows times the matrices of a stack that indices choose, as experts in reading a prompt: rows that go to the same
//! matrix are multiplied together, so that it is read and unpacked once for up to 128 of them.

use mlx::fused::{GateActivation, Rows};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{difference, noise};
use crate::gate::number;
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;
use crate::stack::{wanted, Stack};
use crate::tiles::{NoiseMatrix, Tiles};

/// Threads of a block, and outputs that it makes.
const THREADS: i32 = 256;
const WIDTH: i32 = 128;
/// Matrices of a stack at most, and threads of the block that sorts (`sort.cuh`).
const MAX_COUNT: i32 = 512;
const SORTING: i32 = 1024;
/// Numbers that are unpacked at once.
const PIECE: i32 = 16;

/// Rows `[rows, inputs]` of tokens, or of their pairs with an expert, times the matrices that `experts` `[tokens, chosen]`
/// choose, `[pairs, outputs]`; with `gated`, the activation of the first half of that times the second half. `None` if
/// no kernel can be used.
pub fn gathered(
    x: &Tensor,
    stack: Stack<'_>,
    experts: &Tensor,
    gated: Option<GateActivation>,
) -> Result<Option<Tensor>> {
    let Some(product) = GroupedProduct::new(x, stack, experts, gated) else {
        return Ok(None);
    };
    let (count, dtype) = (product.count, x.dtype());
    let height = product.height;
    let sort = find(Key::new(Program::Sort, dtype, [count, height]), |kernel| {
        compare_order(kernel, count, height)
    });
    let Some(sort) = sort else { return Ok(None) };
    let kernel = find(product.key(dtype), |kernel| {
        compare(kernel, &sort, product, stack, dtype)
    });
    let Some(kernel) = kernel else { return Ok(None) };
    launch(&kernel, &sort, product, x, stack, experts).map(Some)
}

/// The product of a launch.
#[derive(Clone, Copy)]
struct GroupedProduct<'a> {
    tiles: Tiles<'a>,
    /// Matrices of the stack.
    count: i32,
    /// Rows of a block.
    height: i32,
    /// Pieces of a group of numbers, as a power of two.
    pieces: i32,
    gated: Option<GateActivation>,
    biased: bool,
    /// Pairs that a row of `x` is for.
    of_row: i32,
}

impl<'a> GroupedProduct<'a> {
    fn new(x: &Tensor, stack: Stack<'a>, experts: &Tensor, gated: Option<GateActivation>) -> Option<Self> {
        let matrices = stack.matrices;
        let tiles = Tiles::new(Rows::Quantized(matrices), x.dim(1), x.dtype(), gated.is_some())?;
        let (count, pairs) = (matrices.scales.dim(0), experts.dim(0) * experts.dim(1));
        let fits = tiles.outputs >= WIDTH
            && count <= MAX_COUNT
            && experts.dtype() == Dtype::Uint32
            && stack.bias.is_none_or(|bias| bias.dtype() == x.dtype());
        fits.then_some(Self {
            tiles,
            count,
            height: height(pairs / count),
            pieces: (matrices.format.group_size / PIECE).ilog2() as i32,
            gated,
            biased: stack.bias.is_some(),
            of_row: pairs / x.dim(0),
        })
    }

    fn key(&self, dtype: Dtype) -> Key {
        let program = match self.height {
            32 => Program::Grouped32,
            64 => Program::Grouped64,
            _ => Program::Grouped128,
        };
        let is = |given: bool| i32::from(given);
        let (kind, _) = self.tiles.code;
        let numbers = [
            kind / 2,
            self.pieces,
            is(self.gated.is_some()),
            self.gated.map_or(0, number),
            is(self.biased),
            self.of_row,
        ];
        Key::new(program, dtype, numbers)
    }
}

/// Rows of a block, for this many rows of a matrix on average.
fn height(rows: i32) -> i32 {
    match rows {
        ..=24 => 32,
        25..=80 => 64,
        _ => 128,
    }
}

/// The pairs of `experts` by their expert, and the tiles of up to `height` rows that they make `[tiles, 3]`.
fn sorted(kernel: &Kernel, experts: &Tensor, count: i32, height: i32) -> Result<(Tensor, Tensor)> {
    let pairs = experts.dim(0) * experts.dim(1);
    let most = count.min(pairs) + pairs / height;
    let outputs = [(&[pairs][..], Dtype::Uint32), (&[most, 3][..], Dtype::Uint32)];
    let [order, tiles] = kernel.launch([experts], outputs, (1, 1), SORTING)?;
    Ok((order, tiles))
}

fn launch(
    kernel: &Kernel,
    sort: &Kernel,
    product: GroupedProduct<'_>,
    x: &Tensor,
    stack: Stack<'_>,
    experts: &Tensor,
) -> Result<Tensor> {
    let pairs = experts.dim(0) * experts.dim(1);
    let (order, groups) = sorted(sort, experts, product.count, product.height)?;
    let tiles = product.tiles;
    let inputs = [
        x,
        tiles.weight,
        tiles.scales,
        tiles.biases,
        stack.bias.unwrap_or(x),
        &order,
        &groups,
    ];
    let outputs = tiles.outputs / if product.gated.is_some() { 2 } else { 1 };
    let blocks = ((tiles.outputs + WIDTH - 1) / WIDTH, groups.dim(0));
    let [made] = kernel.launch(inputs, [(&[pairs, outputs], x.dtype())], blocks, THREADS)?;
    Ok(made)
}

/// Infinite unless each pair is in a tile of its expert.
fn compare_order(kernel: &Kernel, count: i32, height: i32) -> Result<f32> {
    const CHOSEN: i32 = 3;
    for tokens in [1, 2 * height] {
        let pairs = tokens * CHOSEN;
        // Some have many, some none.
        let chosen: Vec<i32> = (0..pairs).map(|pair| pair * pair / 7 % count.min(9)).collect();
        let experts = Tensor::from_i32(&chosen, &[tokens, CHOSEN]).astype(Dtype::Uint32)?;
        let (order, tiles) = sorted(kernel, &experts, count, height)?;
        let (order, tiles) = (order.to_f32()?, tiles.to_f32()?);
        let mut found = vec![false; pairs as usize];
        for tile in tiles.chunks(3) {
            let (first, rows) = (tile[1] as usize, tile[2] as usize);
            let Some(rows) = order.get(first..first + rows).filter(|_| rows <= height as usize) else {
                return Ok(f32::INFINITY);
            };
            for pair in rows.iter().map(|pair| *pair as usize) {
                match (chosen.get(pair), found.get_mut(pair)) {
                    (Some(expert), Some(found)) if *expert as f32 == tile[0] => *found = true,
                    _ => return Ok(f32::INFINITY),
                }
            }
        }
        if found.contains(&false) {
            return Ok(f32::INFINITY);
        }
    }
    Ok(0.0)
}

fn compare(kernel: &Kernel, sort: &Kernel, like: GroupedProduct<'_>, stack: Stack<'_>, dtype: Dtype) -> Result<f32> {
    const COUNT: i32 = 5;
    let mut apart: f32 = 0.0;
    let group = stack.matrices.format.group_size.max(64);
    // Tiles that are not filled, one after another, and outputs that are not whole blocks.
    for (tokens, inputs, outputs) in [(3, 5 * group, 136), (like.height, 1280, 264), (70, 3 * group, 384)] {
        let (chosen, pairs) = (like.of_row.max(2), tokens * like.of_row.max(2));
        let rows = if like.of_row > 1 { tokens } else { pairs };
        let x = noise(&[rows, inputs], dtype, 71)?;
        let shape = [COUNT, outputs, inputs];
        let NoiseMatrix::Quantized(matrices) = NoiseMatrix::like(Rows::Quantized(stack.matrices), &shape, dtype, 72)?
        else {
            return Ok(f32::INFINITY);
        };
        let bias = noise(&[COUNT, outputs], dtype, 73)?;
        let made_of = Stack {
            matrices: &matrices,
            bias: stack.bias.map(|_| &bias),
        };
        let choices: Vec<i32> = (0..pairs).map(|pair| pair * pair / 3 % (COUNT - 1)).collect();
        let experts = Tensor::from_i32(&choices, &[tokens, chosen]).astype(Dtype::Uint32)?;
        let Some(mut product) = GroupedProduct::new(&x, made_of, &experts, like.gated) else {
            return Ok(f32::INFINITY);
        };
        (product.height, product.count) = (like.height, like.count);
        let made = launch(kernel, sort, product, &x, made_of, &experts)?;
        let wanted = wanted(&x, made_of, &experts, like.gated)?;
        apart = apart.max(difference(&made, &wanted)?);
    }
    Ok(apart)
}
