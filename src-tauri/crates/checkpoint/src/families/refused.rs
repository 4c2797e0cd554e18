//! Models that people look for and that cannot be run yet: they are refused by their names, and told what else does the
//! same.

use crate::error::Error;

/// A model: every `model_type` it goes by, what it is, and what to take instead.
type Row = (&'static [&'static str], &'static str, &'static str);

const REFUSED: &[Row] = &[
    (
        &["ernie4_5_moe_vl", "ernie4_5_vl_moe"],
        "ERNIE 4.5 VL, which answers questions about images",
        "Qwen3-VL, GLM-4.5V and Gemma 4 do that here",
    ),
    (
        &["kimi_linear"],
        "Kimi Linear, whose layers carry states",
        "Qwen 3 Next and Nemotron 3 Nano do so here",
    ),
    (
        &["rwkv7"],
        "RWKV 7, whose layers carry states",
        "Mamba 2 and RecurrentGemma do so here",
    ),
    (
        &["plamo2"],
        "PLaMo 2, whose layers carry states",
        "Granite 4.0 H and Falcon-H1 do so here",
    ),
    (
        &["moondream1", "moondream3"],
        "Moondream, which answers questions about images",
        "Qwen3-VL, SmolVLM and Gemma 4 do that here",
    ),
];

/// Why a model of this type does not run, if it is one of these.
pub(super) fn refused(model_type: &str) -> Option<Error> {
    let (_, model, instead) = REFUSED.iter().find(|(names, ..)| names.contains(&model_type))?;
    Some(Error::NotYet { model, instead })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::KNOWN_MODEL_TYPES;
    use super::REFUSED;
    use crate::{check_compatibility, FileListing, ModelConfig};
    use protocol::{ErrorCode, ModelKind};

    #[test]
    fn a_model_that_cannot_be_run_yet_is_refused_by_its_name() {
        for (model_types, model, instead) in REFUSED {
            for model_type in *model_types {
                assert!(!KNOWN_MODEL_TYPES.contains(model_type), "{model_type} runs");
                // As its repository has it, with code of its own, which is not the reason.
                let config =
                    format!(r#"{{"model_type": "{model_type}", "auto_map": {{"AutoModel": "modeling.Model"}}}}"#);
                let listing = FileListing {
                    config: &config,
                    tokenizer_config: None,
                    files: &[],
                    card: ModelKind::Chat,
                };
                let error = protocol::Error::from(check_compatibility(&listing).unwrap_err());
                assert_eq!(error.code, ErrorCode::ModelUnsupported);
                assert!(
                    error.message.contains(model) && error.message.contains(instead),
                    "{}",
                    error.message
                );
                assert!(ModelConfig::parse(&config).is_err());
            }
        }
    }
}
