use std::path::Path;

use anyhow::{Context, Result};
use protocol::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::images::Images;
use super::text_file::read_text;

/// Reads a file of JSON: `file` is its name in errors, such as "messages file", and `content` what it has to be.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub fn read_json<T: DeserializeOwned>(path: &Path, file: &str, content: &str) -> Result<T> {
    let text = read_text(path, file)?;
    serde_json::from_str(&text).with_context(|| format!("{} is not {content}", path.display()))
}

/// Reads `--messages FILE`: a JSON list of messages in the OpenAI chat form. Images are parts of type `image_url` with
/// data URLs, and are put into `images`; `None` refuses them.
///
/// # Errors
/// When the file cannot be read or is not such a list, with the place of the fault, or when an image cannot be read.
pub fn read_messages(path: &Path, images: Option<&mut Images>) -> Result<Vec<Message>> {
    const LIST: &str = "a list of chat messages";
    let list = read_json(path, "messages file", LIST)?;
    let messages = match images {
        Some(images) => openai_wire::messages_with_images(list, &mut |url, place| images.read_url(url, place)),
        None => openai_wire::messages(list),
    };
    messages.with_context(|| format!("{} is not {LIST}", path.display()))
}

/// Reads `--tools FILE`: a JSON list of tool declarations in the OpenAI form. No file is no tools.
///
/// # Errors
/// When the file cannot be read or is not such a list, with the place of the fault.
pub fn read_tools(path: Option<&Path>) -> Result<Vec<Value>> {
    const LIST: &str = "a list of tools";
    let Some(path) = path else { return Ok(Vec::new()) };
    let list = read_json(path, "tools file", LIST)?;
    openai_wire::tools(list).with_context(|| format!("{} is not {LIST}", path.display()))
}
