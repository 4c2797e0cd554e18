//! FastViTHD, the vision encoder of FastVLM: a stem, stages of convolutions over a grid, and attention of its places in
//! the last ones. How many blocks of which kind there are follows from the weights. Reference: mlx-vlm's
//! `fastvlm/vision.py`, after `mobileclip/mci.py` of the original repository.

use checkpoint::config::encoder::EncoderActivation;
use checkpoint::vision::FastVitConfig;
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use super::attention::{Attention, HeadNorms, PatchMask, Projections};
use super::block::Mlp;
use super::linear::ClippedLinear;
use super::mobilenet_blocks::{Convolution, FeatureMap, KernelLayout, LoadContext};
use super::patches::COLOURS;
use super::stack::{load_mlp, TORCH_EPS};
use super::{pause, ImageEmbeddings, LayerHook, ViewInput};
use crate::error::{self, Error};
use crate::layers::{LayerNorm, Linear, Pointwise};
use crate::weights::Weights;

/// The paths of the network and of its stem, in conversions and in the original files.
const PLACES: [(&str, &str); 2] = [
    ("vision_tower.vision_model", "patch_embed.blocks"),
    ("vision_tower.vision_tower.model", "patch_embed"),
];

/// Width of a head.
const HEAD: i32 = 32;

/// More than any network has of them.
const MOST_BLOCKS: usize = 256;

/// Convolutions of the stem, and by how much each makes the grid smaller.
const STEM: [i32; 3] = [2, 2, 1];

/// A vision encoder with its projector.
#[derive(Parameters)]
pub struct FastVit {
    #[parameters(skip)]
    config: FastVitConfig,
    dtype: Dtype,
    gelu: Pointwise,
    stem: Vec<Convolution>,
    network: Vec<Part>,
    /// The last convolution, and what weighs its channels by their means.
    expansion: Convolution,
    squeeze: (Linear, Linear),
    relu: Pointwise,
    projector: Mlp,
}

/// A part of the network between the stem and the last convolution.
#[derive(Parameters)]
enum Part {
    /// Positions by the neighbors of a place.
    Positions(Convolution),
    /// To a smaller and wider grid.
    Smaller(Box<(Convolution, Convolution)>),
    Mixer(Box<MixerBlock>),
    Attention(Box<AttentionBlock>),
}

/// Places mixed by a convolution, then a network.
#[derive(Parameters)]
struct MixerBlock {
    mixer: Convolution,
    network: ConvolutionalNetwork,
    factors: Tensor,
}

/// Places that look at each other, then a network.
#[derive(Parameters)]
struct AttentionBlock {
    norm: LayerNorm,
    attention: Attention,
    network: ConvolutionalNetwork,
    factors: [Tensor; 2],
}

/// A convolution of each channel with the norm after it, then two projections of each place.
#[derive(Parameters)]
struct ConvolutionalNetwork {
    convolution: Convolution,
    up: Linear,
    down: Linear,
}

