//! Rotary positions: pairs of numbers of a head turn against each other by angles that grow with the position.

use checkpoint::config::rope::{RopeConfig, SectionOrder};
use mlx::ops::{concatenate, stack};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

/// The turning of one kind of layer.
#[derive(Parameters)]
pub struct Rope {
    /// Width of a head.
    pub(super) width: i32,
    #[parameters(skip)]
    pub(super) config: RopeConfig,
    /// As MLX's kernel takes them.
    pub(super) periods: Tensor,
    /// Factors of a head's numbers before they turn, `[width]`, if only a part of the head is amplified.
    pub(super) amplitude: Option<Tensor>,
    /// How far pairs turn per row and per column of an image, `[heads, pairs, 2]`, if each head has directions of its
    /// own.
    directions: Vec<f32>,
}

/// The position of a token as in M-RoPE: its time or its place in the prompt, its row, its column and its image's
/// number. The family decides from where rows and columns are counted.
pub type Position = [f32; 4];

/// The rule by which a family positions the tokens of an image (multimodal RoPE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MultimodalRope {
    /// All have the time at which the image begins, and rows and columns count on from there; what comes next stands
    /// after the greatest of them (Qwen2-VL).
    Grid,
    /// Each has its own position, and rows, columns and images count from 0 (HunyuanOCR).
    Counted,
    /// They and the marks around share one position, and rows and columns go from minus to plus the image's shape,
    /// around its middle (Falcon-OCR).
    Centred,
}

/// The turning at one place of each sequence, for all layers of a kind.
pub enum Rotation {
    /// Angles are computed by MLX's kernel, from this position on.
    Kernel {
        /// The first position.
        offset: i32,
        /// The base that replaces the periods, if they grow with the sequence.
        base: Option<f32>,
        /// The first position `[1]` for kernels of our own, if there are any.
        place: Option<Tensor>,
    },
    /// The positions of several sequences, `[sequences]`.
    Positions(Tensor),
    /// Several sequences of which one has a base of its own.
    Each(Vec<Rotation>),
    /// Angles computed on the host, for a [`Position`] each: `[1, 1, length, dims / 2]`, or for each head of queries
    /// and keys `[1, heads, length, dims / 2]`.
    Table {
        /// Their cosines.
        cos: Tensor,
        /// Their sines.
        sin: Tensor,
    },
}

impl Rope {
    /// The turning of heads of this width and type.
    pub fn new(config: &RopeConfig, width: u32, dtype: Dtype) -> Result<Self> {
        let amplified = config.amplitude != 1.0 && config.dims < width;
        let factor = |index: u32| if index < config.dims { config.amplitude } else { 1.0 };
        let factors: Vec<f32> = (0..width).map(factor).collect();
        Ok(Self {
            width: width as i32,
            periods: Tensor::from_f32(&config.periods, &[config.periods.len() as i32]),
            amplitude: amplified
                .then(|| Tensor::from_f32(&factors, &[width as i32]).astype(dtype))
                .transpose()?,
            config: config.clone(),
            directions: Vec::new(),
        })
    }

    /// The same with directions `[heads, pairs, 2]` for those pairs that turn by the place in an image.
    pub fn with_directions(self, directions: Vec<f32>) -> Self {
        Self { directions, ..self }
    }

    /// The factor for the scores of rotated queries and keys: if all of a head is amplified, that is its only effect.
    pub fn score_factor(&self) -> f32 {
        if self.amplitude.is_none() {
            self.config.amplitude * self.config.amplitude
        } else {
            1.0
        }
    }

    /// True if its base grows with the sequence.
    pub fn is_dynamic(&self) -> bool {
        self.config.dynamic.is_some()
    }

    /// The base that replaces the periods once `positions` are more than the model was trained for.
    pub(super) fn base(&self, positions: usize) -> Option<f64> {
        let dynamic = self
            .config
            .dynamic
            .filter(|dynamic| positions > dynamic.context as usize)?;
        Some(dynamic.base(self.config.dims, positions))
    }

    /// The turning of one position of each sequence, which have read `offsets`.
    pub fn at_each(&self, offsets: &[usize]) -> Rotation {
        if let [offset] = offsets {
            return self.at(*offset, 1);
        }
        if offsets.iter().any(|offset| self.base(offset + 1).is_some()) {
            return Rotation::Each(offsets.iter().map(|offset| self.at(*offset, 1)).collect());
        }
        Rotation::Positions(self.positions(offsets))
    }

    /// The turning of `length` positions of one sequence from `offset` on.
    pub fn at(&self, offset: usize, length: usize) -> Rotation {
        let base = self.base(offset + length);
        Rotation::Kernel {
            offset: offset as i32,
            base: base.map(|base| base as f32),
            place: self.first_position(offset),
        }
    }

