//! Root mean square norms, alone and with the sum of the residual stream before them.
#![allow(unsafe_code)]

use mlx::fused::ResidualInput;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::pool::Pool;
use crate::primitive::{describe, describe_one, is_f32, Kernel, View};
use crate::shared::Shared;

/// From so many numbers on, rows are shared among threads.
const MANY: usize = 1 << 14;

/// `x / sqrt(mean(x²) + eps)` over the last axis, times factors `[width]`, or `[heads, width]` of the last two axes.
/// `None` if there is no kernel for it.
pub fn rms_norm(x: &Tensor, factors: Option<&Tensor>, eps: f32) -> Result<Option<Tensor>> {
    let Some(width) = x.shape().last().copied() else {
        return Ok(None);
    };
    let fits = factors.is_none_or(|factors| {
        let axes = factors.shape().len();
        axes <= 2 && axes <= x.shape().len() && x.shape().ends_with(factors.shape()) && is_f32(&[factors])
    });
    if !fits || !is_f32(&[x]) || x.size() == 0 || x.shape().len() > 4 {
        return Ok(None);
    }
    let heads = factors
        .filter(|factors| factors.shape().len() == 2)
        .map_or(1, |factors| factors.dim(0));
    let kernel = Norm {
        eps,
        width: width as usize,
        heads: heads as usize,
        factored: factors.is_some(),
    };
    let mut arrays = vec![x];
    arrays.extend(factors);
    describe_one(kernel, &arrays, x.shape()).map(Some)
}

struct Norm {
    eps: f32,
    width: usize,
    heads: usize,
    factored: bool,
}

// SAFETY: it writes the rows of its output and reads its inputs.
unsafe impl Kernel for Norm {
    fn arrays(&self) -> usize {
        1 + usize::from(self.factored)
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (x, width) = (&inputs[0], self.width);
        let factors = inputs.get(1).map(|factors| Factors::new(factors, self.heads, width));
        let to = Shared(outputs[0].data::<f32>());
        for_rows(outputs[0].elements() / width, width, &|row| {
            let to = std::slice::from_raw_parts_mut(to.at(row * width), width);
            x.read(row, to);
            let factors = factors.as_ref().map(|factors| factors.row(row % self.heads));
            norm(to, factors, self.eps);
        });
    }
}

/// The factors of norms, row by row.
pub struct Factors(Vec<f32>, usize);

impl Factors {
    /// Those in an array of one or two axes.
    ///
    /// # Safety
    ///
    /// The array lives and has 32 bit floats.
    pub unsafe fn new(view: &View, rows: usize, width: usize) -> Self {
        let mut all = vec![0.0; rows * width];
        for (row, to) in all.chunks_exact_mut(width).enumerate() {
            view.read(row, to);
        }
        Self(all, width)
    }

    /// Those of a row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.0[row * self.1..][..self.1]
    }
}

/// Does something for each row, on all threads if there are many numbers.
pub fn for_rows(rows: usize, width: usize, row: &(dyn Fn(usize) + Sync)) {
    match rows * width < MANY {
        true => (0..rows).for_each(row),
        false => {
            // A part is some rows, so that parts are worth their taking.
            let some = (MANY / 4 / width.max(1)).max(1);
            Pool::get().run(rows.div_ceil(some), &|part| {
                (part * some..rows.min((part + 1) * some)).for_each(row)
            });
        }
    }
}

/// Norms numbers in place.
pub fn norm(numbers: &mut [f32], factors: Option<&[f32]>, eps: f32) {
    let mut sums = [0.0f32; 16];
    let parts = numbers.chunks_exact(16);
    let rest: f32 = parts.remainder().iter().map(|number| number * number).sum();
    for part in parts {
        for (sum, number) in sums.iter_mut().zip(part) {
            *sum += number * number;
        }
    }
    let mean = (sums.iter().sum::<f32>() + rest) / numbers.len() as f32;
    let scale = (mean + eps).sqrt().recip();
    match factors {
        Some(factors) => numbers
            .iter_mut()
            .zip(factors)
            .for_each(|(number, factor)| *number *= scale * factor),
        None => numbers.iter_mut().for_each(|number| *number *= scale),
    }
}

