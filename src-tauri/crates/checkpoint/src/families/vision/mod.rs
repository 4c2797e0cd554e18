//! The towers of models that see, as `config.json` describes them: a file for each kind of tower, with the rows of the
//! family that has no other file. True if a model sees is told by its weights as well: conversions for text alone keep
//! the description and leave the tower out.

pub(crate) mod bunny;
pub(crate) mod deepencoder;
pub(crate) mod deepseek_vl;
pub(crate) mod ernie;
pub(crate) mod falcon_ocr;
pub(crate) mod fastvit;
pub(crate) mod gemma4;
pub(crate) mod glm;
pub(crate) mod granite4;
pub(crate) mod hunyuan;
pub(crate) mod idefics2;
pub(crate) mod internvit;
pub(crate) mod janus;
pub(crate) mod llava;
mod llava_projector;
pub(crate) mod mimo;
pub(crate) mod minicpmv;
pub(crate) mod mllama;
pub(crate) mod mobilenet;
pub(crate) mod molmo;
pub(crate) mod moonvit;
pub(crate) mod paligemma;
pub(crate) mod phi3v;
pub(crate) mod phi4;
pub(crate) mod pixtral;
pub(crate) mod qwen;
pub(crate) mod radio;
mod shape;
pub(crate) mod siglip;

use crate::config::limits::{check_head, check_layers, check_range, check_width};
use crate::error::Error;
use crate::memory::VisionCost;
pub use deepencoder::{DeepEncoderConfig, SamConfig};
pub use ernie::ErnieVisionConfig;
pub use falcon_ocr::FalconPatchesConfig;
pub use fastvit::FastVitConfig;
pub use gemma4::Gemma4VisionConfig;
pub use glm::GlmVisionConfig;
pub use granite4::{FeatureSet, Granite4VisionConfig};
pub use hunyuan::HunyuanVisionConfig;
pub use idefics2::Idefics2Config;
pub use internvit::InternVitConfig;
pub use llava::LlavaConfig;
pub use llava_projector::LlavaProjector;
pub use mimo::{MimoVisionConfig, MimoVisionLayer};
pub use minicpmv::{MiniCpmVisionConfig, MERGE as MINICPM_MERGE};
pub use mllama::MllamaVisionConfig;
pub use mobilenet::MobileNetConfig;
pub use molmo::{MolmoVisionConfig, TileBlocks, MARGIN as MOLMO_MARGIN, MERGE_SIDE as MOLMO_MERGE};
pub use moonvit::MoonVitConfig;
pub use phi4::{Phi4VisionConfig, MERGE as PHI4_MERGE};
pub use pixtral::{PatchMerger, PixtralConfig};
pub use qwen::{DotsParts, PositionTable, QwenVisionConfig, Windows};
pub use radio::RadioConfig;
pub use shape::TowerShape;
pub use siglip::{SiglipConfig, SiglipProjector};

/// The config of a vision encoder.
#[derive(Debug, Clone, PartialEq)]
pub enum VisionConfig {
    /// Gemma 4's.
    Gemma4(Gemma4VisionConfig),
    /// Qwen2-VL's and its successors'.
    Qwen(QwenVisionConfig),
    /// SigLIP's, in Gemma 3, Idefics 3, SmolVLM, LFM2-VL and PaddleOCR-VL.
    Siglip(SiglipConfig),
    /// Pixtral's and Mistral 3's.
    Pixtral(PixtralConfig),
    /// That of Kimi-VL and Kimi K2.5.
    MoonVit(MoonVitConfig),
    /// LLaVA's and that of models like it.
    Llava(LlavaConfig),
    /// MiMo V2's.
    Mimo(MimoVisionConfig),
    /// MiniCPM-V's.
    MiniCpm(MiniCpmVisionConfig),
    /// InternVL's.
    InternVit(InternVitConfig),
    /// GLM-4.1V's and GLM-OCR's.
    Glm(GlmVisionConfig),
    /// Llama 3.2 Vision's.
    Mllama(MllamaVisionConfig),
    /// Gemma 3n's.
    MobileNet(MobileNetConfig),
    /// FastVLM's.
    FastVit(FastVitConfig),
    /// DeepSeek-OCR's.
    DeepEncoder(DeepEncoderConfig),
    /// Idefics 2's.
    Idefics2(Idefics2Config),
    /// Molmo's.
    Molmo(MolmoVisionConfig),
    /// Granite 4 Vision's.
    Granite4(Granite4VisionConfig),
    /// ERNIE 4.5 VL's.
    Ernie(ErnieVisionConfig),
    /// Phi 4 Multimodal's.
    Phi4(Phi4VisionConfig),
    /// Nemotron Nano Omni's.
    Radio(RadioConfig),
    /// HunyuanOCR's.
    Hunyuan(HunyuanVisionConfig),
    /// Falcon-OCR's projection of patches.
    Falcon(FalconPatchesConfig),
}

