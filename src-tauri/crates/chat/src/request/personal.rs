//! Notes about the user and passages of their other chats, which go to no endpoint unless the user allowed it.

use std::borrow::Cow;
use std::collections::HashSet;

use api::{Project, StoredMessage};
use protocol::{Content, ModelSource, Result, Role, ToolRef, OWN_CHATS, OWN_SERVER, SEARCH_CHATS, SUGGEST_NOTE};

use crate::core::Core;
use crate::notes::uses_notes;

/// Stands above the notes.
const HEADING: &str = "Notes about the user, which the user wrote or confirmed:";

/// Replaces what an endpoint is not sent.
const WITHHELD: &str = "This result is from the user's other chats, so it was left out.";

/// True if a model may be told notes about the user, and of their other chats.
pub(crate) fn may_know(core: &Core, model: &ModelSource) -> bool {
    match model {
        ModelSource::Folder(_) => true,
        ModelSource::Remote { endpoint, .. } => {
            let settings = core.settings.borrow();
            let known = settings.endpoints.iter().find(|known| known.name == *endpoint);
            known.is_some_and(|endpoint| endpoint.personal)
        }
    }
}

/// True for the tools that read other chats or write notes.
pub(crate) fn is_personal(tool: &ToolRef) -> bool {
    tool.server == OWN_SERVER && [SEARCH_CHATS, SUGGEST_NOTE].contains(&tool.tool.as_str())
}

/// The notes that the chats of a project, or those outside of projects, are told; empty if there are none.
pub(crate) async fn notes(core: &Core, project: Option<&Project>) -> Result<String> {
    if !uses_notes(core, project) {
        return Ok(String::new());
    }
    let notes = core.history.notes(project.map(|project| project.id.as_str())).await?;
    if notes.is_empty() {
        return Ok(String::new());
    }
    let lines = notes.iter().map(|note| format!("\n- {}", note.text));
    Ok(format!("{HEADING}{}", lines.collect::<String>()))
}

/// A branch without passages of other chats, for a model that may not know them: it may have begun with another model.
pub(crate) fn without_other_chats(branch: &[StoredMessage]) -> Cow<'_, [StoredMessage]> {
    let calls = branch.iter().flat_map(|message| &message.calls);
    let searches: HashSet<&str> = calls
        .filter(|call| is_personal(&call.tool))
        .map(|call| call.call.as_str())
        .collect();
    let is_search = |message: &StoredMessage| {
        let call = message.tool_call_id.as_deref();
        message.role == Role::Tool && call.is_some_and(|call| searches.contains(call))
    };
    if !branch
        .iter()
        .any(|message| is_search(message) || has_other_chats(message))
    {
        return Cow::Borrowed(branch);
    }
    let mut kept = branch.to_vec();
    for message in &mut kept {
        if is_search(message) {
            message.parts.truncate(1);
            message
                .parts
                .iter_mut()
                .for_each(|part| part.content = Content::text(WITHHELD));
            continue;
        }
        for part in &mut message.parts {
            if let Content::Passages { passages, .. } = &mut part.content {
                passages.retain(|passage| passage.collection != OWN_CHATS);
            }
        }
    }
    Cow::Owned(kept)
}

fn has_other_chats(message: &StoredMessage) -> bool {
    message.parts.iter().any(|part| match &part.content {
        Content::Passages { passages, .. } => passages.iter().any(|passage| passage.collection == OWN_CHATS),
        _ => false,
    })
}
