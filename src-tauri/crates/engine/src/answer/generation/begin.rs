//! The beginning of an answer: everything that can be refused before its prompt is read.

use std::rc::Rc;
use std::time::Instant;

use protocol::{EndedBy, EngineEvent, RawPrompt};

use crate::answer::constraint;
use crate::answer::generation::prompt::PromptReading;
use crate::answer::generation::state::State;
use crate::answer::generation::{DraftModel, Generation};
use crate::answer::job::JobContext;
use crate::answer::output_stream::OutputStream;
use crate::answer::repetition_detector::RepetitionDetector;
use crate::answer::request::{thinks, PreparedRequest};
use crate::answer::thinking_budget::ThinkingBudget;
use crate::error::{Error, Result};
use crate::loaded::LoadedModel;
use crate::sequence::drafts::Drafts;
use crate::sequence::sampler::SamplerConfig;
use crate::sequence::GenerationTimes;

impl Generation {
    /// Begins the answer to a request that has been prepared, and whose model took `load_ms` to load; `draft_model`
    /// drafts it.
    ///
    /// # Errors
    /// If the model cannot answer this.
    pub fn begin(
        loaded: Rc<LoadedModel>,
        draft_model: Option<Rc<LoadedModel>>,
        prepared: PreparedRequest,
        load_ms: f64,
        job: Rc<JobContext>,
    ) -> Result<Self> {
        let (model, LoadedModel { files, info, .. }) = (loaded.model(), &*loaded);
        let PreparedRequest {
            request,
            prompt,
            images,
            boundaries,
            prefix,
            ..
        } = prepared;
        let processor = files.chat()?;
        let makers = processor.generation_defaults();
        let defaults = match request.chat_defaults {
            true => makers.or_chat_defaults(),
            false => makers.clone(),
        };
        let sampler_config = SamplerConfig::new(&request.sampling, &defaults, model.vocabulary())?;
        let images = loaded
            .prompt_images(images, prompt.ids.len())?
            .map(|images| (images.clone(), images.keys()));
        // Before anything is cached for it. The tokens of a request are the client's fault, all others the files'.
        if let Some(id) = model.unreadable(&prompt.ids) {
            if matches!(request.raw_prompt, Some(RawPrompt::Tokens(_))) {
                return Err(Error::BadRequest(format!(
                    "there is no token {id}: the model knows {}",
                    model.readable()
                )));
            }
            model.ids(&prompt.ids)?;
        }
        if let Some(prefix) = &prefix {
            prefix.check_revision(&info.revision)?;
            prefix.check_vocabulary(model.vocabulary())?;
        }
        job.send(EngineEvent::Started {
            prompt_tokens: Some(prompt.ids.len() as u32),
            model_revision: Some(info.revision.clone()),
            template_hash: Some(info.template_hash.clone()),
        });

        let parser = match request.raw_prompt {
            Some(_) => processor.raw_parser(&prompt, &request.stop),
            None => processor.parser(&prompt, thinks(request.thinking, &info.thinking), &request.stop),
        };
        let thinking = ThinkingBudget::new(processor.end_of_thinking().cloned(), request.thinking_budget);
        let constraint = constraint::begin(&loaded, processor, &request);
        let mut output =
            OutputStream::new(parser.with_tools(&request.tools), thinking, job.clone()).limited(constraint);
        let mut repetitions = RepetitionDetector::default();
        let mut tokens = prompt.ids.clone();
        if let Some(prefix) = &prefix {
            output.replay(prefix)?;
            repetitions.extend(&prefix.tokens);
            tokens.extend(&prefix.tokens);
        }
        if tokens.is_empty() {
            return Err(Error::BadRequest(
                "there is nothing to answer: the prompt is empty".into(),
            ));
        }
        let room = (request.context_of(files.config.context) as usize).saturating_sub(tokens.len());
        let limit = match request.max_tokens {
            Some(most) if (most as usize) < room => (most as usize, EndedBy::TokenLimit),
            _ => (room, EndedBy::Context),
        };
        let drafts = Drafts::new(request.top_logprobs.is_none() && model.reads_chunks_alike());
        // It would not see the images.
        let draft_model = draft_model.filter(|_| images.is_none()).map(DraftModel::new);
        let image_tokens = images.iter().flat_map(|(images, _)| images.tokens(&tokens));
        let drafts = drafts.without(image_tokens.collect());
        Ok(Self {
            state: State::default(),
            prompt: PromptReading {
                images,
                encoding_image: None,
                tokens: prompt.ids.len(),
                prefilled: tokens.len(),
                cached: 0,
                boundaries,
                last_chunk: Instant::now(),
            },
            sampler_config,
            sampler_seen: tokens.len(),
            limit,
            generated: 0,
            output,
            repetitions,
            drafts,
            draft_model,
            times: GenerationTimes::default(),
            load_ms,
            started: Instant::now(),
            tokens,
            loaded,
            request,
            job,
        })
    }
}