/// `(h + norm(x)) · factor` of rows `[length, width]`, and that normed once more if `outer` is given. `None` if there is
/// no kernel for it.
pub fn add_norm(row: ResidualInput<'_>) -> Result<Option<(Tensor, Option<Tensor>)>> {
    let Some((sum, arrays)) = Sum::new(row) else {
        return Ok(None);
    };
    let shape = row.h.shape();
    if row.outer.is_none() {
        return Ok(Some((describe_one(Added(sum), &arrays, shape)?, None)));
    }
    let mut outputs = describe(Added(sum), &arrays, &[shape, shape])?;
    let normed = outputs.pop();
    Ok(outputs.pop().map(|sum| (sum, normed)))
}

/// The sum of the residual stream: which of its inputs there are, in this order: the stream, the summand, the factors of
/// the inner norm, the factor of the sum, the factors of the outer norm.
pub struct Sum {
    pub width: usize,
    pub inner: Option<f32>,
    pub factor: bool,
    pub outer: Option<f32>,
}

impl Sum {
    /// The sum of these, and the arrays it reads; `None` if there is no kernel for it.
    pub fn new(row: ResidualInput<'_>) -> Option<(Self, Vec<&Tensor>)> {
        let ResidualInput {
            h,
            x,
            inner,
            factor,
            outer,
        } = row;
        let &[_, width] = h.shape() else { return None };
        let mut arrays = vec![h, x];
        arrays.extend(inner.map(|norm| norm.0));
        arrays.extend(factor);
        arrays.extend(outer.map(|norm| norm.0));
        let norms = [inner, outer]
            .into_iter()
            .flatten()
            .all(|norm| norm.0.shape() == [width]);
        let fits = x.shape() == h.shape() && factor.is_none_or(|factor| factor.size() == 1) && h.size() > 0;
        let sum = Self {
            width: width as usize,
            inner: inner.map(|norm| norm.1),
            factor: factor.is_some(),
            outer: outer.map(|norm| norm.1),
        };
        (fits && norms && is_f32(&arrays)).then_some((sum, arrays))
    }

    /// How many arrays it reads.
    pub fn arrays(&self) -> usize {
        2 + usize::from(self.inner.is_some()) + usize::from(self.factor) + usize::from(self.outer.is_some())
    }

    /// The inputs as they are read row by row.
    ///
    /// # Safety
    ///
    /// The arrays live and are those of [`Sum::new`].
    pub unsafe fn read<'a>(&'a self, inputs: &'a [View]) -> SumRows<'a> {
        let mut rest = inputs[2..].iter();
        let inner = self
            .inner
            .and_then(|eps| Some((Factors::new(rest.next()?, 1, self.width), eps)));
        let factor = self
            .factor
            .then(|| rest.next().map_or(1.0, |factor| *factor.data::<f32>()));
        let outer = self
            .outer
            .and_then(|eps| Some((Factors::new(rest.next()?, 1, self.width), eps)));
        SumRows {
            h: &inputs[0],
            x: &inputs[1],
            inner,
            factor: factor.unwrap_or(1.0),
            outer,
        }
    }
}

/// The inputs of a sum.
pub struct SumRows<'a> {
    h: &'a View,
    x: &'a View,
    inner: Option<(Factors, f32)>,
    factor: f32,
    outer: Option<(Factors, f32)>,
}

// SAFETY: it is only read.
unsafe impl Sync for SumRows<'_> {}

impl SumRows<'_> {
    /// A row's sum to `sum`, and that normed to `normed`.
    ///
    /// # Safety
    ///
    /// There is such a row, of as many numbers as the slices have.
    pub unsafe fn row(&self, row: usize, sum: &mut [f32], normed: Option<&mut [f32]>) {
        SUMMAND.with_borrow_mut(|x| {
            x.resize(sum.len(), 0.0);
            self.x.read(row, x);
            self.h.read(row, sum);
            if let Some((factors, eps)) = &self.inner {
                norm(x, Some(factors.row(0)), *eps);
            }
            for (sum, x) in sum.iter_mut().zip(x) {
                *sum = (*sum + *x) * self.factor;
            }
        });
        if let Some(normed) = normed {
            normed.copy_from_slice(sum);
            if let Some((factors, eps)) = &self.outer {
                norm(normed, Some(factors.row(0)), *eps);
            }
        }
    }
}

