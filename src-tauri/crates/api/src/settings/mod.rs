//! The settings of the app: one struct whose fields are the keys of history's table `settings`.

mod appearance;
mod chat_settings;
mod model_defaults;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::limits::refusal;
use protocol::{ComputeDevice, Content, Error, ErrorCode, ImageDetail, Reason, Result, Thinking};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

pub use appearance::{Appearance, CodeTheme, Density, ReadingWidth, Theme, ThoughtDisplay};
pub use chat_settings::{ChatSettings, Preset, Retrieval};
pub use model_defaults::ModelDefaults;

use crate::app::ServerSettings;
use crate::models::Endpoint;

/// The user's settings for the whole app. Only changed values are stored, so a new field needs nothing but a default
/// here. Not included: the offline switch, which `net` keeps in a file of its own that fails closed; keys, which are in
/// the keychain; and state that is not a setting, such as [`ChatWindowState`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
#[ts(export)]
pub struct Settings {
    /// The reference of the model for chats that chose none.
    pub default_model: String,
    /// True if new chats use the model that was used last, as long as it is there; otherwise the default model.
    pub new_chats_use_last_model: bool,
    /// Folders that are searched for models, in addition to the shared cache. Absolute paths.
    pub model_folders: Vec<String>,
    /// The reference of the model that embeds passages of documents; `None` for the smallest on this computer.
    pub embedding_model: Option<String>,
    /// True if chats outside of projects are told the user's notes about themselves.
    pub uses_notes: bool,
    /// The endpoints. Their keys are in the keychain.
    pub endpoints: Vec<Endpoint>,
    /// The Thinking switch of new chats; `None` follows the model's template.
    pub thinking: Option<Thinking>,
    /// The thinking budget of new chats in tokens; `None` for no limit.
    pub thinking_budget: Option<u32>,
    /// True if the model of a chat's first answer generates its title, provided it is loaded.
    pub write_titles: bool,
    /// The language of the windows, a BCP 47 tag; `None`: the system's.
    pub language: Option<String>,
    /// The detail at which models see images in new chats, in commands, and for programs that do not choose.
    pub image_detail: ImageDetail,
    /// The server that answers other programs.
    pub server: ServerSettings,
    /// True if sleep is prevented while an answer or a download runs.
    pub keep_awake: bool,
    /// Texts that the user inserts by name.
    pub snippets: Vec<Snippet>,
    /// True if the desktop notifies about long answers and downloads that end while no window has the focus.
    pub notifications: bool,
    /// True if the app has an icon in the menu bar or the tray.
    pub tray: bool,
    /// The global shortcut of quick entry, such as `Alt+Space`; `None` for none.
    pub quick_entry: Option<String>,
    /// Named chat settings.
    pub presets: Vec<Preset>,
    /// The name of the preset for new chats.
    pub default_preset: Option<String>,
    /// The user's defaults for models, by their references.
    pub model_defaults: BTreeMap<String, ModelDefaults>,
    /// The appearance of the windows.
    pub appearance: Appearance,
    /// The settings of this computer's engine.
    pub engine: EngineSettings,
}

/// The settings of this computer's engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct EngineSettings {
    /// Minutes without a request after which a model is unloaded; `None` to keep it until its memory is needed.
    pub unload_after: Option<u32>,
    /// The size limit of each loaded model's prefix cache, in megabytes; `None` for a value that suits this computer.
    pub prefix_cache: Option<u32>,
    /// Threads that compute where there is no GPU, at most one for each core; `None` for as many as suit this computer.
    pub threads: Option<u32>,
    /// The device that computes.
    pub device: ComputeDevice,
}

impl EngineSettings {
    /// One week; the only longer setting is never.
    const LONGEST: u32 = 7 * 24 * 60;
    /// More than any computer's cores.
    const MOST_THREADS: u32 = 1024;

