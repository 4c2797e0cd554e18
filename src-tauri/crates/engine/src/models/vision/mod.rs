//! Vision encoders, which turn images into embeddings that the language model reads in place of tokens. Each kind of
//! vision encoder is a file made of the shared parts in this folder; names of tensors are those of mlx-community's
//! conversions. A view goes through a vision encoder by itself, so that images cannot see each other and the memory for
//! one is enough.

mod attention;
mod block;
mod deepencoder;
mod ernie;
mod falcon_ocr;
mod fastvit;
mod gemma4;
mod glm;
mod granite4;
mod hunyuan;
mod idefics2;
mod internvit;
mod linear;
mod llava;
mod mimo;
mod minicpmv;
mod mllama;
mod mobilenet;
mod mobilenet_blocks;
mod molmo;
mod moonvit;
mod patches;
mod phi4;
mod pixtral;
mod qwen;
mod radio;
mod resample;
mod rope;
mod sam;
mod siglip;
mod stack;

use checkpoint::{ImagePlan, View, VisionConfig};
use media::ViewPixels;
use mlx::device::{device, Device};
use mlx::ops::concatenate;
use mlx::parameters::Parameters;
use mlx::tensor::{eval, Tensor};
use mlx::Result;

use crate::error::{self, Error};
use crate::weights::Weights;

/// The output of a vision encoder for one image.
#[derive(Clone, Parameters)]
pub struct ImageEmbeddings {
    /// The rows that stand in the prompt in place of tokens, `[tokens, width of the language model]`.
    pub embeddings: Tensor,
    /// The summands after some layers of the language model, `[tokens, width]` each (Qwen3-VL).
    pub deep: Vec<Tensor>,
    /// Those layers.
    #[parameters(skip)]
    pub deep_layers: Vec<usize>,
}

impl ImageEmbeddings {
    /// Those of one view, without any that are added later.
    fn of(embeddings: Tensor) -> Self {
        Self {
            embeddings,
            deep: Vec::new(),
            deep_layers: Vec::new(),
        }
    }

    /// The summand after this layer, if there is one.
    pub fn after(&self, layer: usize) -> Option<&Tensor> {
        let set = self.deep_layers.iter().position(|deep| *deep == layer)?;
        self.deep.get(set)
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
                    deep_layers: several.first().map_or_else(Vec::new, |view| view.deep_layers.clone()),
                })
            }
        }
    }
}

/// Called between two layers of a vision encoder with the states that the next one takes; an error from it ends the
/// encoding.
pub type LayerHook<'a> = dyn FnMut(&Tensor) -> error::Result<()> + 'a;

