//! Facts about a remote model that were learned from its answers, for the lifetime of this process.

use protocol::{Thinking, ThinkingControl};

use super::body::UnsupportedFields;

/// The known quirks of a model behind an endpoint.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ModelQuirks {
    /// Fields that were refused.
    pub(crate) refused: UnsupportedFields,
    /// It thought though the switch was off.
    pub(crate) ignores_switch: bool,
    /// Its prompt opens a thought, and the server does not separate it.
    pub(crate) opens_thought: bool,
    /// It refused images.
    pub(crate) refuses_images: bool,
}

impl ModelQuirks {
    /// The control over the model's reasoning. Both forms of the switch are offered until they are known to have no
    /// effect.
    pub(crate) fn thinking(&self) -> ThinkingControl {
        let (switch, effort) = (
            !self.refused.contains("chat_template_kwargs"),
            !self.refused.contains("reasoning_effort"),
        );
        match (switch && !self.ignores_switch, effort && !self.ignores_switch) {
            (_, true) => ThinkingControl::Levels {
                levels: vec![Thinking::Low, Thinking::Medium, Thinking::High],
                default: None,
                off: true,
            },
            (true, false) => ThinkingControl::Switch { default_on: true },
            (false, false) => ThinkingControl::ByRequest { default_on: true },
        }
    }
}