    fn check(&self) -> Result<()> {
        if let Some(threads) = self
            .threads
            .filter(|threads| !(1..=Self::MOST_THREADS).contains(threads))
        {
            let message = format!(
                "{threads} threads would compute; it has to be 1 to {}",
                Self::MOST_THREADS
            );
            return Err(refusal("threads", message)
                .with("low", 1u32)
                .with("high", Self::MOST_THREADS));
        }
        match self.unload_after {
            Some(minutes) if !(1..=Self::LONGEST).contains(&minutes) => {
                let message = format!(
                    "models would be unloaded after {minutes} minutes; it has to be 1 to {}",
                    Self::LONGEST
                );
                Err(refusal("unload_after", message)
                    .with("low", 1u32)
                    .with("high", Self::LONGEST))
            }
            _ => Ok(()),
        }
    }

    /// The time after which a model that was not used leaves memory, if that was set.
    #[must_use]
    pub fn unload_after(&self) -> Option<Duration> {
        self.unload_after
            .map(|minutes| Duration::from_secs(60 * u64::from(minutes)))
    }

    /// The bytes that each loaded model may keep of conversations that it has read, if that was set.
    #[must_use]
    pub fn prefix_cache_bytes(&self) -> Option<u64> {
        self.prefix_cache.map(|megabytes| u64::from(megabytes) * 1_000_000)
    }
}

/// A text that is inserted by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct Snippet {
    /// Its name, typed after a slash.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_model: "pebble".into(),
            new_chats_use_last_model: true,
            model_folders: Vec::new(),
            embedding_model: None,
            uses_notes: false,
            endpoints: Vec::new(),
            thinking: None,
            thinking_budget: None,
            write_titles: true,
            language: None,
            image_detail: ImageDetail::default(),
            server: ServerSettings::default(),
            keep_awake: false,
            snippets: Vec::new(),
            notifications: true,
            tray: false,
            quick_entry: None,
            presets: Vec::new(),
            default_preset: None,
            model_defaults: BTreeMap::new(),
            appearance: Appearance::default(),
            engine: EngineSettings::default(),
        }
    }
}

impl Settings {
    /// The settings with these stored values. An unknown key or an invalid value, as a newer version may have stored
    /// it, counts as not set.
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
    /// `BadRequest` for an unknown key or a value of the wrong type.
    pub fn with(&self, change: &Map<String, Value>) -> Result<Self> {
        let mut values = self.to_map();
        values.extend(change.clone());
        let changed: Self = serde_json::from_value(Value::Object(values))
            .map_err(|error| Error::new(ErrorCode::BadRequest, format!("no such setting: {error}")))?;
        changed.check()?;
        Ok(changed)
    }

    fn check(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        for preset in &self.presets {
            preset.settings.check()?;
            let name = preset.name.trim();
            if name.is_empty() || name.chars().count() > Preset::LONGEST_NAME {
                let message = format!("a preset's name has 1 to {} characters", Preset::LONGEST_NAME);
                return Err(refusal("preset", message).with("longest", Preset::LONGEST_NAME));
            }
            if !names.insert(name.to_lowercase()) {
                let error = refusal("preset", format!("there is a preset called {name} already"));
                return Err(error.narrowed(Reason::PresetNameTaken).with("name", name));
            }
        }
        if let Some(name) = self
            .default_preset
            .as_deref()
            .filter(|_| self.chosen_preset().is_none())
        {
            return Err(refusal("default_preset", format!("there is no preset called {name}")).with("name", name));
        }
        self.model_defaults.values().try_for_each(ModelDefaults::check)?;
        self.appearance.check()?;
        self.engine.check()
    }

    /// The preset for new chats.
    fn chosen_preset(&self) -> Option<&Preset> {
        let chosen = self.default_preset.as_ref()?;
        self.presets.iter().find(|preset| preset.name == *chosen)
    }

