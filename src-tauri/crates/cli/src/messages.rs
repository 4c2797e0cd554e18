//! Conversations, tools and template variables from files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use protocol::Message;
use serde_json::{Map, Value};

use crate::pictures::Pictures;

/// Reads `--messages FILE`: a JSON list of messages in the OpenAI chat form.
///
/// # Errors
/// When the file cannot be read or is not such a list; the message names the place.
pub fn read(path: &Path) -> Result<Vec<Message>> {
    let refused = || format!("{} is not a list of chat messages", path.display());
    let text =
        fs::read_to_string(path).with_context(|| format!("the messages file {} cannot be read", path.display()))?;
    openai_wire::messages(serde_json::from_str(&text).with_context(refused)?).with_context(refused)
}

/// The same with the pictures in it: parts of type `image_url` whose addresses hold the bytes.
///
/// # Errors
/// As [`read`], and when a picture cannot be read.
pub fn read_with_pictures(path: &Path, pictures: &mut Pictures) -> Result<Vec<Message>> {
    let refused = || format!("{} is not a list of chat messages", path.display());
    let text =
        fs::read_to_string(path).with_context(|| format!("the messages file {} cannot be read", path.display()))?;
    let list = serde_json::from_str(&text).with_context(refused)?;
    openai_wire::messages_with_pictures(list, &mut |url, place| pictures.read_url(url, place)).with_context(refused)
}

/// Reads `--tools FILE`: a JSON list of tool declarations in the OpenAI form.
///
/// # Errors
/// When the file cannot be read or is not such a list; the message names the place.
pub fn read_tools(path: &Path) -> Result<Vec<Value>> {
    let refused = || format!("{} is not a list of tools", path.display());
    let text = fs::read_to_string(path).with_context(|| format!("the tools file {} cannot be read", path.display()))?;
    openai_wire::tools(serde_json::from_str(&text).with_context(refused)?).with_context(refused)
}

/// Reads `--schema FILE`: a JSON Schema.
///
/// # Errors
/// When the file cannot be read or is not JSON.
pub fn read_schema(path: &Path) -> Result<Value> {
    let text =
        fs::read_to_string(path).with_context(|| format!("the schema file {} cannot be read", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a JSON Schema", path.display()))
}

/// Reads `--context FILE`: the variables of a chat template.
///
/// # Errors
/// When the file cannot be read or is not a JSON object.
pub fn read_context(path: &Path) -> Result<Map<String, Value>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("the context file {} cannot be read", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a JSON object of variables", path.display()))
}
