//! A model's way of speaking, put together from its files.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use protocol::{Sampling, ThinkingControl, ThoughtMarkers, SAMPLING_OPTIONS};
use serde_json::{Map, Value};

use super::call_form::CallForm;
use super::stop_tokens::StopSet;
use crate::channels::{capability, ChannelFormat, ChannelParser, EndOfThinking};
use crate::error::{Error, Result};
use crate::images::ImageTokens;
use crate::json_file::read_json;
use crate::prompt::Prompt;
use crate::template::{map_texts, texts, ContentFormat, RenderLimits, RenderRequest, Template};
use crate::tokenizer::Tokenizer;

/// The variables whose texts anyone may have written.
const SPOKEN: [&str; 2] = ["messages", "tools"];

/// A conversation as text in which typed control tokens are escaped, to be compared with others.
pub(crate) struct Rendered {
    pub(crate) text: String,
    pub(crate) sentinel: char,
}

/// A model's way of speaking: tokenizer, chat template, stop set and channel format. It may be shared between threads.
#[derive(Debug)]
pub struct ChatProcessor {
    tokenizer: Arc<Tokenizer>,
    template: Template,
    stops: StopSet,
    format: ChannelFormat,
    terminator: Option<EndOfThinking>,
    generation_defaults: Sampling,
    call_form: OnceLock<Option<CallForm>>,
    images: Option<ImageTokens>,
}

impl ChatProcessor {
    /// Reads the model's folder: tokenizer.json and, if they are there, tokenizer_config.json, chat_template.jinja,
    /// config.json and generation_config.json.
    pub fn open(dir: &Path) -> Result<Self> {
        RenderLimits::request().unless_limited(|| Self::read(dir))
    }

    fn read(dir: &Path) -> Result<Self> {
        let tokenizer_config = read_json(&dir.join("tokenizer_config.json"))?;
        let config = read_json(&dir.join("config.json"))?;
        let generation_config = read_json(&dir.join("generation_config.json"))?;
        let template = match (Template::open(dir, &tokenizer_config), ImageTokens::template(&config)) {
            (Err(Error::NoTemplate), Some(source)) => Template::of_family(source, &tokenizer_config)?,
            (opened, _) => opened?,
        };
        let written = ImageTokens::spelled(&config)
            .into_iter()
            .chain([template.source()])
            .collect::<String>();
        let mut tokenizer = Tokenizer::open(dir, &tokenizer_config, &written)?;
        if let Some(placeholder) = ImageTokens::added(&config) {
            tokenizer.add_control(placeholder)?;
        }
        let format = ChannelFormat::detect(&tokenizer, template.source());
        let mut stops = StopSet::collect(&tokenizer, &tokenizer_config, &config, &generation_config);
        stops.add_ends(&tokenizer, format.ends());
        stops.add_end_of_turn(&tokenizer, &template);
        let tokenizer = Arc::new(tokenizer);
        Ok(Self {
            stops,
            terminator: EndOfThinking::of(&template, &format, &tokenizer)?,
            format,
            generation_defaults: generation_defaults(&generation_config),
            call_form: OnceLock::new(),
            images: ImageTokens::of(&config, &tokenizer, &template),
            tokenizer,
            template,
        })
    }

    /// The conversation as text, as `apply_chat_template(tokenize=False)` gives it.
    pub fn render(&self, request: &RenderRequest) -> Result<String> {
        self.template.render(self.template.variables(request))
    }

    /// The conversation as text and ids. Text that spells no control token gets the ids of
    /// `apply_chat_template(tokenize=True)`; control tokens spelled in a message stay text, whatever the template does.
    ///
    /// Images stand in it with all the ids that they take.
    ///
    /// # Errors
    /// If the template refuses the conversation, or this model cannot take the images.
    pub fn prompt(&self, request: &RenderRequest) -> Result<Prompt> {
        let prompt = RenderLimits::request().unless_limited(|| self.narrow_prompt(request))?;
        match &self.images {
            Some(images) if !request.images.is_empty() => images.widen(&self.tokenizer, prompt, request.images),
            _ => Ok(prompt),
        }
    }

    /// True if there are tokens for images. With a vision encoder as well, the model supports vision.
    pub fn takes_images(&self) -> bool {
        self.images.is_some()
    }

