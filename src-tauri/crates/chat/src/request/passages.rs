//! Passages of the chat's documents that go to the model with a question.

use api::{Retrieval, StoredMessage};
use protocol::{Content, PassageRequest, QuotedPassage, Result};

use crate::core::Core;
use crate::request::build::RequestTemplate;
use crate::request::compaction_mark::after_mark;

/// The share of a context that passages may fill: the rest is for the question and its answer.
const SHARE: u32 = 2;

/// Bytes to a token, about; fewer than texts have on average, so that what is said to fit does.
const BYTES_A_TOKEN: usize = 3;

/// The context of a model that tells none, such as one behind an endpoint.
const UNKNOWN_CONTEXT: u32 = 8192;

/// The content of a question after this branch, with passages of the chat's documents before it if they are read
/// automatically. They are stored with the question, so that later prompts begin alike and its answer can be held
/// against them.
///
/// # Errors
/// `Storage` if the index of the documents cannot be read.
pub(crate) async fn with_passages(
    core: &Core,
    template: &RequestTemplate,
    branch: &[StoredMessage],
    content: &[Content],
) -> Result<Vec<Content>> {
    let mut content = content.to_vec();
    let is_there = content.iter().any(|part| matches!(part, Content::Passages { .. }));
    let question = words(&content);
    let source = core.passages.get().filter(|_| !is_there && !question.trim().is_empty());
    let (Some(source), Retrieval::Automatic) = (source, template.settings.retrieval) else {
        return Ok(content);
    };
    if template.settings.collections.is_empty() {
        return Ok(content);
    }
    let (_, seen) = after_mark(&template.settings, branch);
    let request = PassageRequest {
        chat: branch.first().map(|message| message.chat.clone()),
        collections: template.settings.collections.clone(),
        question,
        most_tokens: room(core, template, seen).await,
        given: given(seen),
        first_number: given(branch).iter().map(|passage| passage.number).max().unwrap_or(0) + 1,
    };
    if let Some(passages) = source.passages(request).await? {
        content.insert(0, passages);
    }
    Ok(content)
}

/// The tokens that new passages may take after these messages, about: a share of what they leave of the context.
pub(crate) async fn room(core: &Core, template: &RequestTemplate, seen: &[StoredMessage]) -> u32 {
    let context = template.context(core).await.unwrap_or(UNKNOWN_CONTEXT);
    let taken: usize = seen.iter().flat_map(|message| &message.parts).map(size).sum();
    let taken = u32::try_from(taken / BYTES_A_TOKEN).unwrap_or(u32::MAX);
    context.saturating_sub(taken) / SHARE
}

/// The passages of the messages of a branch, the results of tools among them.
pub(crate) fn given(branch: &[StoredMessage]) -> Vec<QuotedPassage> {
    let parts = branch.iter().flat_map(|message| &message.parts);
    let passages = parts.filter_map(|part| match &part.content {
        Content::Passages { passages, .. } => Some(passages),
        _ => None,
    });
    passages.flatten().cloned().collect()
}

/// The words of a question.
pub(crate) fn words(content: &[Content]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn size(part: &api::Part) -> usize {
    part.content.as_text().map_or(0, |text| text.len())
}
