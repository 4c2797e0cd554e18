//! Vision encoders, which turn images into embeddings that the language model reads in place of tokens. Each kind of
//! vision encoder is a file made of the shared parts in this folder; names of tensors are those of mlx-community's
//! conversions. A view goes through a vision encoder by itself, so that images cannot see each other and the memory for
//! one is enough.

mod attention;
mod block;
mod falcon_ocr;
mod gemma4;
mod glm;
mod hunyuan;
mod internvit;
mod linear;
mod mllama;
mod mobilenet;
mod mobilenet_blocks;
mod patches;
mod pixtral;
mod qwen;
mod resample;
mod rope;
mod siglip;
mod stack;

use checkpoint::{ImagePlan, View, VisionConfig};
use media::ViewPixels;
use mlx::device::{device, Device};
use mlx::ops::concatenate;
use mlx::parameters::{parameters, Parameters};
use mlx::tensor::{eval, Tensor};
use mlx::Result;

use crate::error::{self, Error};
use crate::weights::Weights;

/// The output of a vision encoder for one image.
#[derive(Clone)]
pub struct ImageEmbeddings {
    /// The rows that stand in the prompt in place of tokens, `[tokens, width of the language model]`.
    pub embeddings: Tensor,
    /// The summands after the first layers of the language model, one `[tokens, width]` for each (Qwen3-VL).
    pub deep: Vec<Tensor>,
}

impl ImageEmbeddings {
    /// Those of one view, without any that are added later.
    fn of(embeddings: Tensor) -> Self {
        Self {
            embeddings,
            deep: Vec::new(),
        }
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> u64 {
        self.tensors().iter().map(|tensor| tensor.nbytes() as u64).sum()
    }

    /// Those of several views, one after another.
    fn join(views: Vec<Self>) -> Result<Self> {
        match &views[..] {
            [one] => Ok(one.clone()),
            several => {
                let joined = |of: &dyn Fn(&Self) -> Option<&Tensor>| {
                    concatenate(&several.iter().filter_map(of).collect::<Vec<_>>(), 0)
                };
                let sets = several.first().map_or(0, |view| view.deep.len());
                Ok(Self {
                    embeddings: joined(&|view| Some(&view.embeddings))?,
                    deep: (0..sets)
                        .map(|set| joined(&|view| view.deep.get(set)))
                        .collect::<Result<_>>()?,
                })
            }
        }
    }
}

parameters!(ImageEmbeddings { embeddings, deep });

/// Called between two layers of a vision encoder with the states that the next one takes; an error from it ends the
/// encoding.
pub type LayerHook<'a> = dyn FnMut(&Tensor) -> error::Result<()> + 'a;

/// A vision encoder of any kind.
pub enum VisionTower {
    /// Gemma 4's.
    Gemma4(gemma4::Gemma4Tower),
    /// Qwen2-VL's and its successors'.
    Qwen(qwen::QwenTower),
    /// SigLIP's.
    Siglip(siglip::Siglip),
    /// Pixtral's and Mistral 3's.
    Pixtral(pixtral::Pixtral),
    /// InternVL's.
    InternVit(internvit::InternVit),
    /// GLM's.
    Glm(glm::GlmTower),
    /// Llama 3.2 Vision's.
    Mllama(mllama::Mllama),
    /// Gemma 3n's.
    MobileNet(Box<mobilenet::MobileNet>),
    /// HunyuanOCR's.
    Hunyuan(hunyuan::HunyuanTower),
    /// Falcon-OCR's projection of patches.
    Falcon(falcon_ocr::FalconPatches),
}

impl VisionTower {
    /// Builds the vision encoder and makes every tensor of it resident; `hidden` is the width of the language part.
    pub fn load(config: &VisionConfig, hidden: u32, weights: &mut Weights<'_>) -> error::Result<Self> {
        let tower = match config {
            VisionConfig::Gemma4(config) => Self::Gemma4(gemma4::Gemma4Tower::load(config, hidden, weights)?),
            VisionConfig::Qwen(config) => Self::Qwen(qwen::QwenTower::load(config, hidden, weights)?),
            VisionConfig::Siglip(config) => Self::Siglip(siglip::Siglip::load(config, hidden, weights)?),
            VisionConfig::Pixtral(config) => Self::Pixtral(pixtral::Pixtral::load(config, hidden, weights)?),
            VisionConfig::InternVit(config) => Self::InternVit(internvit::InternVit::load(config, hidden, weights)?),
            VisionConfig::Glm(config) => Self::Glm(glm::GlmTower::load(config, hidden, weights)?),
            VisionConfig::Mllama(config) => Self::Mllama(mllama::Mllama::load(config, hidden, weights)?),
            VisionConfig::MobileNet(config) => {
                Self::MobileNet(Box::new(mobilenet::MobileNet::load(config, hidden, weights)?))
            }
            VisionConfig::Hunyuan(config) => Self::Hunyuan(hunyuan::HunyuanTower::load(config, hidden, weights)?),
            VisionConfig::Falcon(config) => Self::Falcon(falcon_ocr::FalconPatches::load(config, hidden, weights)?),
        };
        weights.materialize(tower.tensors())?;
        Ok(tower)
    }