impl VisionConfig {
    /// True if the tokens of an image attend to later ones of the same image, so that it has to be read at once.
    pub fn is_bidirectional(&self) -> bool {
        match self {
            Self::Gemma4(tower) => tower.bidirectional,
            Self::Siglip(tower) => tower.is_bidirectional(),
            Self::Falcon(_) => true,
            Self::Qwen(_)
            | Self::Pixtral(_)
            | Self::MoonVit(_)
            | Self::InternVit(_)
            | Self::Llava(_)
            | Self::Mimo(_)
            | Self::MiniCpm(_)
            | Self::Glm(_)
            | Self::Mllama(_)
            | Self::MobileNet(_)
            | Self::FastVit(_)
            | Self::DeepEncoder(_)
            | Self::Idefics2(_)
            | Self::Molmo(_)
            | Self::Granite4(_)
            | Self::Ernie(_)
            | Self::Phi4(_)
            | Self::Radio(_)
            | Self::Hunyuan(_) => false,
        }
    }

    /// True if all tokens of a prompt see each other, with images or without, so that it has to be read at once.
    pub fn reads_whole_prompts(&self) -> bool {
        matches!(self, Self::Llava(tower) if tower.whole_prompts)
    }

    /// True if features are added to the embeddings of the tokens that take them, which stay otherwise.
    pub fn adds_to_tokens(&self) -> bool {
        matches!(self, Self::Molmo(_))
    }

    /// How many marks after the features of an image have embeddings of the tower's, so that they are made with the
    /// features.
    pub fn marks_after(&self) -> usize {
        match self {
            Self::MobileNet(tower) => usize::from(tower.closing_mark().is_some()),
            _ => 0,
        }
    }

    /// A part of the name of a tensor without which the tower is none, because conversions leave it out, and what it is.
    pub(crate) fn must_have(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Phi4(_) => Some(("glb_GN", "the marks between the tiles of an image (`glb_GN`, `sub_GN`)")),
            _ => None,
        }
    }

    /// The memory that it takes.
    pub(crate) fn cost(&self) -> VisionCost {
        match self {
            Self::Gemma4(encoder) => encoder.cost(),
            Self::Qwen(encoder) => encoder.cost(),
            Self::Mimo(encoder) => encoder.cost(),
            Self::Siglip(encoder) => encoder.cost(),
            Self::Pixtral(encoder) => encoder.cost(),
            Self::MoonVit(encoder) => encoder.cost(),
            Self::InternVit(encoder) => encoder.cost(),
            Self::Llava(encoder) => encoder.cost(),
            Self::MiniCpm(encoder) => encoder.cost(),
            Self::Glm(encoder) => encoder.cost(),
            Self::Mllama(encoder) => encoder.cost(),
            Self::MobileNet(encoder) => encoder.cost(),
            Self::FastVit(encoder) => encoder.cost(),
            Self::DeepEncoder(encoder) => encoder.cost(),
            Self::Idefics2(encoder) => encoder.cost(),
            Self::Molmo(encoder) => encoder.cost(),
            Self::Granite4(encoder) => encoder.cost(),
            Self::Ernie(encoder) => encoder.cost(),
            Self::Phi4(encoder) => encoder.cost(),
            Self::Radio(encoder) => encoder.cost(),
            Self::Hunyuan(encoder) => encoder.cost(),
            Self::Falcon(patches) => patches.cost(),
        }
    }

    /// True if the marks that open an image's run take part in that (Falcon-OCR).
    pub fn marks_look_ahead(&self) -> bool {
        matches!(self, Self::Falcon(_))
    }
}

/// Checks the shapes that nearly every encoder has; `width` is that of the feed-forward networks.
fn check_shapes(layers: u32, hidden_size: u32, heads: u32, head_dim: u32, width: u32) -> Result<(), Error> {
    check_layers(layers)?;
    check_width("hidden_size", 3 * u64::from(hidden_size))?;
    check_width("intermediate_size", 2 * u64::from(width))?;
    check_head("head_dim", head_dim)?;
    check_width("num_heads", u64::from(heads) * u64::from(head_dim))
}

