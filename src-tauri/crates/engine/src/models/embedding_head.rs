//! From the states of a text's tokens to its vector: pooling, projections, length 1.

use std::path::Path;

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::embedding::{DenseActivation, DenseConfig, DensePlace, EmbeddingStep, NormStep, Pooling, MODULES};
use checkpoint::EmbeddingConfig;
use mlx::ops::join;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::error::{self, Error};
use crate::layers::{LayerNorm, Linear, Pointwise};
use crate::models::spans;
use crate::weights::Weights;

/// The least length that is divided by.
const LEAST: f32 = 1e-12;

/// The pooling and projections that follow the model, with their weights.
#[derive(Parameters)]
pub struct EmbeddingHead {
    #[parameters(skip)]
    config: EmbeddingConfig,
    /// In the order of the config's.
    projections: Vec<Linear>,
    /// In the same order.
    norms: Vec<LayerNorm>,
    /// The activation of heads that have it.
    gelu: Pointwise,
}

/// The pooled states of a text that is read in chunks, from its first token on.
#[derive(Default)]
pub struct Pooled {
    /// One row `[1, width]` for each kind of pooling.
    rows: Vec<Tensor>,
    tokens: usize,
}

impl EmbeddingHead {
    /// Loads what the config describes: each projection from its own folder, or as `dense.N` of the model's own
    /// weights, where converters put them.
    pub fn load(
        config: EmbeddingConfig,
        dir: &Path,
        weights: &mut Weights<'_>,
    ) -> error::Result<(Self, Vec<DenseConfig>)> {
        if config.steps.is_empty() && weights.has("dense.0.weight") {
            // Somebody converted it and left out the file that says what the projections are for.
            return Err(checkpoint::Error::MissingFile(MODULES).into());
        }
        let (mut projections, mut apart) = (Vec::new(), Vec::new());
        for (index, dense) in dense_steps(&config).enumerate() {
            let own = match &dense.place {
                DensePlace::Own(path) => Some((*path).to_owned()),
                DensePlace::Folder(folder) => Some(format!("dense.{index}")).filter(|path| {
                    weights.has(&format!("{path}.weight")) && !dir.join(folder).join("model.safetensors").exists()
                }),
            };
            match own {
                Some(path) => projections.push(load_dense(dense, &path, weights)?),
                None => apart.push(dense.clone()),
            }
        }
        if !apart.is_empty() && !projections.is_empty() {
            return Err(Error::MissingTensor(format!("dense.{}.weight", projections.len())));
        }
        let norms = config.steps.iter().filter_map(|step| match step {
            EmbeddingStep::Norm(norm) => Some(load_norm(norm, weights)),
            EmbeddingStep::Dense(_) | EmbeddingStep::Normalize => None,
        });
        let head = Self {
            projections,
            norms: norms.collect::<error::Result<_>>()?,
            gelu: Pointwise::new(EncoderActivation::Gelu, Dtype::Float32)?,
            config,
        };
        Ok((head, apart))
    }

    /// Loads the projections that have folders of their own, after the model.
    pub fn load_apart(&mut self, apart: &[DenseConfig], dir: &Path) -> error::Result<()> {
        for dense in apart {
            let DensePlace::Folder(folder) = &dense.place else {
                continue;
            };
            let mut progress = |_| Ok(());
            let mut weights = Weights::open(&dir.join(folder), false, &mut progress)?;
            self.projections.push(load_dense(dense, "linear", &mut weights)?);
            weights.finish()?;
        }
        Ok(())
    }

    /// Pools the states `[rows, width]` of texts of these lengths, to `[texts, …]`.
    pub fn pool(&self, states: &Tensor, lengths: &[usize]) -> Result<Tensor> {
        let states = states.astype(Dtype::Float32)?;
        let of_text = |(start, end): (i32, i32)| {
            let mut pooled = Pooled::default();
            pooled.add(&self.config.pooling, &states.slice(0, start, end)?)?;
            pooled.row(&self.config.pooling)
        };
        let rows = spans(lengths).map(of_text).collect::<Result<Vec<_>>>()?;
        join(&rows, 0)
    }

