//! The towers of models that see, as `config.json` describes them: a file for each kind of tower, and one table of the models that have it.
//! Whether a model sees is told by its weights as well: conversions for text alone keep the description and leave the tower out.

mod falcon_ocr;
mod gemma4;
mod glm;
mod hunyuan;
mod internvit;
mod mllama;
mod mobilenet;
mod pixtral;
mod qwen;
mod shape;
mod siglip;

use super::decoder::{check_head, check_layers, check_width};
use super::fields::Fields;
use crate::Error;
pub use falcon_ocr::FalconPatchesConfig;
pub use gemma4::Gemma4VisionConfig;
pub use glm::GlmVisionConfig;
pub use hunyuan::HunyuanVisionConfig;
pub use internvit::InternVitConfig;
pub use mllama::MllamaVisionConfig;
pub use mobilenet::MobileNetConfig;
pub use pixtral::{PatchMerger, PixtralConfig};
pub use qwen::{PositionTable, QwenVisionConfig, Windows};
pub use shape::TowerShape;
pub use siglip::{SiglipConfig, SiglipProjector};

/// What a tower needs to be built.
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
    /// InternVL's.
    InternVit(InternVitConfig),
    /// GLM-4.1V's and GLM-OCR's.
    Glm(GlmVisionConfig),
    /// Llama 3.2 Vision's.
    Mllama(MllamaVisionConfig),
    /// Gemma 3n's.
    MobileNet(MobileNetConfig),
    /// HunyuanOCR's.
    Hunyuan(HunyuanVisionConfig),
    /// Falcon-OCR's projection of patches.
    Falcon(FalconPatchesConfig),
}

type Parse = fn(Fields<'_>, Fields<'_>) -> Result<VisionConfig, Error>;

/// Every `model_type` whose tower can be built, and who reads `vision_config`; the second argument is the whole file.
const TOWERS: &[(&str, Parse)] = &[
    ("falcon_ocr", falcon_ocr::parse),
    ("gemma3", siglip::gemma3),
    ("gemma3n", mobilenet::parse),
    ("gemma4", gemma4::parse),
    ("glm4v", glm::glm4v),
    ("glm4v_moe", glm::glm4v),
    ("glm_ocr", glm::glm_ocr),
    ("hunyuan_vl", hunyuan::parse),
    ("idefics3", siglip::idefics3),
    ("internvl", internvit::transformers),
    ("internvl_chat", internvit::chat),
    ("lfm2-vl", siglip::lfm2),
    ("lfm2_vl", siglip::lfm2),
    ("mistral3", pixtral::mistral3),
    ("mllama", mllama::parse),
    ("paddleocr_vl", siglip::paddleocr),
    ("pixtral", pixtral::pixtral),
    ("qwen2_5_vl", qwen::qwen2_5),
    ("qwen2_vl", qwen::qwen2),
    ("qwen3_5", qwen::qwen3),
    ("qwen3_5_moe", qwen::qwen3),
    ("qwen3_omni_moe", qwen::qwen3),
    ("qwen3_vl", qwen::qwen3),
    ("qwen3_vl_moe", qwen::qwen3),
    ("smolvlm", siglip::idefics3),
];

/// What names of tensors begin with that belong to a tower, or to what is between it and the language part.
const PARTS: [&str; 10] = [
    "vision_tower.",
    "vision_model.",
    "visual.",
    "multi_modal_projector.",
    "embed_vision.",
    "connector.",
    "mlp1.",
    "mlp_AR.",
    "vit.",
    "img_projector.",
];

/// A tensor's name without what wrappers of the text model and of towers put before it.
pub fn without_wrappers(name: &str) -> &str {
    const WRAPPERS: [&str; 4] = ["language_model.", "model.", "text_model.", "thinker."];
    let mut short = name;
    while let Some(rest) = WRAPPERS.iter().find_map(|wrapper| short.strip_prefix(wrapper)) {
        short = rest;
    }
    short
}

/// The name of a tower's tensor without what wrappers put before it; `None` for tensors of other parts. Qwen's towers and HunyuanOCR's are
/// called `vision_tower` as in conversions, whatever the file says.
pub fn tower_tensor(name: &str) -> Option<String> {
    let short = without_wrappers(name);
    PARTS.iter().find(|part| short.starts_with(**part))?;
    Some(match short.strip_prefix("visual.").or(short.strip_prefix("vit.")) {
        Some(rest) => format!("vision_tower.{rest}"),
        None => short.to_owned(),
    })
}