    /// The variables of a conversation, and the format of its images; `None` if none are shown.
    fn variables(&self, request: &RenderRequest) -> Result<(Map<String, Value>, Option<ContentFormat>)> {
        let variables = self.template.variables(request);
        if request.images.is_empty() {
            return Ok((variables, None));
        }
        let images = self.images.as_ref().ok_or(Error::NoImages)?;
        match images.content_format(request.messages, spoken(&variables)) {
            usual @ ContentFormat::Parts("image") => Ok((variables, Some(usual))),
            other => Ok((self.template.variables_in(request, Some(other)), Some(other))),
        }
    }

    /// Renders for encoding: with every text of the conversation changed, and places for images written as the model's
    /// family has them.
    fn render_changed(
        &self,
        mut variables: Map<String, Value>,
        format: Option<ContentFormat>,
        change: &impl Fn(&str) -> Cow<'_, str>,
    ) -> Result<String> {
        for name in SPOKEN {
            variables[name] = map_texts(&variables[name], change);
        }
        let text = self.template.render(variables)?;
        Ok(match (&self.images, format) {
            (Some(images), Some(format)) => images.write(text, format),
            _ => text,
        })
    }

    /// The same; a sentinel breaks the control tokens that the texts spell.
    fn render_escaped(
        &self,
        variables: Map<String, Value>,
        format: Option<ContentFormat>,
        sentinel: char,
    ) -> Result<String> {
        self.render_changed(variables, format, &|text| {
            self.tokenizer.escape_control_tokens(text, sentinel)
        })
    }

    /// The prompt with one placeholder for each image.
    fn narrow_prompt(&self, request: &RenderRequest) -> Result<Prompt> {
        let (variables, format) = self.variables(request)?;
        let sentinel = Tokenizer::sentinel_for(spoken(&variables));
        let prompt = self.encode_escaped(&self.render_escaped(variables.clone(), format, sentinel)?, sentinel)?;
        if !spoken(&variables).any(|text| self.tokenizer.has_loose_edge(text)) {
            return Ok(prompt);
        }
        // A piece of a control token at the end of a message may have been completed by what stands next to it.
        let fenced = self.render_changed(variables, format, &|text| {
            let broken = self.tokenizer.escape_control_tokens(text, sentinel);
            if !self.tokenizer.has_loose_edge(text) {
                return broken;
            }
            let (words, start) = (broken.trim(), broken.len() - broken.trim_start().len());
            let (before, after) = (&broken[..start], &broken[start + words.len()..]);
            format!("{before}{sentinel}{words}{sentinel}{after}").into()
        })?;
        let fenced = self.encode_escaped(&fenced, sentinel)?;
        let control = |prompt: &Prompt| -> Vec<u32> {
            let ids = prompt.ids.iter().copied();
            ids.filter(|id| self.tokenizer.is_control(*id)).collect()
        };
        Ok(match control(&prompt) == control(&fenced) {
            true => prompt,
            false => fenced,
        })
    }

    fn encode_escaped(&self, text: &str, sentinel: char) -> Result<Prompt> {
        Ok(Prompt {
            text: text.replace(sentinel, ""),
            ids: self.tokenizer.encode_rendered(text, Some(sentinel))?,
            images: Vec::new(),
        })
    }

    /// The text that [`ChatProcessor::prompt`] makes ids of.
    pub(crate) fn rendered(&self, request: &RenderRequest) -> Result<Rendered> {
        let (variables, format) = self.variables(request)?;
        let sentinel = Tokenizer::sentinel_for(spoken(&variables));
        let text = self.render_escaped(variables, format, sentinel)?;
        Ok(Rendered { text, sentinel })
    }

    /// The same with a given sentinel.
    pub(crate) fn rendered_with(&self, request: &RenderRequest, sentinel: char) -> Result<String> {
        let (variables, format) = self.variables(request)?;
        self.render_escaped(variables, format, sentinel)
    }

    /// The ids of a prompt with one placeholder for each image.
    pub(crate) fn narrow(&self, prompt: &Prompt) -> Vec<u32> {
        match &self.images {
            Some(images) if !prompt.images.is_empty() => images.narrow(prompt),
            _ => prompt.ids.clone(),
        }
    }

