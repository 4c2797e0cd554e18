//! The tools that the model of a chat is told of.

use std::collections::BTreeSet;

use protocol::{OfferedTool, Result, ToolRef};

use crate::core::Core;

/// The tools that the chat's settings name. They are those that the chat began with as
/// long as the settings name the same ones, so that each prompt begins as the one before and is not read again.
pub(super) async fn offered_tools(core: &Core, chat: &str, chosen: &[ToolRef]) -> Result<Vec<OfferedTool>> {
    let chosen: BTreeSet<&ToolRef> = chosen.iter().collect();
    let (Some(toolbox), false) = (core.toolbox.get(), chosen.is_empty()) else {
        return Ok(Vec::new());
    };
    if let Some(kept) = core.history.offered_tools(chat).await? {
        if kept.iter().map(|tool| &tool.of).collect::<BTreeSet<_>>() == chosen {
            return Ok(kept);
        }
    }
    let sorted: Vec<ToolRef> = chosen.into_iter().cloned().collect();
    let offered = toolbox.offer(&sorted).await;
    // One that lacks a tool, because its server did not start, is asked for again.
    if offered.len() == sorted.len() {
        core.history.set_offered_tools(chat, &offered).await?;
    }
    Ok(offered)
}
