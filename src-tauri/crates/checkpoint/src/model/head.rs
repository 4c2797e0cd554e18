//! A head that drafts for a model, and the model that it belongs to.

use crate::config::head::HeadLayers;
use crate::config::{Family, HeadConfig};
use crate::error::Error;
use crate::model::config::ModelConfig;

impl ModelConfig {
    /// The head that it describes; `None` if it is a model of its own.
    pub fn head(&self) -> Option<&HeadConfig> {
        match &self.family {
            Family::Head(head) => Some(head),
            Family::Gemma4(_) | Family::Decoder(_) | Family::Encoder(_) => None,
        }
    }

    /// Refuses a head that belongs to a model of another type or of other shapes.
    ///
    /// # Errors
    /// [`Error::OtherModel`], which names both.
    pub fn check_head(&self, head: &HeadConfig) -> Result<(), Error> {
        let (found, layers, reads_keys) = match (&self.family, &head.layers) {
            (Family::Decoder(model), HeadLayers::Decoder(_)) => {
                ((model.hidden_size, model.vocab_size), model.layers.len() as u32, true)
            }
            (Family::Gemma4(model), HeadLayers::Assistant(assistant)) => (
                (model.hidden_size, model.vocab_size),
                model.layers.len() as u32,
                assistant.reads_keys_of(model),
            ),
            _ => ((0, 0), 0, false),
        };
        let wanted = (head.hidden_size, head.vocab_size);
        let same_layers = head.model_layers.is_none_or(|wanted| wanted == layers);
        if found == wanted && same_layers && reads_keys && head.model_types.contains(&self.model_type.as_str()) {
            return Ok(());
        }
        let shapes = |(width, tokens): (u32, u32), layers: Option<u32>| {
            let layers = layers.map_or_else(String::new, |layers| format!("{layers} layers of "));
            format!("{layers}width {width} and {tokens} tokens")
        };
        let types: Vec<String> = head.model_types.iter().map(|name| format!("`{name}`")).collect();
        let keys = match head.layers {
            HeadLayers::Decoder(_) => "",
            HeadLayers::Assistant(_) => " and heads like its own",
        };
        Err(Error::OtherModel {
            wanted: format!(
                "{} with {}{keys}",
                types.join(" or "),
                shapes(wanted, head.model_layers)
            ),
            found: match layers {
                0 => format!("`{}`", self.model_type),
                _ => format!("`{}` with {}", self.model_type, shapes(found, Some(layers))),
            },
        })
    }
}
