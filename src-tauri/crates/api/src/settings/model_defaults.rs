//! The user's defaults for a model.

use protocol::{limits, KvBits, Result, Sampling};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::settings::ChatSettings;

/// The user's settings for a model in all chats. Precedence, highest first: the request of a program, the chat, its
/// project, these defaults, the settings of the app, the model's `generation_config.json`, Ponder's defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ModelDefaults {
    /// The system prompt of chats that have none, nor instructions of a project; empty if there is none.
    pub system_prompt: String,
    /// The sampling options.
    pub sampling: Sampling,
    /// The maximum size of the context; `None` for all of the model's.
    pub context: Option<u32>,
    /// KV cache quantization; `None` for full precision.
    #[ts(type = "4 | 8 | null")]
    pub kv_bits: Option<KvBits>,
    /// The reference of the smaller model that drafts its answers; `None` for none.
    pub draft_model: Option<String>,
}

impl ModelDefaults {
    /// Refuses values that no request may have.
    ///
    /// # Errors
    /// `BadRequest`, whose argument `field` names the first wrong one.
    pub fn check(&self) -> Result<()> {
        self.sampling.check()?;
        limits::check_context(self.context)
    }

    /// The settings of a chat, with these for what it leaves open.
    #[must_use]
    pub fn applied_to(&self, chat: ChatSettings) -> ChatSettings {
        let system_prompt = match chat.system_prompt.trim().is_empty() {
            true => self.system_prompt.clone(),
            false => chat.system_prompt.clone(),
        };
        ChatSettings {
            system_prompt,
            sampling: Sampling {
                seed: chat.sampling.seed.or(self.sampling.seed),
                ..chat.sampling.or(&self.sampling)
            },
            context: chat.context.or(self.context),
            kv_bits: chat.kv_bits.or(self.kv_bits.filter(|_| !chat.kv_off)),
            ..chat
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> ModelDefaults {
        ModelDefaults {
            system_prompt: "Be brief.".into(),
            sampling: Sampling {
                temperature: Some(0.3),
                top_k: Some(20),
                seed: Some(7),
                ..Sampling::default()
            },
            context: Some(8192),
            kv_bits: Some(KvBits::Eight),
            draft_model: None,
        }
    }

    #[test]
    fn what_a_chat_leaves_open_follows_the_defaults_for_its_model() {
        let open = defaults().applied_to(ChatSettings {
            max_tokens: Some(64),
            ..ChatSettings::default()
        });
        assert_eq!(open.system_prompt, "Be brief.");
        assert_eq!(
            (open.sampling.temperature, open.sampling.top_k, open.sampling.seed),
            (Some(0.3), Some(20), Some(7))
        );
        assert_eq!(
            (open.context, open.kv_bits, open.max_tokens),
            (Some(8192), Some(KvBits::Eight), Some(64))
        );
    }

    #[test]
    fn what_a_chat_sets_goes_before_the_defaults_for_its_model() {
        let chat = ChatSettings {
            system_prompt: "Rhyme.".into(),
            sampling: Sampling {
                temperature: Some(1.0),
                ..Sampling::default()
            },
            context: Some(1024),
            kv_bits: Some(KvBits::Four),
            ..ChatSettings::default()
        };
        let set = defaults().applied_to(chat.clone());
        assert_eq!(set.system_prompt, "Rhyme.");
        assert_eq!(
            (set.sampling.temperature, set.sampling.top_k),
            (Some(1.0), Some(20)),
            "one option of sampling leaves the others open"
        );
        assert_eq!((set.context, set.kv_bits), (Some(1024), Some(KvBits::Four)));
        let full = defaults().applied_to(ChatSettings {
            kv_bits: None,
            kv_off: true,
            ..chat
        });
        assert_eq!(full.kv_bits, None, "a chat can go back to full precision");
    }

    #[test]
    fn values_that_no_request_may_have_are_refused() {
        assert_eq!(defaults().check(), Ok(()));
        for wrong in [
            ModelDefaults {
                context: Some(1),
                ..defaults()
            },
            ModelDefaults {
                sampling: Sampling {
                    top_p: Some(2.0),
                    ..Sampling::default()
                },
                ..defaults()
            },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
