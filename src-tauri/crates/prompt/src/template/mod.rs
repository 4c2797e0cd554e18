//! A model's chat template: where it is read from and how it is rendered.

mod conversation;
mod environment;
mod filters;
mod held;
mod json;
mod library;
mod limits;
mod meter;
mod operators;
mod python;
mod source;
mod text;
mod tool_conventions;

use std::path::Path;
use std::sync::OnceLock;

use minijinja::{Environment, ErrorKind};
use serde_json::{json, Map, Value};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::json_file::{read_json, read_json_there, read_text, read_text_there};
pub use conversation::RenderRequest;
pub(crate) use conversation::{map_texts, texts, ContentFormat};
use environment::{environment, set_clock, Refusal};
pub use limits::RenderLimits;
use meter::{too_long, Counting, Stop};
use source::prepare;
use tool_conventions::ToolConventions;
pub(crate) use tool_conventions::{trial, ARGUMENT, TOOL};

const DEFAULT: &str = "default";
const TOOL_USE: &str = "tool_use";
/// Letters of an error; a template may put a whole text into it.
const LONGEST_REASON: usize = 2000;

/// A compiled chat template with the variables that the model's own files set.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    source: String,
    hash: String,
    variables: Map<String, Value>,
    conventions: OnceLock<ToolConventions>,
}

impl Template {
    /// Reads the template of the model in `dir`: chat_template.jinja, else chat_template.json, else `chat_template` of
    /// tokenizer_config.json, which is passed as `config`; that may be a list of named ones.
    pub fn open(dir: &Path, config: &Value) -> Result<Self> {
        let sources = match read_text(&dir.join("chat_template.jinja"))? {
            Some(source) => with_additional(dir, source)?,
            None => {
                let processor = read_json(&dir.join("chat_template.json"))?;
                let source = processor.get("chat_template").or_else(|| config.get("chat_template"));
                source.cloned().unwrap_or_default()
            }
        };
        Self::new(&sources, special_tokens(config))
    }

    /// The template of a family whose models bring none, with the special tokens of this tokenizer_config.json.
    pub fn of_family(source: &str, config: &Value) -> Result<Self> {
        Self::new(&source.into(), special_tokens(config))
    }

    /// Reads a template from a file: its source, or JSON with `chat_template` in it, such as tokenizer_config.json,
    /// whose special tokens then count too.
    pub fn open_file(path: &Path) -> Result<Self> {
        if path.extension().is_some_and(|extension| extension == "json") {
            let config = read_json_there(path)?;
            return Self::new(&config["chat_template"], special_tokens(&config));
        }
        Self::new(&read_text_there(path)?.into(), Map::new())
    }