    /// By what tokens of images turn, if by more than the number of tokens before them.
    pub fn multimodal_rope(&self) -> Option<MultimodalRope> {
        match self.config.sections {
            _ if self.config.golden => Some(MultimodalRope::Centred),
            Some(sections) if sections.order == SectionOrder::Counted => Some(MultimodalRope::Counted),
            Some(_) => Some(MultimodalRope::Grid),
            None => None,
        }
    }

    /// The turning of one sequence's tokens.
    ///
    /// # Errors
    /// If MLX fails.
    pub fn at_positions(&self, positions: &[Position]) -> Result<Rotation> {
        let axis = |pair: usize| self.config.sections.map_or(0, |sections| sections.axis(pair));
        let pairs = self.config.periods.len();
        let directed = if self.config.golden { pairs / 2 } else { 0 };
        let by_period = &self.config.periods[..pairs - directed];
        // One row is enough for all heads if none has directions of its own.
        let heads: Vec<&[f32]> = match directed {
            0 => vec![&[]],
            _ => self.directions.chunks(2 * directed).collect(),
        };
        let mut angles = Vec::with_capacity(heads.len() * positions.len() * pairs);
        for directions in &heads {
            for position in positions {
                angles.extend(
                    by_period
                        .iter()
                        .enumerate()
                        .map(|(pair, period)| position[axis(pair)] / period),
                );
                angles.extend(
                    directions
                        .chunks(2)
                        .map(|each| position[1] * each[0] + position[2] * each[1]),
                );
            }
        }
        let shape = [1, heads.len() as i32, positions.len() as i32, pairs as i32];
        let of = |of: fn(f32) -> f32| {
            let table = Tensor::from_f32(&angles.iter().map(|angle| of(*angle)).collect::<Vec<_>>(), &shape);
            match directed {
                0 => Ok(table),
                // Each key turns as the query of its head.
                _ => concatenate(&[&table, &table], 1),
            }
        };
        Ok(Rotation::Table {
            cos: of(f32::cos)?,
            sin: of(f32::sin)?,
        })
    }

    /// Turns heads `[1, heads, length, width]` by a table, in 32 bit floats.
    fn turn(&self, x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
        let &[batch, heads, length, width] = x.shape() else {
            unreachable!("heads have four axes")
        };
        let dims = self.config.dims as i32;
        let turning = x.slice(3, 0, dims)?.astype(Dtype::Float32)?;
        // Adjacent pairs: of neighbors, or of halves.
        let (pairs, axis) = match self.config.traditional {
            true => (turning.reshape(&[batch, heads, length, dims / 2, 2])?, 4),
            false => (turning.reshape(&[batch, heads, length, 2, dims / 2])?, 3),
        };
        let half = |part: i32| {
            pairs
                .slice(axis, part, part + 1)?
                .reshape(&[batch, heads, length, dims / 2])
        };
        let (one, other) = (half(0)?, half(1)?);
        let turned = [
            one.mul(cos)?.sub(&other.mul(sin)?)?,
            other.mul(cos)?.add(&one.mul(sin)?)?,
        ];
        let turned = match self.config.traditional {
            true => stack(&[&turned[0], &turned[1]], 4)?.reshape(&[batch, heads, length, dims])?,
            false => concatenate(&[&turned[0], &turned[1]], 3)?,
        };
        let turned = turned.astype(x.dtype())?;
        if dims == width {
            return Ok(turned);
        }
        concatenate(&[&turned, &x.slice(3, dims, width)?], 3)
    }

    /// Turns heads `[1, heads, length, width]`, or those of several sequences `[sequences, heads, 1, width]`.
    pub fn forward(&self, x: &Tensor, rotation: &Rotation) -> Result<Tensor> {
        let (dims, traditional) = (self.config.dims as i32, self.config.traditional);
        let amplified = || {
            self.amplitude
                .as_ref()
                .map_or_else(|| Ok(x.clone()), |amplitude| x.mul(amplitude))
        };
        match rotation {
            Rotation::Kernel { offset, base, place } => {
                let x = amplified()?;
                if let Some(rotated) = self.rotated(&x, *base, place.as_ref())? {
                    return Ok(rotated);
                }
                let periods = if base.is_some() { None } else { Some(&self.periods) };
                x.fast_rope(dims, traditional, *base, periods, *offset)
            }
            Rotation::Table { cos, sin } => self.turn(&amplified()?, cos, sin),
            Rotation::Positions(positions) => {
                let x = amplified()?;
                match self.rotated(&x, None, Some(positions))? {
                    Some(rotated) => Ok(rotated),
                    None => x.fast_rope_each(dims, traditional, &self.periods, positions),
                }
            }
            Rotation::Each(rotations) => {
                let turned = rotations
                    .iter()
                    .zip(0..)
                    .map(|(rotation, index)| self.forward(&x.slice(0, index, index + 1)?, rotation))
                    .collect::<Result<Vec<_>>>()?;
                concatenate(&turned.iter().collect::<Vec<_>>(), 0)
            }
        }
    }
}