impl FastVit {
    pub(super) fn load(config: &FastVitConfig, outputs: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let first = |(path, stem): &&(&str, &str)| weights.has(&format!("{path}.{stem}.1.reparam_conv.weight"));
        let (path, stem) = *PLACES.iter().find(first).unwrap_or(&PLACES[0]);
        let depthwise = format!("{path}.{stem}.1.reparam_conv.weight");
        let layout = match weights.shape(&depthwise) {
            Some([.., 1]) => KernelLayout::Ohwi,
            Some(_) => KernelLayout::Oihw,
            None => return Err(Error::MissingTensor(depthwise)),
        };
        let (dtype, hidden) = (weights.dtype(&depthwise), config.hidden_size as i32);
        let mut loading = LoadContext { weights, layout };
        let stem = STEM.iter().enumerate().map(|(index, stride)| {
            let path = format!("{path}.{stem}.{index}.reparam_conv");
            Convolution::load_centered(&path, *stride, &mut loading)
        });
        let stem = stem.collect::<error::Result<_>>()?;
        let mut network = Vec::new();
        for index in 0..MOST_BLOCKS {
            let parts = Part::load(&format!("{path}.network.{index}"), &mut loading)?;
            if parts.is_empty() {
                break;
            }
            network.extend(parts);
        }
        let last = format!("{path}.conv_exp");
        let expansion = Convolution::load_centered(&format!("{last}.reparam_conv"), 1, &mut loading)?;
        let mut pointwise = |name: &str| loading.pointwise(&format!("{last}.se.{name}"));
        let squeeze = (pointwise("reduce")?, pointwise("expand")?);
        let (sizes, gelu) = ((hidden, outputs as i32, outputs as i32), EncoderActivation::Gelu);
        Ok(Self {
            config: *config,
            dtype,
            gelu: Pointwise::new(gelu, dtype)?,
            stem,
            network,
            expansion,
            squeeze,
            relu: Pointwise::new(EncoderActivation::Relu, dtype)?,
            projector: load_mlp("mm_projector", None, ["0", "2"], sizes, (gelu, dtype), weights)?,
        })
    }

    pub(super) fn encode(&self, input: &ViewInput<'_>, hook: &mut LayerHook<'_>) -> error::Result<ImageEmbeddings> {
        let (height, width) = (input.view.height as i32, input.view.width as i32);
        let planes = input.tensor([COLOURS, height, width])?.astype(self.dtype)?;
        let mut x = FeatureMap {
            states: planes.transpose(&[1, 2, 0])?.reshape(&[height * width, COLOURS])?,
            rows: height,
            columns: width,
        };
        for convolution in &self.stem {
            x = activated(convolution.forward(&x)?, &self.gelu)?;
        }
        for part in &self.network {
            x = part.forward(x, &self.gelu)?;
            pause(&x.states, hook)?;
        }
        let x = self.expansion.forward(&x)?;
        let found = x.states.dim(1);
        if found != self.config.hidden_size as i32 {
            return Err(Error::BadRequest(format!(
                "config.json says that the tower makes {} numbers of a place, and it makes {found}",
                self.config.hidden_size
            )));
        }
        let x = activated(x.with(self.weighed(&x.states)?), &self.gelu)?;
        Ok(ImageEmbeddings::of(self.projector.forward(&x.states)?))
    }

    /// Channels `[places, channels]` times what their means make of them (squeeze and excite).
    fn weighed(&self, states: &Tensor) -> Result<Tensor> {
        let share = Tensor::scalar(1.0 / states.dim(0) as f32, states.dtype())?;
        let means = states.sum(0, true)?.mul(&share)?;
        let (reduce, expand) = &self.squeeze;
        let inner = self.relu.forward(&reduce.forward(&means)?)?;
        states.mul(&expand.forward(&inner)?.sigmoid()?)
    }
}

fn activated(x: FeatureMap, gelu: &Pointwise) -> Result<FeatureMap> {
    let states = gelu.forward(&x.states)?;
    Ok(x.with(states))
}

