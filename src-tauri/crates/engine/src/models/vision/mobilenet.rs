//! MobileNet v5, the vision encoder of Gemma 3n: stages of convolutions, each of which begins with a stride, and
//! attention over the grid in the last two, whose results are joined at the end. How many blocks of which kind there
//! are follows from the weights. References: timm's `mobilenetv5.py` and transformers' `modeling_gemma3n.py`.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::MobileNetConfig;
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::mobilenet_blocks::{
    Block, FeatureMap, KernelLayout, LoadContext, NormedConvolution, UniversalInvertedResidual, STRIDE,
};
use super::patches::COLOURS;
use super::{pause, ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{self, Error};
use crate::layers::{ones, Embedding, Linear, Pointwise, RmsNorm};
use crate::weights::Weights;

/// The path of the network.
const NETWORK: &str = "vision_tower.timm_model";
/// The path of the projection into the language model.
const EMBEDDER: &str = "embed_vision";

/// The stages whose results are joined, from this one on.
const JOINED: usize = 2;

/// More than any network has of them.
const MOST_BLOCKS: usize = 256;

/// A vision encoder with what joins it to the language part.
#[derive(Parameters)]
pub struct MobileNet {
    #[parameters(skip)]
    config: MobileNetConfig,
    dtype: Dtype,
    gelu: Pointwise,
    stem: NormedConvolution,
    stages: Vec<Vec<Block>>,
    /// Makes one of the results of the last stages.
    fusion: (UniversalInvertedResidual, RmsNorm),
    /// The factors of the norm of features are times the root of their width.
    soft_norm: RmsNorm,
    projection: Linear,
    output_norm: RmsNorm,
    /// The embedding of the mark that closes an image, `[1, width of the language part]`.
    closing: Option<Tensor>,
}

impl MobileNet {
    pub(super) fn load(config: &MobileNetConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let first = format!("{NETWORK}.blocks.0.0.conv_exp.weight");
        let layout = match weights.shape(&first) {
            Some([.., rows, columns]) if rows == columns => KernelLayout::Oihw,
            Some(_) => KernelLayout::Ohwi,
            None => return Err(Error::MissingTensor(first)),
        };
        let dtype = weights.dtype(&first);
        let hidden = config.hidden_size as i32;
        let mut loading = LoadContext { weights, layout };
        let stem = loading.convolution(&format!("{NETWORK}.conv_stem"), ["conv", "bn"], STRIDE)?;
        let mut stages = Vec::new();
        while stages.len() < MOST_BLOCKS {
            let mut blocks = Vec::new();
            while blocks.len() < MOST_BLOCKS {
                let path = format!("{NETWORK}.blocks.{}.{}", stages.len(), blocks.len());
                let stride = if blocks.is_empty() { STRIDE } else { 1 };
                let Some(block) = Block::load(&path, stride, &mut loading)? else {
                    break;
                };
                blocks.push(block);
            }
            if blocks.is_empty() {
                break;
            }
            stages.push(blocks);
        }
        let fusion = (
            UniversalInvertedResidual::load(&format!("{NETWORK}.msfa.ffn"), 1, &mut loading)?,
            loading.norm(&format!("{NETWORK}.msfa.norm"))?,
        );
        let norm = |name: &str, factor: f32, weights: &mut Weights<'_>| {
            let weight = weights.take(&format!("{EMBEDDER}.{name}.weight"), &[hidden])?;
            let norm = RmsNorm::new(weight.mul(&Tensor::scalar(factor, weight.dtype())?)?, config.eps);
            weights.materialize(norm.tensors())?;
            Ok::<_, Error>(norm)
        };
        let soft_norm = norm("soft_embedding_norm", 1.0, weights)?;
        let hard_norm = norm("hard_embedding_norm", 1.0, weights)?;
        let outputs = outputs as i32;
        let projection = Linear::load(weights, &format!("{EMBEDDER}.embedding_projection"), hidden, outputs)?;
        let output_norm = RmsNorm::new(ones(outputs, dtype)?, config.eps);
        let closing = |mark: u32, weights: &mut Weights<'_>| {
            let marks = Embedding::load(weights, &format!("{EMBEDDER}.embedding"), config.marks as i32, hidden)?;
            let mark = marks.forward(&Tensor::from_i32(&[mark as i32], &[1]))?;
            Ok::<_, Error>(output_norm.forward(&projection.forward(&hard_norm.forward(&mark)?)?)?)
        };
        let closing = config.closing_mark().map(|mark| closing(mark, weights)).transpose()?;
        weights.materialize(output_norm.tensors().into_iter().chain(&closing))?;
        Ok(Self {
            config: *config,
            dtype,
            gelu: Pointwise::new(EncoderActivation::GeluTanh, dtype)?,
            stem,
            stages,
            fusion,
            soft_norm,
            projection,
            output_norm,
            closing,
        })
    }

    /// True if the mark that closes an image comes with its embeddings.
    pub(super) fn closes(&self) -> bool {
        self.closing.is_some()
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (height, width) = (input.view.height as i32, input.view.width as i32);
        let planes = input.tensor([COLOURS, height, width])?.astype(self.dtype)?;
        let mut x = FeatureMap {
            states: planes.transpose(&[1, 2, 0])?.reshape(&[height * width, COLOURS])?,
            rows: height,
            columns: width,
        };
        x = self.stem.forward(&x)?;
        x.states = self.gelu.forward(&x.states)?;
        let mut joined: Vec<FeatureMap> = Vec::new();
        for (stage, blocks) in self.stages.iter().enumerate() {
            for block in blocks {
                x = block.forward(x, &self.gelu)?;
                pause(&x.states, hook)?;
            }
            if stage + JOINED >= self.stages.len() {
                joined.push(x.with(x.states.clone()));
            }
        }
        let features = self.fuse(&joined)?;
        // A factor before the norm of features, which only its epsilon feels.
        let root = Tensor::scalar((self.config.hidden_size as f32).sqrt(), features.dtype())?;
        let soft = self.soft_norm.forward(&features.mul(&root)?)?;
        let soft = self.output_norm.forward(&self.projection.forward(&soft)?)?;
        Ok(ImageEmbeddings::of(match &self.closing {
            Some(mark) => concatenate(&[&soft, mark], 0)?,
            None => soft,
        }))
    }

    /// One grid `[side · side, width]` of those of the last stages, of which the first is the largest.
    fn fuse(&self, grids: &[FeatureMap]) -> error::Result<Tensor> {
        let [first, ..] = grids else {
            return Err(Error::BadRequest("this model's tower has no stages".into()));
        };
        let alike: Vec<Tensor> = grids.iter().map(|grid| stretched(grid, first)).collect::<Result<_>>()?;
        let (ffn, norm) = &self.fusion;
        let all = first.with(concatenate(&alike.iter().collect::<Vec<_>>(), 1)?);
        let made = ffn.forward(&all, &self.gelu)?;
        let (side, width) = (self.config.side as i32, made.states.dim(1));
        if made.rows % side != 0 || made.columns % side != 0 {
            return Err(Error::BadRequest(format!(
                "this model's tower makes {} by {} places of an image, which are no squares of {side} by {side} features",
                made.rows, made.columns
            )));
        }
        let (down, across) = (made.rows / side, made.columns / side);
        let squares = made.states.reshape(&[side, down, side, across, width])?;
        let share = Tensor::scalar(1.0 / (down * across) as f32, squares.dtype())?;
        let means = squares.sum(3, false)?.sum(1, false)?.mul(&share)?;
        Ok(norm.forward(&means.reshape(&[side * side, width])?)?)
    }
}

/// The states of a grid with each place as often as it takes for a larger one.
fn stretched(grid: &FeatureMap, to: &FeatureMap) -> Result<Tensor> {
    if (grid.rows, grid.columns) == (to.rows, to.columns) {
        return Ok(grid.states.clone());
    }
    let nearest = |place: i32, from: i32, to: i32| place * from / to;
    let places: Vec<i32> = (0..to.rows)
        .flat_map(|row| {
            (0..to.columns).map(move |column| {
                nearest(row, grid.rows, to.rows) * grid.columns + nearest(column, grid.columns, to.columns)
            })
        })
        .collect();
    grid.states.take(&Tensor::from_i32(&places, &[places.len() as i32]), 0)
}
