//! Short causal convolutions over time, one small filter per channel.

use mlx::device::{device, Device};
use mlx::ops::{concatenate, join};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error;
use crate::weights::Weights;

/// A depthwise causal convolution: every channel of a token becomes a weighted sum of that channel in the last tokens.
/// The weights lie as `[kernel, channels]`, oldest token first.
#[derive(Parameters)]
pub struct ShortConv {
    rows: Tensor,
    bias: Option<Tensor>,
}

impl ShortConv {
    /// Loads `path.weight`, in one of these shapes, and `path.bias` if there is one; `dtype` if it differs from that of
    /// the checkpoint.
    pub fn load(
        weights: &mut Weights<'_>,
        path: &str,
        channels: i32,
        kernel: i32,
        dtype: Option<Dtype>,
    ) -> error::Result<Self> {
        Self::load_joined(weights, &[(path.to_owned(), channels)], kernel, dtype)
    }

    /// The same for several convolutions beside each other, each of so many channels.
    pub fn load_joined(
        weights: &mut Weights<'_>,
        parts: &[(String, i32)],
        kernel: i32,
        dtype: Option<Dtype>,
    ) -> error::Result<Self> {
        let cast = |tensor: Tensor| dtype.map_or(Ok(tensor.clone()), |dtype| tensor.astype(dtype));
        let (mut filters, mut biases) = (Vec::new(), Vec::new());
        for (path, channels) in parts {
            let (filter, bias) = Self::take(weights, path, *channels, kernel)?;
            filters.push(cast(filter)?);
            biases.extend(bias.map(cast).transpose()?);
        }
        if !biases.is_empty() && biases.len() < filters.len() {
            return Err(error::Error::MissingTensor(format!("{}.bias", parts[0].0)));
        }
        let bias = (!biases.is_empty()).then(|| join(&biases, 0)).transpose()?;
        let conv = Self::new(&join(&filters, 0)?, bias)?;
        weights.materialize(conv.tensors())?;
        Ok(conv)
    }

    /// A filter `[channels, kernel]` and its bias `[channels]`, if there is one.
    fn take(
        weights: &mut Weights<'_>,
        path: &str,
        channels: i32,
        kernel: i32,
    ) -> error::Result<(Tensor, Option<Tensor>)> {
        let (name, bias) = (format!("{path}.weight"), format!("{path}.bias"));
        let unturned = weights.any(|other, shape| other == name && shape == [channels, 1, kernel]);
        let shape = if unturned {
            [channels, 1, kernel]
        } else {
            [channels, kernel, 1]
        };
        let filter = weights.take(&name, &shape)?.reshape(&[channels, kernel])?;
        Ok((filter, weights.take_if_present(&bias, &[channels])?))
    }

    /// Takes a filter `[channels, kernel]`, or as checkpoints have it, `[channels, kernel, 1]`, or `[channels, 1,
    /// kernel]` if it was not transposed for MLX; and a bias `[channels]`.
    pub fn new(weight: &Tensor, bias: Option<Tensor>) -> Result<Self> {
        let channels = weight.dim(0);
        let rows = weight.reshape(&[channels, -1])?.swapaxes(0, 1)?.contiguous()?;
        Ok(Self { rows, bias })
    }

    /// Filters the next tokens `x` `[length, channels]`, same shape, in the wider of the types of `x` and the filter.
    /// `before` holds the tokens that came last, `[kernel - 1, channels]`, and is carried on.
    pub fn forward(&self, x: &Tensor, before: &mut Option<Tensor>) -> Result<Tensor> {
        let (length, kernel, channels) = (x.dim(0), self.rows.dim(0), self.rows.dim(1));
        let earlier = match before.take() {
            Some(earlier) => earlier,
            None => Tensor::zeros(&[kernel - 1, channels], self.rows.dtype())?,
        };
        let all = concatenate(&[&earlier, x], 0)?;
        let last = all.slice(0, length, length + kernel - 1)?;
        // A slice keeps the complete tensor that it was cut from alive: nothing after one token, much after a long
        // prompt.
        *before = Some(if length == 1 { last } else { last.contiguous()? });
        self.filter(&all, length)
    }