impl Part {
    /// The layers at a place of the network: one part, or the blocks of a stage; nothing if the network ends before it.
    fn load(path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Vec<Self>> {
        if loading.has(&format!("{path}.reparam_conv")) {
            let positions = Convolution::load_centered(&format!("{path}.reparam_conv"), 1, loading)?;
            return Ok(vec![Self::Positions(positions)]);
        }
        if loading.has(&format!("{path}.proj.0.lkb_reparam")) {
            let wider = Convolution::load_centered(&format!("{path}.proj.0.lkb_reparam"), 2, loading)?;
            let mixed = Convolution::load_centered(&format!("{path}.proj.1.reparam_conv"), 1, loading)?;
            return Ok(vec![Self::Smaller(Box::new((wider, mixed)))]);
        }
        let mut blocks = Vec::new();
        while blocks.len() < MOST_BLOCKS {
            let path = format!("{path}.{}", blocks.len());
            blocks.push(if loading.has(&format!("{path}.token_mixer.reparam_conv")) {
                Self::Mixer(Box::new(MixerBlock::load(&path, loading)?))
            } else if loading.has(&format!("{path}.token_mixer.qkv")) {
                Self::Attention(Box::new(AttentionBlock::load(&path, loading)?))
            } else {
                break;
            });
        }
        Ok(blocks)
    }

    fn forward(&self, x: FeatureMap, gelu: &Pointwise) -> Result<FeatureMap> {
        match self {
            Self::Positions(convolution) => convolution.forward(&x),
            Self::Smaller(convolutions) => {
                let (wider, mixed) = convolutions.as_ref();
                let x = activated(wider.forward(&x)?, gelu)?;
                activated(mixed.forward(&x)?, gelu)
            }
            Self::Mixer(block) => {
                let x = block.mixer.forward(&x)?;
                block.network.add(x, &block.factors, gelu)
            }
            Self::Attention(block) => {
                let places = [(1, x.states.dim(0))];
                let normed = block.norm.forward(&x.states)?;
                let found = block.attention.forward(&normed, None, &PatchMask::Windows(&places))?;
                let states = x.states.add(&found.mul(&block.factors[0])?)?;
                block.network.add(x.with(states), &block.factors[1], gelu)
            }
        }
    }
}

/// Factors of channels, `[1, channels]`.
fn factors(path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Tensor> {
    let factors = loading.weights.take_any(path)?.reshape(&[1, -1])?;
    loading.weights.materialize([&factors])?;
    Ok(factors)
}

impl MixerBlock {
    fn load(path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        Ok(Self {
            mixer: Convolution::load_centered(&format!("{path}.token_mixer.reparam_conv"), 1, loading)?,
            network: ConvolutionalNetwork::load(&format!("{path}.convffn"), loading)?,
            factors: factors(&format!("{path}.layer_scale"), loading)?,
        })
    }
}

impl AttentionBlock {
    fn load(path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let scales = [1, 2].map(|half| format!("{path}.layer_scale_{half}"));
        let factors = [factors(&scales[0], loading)?, factors(&scales[1], loading)?];
        let (width, weights) = (factors[0].dim(1), &mut *loading.weights);
        if width % HEAD != 0 {
            return Err(Error::BadRequest(format!("{width} channels are no heads of {HEAD}")));
        }
        let mixer = format!("{path}.token_mixer");
        let parts = [(format!("{mixer}.qkv"), 3 * width)];
        Ok(Self {
            norm: LayerNorm::load(weights, &format!("{path}.norm"), width, TORCH_EPS)?,
            attention: Attention {
                heads: width / HEAD,
                width: HEAD,
                scale: (HEAD as f32).powf(-0.5),
                projections: Projections::Joined(Linear::load_joined(weights, &parts, width)?),
                norms: HeadNorms::None,
                output: ClippedLinear::plain(weights, &format!("{mixer}.proj"), width, width)?,
            },
            network: ConvolutionalNetwork::load(&format!("{path}.convffn"), loading)?,
            factors,
        })
    }
}

impl ConvolutionalNetwork {
    fn load(path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let at = |name: &str| format!("{path}.{name}");
        Ok(Self {
            convolution: Convolution::load_with_batch_norm(&at("conv.conv"), &at("conv.bn"), TORCH_EPS, loading)?,
            up: loading.pointwise(&at("fc1"))?,
            down: loading.pointwise(&at("fc2"))?,
        })
    }

    /// A grid with what the network makes of it, times factors of its channels.
    fn add(&self, x: FeatureMap, factors: &Tensor, gelu: &Pointwise) -> Result<FeatureMap> {
        let inner = self.up.forward(&self.convolution.forward(&x)?.states)?;
        let made = self.down.forward(&gelu.forward(&inner)?)?;
        let states = x.states.add(&made.mul(factors)?)?;
        Ok(x.with(states))
    }
}
