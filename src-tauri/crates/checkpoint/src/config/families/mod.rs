//! From `model_type` to the shapes of a model: one small file per family and one table of the names they go by.

mod bert;
mod deepseek;
mod ernie4_5;
mod exaone4;
mod falcon_ocr;
mod gemma3;
mod glm4;
mod glm4_moe;
mod gpt_oss;
mod granite;
mod hunyuan;
mod lfm2;
mod llama;
mod mistral;
mod mixtral;
mod mllama;
mod nomic_bert;
mod olmo;
mod phi3;
mod qwen;
mod qwen_hybrid;
mod qwen_moe;
mod refused;
mod seed_oss;
mod seeing;
mod smollm3;
#[cfg(test)]
mod tests;

use super::decoder::{check_layers, DecoderConfig, LayerConfig, LmHead, NormConfig};
use super::fields::Fields;
use super::rope::RopeConfig;
use super::{Error, Family, Gemma4Config};

/// A `config.json`: the whole, and the part about text, which is the whole if there is no wrapper.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub top: Fields<'a>,
    pub text: Fields<'a>,
}

type Parse = fn(Source<'_>) -> Result<Family, Error>;

/// Every `model_type` that can be loaded, and who reads its config.
const FAMILIES: &[(&str, Parse)] = &[
    ("bert", bert::bert),
    ("deepseek_v2", deepseek::deepseek),
    ("deepseek_v3", deepseek::deepseek),
    ("dots1", glm4_moe::dots1),
    ("ernie4_5", ernie4_5::parse),
    ("exaone4", exaone4::parse),
    ("falcon_ocr", falcon_ocr::parse),
    ("gemma3", gemma3::wrapper),
    ("gemma3_text", gemma3::parse),
    ("gemma3n", gemma3n),
    ("gemma3n_text", gemma3n),
    ("gemma4", gemma4),
    ("gemma4_text", gemma4),
    ("gemma4_unified", gemma4),
    ("glm4", glm4::parse),
    ("glm4_moe", glm4_moe::glm4_moe),
    ("glm4_moe_lite", deepseek::glm4_moe_lite),
    ("glm4v", glm4::parse),
    ("glm4v_moe", glm4_moe::glm4_moe),
    ("glm_ocr", glm4::parse),
    ("gpt_oss", gpt_oss::parse),
    ("granite", granite::parse),
    ("hunyuan_v1_dense", hunyuan::parse),
    ("hunyuan_vl", hunyuan::parse),
    ("idefics3", seeing::by_language_part),
    ("internvl", seeing::by_language_part),
    ("internvl_chat", seeing::by_language_part),
    ("iquestcoder", llama::parse),
    ("joyai_llm_flash", deepseek::deepseek),
    ("kimi_k2", deepseek::deepseek),
    ("lfm2", lfm2::lfm2),
    ("lfm2-vl", seeing::by_language_part),
    ("lfm2_moe", lfm2::lfm2_moe),
    ("lfm2_vl", seeing::by_language_part),
    ("llama", llama::parse),
    ("mimo", qwen::qwen2),
    ("ministral3", mistral::ministral3),
    ("mistral", mistral::mistral),
    ("mistral3", mistral::wrapper),
    ("mixtral", mixtral::parse),
    ("mllama", mllama::parse),
    ("nomic_bert", nomic_bert::parse),
    ("olmo2", olmo::olmo2),
    ("olmo3", olmo::olmo3),
    ("olmoe", olmo::olmoe),
    ("paddleocr_vl", ernie4_5::paddleocr),
    ("phi3", phi3::parse),
    ("pixtral", seeing::by_language_part),
    ("qwen2", qwen::qwen2),
    ("qwen2_5_vl", qwen::qwen2),
    ("qwen2_moe", qwen_moe::qwen2_moe),
    ("qwen2_vl", qwen::qwen2),
    ("qwen3", qwen::qwen3),
    ("qwen3_5", qwen_hybrid::qwen3_5),
    ("qwen3_5_moe", qwen_hybrid::qwen3_5),
    ("qwen3_5_moe_text", qwen_hybrid::qwen3_5),
    ("qwen3_5_text", qwen_hybrid::qwen3_5),
    ("qwen3_moe", qwen_moe::qwen3_moe),
    ("qwen3_next", qwen_hybrid::qwen3_next),
    ("qwen3_omni_moe", qwen_moe::qwen3_vl_moe),
    ("qwen3_vl", qwen::qwen3),
    ("qwen3_vl_moe", qwen_moe::qwen3_vl_moe),
    ("roberta", bert::roberta),
    ("seed_oss", seed_oss::parse),
    ("smollm3", smollm3::parse),
    ("smolvlm", seeing::by_language_part),
    ("xlm-roberta", bert::roberta),
    ("xverse", llama::parse),
];

/// Every `model_type` that can be loaded.
pub const KNOWN_MODEL_TYPES: [&str; FAMILIES.len()] = {
    let mut names = [""; FAMILIES.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = FAMILIES[index].0;
        index += 1;
    }
    names
};

/// Reads the shapes of a model of this type.
pub(super) fn parse(model_type: &str, source: Source<'_>) -> Result<Family, Error> {
    match FAMILIES.iter().find(|(name, _)| *name == model_type) {
        Some((_, parse)) => parse(source),
        None => Err(refused::refused(model_type).unwrap_or_else(|| Error::UnknownFamily(model_type.to_owned()))),
    }
}

fn gemma3n(source: Source<'_>) -> Result<Family, Error> {
    Ok(Family::Gemma4(super::gemma3n::parse(source.text)?))
}

fn gemma4(source: Source<'_>) -> Result<Family, Error> {
    let config = Gemma4Config::parse(source.text, source.top.number("vocab_size")?)?;
    Ok(Family::Gemma4(config))
}

/// The shapes that nearly every dense decoder's config has under the same names.
struct Shapes {
    hidden_size: u32,
    vocab_size: u32,
    layers: u32,
    heads: u32,
    key_heads: u32,
    head_dim: u32,
    /// `intermediate_size`.
    width: u32,
    eps: f32,
    lm_head: LmHead,
}

impl Shapes {
    fn parse(text: Fields<'_>) -> Result<Self, Error> {
        Self::with_width(text, text.required("intermediate_size")?)
    }

    /// The same if the config need not tell the width of a dense network.
    fn with_width(text: Fields<'_>, width: u32) -> Result<Self, Error> {
        let (hidden_size, heads) = (text.required("hidden_size")?, text.required("num_attention_heads")?);
        Ok(Self {
            hidden_size,
            vocab_size: text.required("vocab_size")?,
            layers: check_layers(text.required("num_hidden_layers")?)?,
            heads,
            key_heads: text.number("num_key_value_heads")?.unwrap_or(heads),
            head_dim: text.number("head_dim")?.unwrap_or(hidden_size / heads),
            width,
            eps: text.number("rms_norm_eps")?.unwrap_or(1e-6),
            lm_head: match text.flag("tie_word_embeddings")? {
                Some(true) => LmHead::Tied,
                Some(false) => LmHead::Untied,
                None => LmHead::UntiedIfPresent,
            },
        })
    }

    /// A decoder of these shapes without any of the multipliers.
    fn decoder(&self, ropes: Vec<RopeConfig>, layers: Vec<LayerConfig>) -> DecoderConfig {
        DecoderConfig {
            hidden_size: self.hidden_size,
            vocab_size: self.vocab_size,
            read_only_tokens: 0,
            norm: NormConfig {
                eps: self.eps,
                offset: false,
                bare: false,
            },
            embedding_multiplier: None,
            residual_multiplier: None,
            bidirectional: false,
            clip_residual: false,
            logits_divisor: None,
            logits_softcap: None,
            norm_offset_unless_sanitized: false,
            lm_head: self.lm_head,
            ropes,
            layers,
            absent_layers: Vec::new(),
            renames: &[],
        }
    }
}

impl DecoderConfig {
    /// The checked end of a family's parser.
    fn family(self) -> Result<Family, Error> {
        Ok(Family::Decoder(Box::new(self.check()?)))
    }
}

/// The window of each layer by `layer_types`; `None` if the config has no such list.
fn windows(text: Fields<'_>, layers: u32) -> Result<Option<Vec<Option<u32>>>, Error> {
    const FIELD: &str = "layer_types";
    let Some(names) = text.texts(FIELD)? else { return Ok(None) };
    if names.len() != layers as usize {
        return Err(Error::InvalidField {
            field: FIELD,
            reason: format!("it names {} of {layers} layers", names.len()),
        });
    }
    let windows = names.into_iter().map(|name| match name {
        "full_attention" => Ok(None),
        "sliding_attention" => text.required("sliding_window").map(Some),
        other => Err(Error::Unsupported(format!("layers of type `{other}`"))),
    });
    windows.collect::<Result<_, _>>().map(Some)
}
