//! A few rows times the matrices of a stack that indices choose, as experts in decoding: each matrix is read once for
//! all rows that it is chosen for.

use mlx::fused::{GateActivation, Rows};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::compare::{difference, noise};
use crate::gate::number;
use crate::grouped;
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;
use crate::row::{RowPlan, MAX_SUM_WARPS};
use crate::stack::{wanted, Stack};
use crate::tiles::{sizes, NoiseMatrix, Tiles};

/// Tokens that read their own experts each, at most, and as long as there are so many times as many experts as they
/// choose, so that they hardly share one.
const MAX_ROW_TOKENS: i32 = 8;
const APART: i32 = 2;
/// From more rows on, they are sorted by expert.
const MAX_ROWS: i32 = 32;
/// Warps of a block at most, and so experts of a token, of which a block that sums has a warp or several each.
const MAX_WARPS: i32 = 12;
/// Slots of a row for each warp, so that it is worth its start; there are many blocks, one for each expert at least.
const SLOTS: i32 = 3;
/// Bytes of the list of pairs (`experts.cuh`).
const LIST: i32 = 2048;

/// The treatment of products.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Product,
    Gated(GateActivation),
    Sum,
}

impl Work {
    fn numbers(self) -> (i32, i32) {
        match self {
            Self::Product => (0, 0),
            Self::Gated(curve) => (1, number(curve)),
            Self::Sum => (2, 0),
        }
    }

    fn is_gated(self) -> bool {
        matches!(self, Self::Gated(_))
    }
}

/// `x` `[…, 1, inputs]` times the matrices that `experts` `[tokens, chosen]` choose, `[…, 1, outputs]`; with `gated`,
/// the activation of the first half of that with the second half. `None` if no kernel can be used.
pub fn gathered_linear(
    x: &Tensor,
    stack: Stack<'_>,
    experts: &Tensor,
    gated: Option<GateActivation>,
) -> Result<Option<Tensor>> {
    let (&[tokens, of_token, 1, inputs], &[rows, chosen]) = (x.shape(), experts.shape()) else {
        return Ok(None);
    };
    if tokens != rows || (of_token != 1 && of_token != chosen) {
        return Ok(None);
    }
    let x = x.reshape(&[tokens * of_token, inputs])?;
    let made = match tokens {
        ..=MAX_ROWS => launch_checked(&x, stack, experts, None, gated.map_or(Work::Product, Work::Gated))?,
        _ => grouped::gathered(&x, stack, experts, gated)?,
    };
    let Some(made) = made else { return Ok(None) };
    let outputs = made.dim(1);
    made.reshape(&[tokens, chosen, 1, outputs]).map(Some)
}

/// `x` `[tokens, chosen, 1, inputs]` times the matrices that `experts` `[tokens, chosen]` choose, summed by `shares` of
/// the same shape: `[tokens, outputs]`. `None` if no kernel can be used.
pub fn gathered_sum(x: &Tensor, stack: Stack<'_>, experts: &Tensor, shares: &Tensor) -> Result<Option<Tensor>> {
    let (&[tokens, chosen, 1, inputs], true) = (x.shape(), shares.shape() == experts.shape()) else {
        return Ok(None);
    };
    if experts.shape() != [tokens, chosen] || shares.dtype() != x.dtype() {
        return Ok(None);
    }
    let x = x.reshape(&[tokens * chosen, inputs])?;
    if let Some(summed) = launch_checked(&x, stack, experts, Some(shares), Work::Sum)? {
        return Ok(Some(summed));
    }
    let made = match tokens {
        ..=MAX_ROWS => launch_checked(&x, stack, experts, None, Work::Product)?,
        _ => grouped::gathered(&x, stack, experts, None)?,
    };
    let Some(made) = made else { return Ok(None) };
    let key = Key::new(Program::One, x.dtype(), [5, chosen, made.dim(1)]);
    let kernel = find(key, |kernel| compare_sum(kernel, [chosen, made.dim(1)], x.dtype()));
    kernel.map(|kernel| sum(&kernel, &made, shares)).transpose()
}

