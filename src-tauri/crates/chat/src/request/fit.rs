//! Requests that cannot be asked: images for a model without vision, and more than the context holds.

use api::{LocalModel, Position};
use protocol::{Content, Error as Failure, ErrorCode, ModelKind, Request, Result};

use crate::core::Core;
use crate::files::images::attachments;
use crate::files::texts::content_tokens;
use crate::request::build::RequestTemplate;
use crate::request::passages::with_passages;

/// No model's context is shorter than this many tokens, and a token is a byte or more.
const ALWAYS_FITS: usize = 512;

/// The request for a question that fits its model's context, as far as that is known.
pub(crate) struct FittingRequest {
    /// The message that the question comes after; `None`: it is the first.
    pub(crate) parent: Option<String>,
    pub(crate) request: Request,
    /// The question, with passages of the chat's documents.
    pub(crate) content: Vec<Content>,
}

/// Builds the request for a question at this position, before anything is stored. `head` is the end of the branch that
/// the chat shows.
///
/// # Errors
/// `ContextFull` if it does not fit the model's context; `NotFound` for a position outside the chat; `Storage` if the
/// chat's documents cannot be searched.
pub(crate) async fn build_fitting(
    core: &Core,
    template: &RequestTemplate,
    head: Option<&str>,
    position: &Position,
    content: &[Content],
) -> Result<FittingRequest> {
    let parent = position_parent(head, position);
    let branch = match parent {
        Some(parent) => core.history.branch(parent).await?,
        None => Vec::new(),
    };
    let content = with_passages(core, template, &branch, content).await?;
    let request = template.build(core, &branch, &content).await;
    let fitting = FittingRequest {
        parent: parent.map(str::to_owned),
        request,
        content,
    };
    let messages = &fitting.request.messages;
    let said: usize = messages
        .iter()
        .map(|message| message.text_with_placeholders().len())
        .sum();
    let images = messages.iter().any(|message| !attachments(&message.content).is_empty());
    if !images && said < ALWAYS_FITS {
        return Ok(fitting);
    }
    let Some(context) = template.context(core).await else {
        return Ok(fitting);
    };
    if !images && said < context as usize {
        return Ok(fitting);
    }
    match core.engine.count(fitting.request.clone()).await {
        Ok(count) if count.tokens >= context && !count.estimated => {
            Err(context_full(core, template, count.tokens, context).await)
        }
        // The engine says in its own words what is wrong with the request.
        _ => Ok(fitting),
    }
}

/// The message that a question at this position comes after, if the chat shows the branch that ends with `head`.
pub(crate) fn position_parent<'a>(head: Option<&'a str>, position: &'a Position) -> Option<&'a str> {
    match position {
        Position::End => head,
        Position::Beginning => None,
        Position::After(message) => Some(message.as_str()),
    }
}

/// The error for a prompt of this many tokens, with the share of the project's files.
pub(crate) async fn context_full(core: &Core, template: &RequestTemplate, prompt: u32, context: u32) -> Failure {
    let files = match template.files.is_empty() {
        true => 0,
        false => content_tokens(core, &template.model, template.files.clone())
            .await
            .map_or(0, |count| count.tokens),
    };
    full(prompt, context, files)
}

/// Refuses a question with images for a model that does not see; the error names those on this computer that do.
pub(crate) async fn check_vision(core: &Core, template: &RequestTemplate, content: &[Content]) -> Result<()> {
    let capabilities = &template.capabilities;
    if capabilities.images || attachments(content).is_empty() {
        return Ok(());
    }
    let because = capabilities.because_blind();
    let sees = |model: &LocalModel| model.supports_vision && model.kind == ModelKind::Chat && model.problem.is_none();
    let models = core.models().await.into_iter().filter(sees);
    let vision_models: Vec<String> = models.map(|model| model.reference).collect();
    let reference = template.model.reference();
    let message = match vision_models.is_empty() {
        true => format!(
            "{reference} cannot see images{because}, and no model on this computer can; remove the image, or fetch a model that sees"
        ),
        false => format!(
            "{reference} cannot see images{because}; choose a model that sees ({}), or remove the image",
            vision_models.join(", ")
        ),
    };
    let refused = Failure::new(ErrorCode::ImageNotSeen, message).with("model", reference);
    Err(match vision_models.is_empty() {
        true => refused,
        // One to a line, because a folder's path may hold a comma.
        false => refused.with("models", vision_models.join("\n")),
    })
}

fn full(prompt: u32, context: u32, files: u32) -> Failure {
    let (of_files, advice) = match files {
        0 => (String::new(), ""),
        files => (
            format!(", of which the files of its folder take {files},"),
            "remove a file from the folder, ",
        ),
    };
    let message = format!(
        "the chat and this question have {prompt} tokens{of_files} and the model's context holds {context}, so no answer fits; nothing was stored. \
         Go on without the oldest turns, {advice}or choose a model with a longer context"
    );
    let failure = Failure::new(ErrorCode::ContextFull, message)
        .with("prompt", prompt)
        .with("context", context);
    match files {
        0 => failure,
        files => failure.with("files", files),
    }
}
