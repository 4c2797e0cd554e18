//! The tools that the model of a chat is told of: those that it began with, until a person takes others.

use std::collections::BTreeSet;

use api::{ChatSettings, Retrieval, ToolsChange};
use protocol::{OfferedTool, Result, ToolRef, Toolbox, DOCUMENT_TOOLS, OWN_SERVER, SUGGEST_NOTE};
use serde_json::Value;

use crate::core::Core;
use crate::error::Error;
use crate::notes::uses_notes;
use crate::request::personal::{is_personal, may_know};

/// The tools that the model of a chat is told of. They are chosen by its settings at first and stay, so that each
/// prompt begins as the one before and is not read again.
pub(super) async fn offered_tools(core: &Core, chat: &str, settings: &ChatSettings) -> Result<Vec<OfferedTool>> {
    let chosen = chosen(core, chat, settings).await?;
    let Some(toolbox) = core.toolbox.get() else {
        return Ok(Vec::new());
    };
    if let Some(kept) = kept_tools(core, chat).await? {
        let same = || kept.iter().map(|tool| &tool.of).eq(&chosen);
        // Before the first message no prompt was read with them.
        if same() || core.history.chat_head(chat).await?.1.is_some() {
            return Ok(kept);
        }
    }
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let sorted: Vec<ToolRef> = chosen.into_iter().collect();
    let offered = toolbox.offer(&sorted).await;
    // One that lacks a tool, because its server did not start, is asked for again.
    if offered.len() == sorted.len() {
        core.history.set_offered_tools(chat, &offered).await?;
    }
    Ok(offered)
}

/// How the tools that a chat names now differ from those that its model is told of; `None` if they do not, or if it
/// was told of none. No server is started for it.
pub(crate) async fn tools_change(core: &Core, chat: &str) -> Result<Option<ToolsChange>> {
    let (view, head) = core.history.chat_head(chat).await?;
    let (Some(toolbox), Some(_), Some(kept)) = (core.toolbox.get(), head, kept_tools(core, chat).await?) else {
        return Ok(None);
    };
    let chosen: Vec<ToolRef> = chosen(core, chat, &view.settings).await?.into_iter().collect();
    let change = difference(&**toolbox, &kept, &chosen).await;
    Ok((!change.is_empty()).then_some(change))
}

/// Has the model of a chat told of the tools that the chat names now, as they are now; the next prompt is read anew.
pub(crate) async fn use_new_tools(core: &Core, chat: &str) -> Result<()> {
    let (view, _) = core.history.chat_head(chat).await?;
    let chosen = chosen(core, chat, &view.settings).await?;
    let offered = match core.toolbox.get() {
        Some(toolbox) if !chosen.is_empty() => toolbox.offer(&Vec::from_iter(chosen.iter().cloned())).await,
        _ => Vec::new(),
    };
    if offered.is_empty() && !chosen.is_empty() {
        return Err(Error::NoToolRuns.into());
    }
    Ok(core.history.set_offered_tools(chat, &offered).await?)
}

/// True if the settings of a chat name this tool.
pub(crate) async fn is_chosen(core: &Core, chat: &str, tool: &ToolRef) -> Result<bool> {
    let (view, _) = core.history.chat_head(chat).await?;
    Ok(chosen(core, chat, &view.settings).await?.contains(tool))
}

/// The tools that a chat names, with those that read its documents if its model is to read them itself.
async fn chosen(core: &Core, chat: &str, settings: &ChatSettings) -> Result<BTreeSet<ToolRef>> {
    let mut chosen: BTreeSet<ToolRef> = settings.tools.iter().cloned().collect();
    let project = core.history.project_of(chat).await?;
    if settings.retrieval == Retrieval::Tools {
        let of_project = project.as_ref().is_some_and(|project| !project.collections.is_empty());
        if of_project || !settings.collections.is_empty() {
            chosen.extend(DOCUMENT_TOOLS.map(own));
        }
    }
    match uses_notes(core, project.as_ref()) {
        true => chosen.insert(own(SUGGEST_NOTE)),
        false => chosen.remove(&own(SUGGEST_NOTE)),
    };
    if chosen.iter().any(is_personal) {
        // A model that is gone is told of when it is asked.
        let model = core.model(settings.model.as_deref()).await.ok();
        if !model.is_some_and(|(_, model)| may_know(core, &model)) {
            chosen.retain(|tool| !is_personal(tool));
        }
    }
    Ok(chosen)
}

/// A tool that Ponder has itself.
fn own(tool: &str) -> ToolRef {
    ToolRef {
        server: OWN_SERVER.to_owned(),
        tool: tool.to_owned(),
    }
}

/// The tools that a chat began with, if it has any.
async fn kept_tools(core: &Core, chat: &str) -> Result<Option<Vec<OfferedTool>>> {
    let kept = core.history.offered_tools(chat).await?;
    Ok(kept.filter(|kept| !kept.is_empty()))
}

async fn difference(toolbox: &dyn Toolbox, kept: &[OfferedTool], chosen: &[ToolRef]) -> ToolsChange {
    let now = toolbox.declarations_now(chosen).await;
    let is_gone = |tool: &ToolRef| now.iter().any(|(of, declaration)| of == tool && declaration.is_none());
    let is_kept = |tool: &ToolRef| kept.iter().any(|kept| kept.of == *tool);
    let is_changed = |tool: &OfferedTool| {
        let now = now.iter().find(|(of, _)| *of == tool.of);
        let declaration = now.and_then(|(_, declaration)| declaration.as_ref());
        declaration.is_some_and(|now| meaning(now) != meaning(&tool.declaration))
    };
    let mut change = ToolsChange::default();
    for tool in kept {
        if !chosen.contains(&tool.of) || is_gone(&tool.of) {
            change.removed.push(tool.of.clone());
        } else if is_changed(tool) {
            change.changed.push(tool.of.clone());
        }
    }
    let added = chosen.iter().filter(|tool| !is_kept(tool) && !is_gone(tool));
    change.added = added.cloned().collect();
    change
}

/// The parts of a declaration that a server decides; the name depends on the other tools.
fn meaning(declaration: &Value) -> [Option<&Value>; 2] {
    ["description", "parameters"].map(|field| declaration.get("function")?.get(field))
}