    /// Filters the tokens `x` `[length, channels]` of a whole text, each in the middle of those that it sees.
    pub fn centered(&self, x: &Tensor) -> Result<Tensor> {
        let around = Tensor::zeros(&[self.rows.dim(0) / 2, self.rows.dim(1)], x.dtype())?;
        self.filter(&concatenate(&[&around, x, &around], 0)?, x.dim(0))
    }

    /// The weighted sums of the `length` tokens that the last rows of `all` end with, each with those before it.
    fn filter(&self, all: &Tensor, length: i32) -> Result<Tensor> {
        let (kernel, channels) = (self.rows.dim(0), self.rows.dim(1));
        let filtered = if length == 1 {
            all.mul(&self.rows)?.sum(0, true)?
        } else if device() == Device::Cpu {
            // MLX's convolution on the CPU takes several times as long as these products.
            let shifted = |row: i32| all.slice(0, row, row + length)?.mul(&self.rows.slice(0, row, row + 1)?);
            (1..kernel).try_fold(shifted(0)?, |sum, row| sum.add(&shifted(row)?))?
        } else {
            let filter = self.rows.swapaxes(0, 1)?.reshape(&[channels, kernel, 1])?;
            let batch = all.reshape(&[1, length + kernel - 1, channels])?;
            batch.conv1d(&filter, 1, 0, 1, channels)?.reshape(&[length, channels])?
        };
        self.bias
            .as_ref()
            .map_or(Ok(filtered.clone()), |bias| filtered.add(bias))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::{connect, pretend_gpu};

    use super::*;

    const KERNEL: usize = 4;
    const CHANNELS: usize = 6;

    fn numbers(count: usize) -> Vec<f32> {
        (0..count)
            .map(|index| ((index * 37 + 11) % 29) as f32 / 7.0 - 2.0)
            .collect()
    }

    fn expected(x: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f32> {
        let at = |token: isize, channel: usize| {
            if token < 0 {
                0.0
            } else {
                x[token as usize * CHANNELS + channel]
            }
        };
        (0..x.len())
            .map(|index| {
                let (token, channel) = ((index / CHANNELS) as isize, index % CHANNELS);
                let taps = (0..KERNEL).map(|tap| {
                    at(token + tap as isize + 1 - KERNEL as isize, channel) * weight[channel * KERNEL + tap]
                });
                taps.sum::<f32>() + bias[channel]
            })
            .collect()
    }

    fn compare() {
        let (x, weight, bias) = (numbers(11 * CHANNELS), numbers(CHANNELS * KERNEL), numbers(CHANNELS));
        let wanted = expected(&x, &weight, &bias);
        let (channels, kernel) = (CHANNELS as i32, KERNEL as i32);
        for shape in [[channels, kernel, 1], [channels, 1, kernel]] {
            let conv = ShortConv::new(
                &Tensor::from_f32(&weight, &shape),
                Some(Tensor::from_f32(&bias, &[channels])),
            )
            .unwrap();
            for cuts in [vec![11], vec![1; 11], vec![1, 2, 5, 1, 2], vec![3, 8]] {
                let (mut before, mut start, mut found) = (None, 0, Vec::new());
                for length in cuts {
                    let part = &x[start * CHANNELS..(start + length) * CHANNELS];
                    let part = Tensor::from_f32(part, &[length as i32, channels]);
                    found.extend(conv.forward(&part, &mut before).unwrap().to_f32().unwrap());
                    start += length;
                }
                let worst = found
                    .iter()
                    .zip(&wanted)
                    .map(|(a, b)| (a - b).abs())
                    .fold(0.0, f32::max);
                assert!(found.len() == wanted.len() && worst < 1e-5, "{worst}");
            }
        }
    }

    #[test]
    fn chunks_of_any_length_filter_alike() {
        connect().unwrap();
        compare();
        pretend_gpu();
        compare();
    }
}
