//! The sizes in which a model is shown images.

use std::path::Path;

use anyhow::{Context, Result};
use checkpoint::{ImagePlan, ImageProcessor};
use protocol::{Content, Error, ErrorCode, ImageDetail, Message};

/// The plans of a conversation's images for the model in `folder`, in their order.
///
/// # Errors
/// When the model has no vision, or its files do not say how it is shown images.
pub fn image_plans(messages: &[Message], folder: &Path, detail: ImageDetail) -> Result<Vec<ImagePlan>> {
    let content = messages.iter().flat_map(|message| &message.content);
    let sizes: Vec<(u32, u32)> = content
        .filter_map(|part| match part {
            Content::Image { width, height, .. } => Some((*width, *height)),
            Content::Text { .. }
            | Content::Thinking { .. }
            | Content::ToolCall { .. }
            | Content::Data { .. }
            | Content::File { .. }
            | Content::Passages { .. } => None,
        })
        .collect();
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    let config = std::fs::read(folder.join("config.json")).context("config.json cannot be read")?;
    let config = serde_json::from_slice(&config).context("config.json is not JSON")?;
    let processor = ImageProcessor::read(folder, &config)?
        .ok_or_else(|| Error::new(ErrorCode::ImageNotSeen, "this model has no way to be shown images"))?;
    let plans = sizes
        .into_iter()
        .map(|(width, height)| processor.plan(width, height, detail));
    Ok(plans.collect::<checkpoint::Result<_>>()?)
}
