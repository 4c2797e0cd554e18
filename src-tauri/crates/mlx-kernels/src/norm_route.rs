//! From the residual stream to the experts of each token: the pending part is added, the sum normed and scored by the
//! router, and the best are chosen, all in one launch.

use std::cell::RefCell;

use mlx::fused::{ResidualInput, Routed, Router};
use mlx::recording;
use mlx::tensor::{eval, Tensor};
use mlx::{Dtype, Result};

use crate::compare::{added, common_eps, difference, noise, NoiseRows};
use crate::kernel::{find, Kernel, Key};
use crate::program::Program;
use crate::route::{MAX_CHOSEN, MAX_COUNT};

/// The most rows: from more on, scores are a product.
const MAX_ROWS: i32 = 32;
/// Numbers that a thread has, and the widest row.
const EACH: i32 = 8;
const WIDEST: i32 = 1024 * EACH;

thread_local! {
    /// A zero for each row, which a launch leaves as it was.
    static COUNTERS: RefCell<Option<Tensor>> = const { RefCell::new(None) };
}

/// The sum `[rows, width]`, its norm, and the places and shares of the chosen experts. `None` if no kernel can be used.
pub fn norm_route(row: ResidualInput<'_>, router: Router<'_>) -> Result<Option<Routed>> {
    let (&[rows, width], &[count, inputs]) = (row.h.shape(), router.weight.shape()) else {
        return Ok(None);
    };
    let dtype = row.h.dtype();
    let fits = rows <= MAX_ROWS
        && width == inputs
        && width <= WIDEST
        && width % EACH == 0
        && count <= MAX_COUNT
        && router.chosen <= MAX_CHOSEN.min(count)
        && router.weight.strides() == [i64::from(width), 1]
        && row.outer.is_some();
    let Some(eps) = common_eps(row, [Some(router.weight), router.bias]).filter(|_| fits) else {
        return Ok(None);
    };
    let is = |given: bool| i32::from(given);
    let numbers = [
        router.chosen,
        eps,
        is(row.inner.is_some()),
        is(row.factor.is_some()),
        is(router.bias.is_some()),
    ];
    let kernel = find(Key::new(Program::NormRoute, dtype, numbers), |kernel| {
        compare(kernel, row, router)
    });
    kernel.map(|kernel| launch(&kernel, row, router)).transpose()
}

/// Forgets what this thread has.
pub fn clear() {
    COUNTERS.take();
}

fn counters() -> Result<Tensor> {
    if let Some(counters) = COUNTERS.with_borrow(Clone::clone) {
        return Ok(counters);
    }
    // The first launch may be one that is recorded.
    let counters = recording::paused(|| -> Result<Tensor> {
        let counters = Tensor::zeros(&[MAX_ROWS], Dtype::Uint32)?;
        eval([&counters])?;
        Ok(counters)
    })?;
    COUNTERS.set(Some(counters.clone()));
    Ok(counters)
}

fn launch(kernel: &Kernel, row: ResidualInput<'_>, router: Router<'_>) -> Result<Routed> {
    let Router { weight, bias, chosen } = router;
    let (h, counters) = (row.h, counters()?);
    let (rows, width, count) = (h.dim(0), h.dim(1), weight.dim(0));
    let inputs = [
        h,
        row.x,
        row.inner.map_or(h, |norm| norm.0),
        row.factor.unwrap_or(h),
        row.outer.map_or(h, |norm| norm.0),
        weight,
        bias.unwrap_or(h),
        &counters,
    ];
    let warps = (width + 32 * EACH - 1) / (32 * EACH);
    let outputs = [
        (h.shape(), h.dtype()),
        (h.shape(), h.dtype()),
        (&[rows, count][..], Dtype::Float32),
        (&[rows, chosen][..], Dtype::Uint32),
        (&[rows, chosen][..], h.dtype()),
    ];
    let blocks = ((count + warps - 1) / warps, rows);
    let [sum, normed, _, experts, shares] = kernel.launch(inputs, outputs, blocks, warps * 32)?;
    Ok(Routed {
        sum,
        normed,
        experts,
        shares,
    })
}

/// The largest difference from what the operations make of random numbers; infinite if other experts are chosen, unless
/// two scores are nearly the same.
fn compare(kernel: &Kernel, like: ResidualInput<'_>, router: Router<'_>) -> Result<f32> {
    /// Experts whose scores are nearer to each other than this part of the largest may change places.
    const NEAR: f32 = 0.01;
    let (dtype, width) = (like.h.dtype(), like.h.dim(1));
    let (count, chosen) = (router.weight.dim(0), router.chosen);
    let mut apart: f32 = 0.0;
    for rows in [1, 3] {
        let noise_of = NoiseRows::new(rows, width, dtype, 81)?;
        let row = noise_of.like(like);
        let (weight, bias) = (noise(&[count, width], dtype, 82)?, noise(&[1, count], dtype, 83)?);
        let bias = router.bias.map(|_| &bias);
        let made = launch(
            kernel,
            row,
            Router {
                weight: &weight,
                bias,
                chosen,
            },
        )?;
        let (sum, normed) = added(row)?;
        let wide = |tensor: &Tensor| tensor.astype(Dtype::Float32);
        let mut scores = wide(&normed)?.matmul(&wide(&weight)?.swapaxes(0, 1)?)?;
        if let Some(bias) = bias {
            scores = scores.add(&wide(bias)?)?;
        }
        let scores = scores.to_f32()?;
        let (experts, shares) = (made.experts.to_f32()?, made.shares.to_f32()?);
        let (count, chosen) = (count as usize, chosen as usize);
        for ((scores, experts), shares) in scores
            .chunks(count)
            .zip(experts.chunks(chosen))
            .zip(shares.chunks(chosen))
        {
            let largest = scores.iter().fold(0.0f32, |most, score| most.max(score.abs()));
            let mut best = scores.to_vec();
            best.sort_by(|a, b| b.total_cmp(a));
            let found: Option<Vec<f32>> = experts
                .iter()
                .map(|place| scores.get(*place as usize).copied())
                .collect();
            let Some(found) = found else { return Ok(f32::INFINITY) };
            let near = |(score, wanted): (&f32, &f32)| (score - wanted).abs() <= NEAR * largest;
            let mut places: Vec<u32> = experts.iter().map(|place| *place as u32).collect();
            places.sort_unstable();
            places.dedup();
            if places.len() < chosen || !found.iter().zip(&best).all(near) {
                return Ok(f32::INFINITY);
            }
            // Shares are those of rounded scores, so only their order and their sum are compared.
            let whole: f32 = shares.iter().sum();
            apart = apart.max((whole - 1.0).abs());
            if !shares.is_sorted_by(|a, b| a >= b) {
                return Ok(f32::INFINITY);
            }
        }
        apart = apart
            .max(difference(&made.sum, &sum)?)
            .max(difference(&made.normed, &normed)?);
    }
    Ok(apart)
}