/// A vision encoder of any kind.
#[derive(Parameters)]
pub enum VisionTower {
    /// Gemma 4's.
    Gemma4(gemma4::Gemma4Tower),
    /// Qwen2-VL's and its successors'.
    Qwen(qwen::QwenTower),
    /// SigLIP's.
    Siglip(siglip::Siglip),
    /// Pixtral's and Mistral 3's.
    Pixtral(pixtral::Pixtral),
    /// Kimi-VL's.
    MoonVit(moonvit::MoonVit),
    /// LLaVA's and that of models like it.
    Llava(llava::LlavaTower),
    /// MiMo V2's.
    Mimo(mimo::MimoTower),
    /// MiniCPM-V's.
    MiniCpm(Box<minicpmv::MiniCpmTower>),
    /// InternVL's.
    InternVit(internvit::InternVit),
    /// GLM's.
    Glm(Box<glm::GlmTower>),
    /// Llama 3.2 Vision's.
    Mllama(mllama::Mllama),
    /// Gemma 3n's.
    MobileNet(Box<mobilenet::MobileNet>),
    /// FastVLM's.
    FastVit(Box<fastvit::FastVit>),
    /// DeepSeek-OCR's.
    DeepEncoder(Box<deepencoder::DeepEncoder>),
    /// Idefics 2's.
    Idefics2(Box<idefics2::Idefics2>),
    /// Molmo's.
    Molmo(Box<molmo::MolmoTower>),
    /// Granite 4 Vision's.
    Granite4(Box<granite4::Granite4Tower>),
    /// ERNIE 4.5 VL's.
    Ernie(Box<ernie::ErnieTower>),
    /// Phi 4 Multimodal's.
    Phi4(Box<phi4::Phi4Tower>),
    /// Nemotron Nano Omni's.
    Radio(Box<radio::Radio>),
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
            VisionConfig::Mimo(config) => Self::Mimo(mimo::MimoTower::load(config, hidden, weights)?),
            VisionConfig::Siglip(config) => Self::Siglip(siglip::Siglip::load(config, hidden, weights)?),
            VisionConfig::Pixtral(config) => Self::Pixtral(pixtral::Pixtral::load(config, hidden, weights)?),
            VisionConfig::MoonVit(config) => Self::MoonVit(moonvit::MoonVit::load(config, hidden, weights)?),
            VisionConfig::Llava(config) => Self::Llava(llava::LlavaTower::load(config, hidden, weights)?),
            VisionConfig::MiniCpm(config) => {
                Self::MiniCpm(Box::new(minicpmv::MiniCpmTower::load(config, hidden, weights)?))
            }
            VisionConfig::InternVit(config) => Self::InternVit(internvit::InternVit::load(config, hidden, weights)?),
            VisionConfig::Glm(config) => Self::Glm(Box::new(glm::GlmTower::load(config, hidden, weights)?)),
            VisionConfig::Mllama(config) => Self::Mllama(mllama::Mllama::load(config, hidden, weights)?),
            VisionConfig::MobileNet(config) => {
                Self::MobileNet(Box::new(mobilenet::MobileNet::load(config, hidden, weights)?))
            }
            VisionConfig::FastVit(config) => Self::FastVit(Box::new(fastvit::FastVit::load(config, hidden, weights)?)),
            VisionConfig::DeepEncoder(config) => {
                Self::DeepEncoder(Box::new(deepencoder::DeepEncoder::load(config, hidden, weights)?))
            }
            VisionConfig::Idefics2(config) => {
                Self::Idefics2(Box::new(idefics2::Idefics2::load(config, hidden, weights)?))
            }
            VisionConfig::Molmo(config) => Self::Molmo(Box::new(molmo::MolmoTower::load(config, hidden, weights)?)),
            VisionConfig::Granite4(config) => {
                Self::Granite4(Box::new(granite4::Granite4Tower::load(config, hidden, weights)?))
            }
            VisionConfig::Ernie(config) => Self::Ernie(Box::new(ernie::ErnieTower::load(config, hidden, weights)?)),
            VisionConfig::Phi4(config) => Self::Phi4(Box::new(phi4::Phi4Tower::load(config, hidden, weights)?)),
            VisionConfig::Radio(config) => Self::Radio(Box::new(radio::Radio::load(config, hidden, weights)?)),
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
        let together = match self {
            Self::Mllama(tower) => Some(tower.encode(views, plan, hook)?),
            Self::Llava(tower) if tower.ends_rows() => Some(tower.encode_rows(views, plan, hook)?),
            Self::DeepEncoder(tower) => Some(tower.encode_rows(views, plan, hook)?),
            Self::Molmo(tower) => Some(tower.encode_grids(views, plan, hook)?),
            Self::Granite4(tower) => Some(tower.encode_sets(views, plan, hook)?),
            Self::Phi4(tower) => Some(tower.encode_tiles(views, plan, hook)?),
            _ => None,
        };
        if let Some(features) = together {
            eval(features.tensors())?;
            return Ok(features);
        }
        let mut features = Vec::with_capacity(views.len());
        for (pixels, view) in views.iter().zip(&plan.views) {
            let input = ViewInput { pixels, view };
            let encoded = match self {
                Self::Gemma4(tower) => tower.encode(&input, hook),
                Self::Qwen(tower) => tower.encode(&input, hook),
                Self::Mimo(tower) => tower.encode(&input, hook),
                Self::Siglip(tower) => tower.encode(&input, hook),
                Self::Pixtral(tower) => tower.encode(&input, hook),
                Self::MoonVit(tower) => tower.encode(&input, hook),
                Self::Llava(tower) => tower.encode(&input, hook),
                Self::MiniCpm(tower) => tower.encode(&input, hook),
                Self::InternVit(tower) => tower.encode(&input, hook),
                Self::Glm(tower) => tower.encode(&input, hook),
                Self::MobileNet(tower) => tower.encode(&input, hook),
                Self::FastVit(tower) => tower.encode(&input, hook),
                Self::Idefics2(tower) => tower.encode(&input, hook),
                Self::Mllama(_) | Self::DeepEncoder(_) | Self::Molmo(_) | Self::Granite4(_) | Self::Phi4(_) => {
                    unreachable!("it encodes all views together")
                }
                Self::Ernie(tower) => tower.encode(&input, hook),
                Self::Radio(tower) => tower.encode(&input, hook),
                Self::Hunyuan(tower) => tower.encode(&input, hook),
                Self::Falcon(patches) => patches.encode(&input, hook),
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
        // The full image, whose view is the last, stands before its slices in the prompt.
        if matches!(self, Self::MiniCpm(_)) && plan.whole {
            features.rotate_right(1);
        }
        let features = ImageEmbeddings::join(features)?;
        eval(features.tensors())?;
        Ok(features)
    }
}

/// A view of an image, prepared for the vision encoder.
struct ViewInput<'a> {
    pixels: &'a ViewPixels,
    view: &'a View,
}

impl ViewInput<'_> {
    /// The numbers of the view, if they have this shape.
    fn tensor<const N: usize>(&self, shape: [i32; N]) -> error::Result<Tensor> {
        let wanted = shape.map(|length| length as usize);
        let found = &self.pixels.shape;
        if *found != wanted || self.pixels.values.len() != wanted.iter().product::<usize>() {
            return Err(Error::BadRequest(format!(
                "an image was prepared as {found:?}, and this model's tower takes {wanted:?}"
            )));
        }
        Ok(Tensor::from_f32(&self.pixels.values, &shape))
    }

    /// Its rows of patches `[patches, numbers]`.
    fn rows(&self, numbers: i32) -> error::Result<Tensor> {
        self.tensor([(self.view.patches.0 * self.view.patches.1) as i32, numbers])
    }

    /// Its complete planes of patches of this side, cut into rows `[patches, numbers]`.
    fn cut(&self, side: i32) -> error::Result<Tensor> {
        let (width, height) = (self.view.width as i32, self.view.height as i32);
        let planes = self.tensor([patches::COLOURS, height, width])?;
        patches::cut(&planes, side)
    }
}

/// Refuses a tower whose features have another width than the language part reads.
fn check_outputs(outputs: u32, text_width: u32) -> error::Result<()> {
    if outputs == text_width {
        return Ok(());
    }
    Err(Error::BadRequest(format!(
        "config.json says that the tower makes {outputs} numbers and the language part reads {text_width}"
    )))
}

/// Between two layers: on a CPU, which is slow, they are computed, so that the caller can be asked whether to go on.
fn pause(states: &Tensor, hook: &mut LayerHook<'_>) -> error::Result<()> {
    if device() == Device::Cpu {
        eval([states])?;
    }
    hook(states)
}