/// Rows `[tokens · chosen, outputs]` summed by `shares` `[tokens, chosen]`, `[tokens, outputs]`.
fn sum(kernel: &Kernel, rows: &Tensor, shares: &Tensor) -> Result<Tensor> {
    const THREADS: i32 = 256;
    let shape = [shares.dim(0), rows.dim(1)];
    let blocks = ((shape[1] + THREADS - 1) / THREADS, shape[0]);
    let [summed] = kernel.launch([rows, shares, rows, rows], [(&shape, rows.dtype())], blocks, THREADS)?;
    Ok(summed)
}

fn compare_sum(kernel: &Kernel, [chosen, outputs]: [i32; 2], dtype: Dtype) -> Result<f32> {
    let (rows, shares) = (
        noise(&[3 * chosen, outputs], dtype, 56)?,
        noise(&[3, chosen], dtype, 57)?,
    );
    let wide = |tensor: &Tensor| tensor.astype(Dtype::Float32);
    let wanted = wide(&shares)?.reshape(&[3, 1, chosen])?;
    let wanted = wanted.matmul(&wide(&rows)?.reshape(&[3, chosen, outputs])?)?;
    difference(&sum(kernel, &rows, &shares)?, &wanted)
}

fn launch_checked(
    x: &Tensor,
    stack: Stack<'_>,
    experts: &Tensor,
    shares: Option<&Tensor>,
    work: Work,
) -> Result<Option<Tensor>> {
    let (tokens, chosen, dtype) = (experts.dim(0), experts.dim(1), x.dtype());
    let bias_fits = stack.bias.is_none_or(|bias| bias.dtype() == dtype);
    let fits = tokens <= MAX_ROWS && chosen <= MAX_WARPS && experts.dtype() == Dtype::Uint32 && bias_fits;
    let tiles = Tiles::new(Rows::Quantized(stack.matrices), x.dim(1), dtype, work.is_gated()).filter(|_| fits);
    let hardly_share = tokens == 1 || tokens * chosen * APART <= stack.matrices.scales.dim(0);
    let programs: &[Program] = match hardly_share {
        true => &[Program::RowExperts, Program::Experts],
        false => &[Program::Experts],
    };
    let found = tiles.and_then(|tiles| {
        let shapes = programs.iter().copied();
        let shape = shapes.filter_map(|program| Shape::new(program, &tiles, work, (tokens, chosen)));
        shape.map(|shape| (tiles, shape)).next()
    });
    let Some((tiles, shape)) = found else { return Ok(None) };
    let product = ChosenProduct {
        tiles,
        shape,
        bias: stack.bias,
        experts,
        shares,
        work,
    };
    let (kind, curve) = work.numbers();
    let shared = work != Work::Sum && x.dim(0) == tokens && chosen > 1;
    let (code, shift) = tiles.code;
    let numbers = [
        code,
        shift,
        kind,
        curve,
        i32::from(stack.bias.is_some()),
        i32::from(shared),
    ];
    let kernel = find(Key::new(shape.program, dtype, numbers), |kernel| {
        compare(kernel, stack, product, dtype, shared)
    });
    kernel.map(|kernel| launch(&kernel, x, product)).transpose()
}

/// The work of a launch.
#[derive(Clone, Copy)]
struct ChosenProduct<'a> {
    tiles: Tiles<'a>,
    shape: Shape,
    bias: Option<&'a Tensor>,
    experts: &'a Tensor,
    shares: Option<&'a Tensor>,
    work: Work,
}

/// How a product is launched.
#[derive(Clone, Copy)]
struct Shape {
    program: Program,
    blocks: (i32, i32),
    warps: i32,
}

impl Shape {
    /// The launch of a program; `None` if it does not fit.
    fn new(program: Program, tiles: &Tiles<'_>, work: Work, (tokens, chosen): (i32, i32)) -> Option<Self> {
        let (blocks, warps) = match program {
            Program::RowExperts => {
                let plan = RowPlan::new(tiles, work.is_gated()).filter(|_| tokens <= MAX_ROW_TOKENS)?;
                let (rows, matrices, warps) = match work {
                    Work::Sum => (chosen, tokens, RowPlan::warps(plan.passes * chosen, MAX_SUM_WARPS)),
                    Work::Product | Work::Gated(_) => (1, tokens * chosen, plan.warps_of_one()),
                };
                plan.fits(rows)
                    .then_some(((plan.blocks(warps, matrices), matrices), warps))?
            }
            _ if work == Work::Sum && tokens > 1 => return None,
            _ => {
                let pairs = if work == Work::Sum { 1 } else { tokens * chosen };
                ((tiles.count(work.is_gated()), pairs), warps(tiles, work, chosen)?)
            }
        };
        Some(Self { program, blocks, warps })
    }
}