    /// Plain text as ids, without control tokens.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.tokenizer.encode(text)
    }

    /// Ids as text, control tokens as they are spelled.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        Ok(self.tokenizer.decode(ids))
    }

    /// The bytes that a token spells, which may be part of a character; empty for unknown ids.
    pub fn token_bytes(&self, id: u32) -> Vec<u8> {
        self.tokenizer.bytes(id)
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// The markers of the model's thoughts and calls.
    pub(crate) fn format(&self) -> &ChannelFormat {
        &self.format
    }

    /// The tokens that end an answer.
    pub fn stops(&self) -> &StopSet {
        &self.stops
    }

    /// The chat template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// SHA-256 of the chat template, hexadecimal.
    pub fn template_hash(&self) -> &str {
        self.template.hash()
    }

    /// How the model's makers sample it, from generation_config.json; what it does not say is `None`.
    pub fn generation_defaults(&self) -> &Sampling {
        &self.generation_defaults
    }

    /// A parser for the answer to this prompt.
    pub fn parser(&self, prompt: &Prompt, thinking_on: bool, stop_texts: &[String]) -> ChannelParser {
        ChannelParser::new(
            self.tokenizer.clone(),
            self.format.clone(),
            prompt,
            thinking_on,
            stop_texts,
        )
    }

    /// A parser for text that a model wrote, and its ids, in which markers are tokens. `opened` says that the prompt
    /// opened a thought.
    pub fn reader(&self, text: &str, opened: bool, thinking_on: bool) -> Result<(ChannelParser, Vec<u32>)> {
        let opening = self.format.opened().filter(|_| opened).unwrap_or_default();
        let prompt = Prompt {
            ids: self.tokenizer.encode_rendered(&opening, None)?,
            text: opening,
            images: Vec::new(),
        };
        Ok((
            self.parser(&prompt, thinking_on, &[]),
            self.tokenizer.encode_rendered(text, None)?,
        ))
    }

    /// The text that ends a thought so that the answer follows, as the model writes it itself: what its template writes
    /// between the two, else what is known of its format. `None` for a model without thoughts.
    pub fn end_of_thinking(&self) -> Option<&EndOfThinking> {
        self.terminator.as_ref()
    }

    /// How the model writes calls, as its template writes them; `None` if a grammar cannot say it.
    pub fn call_form(&self) -> Option<&CallForm> {
        let find = || CallForm::of(&self.template, &self.format, &self.tokenizer);
        let found = || self.call_form.get_or_init(find);
        RenderLimits::request().unless_limited(found).as_ref()
    }

    /// The tokens XTC never removes: the ends and those of a line's end.
    pub fn eos_and_newline_ids(&self) -> Vec<u32> {
        let newline = self.tokenizer.encode("\n").unwrap_or_default();
        let ids: BTreeSet<u32> = self.stops.ids.keys().copied().chain(newline).collect();
        ids.into_iter().collect()
    }

    /// The control over the model's reasoning, derived by rendering a question with and without each switch.
    pub fn thinking_control(&self) -> ThinkingControl {
        capability(&self.template).0
    }

    /// The markers of the model's thoughts; `None` if its template has none.
    pub fn thought_markers(&self) -> Option<ThoughtMarkers> {
        capability(&self.template).1
    }
}

/// The texts of a conversation and its tools.
fn spoken(variables: &Map<String, Value>) -> impl Iterator<Item = &str> + Clone {
    let mut found = Vec::new();
    SPOKEN.iter().for_each(|name| texts(&variables[*name], &mut found));
    found.into_iter()
}

/// The sampling of generation_config.json. `do_sample: false` is greedy; `true` without a temperature means 1.
fn generation_defaults(config: &Value) -> Sampling {
    let of_makers = SAMPLING_OPTIONS.iter().filter(|option| option.of_makers);
    let set = of_makers.filter_map(|option| {
        let is_usable = |value: &&Value| match option.whole {
            true => value.as_u64().is_some_and(|whole| u32::try_from(whole).is_ok()),
            false => value.is_number(),
        };
        let value = config.get(option.field).filter(is_usable)?;
        Some((option.field.to_owned(), value.clone()))
    });
    let defaults: Sampling = serde_json::from_value(set.collect()).unwrap_or_default();
    let do_sample = config.get("do_sample").and_then(Value::as_bool);
    let temperature = match do_sample {
        Some(false) => Some(0.0),
        Some(true) => defaults.temperature.or(Some(1.0)),
        None => defaults.temperature,
    };
    Sampling {
        temperature,
        ..defaults
    }
}
