//! A model's `config.json`, read without MLX: its family, shapes, context and quantization. The loader builds from it,
//! the list of models shows it.

use std::path::Path;

use protocol::ModelKind;
use serde_json::Value;

use crate::config::decoder::LmHead;
use crate::config::{Family, Fields, Quantization};
use crate::error::Error;
use crate::families::{self, Source, VisionConfig};
use crate::files::parse_json;

/// A model's `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// `model_type`, as written.
    pub model_type: String,
    /// Tokens the context holds.
    pub context: u32,
    /// How the weights were quantized, as the file says; the loader goes by the shapes of the weights.
    pub quantization: Option<Quantization>,
    /// The type of the weights that are not quantized, such as `bfloat16`, if the file says.
    pub dtype: Option<String>,
    /// The family and its shapes.
    pub family: Family,
    /// The tower that looks at images, if there is one that can be built. [`check_folder`](crate::check_folder) takes
    /// it away if the weights lack it.
    pub vision: Option<VisionConfig>,
    /// Why a tower that the file describes cannot be built: a sentence for people.
    /// [`check_folder`](crate::check_folder) takes it away as well if the weights have no tower.
    pub vision_problem: Option<String>,
    /// The purpose as far as this file tells; [`check_compatibility`](crate::check_compatibility) knows more.
    pub kind: ModelKind,
}

impl ModelConfig {
    /// Reads `config.json` in a model's folder, for what it says; [`check_folder`](crate::check_folder) tells whether
    /// the model will run.
    pub fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("config.json");
        let json = std::fs::read_to_string(&path).map_err(|source| Error::Unreadable { path, source })?;
        Self::parse(&json)
    }

    /// Parses the text of a `config.json`.
    pub fn parse(json: &str) -> Result<Self, Error> {
        let value = parse_json(json).map_err(|error| Error::NotJson(error.to_string()))?;
        let Value::Object(object) = &value else {
            return Err(Error::NotJson("it holds another kind of value".into()));
        };
        let whole = Fields::new(object);
        let model_type = whole.text("model_type")?.ok_or(Error::MissingField("model_type"))?;
        // Qwen3-Omni: what speaks stands beside what thinks.
        let top = whole.object("thinker_config")?.unwrap_or(whole);
        // The original repositories of InternVL call it by another name.
        let text = top.object("text_config")?.or(top.object("llm_config")?);
        let text = text.or(top.object("language_config")?).unwrap_or(top);
        let mut family = families::parse(&model_type, Source { top, text })?;
        let context = text.first(&[
            "max_position_embeddings",
            "max_seq_len",
            "n_positions",
            "max_context_length",
            "max_sequence_length",
            "block_size",
        ])?;
        let context = family.context(context.unwrap_or(131_072));
        family.drop_windows(context);
        let bidirectional = family.is_bidirectional();
        // The language part reads texts without a tower that cannot be built.
        let (vision, vision_problem) = match families::parse_vision(&model_type, top) {
            Ok(vision) => (vision, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let config = Self {
            context,
            kind: match &family {
                Family::Head(_) => ModelKind::Draft,
                Family::Gemma4(_) | Family::Decoder(_) | Family::Encoder(_) => ModelKind::Chat,
            },
            quantization: Quantization::parse(whole, text)?,
            dtype: [whole, top, text].iter().find_map(|fields| {
                ["dtype", "torch_dtype"]
                    .iter()
                    .find_map(|name| fields.text(name).ok().flatten())
            }),
            vision,
            vision_problem,
            family,
            model_type,
        };
        Ok(match bidirectional {
            true if ranks(whole)? => Self {
                kind: ModelKind::Reranker,
                ..config.for_embeddings()
            },
            true => config.for_embeddings(),
            false => config,
        })
    }

    /// The same model without an output layer.
    pub(crate) fn for_embeddings(mut self) -> Self {
        self.kind = ModelKind::Embedding;
        (self.vision, self.vision_problem) = (None, None);
        if let Family::Decoder(decoder) = &mut self.family {
            decoder.lm_head = LmHead::Absent;
        }
        self
    }

    /// The quantization for people, such as `8 bit, groups of 64`, or the type of plain weights.
    pub fn quantization_label(&self) -> String {
        match &self.quantization {
            Some(quantization) => quantization.to_string(),
            None => self.dtype.clone().unwrap_or_else(|| "not quantised".into()),
        }
    }
}

/// True for a model of transformers' `…ForSequenceClassification` with one label, which is a score. `num_labels` is
/// written only by some; its default is the number of `id2label`, two without it.
fn ranks(config: Fields<'_>) -> Result<bool, Error> {
    let architectures = config.texts("architectures")?.unwrap_or_default();
    let classifies = architectures
        .iter()
        .any(|name| name.ends_with("ForSequenceClassification"));
    let named = config.object("id2label")?.map_or(2, Fields::count);
    Ok(classifies && config.number("num_labels")?.unwrap_or(named) == 1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PEBBLE: &str = include_str!("../../../../pebble/model/config.json");

    #[test]
    fn pebbles_config_is_read_whole() {
        let config = ModelConfig::parse(PEBBLE).unwrap();
        assert_eq!((config.model_type.as_str(), config.context), ("gemma4", 4096));
        assert_eq!(config.quantization_label(), "8 bit, groups of 64");
        let Family::Gemma4(gemma4) = config.family else {
            panic!("another family")
        };
        assert_eq!(
            (
                gemma4.hidden_size,
                gemma4.layers.len(),
                gemma4.vocab_size,
                gemma4.sliding_window
            ),
            (320, 8, 4096, 128)
        );
        assert_eq!(gemma4.hidden_size_per_layer_input, Some(64));
        assert_eq!(gemma4.final_logit_softcapping, Some(30.0));
    }

    #[test]
    fn an_unknown_model_type_is_named_beside_the_known_ones() {
        let error = ModelConfig::parse(r#"{"model_type": "mamba9"}"#).unwrap_err();
        assert!(
            error.to_string().contains("mamba9") && error.to_string().contains("gemma4"),
            "{error}"
        );
        assert_eq!(protocol::Error::from(error).code, protocol::ErrorCode::ModelUnsupported);
    }

    #[test]
    fn what_is_not_a_json_object_is_refused() {
        for text in ["", "hello", "[1, 2]", "{\"model_type\": "] {
            assert!(matches!(ModelConfig::parse(text), Err(Error::NotJson(_))), "{text:?}");
        }
    }

    #[test]
    fn null_means_absent_and_tagged_floats_are_numbers() {
        let json = PEBBLE
            .replace(
                "\"hidden_size_per_layer_input\": 64",
                "\"hidden_size_per_layer_input\": null",
            )
            .replace(
                "\"final_logit_softcapping\": 30.0",
                "\"final_logit_softcapping\": {\"__float__\": \"Infinity\"}",
            );
        let Family::Gemma4(gemma4) = ModelConfig::parse(&json).unwrap().family else {
            panic!("another family")
        };
        assert_eq!(gemma4.hidden_size_per_layer_input, None);
        assert_eq!(gemma4.final_logit_softcapping, Some(f32::INFINITY));
    }

    #[test]
    fn a_foreign_quantisation_is_named() {
        let json = PEBBLE
            .replace("\"quantization\"", "\"quantization_config\"")
            .replace("\"mode\": \"affine\"", "\"quant_method\": \"gptq\"");
        let error = ModelConfig::parse(&json).unwrap_err();
        assert!(error.to_string().contains("gptq"), "{error}");
    }
}
