//! The settings of the app: one struct, whose fields are the keys of history's table `settings`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use crate::{ChatSettings, Content, Endpoint, Error, ErrorCode, Result, ServerSettings, Thinking};

/// What a person has set for the whole app. What is stored leaves out what was never changed, so a new field needs a default
/// here and nothing else. Not in here: the offline switch, which `net` keeps in a file of its own that fails closed; keys, which
/// lie in the keychain; and what is remembered without having been set, such as [`ChatWindowState`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
#[ts(export)]
pub struct Settings {
    /// The reference of the model that answers in chats that chose none.
    pub default_model: String,
    /// Folders in which models are looked for, beside the cache that is shared with other programs. Absolute paths.
    pub model_folders: Vec<String>,
    /// Servers whose models may be asked. Their keys are no part of it.
    pub endpoints: Vec<Endpoint>,
    /// The Thinking switch of new chats; `None` follows the model's template.
    pub thinking: Option<Thinking>,
    /// The most tokens a thought may take in new chats; `None`: as many as it wants.
    pub thinking_budget: Option<u32>,
    /// The server that answers other programs.
    pub server: ServerSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_model: "pebble".into(),
            model_folders: Vec::new(),
            endpoints: Vec::new(),
            thinking: None,
            thinking_budget: None,
            server: ServerSettings::default(),
        }
    }
}

impl Settings {
    /// The settings that these values, by their keys, stand for. A key that is not known, or a value that means nothing here, as
    /// a newer version may have stored it, counts as never set.
    #[must_use]
    pub fn from_stored(stored: Map<String, Value>) -> Self {
        let understood = stored.into_iter().filter(|(key, value)| {
            let alone = Map::from_iter([(key.clone(), value.clone())]);
            serde_json::from_value::<Self>(Value::Object(alone)).is_ok()
        });
        serde_json::from_value(Value::Object(understood.collect())).unwrap_or_default()
    }

    /// These settings with other values for some keys.
    ///
    /// # Errors
    /// `BadRequest` for a key that does not exist and for a value that is none of its kind.
    pub fn with(&self, change: &Map<String, Value>) -> Result<Self> {
        let mut values = self.to_map();
        values.extend(change.clone());
        serde_json::from_value(Value::Object(values))
            .map_err(|error| Error::new(ErrorCode::BadRequest, format!("no such setting: {error}")))
    }

    /// The keys, and their values here, that `before` has another value for.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Map<String, Value> {
        let before = before.to_map();
        self.to_map()
            .into_iter()
            .filter(|(key, value)| before.get(key) != Some(value))
            .collect()
    }

    /// What a new chat begins with.
    #[must_use]
    pub fn new_chat(&self) -> ChatSettings {
        ChatSettings {
            thinking: self.thinking,
            thinking_budget: self.thinking_budget,
            ..ChatSettings::default()
        }
    }

    fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(values)) => values,
            // A struct of plain values is an object.
            _ => Map::new(),
        }
    }
}

/// What the chat window remembers from one start to the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ChatWindowState {
    /// The chat that was open; `None`: a new one.
    pub open_chat: Option<String>,
    /// What was written for a new chat and not sent.
    pub new_draft: Vec<Content>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn only_what_was_changed_is_stored_and_what_is_not_understood_is_passed_over() {
        let before = Settings::default();
        let after = before
            .with(&object(json!({"thinking_budget": 512, "default_model": "a/b"})))
            .expect("they exist");
        let stored = after.changed_since(&before);
        assert_eq!(
            Value::Object(stored.clone()),
            json!({"default_model": "a/b", "thinking_budget": 512})
        );
        assert_eq!(Settings::from_stored(stored), after);

        // A server that a newer version set up otherwise stays off.
        let server = json!({"on": true, "only_from": "10.0.0.1"});
        let strange = object(json!({"thinking_budget": "much", "colour": "green", "default_model": "a/b", "server": server}));
        let read = Settings::from_stored(strange);
        assert_eq!(
            (read.default_model.as_str(), read.thinking_budget, read.server.on),
            ("a/b", None, false)
        );
    }

    #[test]
    fn a_change_names_settings_that_exist_and_values_of_their_kind() {
        for wrong in [
            json!({"colour": "green"}),
            json!({"thinking_budget": -1}),
            json!({"default_model": null}),
        ] {
            let refused = Settings::default().with(&object(wrong.clone())).expect_err("it is refused");
            assert_eq!(refused.code, ErrorCode::BadRequest, "{wrong}");
        }
    }
}