impl VisionConfig {
    /// Reads what a model's file says of its tower; `None` if models of this type have none.
    ///
    /// # Errors
    /// Why no tower can be built, if the file describes one or models of this type have one.
    pub(super) fn read(model_type: &str, top: Fields<'_>) -> Result<Option<Self>, Error> {
        const FIELD: &str = "vision_config";
        let Some((_, parse)) = TOWERS.iter().find(|(name, _)| *name == model_type) else {
            return match top.has(FIELD) {
                true => Err(Error::Unsupported(format!("a vision tower beside models of type `{model_type}`"))),
                false => Ok(None),
            };
        };
        let vision = match model_type {
            "falcon_ocr" => top,
            _ => top.object(FIELD)?.ok_or(Error::MissingField(FIELD))?,
        };
        parse(vision, top).map(Some)
    }

    /// Whether the tokens of a picture see those of the same picture that come after them, so that it has to be read at once.
    pub fn is_bidirectional(&self) -> bool {
        match self {
            Self::Gemma4(tower) => tower.bidirectional,
            Self::Siglip(tower) => tower.is_bidirectional(),
            Self::Falcon(_) => true,
            Self::Qwen(_)
            | Self::Pixtral(_)
            | Self::InternVit(_)
            | Self::Glm(_)
            | Self::Mllama(_)
            | Self::MobileNet(_)
            | Self::Hunyuan(_) => false,
        }
    }

    /// How many marks after the features of a picture have embeddings of the tower's, so that they are made with the features.
    pub fn marks_after(&self) -> usize {
        match self {
            Self::MobileNet(tower) => usize::from(tower.closing_mark().is_some()),
            _ => 0,
        }
    }

    /// Whether what opens a picture's run takes part in that (Falcon-OCR).
    pub fn marks_look_ahead(&self) -> bool {
        matches!(self, Self::Falcon(_))
    }
}

/// What nearly every tower has: layers of so many heads, `width` numbers in their networks.
fn check_shapes(layers: u32, hidden_size: u32, heads: u32, head_dim: u32, width: u32) -> Result<(), Error> {
    check_layers(layers)?;
    check_width("hidden_size", 3 * u64::from(hidden_size))?;
    check_width("intermediate_size", 2 * u64::from(width))?;
    check_head("head_dim", head_dim)?;
    check_width("num_heads", u64::from(heads) * u64::from(head_dim))
}

/// Refuses the side of a patch that no tower has.
fn check_patch(side: u32) -> Result<(), Error> {
    if (1..=256).contains(&side) {
        return Ok(());
    }
    Err(Error::InvalidField {
        field: "patch_size",
        reason: format!("{side} is not from 1 to 256"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod family_tests;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{json, Value};

    use super::{tower_tensor, VisionConfig};
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
        assert_eq!((tower.head_dim(), tower.layers, &tower.deepstack[..]), (64, 24, &[5, 11, 17][..]));
        assert_eq!(tower.positions.map(|table| table.side), Some(48));
        let crate::Family::Decoder(decoder) = &config.family else {
            panic!("another family")
        };
        let sections = decoder.ropes[0].sections.unwrap();
        let axes: Vec<usize> = [0, 1, 2, 3, 58, 59, 60, 61, 63].map(|pair| sections.axis(pair)).to_vec();
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
        // A text model has nothing to say of pictures, unless its file does.
        let text = json!({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "intermediate_size": 64,
            "num_attention_heads": 2, "vocab_size": 64});
        let read = |config: &Value| ModelConfig::parse(&config.to_string()).unwrap().vision_problem;
        assert_eq!(read(&text), None);
        let mut seeing = text;
        seeing["vision_config"] = vision();
        assert!(read(&seeing).is_some_and(|problem| problem.contains("`llama`")));
    }

    #[test]
    fn towers_are_found_whatever_stands_before_their_names() {
        for (name, short) in [
            ("vision_tower.blocks.0.norm1.weight", Some("vision_tower.blocks.0.norm1.weight")),
            ("model.visual.blocks.0.norm1.weight", Some("vision_tower.blocks.0.norm1.weight")),
            ("visual.merger.ln_q.weight", Some("vision_tower.merger.ln_q.weight")),
            (
                "model.language_model.visual.merger.ln_q.weight",
                Some("vision_tower.merger.ln_q.weight"),
            ),
            (
                "model.vision_tower.patch_embedder.input_proj.weight",
                Some("vision_tower.patch_embedder.input_proj.weight"),
            ),
            (
                "model.embed_vision.embedding_projection.weight",
                Some("embed_vision.embedding_projection.weight"),
            ),
            (
                "vit.layers.0.input_layernorm.weight",
                Some("vision_tower.layers.0.input_layernorm.weight"),
            ),
            ("img_projector.weight", Some("img_projector.weight")),
            ("language_model.model.img_projector.weight", Some("img_projector.weight")),
            ("language_model.model.layers.0.mlp.up_proj.weight", None),
            ("model.embed_tokens.weight", None),
        ] {
            assert_eq!(tower_tensor(name).as_deref(), short, "{name}");
        }
    }
}
