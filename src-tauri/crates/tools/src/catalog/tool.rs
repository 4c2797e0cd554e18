//! A tool as its server lists it.

use api::CallEffects;
use serde_json::{json, Value};

use crate::canonical::{canonical, Digest};

/// A tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name, which is unique in its server.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Its purpose, in words for the model.
    pub description: String,
    /// The JSON schema of its arguments, an object.
    pub parameters: Value,
    /// The effects of a call, as its server describes them.
    pub effects: CallEffects,
}

/// The tool that a consent was given to: another one once its server, its name, its description, its schema, its effects
/// or the host that it reaches change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binding(Digest);

impl Binding {
    /// That of a tool of a server with this configuration, in which no secret stands.
    pub fn of(configuration: &Value, tool: &Tool) -> Self {
        let effects = json!([
            tool.effects.read_only,
            tool.effects.destructive,
            tool.effects.open_world
        ]);
        Self(Digest::of(&[
            &canonical(configuration),
            &tool.name,
            tool.title.as_deref().unwrap_or_default(),
            &tool.description,
            &canonical(&tool.parameters),
            &canonical(&effects),
        ]))
    }

    /// That of the tool for calls that reach this host alone; the same if there is none.
    #[must_use]
    pub fn for_host(self, host: Option<&str>) -> Self {
        match host {
            Some(host) => Self(Digest::of(&[&self.0.to_string(), host])),
            None => self,
        }
    }

    /// The digest that it is.
    pub fn digest(&self) -> Digest {
        self.0
    }

    /// The binding with this digest.
    pub fn from_digest(digest: Digest) -> Self {
        Self(digest)
    }
}
