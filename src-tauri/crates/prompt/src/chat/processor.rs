//! A model's way of speaking, put together from its files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use protocol::{Sampling, ThinkingControl, ThoughtMarkers};
use serde_json::{Map, Value};

use super::call_form::CallForm;
use super::stop_tokens::StopSet;
use crate::channels::{capability, ChannelFormat, ChannelParser, EndOfThinking};
use crate::error::{Error, Result};
use crate::images::ImageTokens;
use crate::json_file::read_json;
use crate::prompt::Prompt;
use crate::template::{map_texts, texts, ContentFormat, RenderRequest, Template};
use crate::tokenizer::Tokenizer;

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
        let tokenizer_config = read_json(&dir.join("tokenizer_config.json"))?;
        let config = read_json(&dir.join("config.json"))?;
        let generation_config = read_json(&dir.join("generation_config.json"))?;
        let template = match (Template::open(dir, &tokenizer_config), ImageTokens::template(&config)) {
            (Err(Error::NoTemplate), Some(source)) => Template::new(&source.into(), Map::new())?,
            (opened, _) => opened?,
        };
        let written = ImageTokens::spelled(&config)
            .into_iter()
            .chain([template.source()])
            .collect::<String>();
        let tokenizer = Tokenizer::open(dir, &tokenizer_config, &written)?;
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
        let prompt = self.narrow_prompt(request)?;
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
        let mut found = Vec::new();
        ["messages", "tools"]
            .iter()
            .for_each(|name| texts(&variables[*name], &mut found));
        match images.content_format(request.messages, found.iter().copied()) {
            ContentFormat::Parts => Ok((variables, Some(ContentFormat::Parts))),
            inline => Ok((self.template.variables_in(request, Some(inline)), Some(inline))),
        }
    }

    /// Renders for encoding: places for images are written as the model's family has them.
    fn render_written(&self, variables: Map<String, Value>, format: Option<ContentFormat>) -> Result<String> {
        let text = self.template.render(variables)?;
        Ok(match (&self.images, format) {
            (Some(images), Some(format)) => images.write(text, format),
            _ => text,
        })
    }

    /// The prompt with one placeholder for each image.
    fn narrow_prompt(&self, request: &RenderRequest) -> Result<Prompt> {
        let (variables, format) = self.variables(request)?;
        let spoken = [variables["messages"].clone(), variables["tools"].clone()];
        let mut found = Vec::new();
        spoken.iter().for_each(|value| texts(value, &mut found));

        let sentinel = Tokenizer::sentinel_for(found.iter().copied());
        let prompt = self.prompt_with(&variables, format, sentinel, &|text| {
            self.tokenizer.escape_control_tokens(text, sentinel)
        })?;
        if !found.iter().any(|text| self.tokenizer.has_loose_edge(text)) {
            return Ok(prompt);
        }
        // A piece of a control token at the end of a message may have been completed by what stands next to it.
        let fenced = self.prompt_with(&variables, format, sentinel, &|text| {
            let broken = self.tokenizer.escape_control_tokens(text, sentinel);
            if !self.tokenizer.has_loose_edge(text) {
                return broken;
            }
            let words = broken.trim();
            let start = broken.len() - broken.trim_start().len();
            format!(
                "{}{sentinel}{words}{sentinel}{}",
                &broken[..start],
                &broken[start + words.len()..]
            )
            .into()
        })?;
        let control = |prompt: &Prompt| {
            prompt
                .ids
                .iter()
                .copied()
                .filter(|id| self.tokenizer.is_control(*id))
                .collect::<Vec<_>>()
        };
        Ok(if control(&prompt) == control(&fenced) {
            prompt
        } else {
            fenced
        })
    }

    fn prompt_with(
        &self,
        variables: &Map<String, Value>,
        format: Option<ContentFormat>,
        sentinel: char,
        change: &impl Fn(&str) -> std::borrow::Cow<'_, str>,
    ) -> Result<Prompt> {
        let mut variables = variables.clone();
        for name in ["messages", "tools"] {
            variables[name] = map_texts(&variables[name], change);
        }
        let text = self.render_written(variables, format)?;
        let ids = self.tokenizer.encode_rendered(&text, Some(sentinel))?;
        Ok(Prompt {
            text: text.replace(sentinel, ""),
            ids,
            images: Vec::new(),
        })
    }

    /// The text that [`ChatProcessor::prompt`] makes ids of.
    pub(crate) fn rendered(&self, request: &RenderRequest) -> Result<Rendered> {
        let (variables, _) = self.variables(request)?;
        let mut found = Vec::new();
        ["messages", "tools"]
            .iter()
            .for_each(|name| texts(&variables[*name], &mut found));
        let sentinel = Tokenizer::sentinel_for(found.iter().copied());
        Ok(Rendered {
            text: self.rendered_with(request, sentinel)?,
            sentinel,
        })
    }

    /// The same with a given sentinel.
    pub(crate) fn rendered_with(&self, request: &RenderRequest, sentinel: char) -> Result<String> {
        let (mut variables, format) = self.variables(request)?;
        for name in ["messages", "tools"] {
            variables[name] = map_texts(&variables[name], &|text| {
                self.tokenizer.escape_control_tokens(text, sentinel)
            });
        }
        self.render_written(variables, format)
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
        self.call_form.get_or_init(find).as_ref()
    }

    /// The tokens XTC never removes: the ends and those of a line's end.
    pub fn eos_and_newline_ids(&self) -> Vec<u32> {
        let newline = self.tokenizer.encode("\n").unwrap_or_default();
        self.stops
            .ids
            .keys()
            .copied()
            .chain(newline)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
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

/// The sampling of generation_config.json. `do_sample: false` is greedy; `true` without a temperature means 1.
fn generation_defaults(config: &Value) -> Sampling {
    let number = |name: &str| config.get(name).and_then(Value::as_f64).map(|value| value as f32);
    let do_sample = config.get("do_sample").and_then(Value::as_bool);
    Sampling {
        temperature: match do_sample {
            Some(false) => Some(0.0),
            Some(true) => number("temperature").or(Some(1.0)),
            None => number("temperature"),
        },
        top_p: number("top_p"),
        min_p: number("min_p"),
        top_k: config
            .get("top_k")
            .and_then(Value::as_u64)
            .and_then(|k| u32::try_from(k).ok()),
        repetition_penalty: number("repetition_penalty"),
        ..Sampling::default()
    }
}
