//! A head that drafts for a model, and the model that it belongs to.

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
        let wanted = (head.layers.hidden_size, head.layers.vocab_size, head.model_layers);
        let found = match &self.family {
            Family::Decoder(decoder) => Some((decoder.hidden_size, decoder.vocab_size, decoder.layers.len() as u32)),
            Family::Gemma4(_) | Family::Encoder(_) | Family::Head(_) => None,
        };
        if found == Some(wanted) && head.model_types.contains(&self.model_type.as_str()) {
            return Ok(());
        }
        let shapes =
            |(width, tokens, layers): (u32, u32, u32)| format!("{layers} layers of width {width} and {tokens} tokens");
        let types: Vec<String> = head.model_types.iter().map(|name| format!("`{name}`")).collect();
        Err(Error::OtherModel {
            wanted: format!("{} with {}", types.join(" or "), shapes(wanted)),
            found: match found {
                Some(found) => format!("`{}` with {}", self.model_type, shapes(found)),
                None => format!("`{}`", self.model_type),
            },
        })
    }
}