/// Refuses the side of a patch that no tower has.
fn check_patch(side: u32) -> Result<(), Error> {
    check_range("patch_size", side, 1..=256).map(|_| ())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod family_tests;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod projector_tests;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::VisionConfig;
    use crate::ModelConfig;

    /// The 4B model as its repository describes it, as far as it matters here.
    fn qwen3_vl(vision: Value) -> ModelConfig {
        let text = json!({"model_type": "qwen3_vl_text", "hidden_size": 2560, "num_hidden_layers": 36, "intermediate_size": 9728,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "rms_norm_eps": 1e-6,
            "max_position_embeddings": 262144, "rope_theta": 5000000,
            "rope_scaling": {"mrope_interleaved": true, "mrope_section": [24, 20, 20], "rope_type": "default"}});
        let config = json!({"model_type": "qwen3_vl", "text_config": text, "vision_config": vision});
        ModelConfig::parse(&config.to_string()).unwrap()
    }

    fn vision() -> Value {
        json!({"depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_heads": 16, "out_hidden_size": 2560, "patch_size": 16,
            "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304, "deepstack_visual_indexes": [5, 11, 17],
            "hidden_act": "gelu_pytorch_tanh", "in_channels": 3, "model_type": "qwen3_vl"})
    }

    #[test]
    fn a_tower_and_its_positions_are_read() {
        let config = qwen3_vl(vision());
        let Some(VisionConfig::Qwen(tower)) = &config.vision else {
            panic!("{:?}", config.vision)
        };
        assert_eq!(
            (tower.head_dim(), tower.layers, &tower.deepstack[..]),
            (64, 24, &[5, 11, 17][..])
        );
        assert_eq!(tower.positions.map(|table| table.side), Some(48));
        let crate::Family::Decoder(decoder) = &config.family else {
            panic!("another family")
        };
        let sections = decoder.ropes[0].sections.unwrap();
        let axes: Vec<usize> = [0, 1, 2, 3, 58, 59, 60, 61, 63]
            .map(|pair| sections.axis(pair))
            .to_vec();
        assert_eq!(axes, [0, 1, 2, 0, 1, 2, 0, 0, 0]);
        // 0.3 billion in its layers, and four mergers of 27 million.
        let alone = ModelConfig {
            vision: None,
            ..config.clone()
        };
        let tower = (config.parameters() - alone.parameters()) as f64;
        assert!((0.40e9..0.43e9).contains(&tower), "{tower}");
        assert!(config.image_encoding_memory(8192, crate::memory::Backend::Metal) > 256 << 20);
        assert_eq!(alone.image_encoding_memory(8192, crate::memory::Backend::Metal), 0);
    }

    #[test]
    fn a_tower_that_cannot_be_built_is_none() {
        for (field, value) in [
            ("depth", json!(u32::MAX)),
            ("num_heads", json!(0)),
            ("num_heads", json!(7)),
            ("hidden_size", json!(u32::MAX)),
            ("intermediate_size", json!(u32::MAX)),
            ("patch_size", json!(0)),
            ("patch_size", json!(100_000)),
            ("spatial_merge_size", json!(0)),
            ("temporal_patch_size", json!(u32::MAX)),
            ("num_position_embeddings", json!(2305)),
            ("num_position_embeddings", json!(u32::MAX)),
            ("hidden_act", json!("mish")),
        ] {
            let mut tower = vision();
            tower[field] = value.clone();
            let config = qwen3_vl(tower);
            assert_eq!(config.vision, None, "{field} {value}");
            assert!(config.vision_problem.is_some(), "{field} {value}");
        }
    }

    #[test]
    fn a_tower_that_cannot_be_read_says_what_is_wrong_with_it() {
        let (mut flat, mut spoiled) = (vision(), vision());
        flat["patch_size"] = json!(0);
        spoiled["hidden_size"] = json!("wide");
        for (vision, words) in [
            (json!([vision()]), ["`vision_config`", "not an object"]),
            (json!("qwen3_vl"), ["`vision_config`", "not an object"]),
            (Value::Null, ["lacks", "`vision_config`"]),
            (flat, ["`patch_size`", "from 1 to 256"]),
            (spoiled, ["`hidden_size`", "not a number"]),
        ] {
            let config = qwen3_vl(vision);
            let problem = config.vision_problem.unwrap();
            assert!(
                config.vision.is_none() && words.iter().all(|word| problem.contains(word)),
                "{problem}"
            );
        }
        assert_eq!(qwen3_vl(vision()).vision_problem, None);
        // A text model has nothing to say of images, unless its file does.
        let text = json!({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64,
            "num_attention_heads": 2, "vocab_size": 64});
        let read = |config: &Value| ModelConfig::parse(&config.to_string()).unwrap().vision_problem;
        assert_eq!(read(&text), None);
        let mut with_vision = text;
        with_vision["vision_config"] = vision();
        assert!(read(&with_vision).is_some_and(|problem| problem.contains("`llama`")));
    }
}
