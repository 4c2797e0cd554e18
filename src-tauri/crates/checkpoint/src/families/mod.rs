//! From `model_type` to all that a family decides: one file per family, with its rows, and the list of those files.

mod afm7;
mod afmoe;
mod apertus;
mod baichuan;
mod bailing;
mod bailing_hybrid;
mod bert;
mod bitnet;
mod cohere;
mod dbrx;
mod deepseek;
mod deepseek_v4;
mod embedding_gemma2;
mod ernie4_5;
mod exaone;
mod exaone4;
mod experts;
mod falcon_h1;
mod falcon_ocr;
mod gear;
mod gemma;
mod gemma3;
mod gemma3n;
mod gemma4;
mod gemma4_assistant;
mod glm4;
mod glm4_moe;
mod gpt2;
mod gpt_neox;
mod gpt_oss;
mod granite;
mod granite_hybrid;
mod helium;
mod hrm_text;
mod hunyuan;
mod hunyuan4;
mod idefics;
mod internlm;
mod iquest_loop;
mod jamba;
mod kimi_linear;
mod klear;
mod kolibri;
mod laguna;
mod lfm2;
mod lille;
mod llama;
mod llama4;
mod longcat;
mod mamba;
mod mamba2;
mod mamba_fields;
mod mellum;
mod mimo_v2;
mod minicpm;
mod minimax;
mod minimax_m3;
mod mistral;
mod mistral4;
mod mixtral;
mod mllama;
mod modernbert;
mod molmo;
mod muse_glimmer;
mod nanbeige;
mod nanochat;
mod nemotron;
mod nemotron_h;
mod nemotron_nas;
mod nomic_bert;
mod olmo;
mod olmo1;
mod olmo_hybrid;
mod openelm;
mod phi;
mod phi3;
mod phi3small;
mod phimoe;
mod phixtral;
mod plamo;
mod processors;
mod qwen;
mod qwen1;
mod qwen4;
mod qwen_hybrid;
mod qwen_moe;
mod qwen_mtp;
mod recurrent_gemma;
mod refused;
mod row;
mod rwkv;
mod seed_oss;
mod shapes;
mod smollm3;
mod source;
mod spark2_5;
mod stablelm;
mod starcoder2;
mod step3p5;
mod talkie;
#[cfg(test)]
mod tests;
pub mod vision;
mod wrapper;
mod xing;

use std::sync::LazyLock;

use protocol::ModelKind;
use serde_json::Value;

use crate::config::{Family, Fields};
use crate::error::Error;
use crate::image_prompt::ImagePrompt;
pub use refused::{refused_models, RefusedModel};
use row::{FamilyRow, VisionRow};
pub(crate) use source::Source;
pub use vision::VisionConfig;

/// Every family that can be loaded.
const FAMILIES: &[&[FamilyRow]] = &[
    afm7::FAMILIES,
    afmoe::FAMILIES,
    apertus::FAMILIES,
    baichuan::FAMILIES,
    bailing::FAMILIES,
    bailing_hybrid::FAMILIES,
    bert::FAMILIES,
    bitnet::FAMILIES,
    cohere::FAMILIES,
    dbrx::FAMILIES,
    deepseek::FAMILIES,
    deepseek_v4::FAMILIES,
    embedding_gemma2::FAMILIES,
    ernie4_5::FAMILIES,
    exaone4::FAMILIES,
    exaone::FAMILIES,
    falcon_h1::FAMILIES,
    falcon_ocr::FAMILIES,
    gear::FAMILIES,
    gemma3::FAMILIES,
    gemma3n::FAMILIES,
    gemma4::FAMILIES,
    gemma4_assistant::FAMILIES,
    gemma::FAMILIES,
    glm4::FAMILIES,
    glm4_moe::FAMILIES,
    gpt2::FAMILIES,
    gpt_neox::FAMILIES,
    gpt_oss::FAMILIES,
    granite::FAMILIES,
    granite_hybrid::FAMILIES,
    helium::FAMILIES,
    hrm_text::FAMILIES,
    hunyuan4::FAMILIES,
    hunyuan::FAMILIES,
    idefics::FAMILIES,
    internlm::FAMILIES,
    iquest_loop::FAMILIES,
    jamba::FAMILIES,
    kimi_linear::FAMILIES,
    klear::FAMILIES,
    kolibri::FAMILIES,
    laguna::FAMILIES,
    lfm2::FAMILIES,
    lille::FAMILIES,
    llama4::FAMILIES,
    llama::FAMILIES,
    longcat::FAMILIES,
    mamba2::FAMILIES,
    mamba::FAMILIES,
    mellum::FAMILIES,
    mimo_v2::FAMILIES,
    minicpm::FAMILIES,
    minimax::FAMILIES,
    minimax_m3::FAMILIES,
    mistral4::FAMILIES,
    mistral::FAMILIES,
    mixtral::FAMILIES,
    mllama::FAMILIES,
    modernbert::FAMILIES,
    molmo::FAMILIES,
    muse_glimmer::FAMILIES,
    nanbeige::FAMILIES,
    nanochat::FAMILIES,
    nemotron::FAMILIES,
    nemotron_h::FAMILIES,
    nemotron_nas::FAMILIES,
    nomic_bert::FAMILIES,
    olmo1::FAMILIES,
    olmo::FAMILIES,
    olmo_hybrid::FAMILIES,
    openelm::FAMILIES,
    phi3::FAMILIES,
    phi3small::FAMILIES,
    phi::FAMILIES,
    phimoe::FAMILIES,
    phixtral::FAMILIES,
    plamo::FAMILIES,
    qwen1::FAMILIES,
    qwen::FAMILIES,
    qwen4::FAMILIES,
    qwen_hybrid::FAMILIES,
    qwen_moe::FAMILIES,
    qwen_mtp::FAMILIES,
    recurrent_gemma::FAMILIES,
    rwkv::FAMILIES,
    seed_oss::FAMILIES,
    smollm3::FAMILIES,
    spark2_5::FAMILIES,
    stablelm::FAMILIES,
    starcoder2::FAMILIES,
    step3p5::FAMILIES,
    talkie::FAMILIES,
    vision::bunny::FAMILIES,
    vision::deepencoder::FAMILIES,
    vision::deepseek_vl::FAMILIES,
    vision::fastvit::FAMILIES,
    vision::granite4::FAMILIES,
    vision::idefics2::FAMILIES,
    vision::internvit::FAMILIES,
    vision::janus::FAMILIES,
    vision::llava::FAMILIES,
    vision::minicpmv::FAMILIES,
    vision::moonvit::FAMILIES,
    vision::paligemma::FAMILIES,
    vision::phi3v::FAMILIES,
    vision::phi4::FAMILIES,
    vision::pixtral::FAMILIES,
    vision::radio::FAMILIES,
    xing::FAMILIES,
];