/// Warps of a block for several tokens.
fn warps(tiles: &Tiles<'_>, work: Work, chosen: i32) -> Option<i32> {
    let slots = tiles.slots();
    let (most, of_block) = match work {
        Work::Sum => (MAX_WARPS / chosen, chosen),
        Work::Gated(_) => ((slots / SLOTS).clamp(1, 2), 2),
        Work::Product => ((slots / SLOTS).clamp(3, 4), 1),
    };
    tiles.warps(most, of_block, 1, LIST).map(|warps| warps * of_block)
}

fn launch(kernel: &Kernel, x: &Tensor, product: ChosenProduct<'_>) -> Result<Tensor> {
    let ChosenProduct {
        tiles, shape, experts, ..
    } = product;
    let inputs = [
        x,
        tiles.weight,
        tiles.scales,
        tiles.biases,
        product.bias.unwrap_or(x),
        experts,
        product.shares.unwrap_or(x),
    ];
    let (pairs, all) = (experts.dim(0) * experts.dim(1), tiles.outputs);
    let result = match product.work {
        Work::Product => [pairs, all],
        Work::Gated(_) => [pairs, all / 2],
        Work::Sum => [experts.dim(0), all],
    };
    let [made] = kernel.launch(inputs, [(&result, x.dtype())], shape.blocks, shape.warps * 32)?;
    Ok(made)
}

fn compare(kernel: &Kernel, stack: Stack<'_>, like: ChosenProduct<'_>, dtype: Dtype, shared: bool) -> Result<f32> {
    let (program, work) = (like.shape.program, like.work);
    let rows = Rows::Quantized(stack.matrices);
    let count = 5;
    let (counts, chosen) = match (program, work) {
        (Program::RowExperts, _) => ([1, 3, 2], if work == Work::Sum { 3 } else { 2 }),
        (_, Work::Sum) => ([1; 3], 3),
        // One token, few, and so many that more than eight choose an expert.
        _ => ([1, 3, 23], 2),
    };
    let mut apart: f32 = 0.0;
    for (tokens, (inputs, outputs)) in counts.into_iter().zip(sizes(rows)) {
        let pairs = tokens * chosen;
        let x = noise(&[if shared { tokens } else { pairs }, inputs], dtype, 51)?;
        let NoiseMatrix::Quantized(matrices) = NoiseMatrix::like(rows, &[count, outputs, inputs], dtype, 52)? else {
            return Ok(f32::INFINITY);
        };
        let bias = noise(&[count, outputs], dtype, 53)?;
        let stack = Stack {
            matrices: &matrices,
            bias: like.bias.map(|_| &bias),
        };
        let chosen_ones: Vec<i32> = (0..pairs).map(|pair| (pair * pair / 3 + pair % 2) % count).collect();
        let experts = Tensor::from_i32(&chosen_ones, &[tokens, chosen]).astype(Dtype::Uint32)?;
        let shares = noise(&[tokens, chosen], dtype, 54)?;
        let tiles = Tiles::new(Rows::Quantized(&matrices), inputs, dtype, work.is_gated());
        let shape = tiles.and_then(|tiles| Some((tiles, Shape::new(program, &tiles, work, (tokens, chosen))?)));
        let Some((tiles, shape)) = shape else {
            return Ok(f32::INFINITY);
        };
        let product = ChosenProduct {
            tiles,
            shape,
            bias: stack.bias,
            experts: &experts,
            shares: Some(&shares),
            work,
        };
        let made = launch(kernel, &x, product)?;
        let gated = match work {
            Work::Gated(curve) => Some(curve),
            Work::Product | Work::Sum => None,
        };
        let mut wanted = wanted(&x, stack, &experts, gated)?;
        if work == Work::Sum {
            let shares = shares.astype(Dtype::Float32)?.reshape(&[tokens, 1, chosen])?;
            let summed = shares.matmul(&wanted.reshape(&[tokens, chosen, outputs])?)?;
            wanted = summed.reshape(&[tokens, outputs])?;
        }
        apart = apart.max(difference(&made, &wanted)?);
    }
    Ok(apart)
}