    /// The keys whose values differ from those of `before`, with the values here.
    #[must_use]
    pub fn changed_since(&self, before: &Self) -> Map<String, Value> {
        let before = before.to_map();
        self.to_map()
            .into_iter()
            .filter(|(key, value)| before.get(key) != Some(value))
            .collect()
    }

    /// The settings of a new chat, with the default model.
    #[must_use]
    pub fn new_chat(&self) -> ChatSettings {
        let plain = ChatSettings {
            thinking: self.thinking,
            thinking_budget: self.thinking_budget,
            image_detail: self.image_detail,
            ..ChatSettings::default()
        };
        match self.chosen_preset() {
            // Thinking that the preset leaves open follows the setting for new chats.
            Some(preset) => ChatSettings {
                thinking: preset.settings.thinking.or(plain.thinking),
                thinking_budget: preset.settings.thinking_budget.or(plain.thinking_budget),
                ..preset.applied_to(&plain)
            },
            None => plain,
        }
    }

    fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(values)) => values,
            // A struct of plain values serializes as an object.
            _ => Map::new(),
        }
    }
}

/// State that the chat window restores at the next start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct ChatWindowState {
    /// The open chat; `None` for a new one.
    pub open_chat: Option<String>,
    /// The unsent draft of a new chat.
    pub new_draft: Vec<Content>,
    /// The projects whose chats are not listed.
    pub folded_projects: Vec<String>,
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

        // A server that a newer version configured differently stays off.
        let server = json!({"on": true, "only_from": "10.0.0.1"});
        let strange =
            object(json!({"thinking_budget": "much", "colour": "green", "default_model": "a/b", "server": server}));
        let read = Settings::from_stored(strange);
        assert_eq!(
            (read.default_model.as_str(), read.thinking_budget, read.server.on),
            ("a/b", None, false)
        );
    }

    #[test]
    fn new_chats_begin_with_the_chosen_preset() {
        let preset =
            json!({"name": "Short", "settings": {"model": "other", "max_tokens": 64, "carried_summary": "Cats."}});
        let change = json!({"presets": [preset], "default_preset": "Short", "thinking": "off"});
        let settings = Settings::default().with(&object(change)).expect("it exists");
        let begun = settings.new_chat();
        assert_eq!(
            (begun.model, begun.max_tokens, begun.carried_summary),
            (None, Some(64), String::new())
        );
        assert_eq!(
            begun.thinking,
            Some(Thinking::Off),
            "what the preset leaves open holds as set for new chats"
        );
        let gone = settings
            .with(&object(json!({"presets": []})))
            .expect_err("new chats would begin with nothing");
        assert_eq!(gone.code, ErrorCode::BadRequest);
        let settings = settings
            .with(&object(json!({"presets": [], "default_preset": null})))
            .expect("together");
        assert_eq!(settings.new_chat().max_tokens, None);
    }

    #[test]
    fn a_change_names_settings_that_exist_and_values_of_their_kind() {
        let preset = |name: &str| json!({"name": name, "settings": {}});
        for wrong in [
            json!({"colour": "green"}),
            json!({"thinking_budget": -1}),
            json!({"default_model": null}),
            json!({"presets": [preset("a"), preset(" A ")]}),
            json!({"presets": [preset(" ")]}),
            json!({"presets": [{"name": "a", "settings": {"max_tokens": 0}}]}),
            json!({"default_preset": "a"}),
            json!({"model_defaults": {"a/b": {"context": 1}}}),
            json!({"appearance": {"zoom": 20}}),
            json!({"appearance": {"theme": "green"}}),
            json!({"engine": {"unload_after": 0}}),
            json!({"engine": {"threads": 0}}),
            json!({"engine": {"threads": 1025}}),
            json!({"engine": {"device": "tpu"}}),
        ] {
            let refused = Settings::default()
                .with(&object(wrong.clone()))
                .expect_err("it is refused");
            assert_eq!(refused.code, ErrorCode::BadRequest, "{wrong}");
        }
    }
}