/// Every `model_type` that can be loaded, in alphabetical order.
pub static KNOWN_MODEL_TYPES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut types: Vec<_> = rows().flat_map(|row| row.model_types).copied().collect();
    types.sort_unstable();
    types
});

/// A family, for lists of what can be loaded.
#[derive(Debug, Clone, Copy)]
pub struct SupportedFamily {
    /// The models, as their makers call them.
    pub name: &'static str,
    /// The `model_type`s of config.json that go by it.
    pub model_types: &'static [&'static str],
    /// The purpose of models without files that name another one.
    pub kind: ModelKind,
    /// True if models of the family read images.
    pub vision: bool,
}

/// Every family that can be loaded, in no particular order.
pub fn supported_families() -> impl Iterator<Item = SupportedFamily> {
    rows().map(|row| SupportedFamily {
        name: row.name,
        model_types: row.model_types,
        kind: row.kind,
        vision: row.vision.is_some(),
    })
}

fn rows() -> impl Iterator<Item = &'static FamilyRow> {
    FAMILIES.iter().copied().flatten()
}

fn row(model_type: &str) -> Option<&'static FamilyRow> {
    rows().find(|row| row.model_types.contains(&model_type))
}

fn vision_rows() -> impl Iterator<Item = &'static VisionRow> {
    rows().filter_map(|row| row.vision.as_ref())
}

fn vision_row(model_type: &str) -> Option<&'static VisionRow> {
    row(model_type)?.vision.as_ref()
}

/// The type whose row tells how a model with a tower of this type or name sees: Pixtral's own repositories call it
/// LLaVA, and those of DeepSeek-OCR call it DeepSeek-VL2.
fn sees_as<'a>(model_type: &'a str, tower: Option<&str>) -> &'a str {
    match (model_type, tower) {
        ("llava", Some("pixtral")) => "pixtral",
        ("deepseek_vl_v2", Some("deeplip_b_l")) => "deepseekocr",
        _ => model_type,
    }
}

/// The row that tells how the model with this `config.json` sees.
fn vision_row_of(config: &Value) -> Option<&'static VisionRow> {
    let tower = config
        .get("vision_config")
        .and_then(|vision| vision.get("model_name").or(vision.get("model_type"))?.as_str());
    vision_row(sees_as(config.get("model_type")?.as_str()?, tower))
}

/// Reads the shapes of a model of this type.
pub(crate) fn parse(model_type: &str, source: Source<'_>) -> Result<Family, Error> {
    match row(model_type) {
        Some(row) => (row.text)(source),
        None => Err(refused::refused(model_type).unwrap_or_else(|| unknown(model_type))),
    }
}

/// Reads the vision encoder of a model's file; `None` if models of this type have none.
///
/// # Errors
/// Why no encoder can be built, if the file describes one or models of this type have one.
pub(crate) fn parse_vision(model_type: &str, top: Fields<'_>) -> Result<Option<VisionConfig>, Error> {
    const FIELD: &str = "vision_config";
    let tower = top
        .object(FIELD)
        .ok()
        .flatten()
        .map(|vision| Ok::<_, Error>(vision.text("model_name")?.or(vision.text("model_type")?)))
        .transpose()?;
    let Some(row) = vision_row(sees_as(model_type, tower.flatten().as_deref())) else {
        return match top.has(FIELD) {
            true => Err(Error::Unsupported(format!(
                "a vision tower beside models of type `{model_type}`"
            ))),
            false => Ok(None),
        };
    };
    let vision = match row.processor.fixed {
        true => top,
        false => top.object(FIELD)?.ok_or(Error::MissingField(FIELD))?,
    };
    (row.encoder)(vision, top).map(Some)
}

/// The form of images in the prompts of the model with this `config.json`; `None` if its family reads none.
pub fn image_prompt(config: &Value) -> Option<&'static ImagePrompt> {
    Some(&vision_row_of(config)?.prompt)
}

fn unknown(model_type: &str) -> Error {
    Error::UnknownFamily {
        model_type: model_type.to_owned(),
        known: &KNOWN_MODEL_TYPES,
    }
}
