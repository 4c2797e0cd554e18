//! Settings of one chat, and presets.

use protocol::{limits, ImageDetail, KvBits, Result, Sampling, Thinking, ToolRef};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The settings of a chat's next turn. Stored as JSON in this form, so a new setting is a field with a default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ChatSettings {
    /// The model's reference; `None` follows the default model, until the first question of a chat.
    pub model: Option<String>,
    /// The Thinking switch; `None` follows the model's template.
    pub thinking: Option<Thinking>,
    /// The maximum number of thinking tokens; `None` for no limit.
    pub thinking_budget: Option<u32>,
    /// The system prompt; empty if there is none.
    pub system_prompt: String,
    /// The sampling options.
    pub sampling: Sampling,
    /// The maximum number of tokens in an answer, its thought included; `None` for the rest of the context.
    pub max_tokens: Option<u32>,
    /// The maximum size of the context, if the local model has more; `None` for all of it.
    pub context: Option<u32>,
    /// KV cache quantization of local models; `None` for the user's default for the model, or full precision.
    #[ts(type = "4 | 8 | null")]
    pub kv_bits: Option<KvBits>,
    /// True for full precision, whatever the user's default for the model is.
    pub kv_off: bool,
    /// Stop texts: the answer ends at the first occurrence.
    pub stop: Vec<String>,
    /// The detail at which the model sees images.
    pub image_detail: ImageDetail,
    /// The summary of the chat that this one continues; empty if there is none.
    pub carried_summary: String,
    /// The tools that the model may call. They are an offer and no consent: every call needs one of its own.
    pub tools: Vec<ToolRef>,
    /// Collections of documents that the chat asks beside those of its project.
    pub collections: Vec<String>,
    /// How its documents are read for a question.
    pub retrieval: Retrieval,
}

/// How the documents of a chat are read for a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Retrieval {
    /// Passages are searched for every question, and given to the model with it.
    #[default]
    Automatic,
    /// The model searches itself, with tools.
    Tools,
    /// They are not read.
    Off,
}

impl ChatSettings {
    /// Refuses values that no request may have.
    ///
    /// # Errors
    /// `BadRequest`, whose argument `field` names the first wrong one.
    pub fn check(&self) -> Result<()> {
        self.sampling.check()?;
        limits::check_max_tokens(self.max_tokens)?;
        limits::check_context(self.context)?;
        limits::check_stop(&self.stop)
    }
}

/// Chat settings with a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// Its settings. Applying it keeps a chat's model, tools, documents and carried summary.
    pub settings: ChatSettings,
}

impl Preset {
    /// The longest name, in characters.
    pub const LONGEST_NAME: usize = 60;

    /// These settings, with those of the preset applied.
    #[must_use]
    pub fn applied_to(&self, settings: &ChatSettings) -> ChatSettings {
        ChatSettings {
            model: settings.model.clone(),
            carried_summary: settings.carried_summary.clone(),
            tools: settings.tools.clone(),
            collections: settings.collections.clone(),
            retrieval: settings.retrieval,
            ..self.settings.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Argument, ErrorCode};

    fn refused(settings: ChatSettings) -> String {
        let error = settings.check().expect_err("it is refused");
        assert_eq!(error.code, ErrorCode::BadRequest);
        match &error.arguments["field"] {
            Argument::Text(field) => field.clone(),
            Argument::Number(number) => panic!("{number} is no field"),
        }
    }

    #[test]
    fn a_value_that_no_request_may_have_is_refused_by_the_name_of_its_field() {
        let sampling = |sampling: Sampling| ChatSettings {
            sampling,
            ..ChatSettings::default()
        };
        let chat = ChatSettings::default;
        assert_eq!(chat().check(), Ok(()));
        for (settings, field) in [
            (
                sampling(Sampling {
                    temperature: Some(-0.1),
                    ..Sampling::default()
                }),
                "temperature",
            ),
            (
                sampling(Sampling {
                    temperature: Some(f32::NAN),
                    ..Sampling::default()
                }),
                "temperature",
            ),
            (
                sampling(Sampling {
                    top_p: Some(1.5),
                    ..Sampling::default()
                }),
                "top_p",
            ),
            (
                sampling(Sampling {
                    min_p: Some(-1.0),
                    ..Sampling::default()
                }),
                "min_p",
            ),
            (
                sampling(Sampling {
                    repetition_penalty: Some(101.0),
                    ..Sampling::default()
                }),
                "repetition_penalty",
            ),
            (
                ChatSettings {
                    max_tokens: Some(0),
                    ..chat()
                },
                "max_tokens",
            ),
            (
                ChatSettings {
                    context: Some(100),
                    ..chat()
                },
                "context",
            ),
            (
                ChatSettings {
                    stop: vec![String::new()],
                    ..chat()
                },
                "stop",
            ),
            (
                ChatSettings {
                    stop: vec!["a".into(); limits::MOST_STOPS + 1],
                    ..chat()
                },
                "stop",
            ),
        ] {
            assert_eq!(refused(settings), field);
        }
        let all = ChatSettings {
            sampling: Sampling {
                temperature: Some(0.0),
                top_p: Some(1.0),
                seed: Some(7),
                ..Sampling::default()
            },
            max_tokens: Some(1),
            context: Some(512),
            kv_bits: Some(KvBits::Four),
            stop: vec!["\n\n".into()],
            ..chat()
        };
        assert_eq!(all.check(), Ok(()));
    }

    #[test]
    fn a_chat_of_an_earlier_version_opens_with_the_defaults_of_what_came_later() {
        let old = r#"{"model":"pebble","thinking":"off","thinking_budget":null,"system_prompt":"Be brief.","sampling":{"temperature":0.5}}"#;
        let read: ChatSettings = serde_json::from_str(old).unwrap();
        assert_eq!(read.system_prompt, "Be brief.");
        assert_eq!(
            (read.max_tokens, read.context, read.kv_bits, read.stop),
            (None, None, None, Vec::new())
        );
    }

    #[test]
    fn a_preset_leaves_the_model_and_what_a_chat_carries_alone() {
        let preset = Preset {
            name: "Precise".into(),
            settings: ChatSettings {
                model: Some("other".into()),
                max_tokens: Some(64),
                ..ChatSettings::default()
            },
        };
        let chat = ChatSettings {
            model: Some("mine".into()),
            carried_summary: "Cats.".into(),
            context: Some(4096),
            ..ChatSettings::default()
        };
        let applied = preset.applied_to(&chat);
        assert_eq!(
            (applied.model.as_deref(), applied.carried_summary.as_str()),
            (Some("mine"), "Cats.")
        );
        assert_eq!((applied.max_tokens, applied.context), (Some(64), None));
    }
}
