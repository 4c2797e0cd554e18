//! The beginning of the next prompt, given to the engine to prefill while the user reads or writes.

use std::sync::Arc;

use api::{AnswerState, ChatView, StoredMessage};
use protocol::{Content, Request, Result, Role};

use crate::core::Core;
use crate::files::images::attachments;
use crate::request::build::{add_images, RequestTemplate};

/// A chat that will be continued, of a long one the newest messages. The loaded model, if it is the chat's, prefetches
/// it meanwhile.
pub(crate) async fn open_chat(core: &Arc<Core>, chat: &str) -> Result<ChatView> {
    let view = core.shown(chat).await?;
    // A project may have files, with which the first question begins.
    let nothing = view.messages.is_empty() && attachments(&view.draft).is_empty() && view.summary.project.is_none();
    let running = |message: &StoredMessage| message.state == AnswerState::Streaming;
    if !nothing && !view.messages.iter().any(running) {
        let (core, view) = (core.clone(), view.clone());
        tokio::spawn(async move {
            if let Err(error) = prefetch_chat(&core, view).await {
                tracing::debug!(%error, "a chat could not be prefetched");
            }
        });
    }
    Ok(view)
}

async fn prefetch_chat(core: &Core, view: ChatView) -> Result<()> {
    let template = RequestTemplate::of_chat(core, &view.summary.id, view.settings).await?;
    let shown = attachments(&view.draft);
    let nothing = view.messages.is_empty() && shown.is_empty() && template.files.is_empty();
    if nothing || !can_prefetch(core, &template) {
        return Ok(());
    }
    let messages = match (view.messages.first(), view.messages.last()) {
        (Some(first), Some(last)) if first.parent.is_some() => core.history.branch(&last.id).await?,
        _ => view.messages,
    };
    let mut request = next_prompt(core, &template, &messages).await;
    if template.capabilities.images {
        // The images of the next question can be encoded while it is typed.
        add_images(&core.history, &mut request, shown.into_iter().collect()).await;
    }
    prefetch(core, request);
    Ok(())
}

/// While the user reads an answer, the engine prefills what the next question will come after.
pub(crate) async fn prefetch_next(core: &Core, template: &RequestTemplate, answer: &str) {
    if !can_prefetch(core, template) {
        return;
    }
    match core.history.branch(answer).await {
        Ok(branch) => prefetch(core, next_prompt(core, template, &branch).await),
        Err(error) => tracing::debug!(%error, "an answer's branch could not be prefetched"),
    }
}

/// Prefetches the files of a project, with which the first question of a chat in it begins.
pub(crate) async fn prefetch_files(core: &Core, template: &RequestTemplate) {
    if !template.files.is_empty() && can_prefetch(core, template) {
        prefetch(core, next_prompt(core, template, &[]).await);
    }
}

/// True if the model prefetches; for one that cannot no chat is read. A remote model is told nothing before it is
/// asked.
fn can_prefetch(core: &Core, template: &RequestTemplate) -> bool {
    core.engine.local().is_some() && template.capabilities.prefetch
}

fn prefetch(core: &Core, request: Request) {
    if let Some(local) = core.engine.local() {
        local.prefetch(request);
    }
}

/// The request whose prompt the next question comes after. If that will be the first question, the project's files
/// stand there as its beginning; the engine, which does not know the rest, puts an empty line after them.
async fn next_prompt(core: &Core, template: &RequestTemplate, branch: &[StoredMessage]) -> Request {
    if template.files.is_empty() || branch.iter().any(|message| message.role == Role::User) {
        let request = template.build(core, branch, &[]).await;
        if template.files.is_empty() || request.messages.iter().any(|message| message.role == Role::User) {
            return request;
        }
    }
    let without_files = RequestTemplate {
        files: Vec::new(),
        ..template.clone()
    };
    let mut request = without_files.build(core, branch, &template.files).await;
    let said = request
        .messages
        .last_mut()
        .and_then(|question| question.content.last_mut());
    if let Some(Content::Text { text }) = said {
        // Its own empty line at the end would make two.
        text.truncate(text.trim_end_matches('\n').len());
    }
    request
}
