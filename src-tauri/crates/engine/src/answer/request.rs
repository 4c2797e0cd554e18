//! The beginning of an answer: its request checked, rendered and tokenized.

use checkpoint::memory::Backend;
use checkpoint::ImagePlan;
use prompt::{ChatProcessor, Prompt, RenderRequest};
use protocol::{limits, FolderSource, Request, Sampling, Thinking, ThinkingControl};

use crate::answer::images::RequestImages;
use crate::answer::prefix::PrefixTokens;
use crate::error::{Error, Result};
use crate::loaded::ModelFiles;
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

/// Everything that an answer continues: the prompt, and the answer prefix if there is one.
pub struct PreparedPrompt {
    /// The rendered conversation.
    pub prompt: Prompt,
    /// The images in it.
    pub images: Vec<PromptImage>,
    /// Their plans, in the same order.
    pub plans: Vec<ImagePlan>,
    /// The generated part of an answer that is continued.
    pub prefix: Option<PrefixTokens>,
}

impl PreparedPrompt {
    /// How many tokens are read before the first new one.
    pub fn tokens(&self) -> usize {
        self.prompt.ids.len() + self.prefix.as_ref().map_or(0, |prefix| prefix.tokens.len())
    }
}

/// Renders and tokenizes a request. Needs no weights, so that no model is loaded for what cannot be answered.
///
/// # Errors
/// If the request cannot be rendered or no answer fits after it.
pub fn prepare(files: &ModelFiles, request: &Request, images: &RequestImages) -> Result<PreparedPrompt> {
    let plans = images.plans();
    let prompt = read_prompt(files.chat()?, request, &plans)?;
    let context = request.context_of(files.config.context);
    if prompt.ids.len() >= context as usize {
        return Err(Error::ContextFull {
            prompt: prompt.ids.len(),
            context,
        });
    }
    let prefix = PrefixTokens::new(files, request, &prompt)?;
    Ok(PreparedPrompt {
        images: images.placed(&prompt.images),
        plans,
        prompt,
        prefix,
    })
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
