//! What has been found out about a remote model, as long as this process lives.

use protocol::{Thinking, ThinkingControl};

use crate::body::Refused;

/// What a model of an endpoint is known to do.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Learned {
    /// Fields that were refused.
    pub(crate) refused: Refused,
    /// It thought though the switch was off.
    pub(crate) ignores_switch: bool,
    /// Its prompt opens a thought, and the server does not set it apart.
    pub(crate) opens_thought: bool,
    /// It refused pictures.
    pub(crate) blind: bool,
}

impl Learned {
    /// What can be done about the model's reasoning. Both forms of the switch are offered until they are known to do nothing.
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