    /// Takes the states of the next tokens of a text in.
    pub fn pool_chunk(&self, pooled: &mut Pooled, states: &Tensor) -> Result<()> {
        pooled.add(&self.config.pooling, &states.astype(Dtype::Float32)?)
    }

    /// The pooled states of a complete text, `[1, …]`.
    pub fn pooled(&self, pooled: &Pooled) -> Result<Tensor> {
        pooled.row(&self.config.pooling)
    }

    /// The vectors of what was pooled, each cut to `dimensions` numbers.
    pub fn vectors(&self, pooled: &Tensor, dimensions: Option<u32>) -> error::Result<Vec<Vec<f32>>> {
        let (mut x, mut projections) = (pooled.clone(), self.projections.iter());
        let mut norms = self.norms.iter();
        for step in &self.config.steps {
            x = match step {
                EmbeddingStep::Dense(dense) => {
                    let projection = projections
                        .next()
                        .ok_or_else(|| Error::MissingTensor(format!("{:?}", dense.place)))?;
                    let projected = projection.forward(&x)?;
                    match dense.activation {
                        DenseActivation::Identity => projected,
                        DenseActivation::Tanh => projected.tanh()?,
                        DenseActivation::Gelu => self.gelu.forward(&projected)?,
                    }
                }
                EmbeddingStep::Norm(norm) => {
                    let loaded = norms.next().ok_or_else(|| Error::MissingTensor(norm.path.into()))?;
                    loaded.forward(&x)?
                }
                EmbeddingStep::Normalize => {
                    let squares = x.square()?.sum(-1, true)?;
                    x.mul(
                        &squares
                            .maximum(&Tensor::scalar(LEAST * LEAST, Dtype::Float32)?)?
                            .rsqrt()?,
                    )?
                }
            };
        }
        let flat = x.to_f32()?;
        let width = self.config.width as usize;
        let kept = dimensions.map_or(width, |dimensions| dimensions as usize);
        let vectors = flat.chunks(width).map(|vector| {
            let vector = vector[..kept.min(vector.len())].to_vec();
            if kept < width && self.config.normalizes() {
                to_unit_length(vector)
            } else {
                vector
            }
        });
        Ok(vectors.collect())
    }
}

/// The projections among the steps.
fn dense_steps(config: &EmbeddingConfig) -> impl Iterator<Item = &DenseConfig> {
    config.steps.iter().filter_map(|step| match step {
        EmbeddingStep::Dense(dense) => Some(dense),
        EmbeddingStep::Norm(_) | EmbeddingStep::Normalize => None,
    })
}

fn load_dense(dense: &DenseConfig, path: &str, weights: &mut Weights<'_>) -> error::Result<Linear> {
    if dense.bias {
        weights.require(&format!("{path}.bias"))?;
    }
    Linear::load(weights, path, dense.inputs as i32, dense.outputs as i32)
}

fn load_norm(norm: &NormStep, weights: &mut Weights<'_>) -> error::Result<LayerNorm> {
    let (path, width) = (norm.path, norm.width as i32);
    if norm.bias {
        return LayerNorm::load(weights, path, width, norm.eps);
    }
    let factors = weights.take(&format!("{path}.weight"), &[width])?;
    let loaded = LayerNorm::new(factors.clone(), Tensor::zeros(&[width], factors.dtype())?, norm.eps)?;
    weights.materialize(loaded.tensors())?;
    Ok(loaded)
}

fn to_unit_length(vector: Vec<f32>) -> Vec<f32> {
    let length = vector
        .iter()
        .map(|number| number * number)
        .sum::<f32>()
        .sqrt()
        .max(LEAST);
    vector.into_iter().map(|number| number / length).collect()
}