    /// Encodes the views of one image, one after another; what is returned is computed.
    pub fn encode(
        &self,
        views: &[ViewPixels],
        plan: &ImagePlan,
        hook: &mut LayerHook<'_>,
    ) -> error::Result<ImageEmbeddings> {
        if views.len() != plan.views.len() || views.is_empty() {
            return Err(Error::BadRequest(format!(
                "an image was prepared as {} views of {}",
                views.len(),
                plan.views.len()
            )));
        }
        if let Self::Mllama(tower) = self {
            let features = tower.encode(views, plan, hook)?;
            eval(features.tensors())?;
            return Ok(features);
        }
        let mut features = Vec::with_capacity(views.len());
        for (pixels, view) in views.iter().zip(&plan.views) {
            let encoded = match self {
                Self::Gemma4(tower) => tower.encode(pixels, view, hook),
                Self::Qwen(tower) => tower.encode(pixels, view, hook),
                Self::Siglip(tower) => tower.encode(pixels, view, hook),
                Self::Pixtral(tower) => tower.encode(pixels, view, hook),
                Self::InternVit(tower) => tower.encode(pixels, view, hook),
                Self::Glm(tower) => tower.encode(pixels, view, hook),
                Self::MobileNet(tower) => tower.encode(pixels, view, hook),
                Self::Mllama(_) => unreachable!("it encodes all views together"),
                Self::Hunyuan(tower) => tower.encode(pixels, view, hook),
                Self::Falcon(patches) => patches.encode(pixels, view, hook),
            }?;
            let marks = matches!(self, Self::MobileNet(tower) if tower.closes()) as i32;
            if encoded.embeddings.dim(0) - marks != view.features as i32 {
                return Err(Error::BadRequest(format!(
                    "the tower made {} features of a view with {} places",
                    encoded.embeddings.dim(0),
                    view.features
                )));
            }
            eval(encoded.tensors())?;
            features.push(encoded);
        }
        let features = ImageEmbeddings::join(features)?;
        eval(features.tensors())?;
        Ok(features)
    }
}

impl Parameters for VisionTower {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Gemma4(tower) => tower.visit(visitor),
            Self::Qwen(tower) => tower.visit(visitor),
            Self::Siglip(tower) => tower.visit(visitor),
            Self::Pixtral(tower) => tower.visit(visitor),
            Self::InternVit(tower) => tower.visit(visitor),
            Self::Glm(tower) => tower.visit(visitor),
            Self::Mllama(tower) => tower.visit(visitor),
            Self::MobileNet(tower) => tower.visit(visitor),
            Self::Hunyuan(tower) => tower.visit(visitor),
            Self::Falcon(patches) => patches.visit(visitor),
        }
    }
}

/// The numbers of a view as rows of patches `[patches, numbers]`, if they are what `view` says.
fn rows_of(pixels: &ViewPixels, view: &View, numbers: i32) -> error::Result<Tensor> {
    let patches = view.patches.0 as usize * view.patches.1 as usize;
    if pixels.shape != [patches, numbers as usize] || pixels.values.len() != patches * numbers as usize {
        return Err(Error::BadRequest(format!(
            "an image was prepared as {:?}, and this model's tower takes {:?}",
            pixels.shape,
            [patches, numbers as usize]
        )));
    }
    Ok(Tensor::from_f32(&pixels.values, &[patches as i32, numbers]))
}

/// The planes `[3, height, width]` of a view that come complete, if they are what `view` says of patches of this side.
fn planes_of(pixels: &ViewPixels, view: &View, side: i32) -> error::Result<Tensor> {
    let shape = [
        patches::COLOURS as usize,
        view.patches.0 as usize * side as usize,
        view.patches.1 as usize * side as usize,
    ];
    if pixels.shape != shape || pixels.values.len() != shape.iter().product::<usize>() {
        return Err(Error::BadRequest(format!(
            "an image was prepared as {:?}, and this model's tower takes {shape:?}",
            pixels.shape
        )));
    }
    Ok(Tensor::from_f32(&pixels.values, &shape.map(|length| length as i32)))
}

/// Between two layers: on a CPU, which is slow, they are computed, so that the caller can be asked whether to go on.
fn pause(states: &Tensor, hook: &mut LayerHook<'_>) -> error::Result<()> {
    if device() == Device::Cpu {
        eval([states])?;
    }
    hook(states)
}
