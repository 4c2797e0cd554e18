//! The beginning of an answer: its request checked, rendered and tokenized.

use std::sync::Arc;

use checkpoint::memory::Backend;
use checkpoint::ImagePlan;
use prompt::{ChatProcessor, Prompt, RenderLimits, RenderRequest};
use protocol::{
    limits, Content, FolderSource, ModelSource, Notice, Priority, RawPrompt, Request, Role, Sampling, Thinking,
    ThinkingControl,
};

use crate::answer::images;
use crate::answer::prefix::PrefixTokens;
use crate::error::{Error, Result};
use crate::loaded::{ModelFiles, OpenFiles};
use crate::pool::Pending;
use crate::sequence::sampler::SamplerConfig;
use crate::sequence::{logprobs, PromptImage};

/// The least distance of two boundaries at which prefill stops: reading fewer tokens again costs less than a stop.
const fn min_boundary_distance(backend: Backend) -> usize {
    match backend {
        Backend::Cpu | Backend::Metal => 32,
        // A pass takes 20 ms there, however few its tokens are; hundreds more are read in that time.
        Backend::Cuda => 256,
    }
}

/// The folder of a request's model.
pub fn folder(request: &Request) -> Result<&FolderSource> {
    request
        .model
        .folder()
        .ok_or_else(|| Error::NotAFolder(request.model.reference()))
}

/// Refuses what no model can do, before one is loaded for it. Schemas were checked before the worker was asked.
pub fn check(request: &Request) -> Result<()> {
    // The model's vocabulary is not known yet.
    SamplerConfig::new(&request.sampling, &Sampling::default(), u32::MAX)?;
    if let Some(top) = request.top_logprobs.filter(|top| *top > logprobs::MOST) {
        return Err(Error::BadRequest(format!(
            "log probabilities of the {top} likeliest tokens were asked for; at most {} are told",
            logprobs::MOST
        )));
    }
    if request.schema.is_some() && !request.stop.is_empty() {
        return Err(Error::BadRequest(
            "an answer that follows a JSON schema ends when it is whole; leave the stop texts out".into(),
        ));
    }
    let refused = |error: protocol::Error| Error::BadRequest(error.message);
    limits::check_max_tokens(request.max_tokens).map_err(refused)?;
    limits::check_context(request.context).map_err(refused)
}

/// How a request is rendered, whose images will be this to the model.
pub fn render_request<'a>(request: &'a Request, images: &'a [ImagePlan]) -> RenderRequest<'a> {
    RenderRequest {
        messages: &request.messages,
        tools: &request.tools,
        thinking: request.thinking,
        add_generation_prompt: true,
        images,
    }
}

/// The prompt of a request: its conversation, rendered, or its raw prompt.
///
/// # Errors
/// If the template refuses the conversation, or the model cannot read such a prompt.
pub fn read_prompt(processor: &ChatProcessor, request: &Request, images: &[ImagePlan]) -> Result<Prompt> {
    Ok(match &request.raw_prompt {
        Some(raw) => processor.raw_prompt(raw)?,
        None => processor.prompt(&render_request(request, images))?,
    })
}

/// A request that waits for its answer, while it is prepared and after.
pub struct WaitingRequest {
    /// The model that will answer.
    pub model: ModelSource,
    /// The class that it is served in.
    pub priority: Priority,
    /// Everything else of it, as soon as that is prepared.
    pub prepared: Pending<PreparedRequest>,
}

/// A request that was rendered and tokenized, with everything that its answer continues.
pub struct PreparedRequest {
    /// The request, as the model sees it.
    pub request: Request,
    /// The small files of its model.
    pub files: Arc<ModelFiles>,
    /// The small files of its draft model, if there is one.
    pub draft_files: Option<Result<Arc<ModelFiles>>>,
    /// The rendered conversation.
    pub prompt: Prompt,
    /// The images in it.
    pub images: Vec<PromptImage>,
    /// The positions in it at which other prompts part from it.
    pub boundaries: Vec<usize>,
    /// The generated part of an answer that is continued.
    pub prefix: Option<PrefixTokens>,
    /// Things the user should know.
    pub notices: Vec<Notice>,
}

impl PreparedRequest {
    /// How many tokens are read before the first new one.
    pub fn tokens(&self) -> usize {
        self.prompt.ids.len() + self.prefix.as_ref().map_or(0, |prefix| prefix.tokens.len())
    }
}

/// Renders and tokenizes a request. Needs no weights, so that no model is loaded for what cannot be answered.
///
/// # Errors
/// If the request cannot be rendered or no answer fits after it.
pub fn prepare(open_files: &OpenFiles, request: Request) -> Result<PreparedRequest> {
    let in_words = request.without_result_images();
    match (prepare_as_it_is(open_files, request), in_words) {
        // Few templates were written with images in the results of tools in mind.
        (Err(Error::Prompt(prompt::Error::ImageCount { .. })), Some(in_words)) => {
            prepare_as_it_is(open_files, in_words)
        }
        (prepared, _) => prepared,
    }
}