    /// Compiles a template from its source, or from a list of `{"name", "template"}`.
    pub fn new(sources: &Value, variables: Map<String, Value>) -> Result<Self> {
        let named: Vec<(&str, &str)> = match sources {
            Value::String(source) => vec![(DEFAULT, source)],
            Value::Array(list) => list
                .iter()
                .filter_map(|entry| Some((entry.get("name")?.as_str()?, entry.get("template")?.as_str()?)))
                .collect(),
            _ => Vec::new(),
        };
        let default = named.iter().find(|(name, _)| *name == DEFAULT).or(named.first());
        let source = default.ok_or(Error::NoTemplate)?.1.to_owned();
        let mut environment = environment();
        let mut add = |name: &'static str, source: &str| {
            environment
                .add_template_owned(name, prepare(source)?)
                .map_err(|error| Error::TemplateSyntax(error.to_string()))
        };
        add(DEFAULT, &source)?;
        if let Some((_, source)) = named.iter().find(|(name, _)| *name == TOOL_USE) {
            add(TOOL_USE, source)?;
        }
        let hash = format!("{:x}", Sha256::digest(&source));
        Ok(Self {
            environment,
            source,
            hash,
            variables,
            conventions: OnceLock::new(),
        })
    }

    /// The template with a clock that stands still, so that what it renders can be compared.
    #[must_use]
    pub fn at(mut self, now: jiff::Zoned) -> Self {
        set_clock(&mut self.environment, move || now.clone());
        self
    }

    /// The source that is used without tools.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The variables that the model's own files set, such as the tokens that its template names.
    pub(crate) fn own_variables(&self) -> &Map<String, Value> {
        &self.variables
    }

    /// SHA-256 of [`source`](Self::source), hexadecimal.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The variables of a conversation in the form that this template accepts: those that transformers'
    /// `apply_chat_template` passes, a tool's result as text unless the template prints objects, call ids of nine
    /// letters and digits if it refuses others.
    pub fn variables(&self, request: &RenderRequest) -> Map<String, Value> {
        self.variables_in(
            request,
            (!request.images.is_empty()).then_some(ContentFormat::Parts("image")),
        )
    }

    /// The same with images in this format; `None`: as words.
    pub(crate) fn variables_in(&self, request: &RenderRequest, format: Option<ContentFormat>) -> Map<String, Value> {
        let knows_tools =
            |message: &protocol::Message| message.role == protocol::Role::Tool || !message.tool_calls.is_empty();
        if !request.messages.iter().any(knows_tools) {
            return request.variables(ToolConventions::default(), format);
        }
        request.variables(*self.conventions(), format)
    }

    fn conventions(&self) -> &ToolConventions {
        let render = |variables| self.render(variables).ok();
        self.conventions.get_or_init(|| ToolConventions::of(&render))
    }

    /// Renders with these variables; `messages` and whatever else the template asks for. If `tools` is set, a template
    /// named `tool_use` is preferred. As in transformers, a message's reasoning is there under each of its names.
    pub fn render(&self, mut variables: Map<String, Value>) -> Result<String> {
        let messages = variables.get_mut("messages").and_then(Value::as_array_mut);
        messages.into_iter().flatten().for_each(name_reasoning);
        for (name, value) in &self.variables {
            variables.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let (values, weight) = held::variables(&variables).map_err(failure)?;
        let (counting, fuel) = Counting::begin(weight);
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(fuel));
        let tools = variables.get("tools").is_some_and(|tools| !tools.is_null());
        let template = environment.get_template(TOOL_USE).ok().filter(|_| tools);
        let template = template
            .map_or_else(|| environment.get_template(DEFAULT), Ok)
            .expect("the default template is always there");
        // A template that breaks the library that renders it is a broken template.
        let render = || template.render(values);
        let rendered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(render));
        match (counting.stopped(), rendered) {
            (Some(Stop::Cancelled), _) => Err(Error::TemplateCancelled),
            (Some(Stop::Endless), _) => Err(Error::TemplateEndless),
            (None, Ok(Ok(text))) => too_long(text.len()).map_err(failure).map(|()| text),
            (None, Ok(Err(error))) => Err(failure(error)),
            (None, Err(_)) => Err(Error::TemplateFailed("it does what cannot be rendered".into())),
        }
    }
}

/// The templates of `additional_chat_templates/NAME.jinja` next to the default one, if there are any.
fn with_additional(dir: &Path, default: String) -> Result<Value> {
    let path = dir.join("additional_chat_templates").join(format!("{TOOL_USE}.jinja"));
    Ok(match read_text(&path)? {
        Some(source) => json!([{"name": DEFAULT, "template": default}, {"name": TOOL_USE, "template": source}]),
        None => default.into(),
    })
}

/// Reasoning is passed as `reasoning_content`; `thinking`, which gpt-oss reads, and `reasoning` are older names of it.
fn name_reasoning(message: &mut Value) {
    let Some(fields) = message.as_object_mut() else { return };
    let names = ["reasoning_content", "thinking", "reasoning"];
    let mut given = names.iter().filter_map(|name| fields.get(*name));
    if let Some(reasoning) = given.find(|value| !value.is_null()).cloned() {
        fields.entry("thinking").or_insert_with(|| reasoning.clone());
        fields.insert("reasoning_content".into(), reasoning);
    }
}

/// The `bos_token` and so on that transformers passes to templates.
fn special_tokens(config: &Value) -> Map<String, Value> {
    let names = [
        "bos_token",
        "eos_token",
        "unk_token",
        "sep_token",
        "pad_token",
        "cls_token",
        "mask_token",
    ];
    let mut variables = Map::new();
    let extra = config.get("extra_special_tokens").and_then(Value::as_object);
    let standard = names.iter().filter_map(|name| Some((*name, config.get(*name)?)));
    for (name, token) in standard.chain(extra.into_iter().flatten().map(|(name, token)| (name.as_str(), token))) {
        if let Some(content) = token_content(token) {
            variables.insert(name.to_owned(), content.into());
        }
    }
    variables
}

/// The text of a token in tokenizer_config.json, which is a string or an object with `content`.
pub(crate) fn token_content(token: &Value) -> Option<&str> {
    token.as_str().or_else(|| token.get("content").and_then(Value::as_str))
}

fn failure(error: minijinja::Error) -> Error {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(cause) = source {
        if let Some(Refusal(message)) = cause.downcast_ref() {
            return Error::TemplateRefused(message.clone());
        }
        let inner = cause.downcast_ref::<minijinja::Error>();
        if inner.is_some_and(|error| error.kind() == ErrorKind::OutOfFuel) {
            return Error::TemplateEndless;
        }
        source = cause.source();
    }
    Error::TemplateFailed(error.to_string().chars().take(LONGEST_REASON).collect())
}

#[cfg(test)]
mod tests;
