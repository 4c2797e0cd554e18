//! A server in a file (`.mcpb`), as a person sees it before it is added.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::ServerVariable;

/// The values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
#[serde(rename_all = "snake_case")]
pub enum BundleFieldKind {
    /// Any text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Switch,
    /// The whole path of a folder.
    Folder,
    /// The whole path of a file.
    File,
}

/// A field that a person fills in for a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct BundleField {
    /// Its name in the bundle.
    pub key: String,
    /// Its name for people.
    pub title: String,
    /// The bundle's words about it.
    pub description: String,
    /// The values that it takes.
    pub kind: BundleFieldKind,
    /// The server does not start without it.
    pub required: bool,
    /// It goes to the keychain.
    pub sensitive: bool,
    /// It takes several values.
    pub multiple: bool,
    /// The values that it has if nothing is filled in.
    pub default: Vec<String>,
}

/// The values that a person gave a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct BundleValue {
    /// The field's name in the bundle.
    pub key: String,
    /// The values; of most fields there is one.
    pub values: Vec<String>,
}

/// A server in a file. Nothing of it was written or has run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export)]
pub struct ToolBundle {
    /// The hash of the file, by which it is added.
    pub hash: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its author, as it says itself.
    pub author: String,
    /// Its words about itself.
    pub description: String,
    /// The command that would run, with placeholders for what is filled in.
    pub command: String,
    /// The variables of its environment, with placeholders.
    pub parts: Vec<ServerVariable>,
    /// The fields to fill in.
    pub fields: Vec<BundleField>,
    /// The names of its tools, as it says itself.
    pub tools: Vec<String>,
    /// The number of its files.
    pub files: u32,
    /// The bytes that they take.
    #[ts(type = "number")]
    pub bytes: u64,
    /// The program that it needs and this computer does not have, such as `node`.
    pub missing: Option<String>,
}