fn prepare_as_it_is(open_files: &OpenFiles, mut request: Request) -> Result<PreparedRequest> {
    let (images, notices) = images::prepare(&mut request)?;
    check(&request)?;
    let files = open_files.open(folder(&request)?)?;
    let (chat, context) = (files.chat()?, request.context_of(files.config.context));
    refuse_far_too_long(chat, &request, context)?;
    let plans = images.plans();
    let prompt = read_prompt(chat, &request, &plans)?;
    if prompt.ids.len() >= context as usize {
        return Err(Error::ContextFull {
            prompt: prompt.ids.len(),
            context,
        });
    }
    if request.call_required {
        // Found out once for every request of the model, so that this one's end does not end it.
        RenderLimits::request().within(|| chat.call_form());
    }
    Ok(PreparedRequest {
        prefix: PrefixTokens::new(&files, &request, &prompt)?,
        images: images.placed(&prompt.images),
        draft_files: draft_files(open_files, &request, &files),
        boundaries: match request.raw_prompt {
            Some(_) => vec![prompt.ids.len().saturating_sub(1)],
            None => chat.boundaries(&render_request(&request, &plans), &prompt),
        },
        prompt,
        files,
        request,
        notices,
    })
}

/// The small files of a request's draft model, whose tokens have to be those of the model, or of a head of the model.
fn draft_files(open_files: &OpenFiles, request: &Request, files: &ModelFiles) -> Option<Result<Arc<ModelFiles>>> {
    let open = |source| {
        let draft_files = open_files.open(source)?;
        if let Some(head) = draft_files.config.head() {
            files.config.check_head(head)?;
            return Ok(draft_files);
        }
        let same = draft_files.chat()?.tokenizer().has_tokens_of(files.chat()?.tokenizer());
        same.then_some(draft_files).ok_or(Error::OtherTokens)
    };
    request.draft_model.as_ref().map(open)
}

/// Refuses by its bytes what no rendering makes short enough, which would take seconds to be rendered and tokenized.
fn refuse_far_too_long(chat: &ChatProcessor, request: &Request, context: u32) -> Result<()> {
    let bytes = least_bytes(request);
    if bytes < context as usize {
        return Ok(());
    }
    match chat.tokenizer().most_bytes_of_token().map(|most| bytes / most) {
        Some(least) if least >= context as usize => Err(Error::FarTooLong { least, context }),
        _ => Ok(()),
    }
}

/// Bytes that a prompt has at least: those of the texts that every template prints. Some leave out what the model wrote
/// itself, its thoughts above all.
fn least_bytes(request: &Request) -> usize {
    match &request.raw_prompt {
        Some(RawPrompt::Text(text)) => text.len(),
        Some(RawPrompt::FillIn { before, after }) => before.len() + after.len(),
        Some(RawPrompt::Tokens(_)) => 0,
        None => {
            let printed = request
                .messages
                .iter()
                .filter(|message| message.role != Role::Assistant);
            let bytes = printed.flat_map(|message| &message.content).map(|part| match part {
                Content::Text { text } => text.trim().len(),
                _ => 0,
            });
            bytes.sum()
        }
    }
}

/// The boundaries at which prefill stops for a copy, from `start` on. A stop costs one more forward pass, so tokens
/// close to the last copy are read again instead; the last boundary costs nothing, because the token that is left is
/// read by itself anyway.
pub fn stops_for_copies(boundaries: Vec<usize>, start: usize, backend: Backend) -> Vec<usize> {
    let distance = min_boundary_distance(backend);
    let (mut last_kept, end) = (start, boundaries.last().copied());
    let mut kept = boundaries;
    kept.retain(|boundary| {
        let worth = *boundary >= last_kept + distance || Some(*boundary) == end;
        if worth {
            last_kept = *boundary;
        }
        worth
    });
    kept
}

/// True if a model is expected to think, given the switch and the abilities of its template.
pub fn thinks(asked: Option<Thinking>, control: &ThinkingControl) -> bool {
    match (control, asked) {
        (ThinkingControl::Switch { .. }, Some(asked)) => asked != Thinking::Off,
        (ThinkingControl::Switch { default_on }, None) => *default_on,
        (ThinkingControl::Levels { off: true, .. }, Some(Thinking::Off)) => false,
        (ThinkingControl::Levels { default, .. }, None) => *default != Some(Thinking::Off),
        // Even if nothing can be switched off, a thought is shown as one.
        (
            ThinkingControl::Levels { .. }
            | ThinkingControl::Always
            | ThinkingControl::Never
            | ThinkingControl::ByRequest { .. },
            _,
        ) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_pauses_as_seldom_as_a_pass_is_costly() {
        let boundaries = || vec![40, 60, 100, 300, 310, 320];
        for (backend, kept) in [
            (Backend::Cpu, vec![40, 100, 300, 320]),
            (Backend::Metal, vec![40, 100, 300, 320]),
            (Backend::Cuda, vec![300, 320]),
        ] {
            assert_eq!(stops_for_copies(boundaries(), 0, backend), kept, "{backend:?}");
            // Tokens that were read already count, and the last boundary costs nothing.
            assert_eq!(stops_for_copies(vec![310, 320], 300, backend), [320], "{backend:?}");
        }
    }
}