impl Pooled {
    /// Takes in the states `[rows, width]` of the next tokens, in 32 bit floats.
    fn add(&mut self, pooling: &[Pooling], states: &Tensor) -> Result<()> {
        let (rows, before) = (states.dim(0), self.tokens);
        self.tokens += rows as usize;
        let of_chunk = |pooling: &Pooling| match pooling {
            Pooling::FirstToken => states.slice(0, 0, 1),
            Pooling::LastToken => states.slice(0, rows - 1, rows),
            Pooling::Max => states.max(0, true),
            Pooling::Mean | Pooling::MeanOverRoot => states.sum(0, true),
            Pooling::WeightedMean => {
                let places: Vec<f32> = (before + 1..=self.tokens).map(|place| place as f32).collect();
                states.mul(&Tensor::from_f32(&places, &[rows, 1]))?.sum(0, true)
            }
        };
        let new = pooling.iter().map(of_chunk).collect::<Result<Vec<_>>>()?;
        if before == 0 {
            self.rows = new;
            return Ok(());
        }
        for ((row, new), pooling) in self.rows.iter_mut().zip(new).zip(pooling) {
            match pooling {
                Pooling::FirstToken => {}
                Pooling::LastToken => *row = new,
                Pooling::Max => *row = row.maximum(&new)?,
                Pooling::Mean | Pooling::MeanOverRoot | Pooling::WeightedMean => *row = row.add(&new)?,
            }
        }
        Ok(())
    }

    /// Everything that is to be computed before the next chunk.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.rows.iter()
    }

    /// All kinds side by side, `[1, …]`.
    fn row(&self, pooling: &[Pooling]) -> Result<Tensor> {
        let count = self.tokens as f32;
        let divided = |row: &Tensor, by: f32| row.div(&Tensor::scalar(by, Dtype::Float32)?);
        let finished = |(row, pooling): (&Tensor, &Pooling)| match pooling {
            Pooling::FirstToken | Pooling::LastToken | Pooling::Max => Ok(row.clone()),
            Pooling::Mean => divided(row, count),
            Pooling::MeanOverRoot => divided(row, count.sqrt()),
            Pooling::WeightedMean => divided(row, count * (count + 1.0) / 2.0),
        };
        let rows = self
            .rows
            .iter()
            .zip(pooling)
            .map(finished)
            .collect::<Result<Vec<_>>>()?;
        join(&rows, 1)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::connect;

    use super::*;

    #[test]
    fn chunks_pool_like_the_whole() {
        connect().unwrap();
        let numbers: Vec<f32> = (0..7 * 4).map(|index| ((index * 37 % 19) as f32 - 9.0) / 4.0).collect();
        let states = Tensor::from_f32(&numbers, &[7, 4]);
        let all = [
            Pooling::FirstToken,
            Pooling::Max,
            Pooling::Mean,
            Pooling::MeanOverRoot,
            Pooling::WeightedMean,
            Pooling::LastToken,
        ];
        let pooled = |cuts: &[i32]| {
            let mut pooled = Pooled::default();
            for cut in cuts.windows(2) {
                pooled.add(&all, &states.slice(0, cut[0], cut[1]).unwrap()).unwrap();
            }
            pooled.row(&all).unwrap().to_f32().unwrap()
        };
        let whole = pooled(&[0, 7]);
        let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near(&whole, &pooled(&[0, 1, 4, 7])) && near(&whole, &pooled(&[0, 6, 7])));
        // By hand, of the first number of each token.
        let first: Vec<f32> = numbers.iter().step_by(4).copied().collect();
        let sum: f32 = first.iter().sum();
        let weighted: f32 = first.iter().zip(1..).map(|(number, place)| number * place as f32).sum();
        let greatest = first.iter().copied().fold(f32::MIN, f32::max);
        let by_hand = [
            first[0],
            greatest,
            sum / 7.0,
            sum / 7f32.sqrt(),
            weighted / 28.0,
            first[6],
        ];
        let made: Vec<f32> = whole.iter().step_by(4).copied().collect();
        assert!(near(&made, &by_hand), "{made:?} {by_hand:?}");
    }
}