thread_local! {
    static SUMMAND: std::cell::RefCell<Vec<f32>> = std::cell::RefCell::default();
}

struct Added(Sum);

// SAFETY: it writes the rows of its outputs and reads its inputs.
unsafe impl Kernel for Added {
    fn arrays(&self) -> usize {
        self.0.arrays()
    }

    unsafe fn compute(&self, inputs: &[View], outputs: &[View]) {
        let (rows, width) = (self.0.read(inputs), self.0.width);
        let [sum, normed] =
            [Some(&outputs[0]), outputs.get(1)].map(|output| output.map(|output| Shared(output.data())));
        for_rows(inputs[0].last(1), width, &|row| {
            let at = |to: &Shared<f32>| std::slice::from_raw_parts_mut(to.at(row * width), width);
            if let Some(sum) = &sum {
                rows.row(row, at(sum), normed.as_ref().map(at));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, step: usize) -> Vec<f32> {
        (0..count)
            .map(|place| ((place * step + 11) % 29) as f32 / 7.0 - 2.0)
            .collect()
    }

    fn formula(x: &[f64], factors: &[f32], eps: f32) -> Vec<f64> {
        let mean = x.iter().map(|number| number * number).sum::<f64>() / x.len() as f64;
        let scale = (mean + f64::from(eps)).sqrt().recip();
        x.iter()
            .zip(factors)
            .map(|(number, factor)| number * scale * f64::from(*factor))
            .collect()
    }

    fn wide(x: &[f32]) -> Vec<f64> {
        x.iter().copied().map(f64::from).collect()
    }

    fn are_close(found: &[f32], right: &[f64]) {
        assert_eq!(found.len(), right.len());
        for (found, right) in found.iter().zip(right) {
            assert!((f64::from(*found) - right).abs() < 3e-6, "{found} for {right}");
        }
    }

    #[test]
    fn norms_are_those_of_the_formula() {
        for width in [1, 15, 16, 64, 100] {
            let (x, factors) = (numbers(width, 37), numbers(width, 41));
            let mut found = x.clone();
            norm(&mut found, Some(&factors), 1e-5);
            are_close(&found, &formula(&wide(&x), &factors, 1e-5));
            let mut found = x.clone();
            norm(&mut found, None, 1e-5);
            are_close(&found, &formula(&wide(&x), &vec![1.0; width], 1e-5));
        }
    }

    #[test]
    fn sums_are_normed_before_and_after() {
        // The second shape is shared among threads.
        for (rows, width) in [(3, 48), (40, 500)] {
            let (mut h, mut x) = (numbers(rows * width, 31), numbers(rows * width, 37));
            let (mut inner, mut outer, mut factor) = (numbers(width, 41), numbers(width, 43), [0.75f32]);
            let (mut sums, mut normed) = (vec![0.0f32; rows * width], vec![0.0f32; rows * width]);
            let kernel = Added(Sum {
                width,
                inner: Some(1e-5),
                factor: true,
                outer: Some(1e-6),
            });
            let inputs = [
                View::of(&mut h, &[rows, width]),
                View::of(&mut x, &[rows, width]),
                View::of(&mut inner, &[width]),
                View::of(&mut factor, &[1]),
                View::of(&mut outer, &[width]),
            ];
            let outputs = [
                View::of(&mut sums, &[rows, width]),
                View::of(&mut normed, &[rows, width]),
            ];
            // SAFETY: the arrays live, and are those that the kernel reads and writes.
            unsafe { kernel.compute(&inputs, &outputs) };
            for row in (0..rows).map(|row| row * width..(row + 1) * width) {
                let mut right = formula(&wide(&x[row.clone()]), &inner, 1e-5);
                for (right, h) in right.iter_mut().zip(&h[row.clone()]) {
                    *right = (*right + f64::from(*h)) * 0.75;
                }
                are_close(&sums[row.clone()], &right);
                are_close(&normed[row], &formula(&right, &outer, 1e-6));
            }
        }
    }
}
