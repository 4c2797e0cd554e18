//! The token ids that end an answer, with the sources that name them.

use std::collections::BTreeMap;

use protocol::{Message, Role};
use serde::{Serialize, Serializer};
use serde_json::{json, Value};

use crate::template::{token_content, RenderRequest, Template};
use crate::tokenizer::Tokenizer;

/// One token that ends an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopToken {
    /// How it is spelled, for people.
    pub text: String,
    /// The places that name it, such as `config.json eos_token_id`.
    pub sources: Vec<String>,
}

/// The tokens that end an answer: the union of all places that name some, because each of them alone is incomplete in
/// real models. Serializes as `{"stops":[{"id","text","sources"}]}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StopSet {
    /// The tokens by id.
    #[serde(rename = "stops", serialize_with = "as_list")]
    pub ids: BTreeMap<u32, StopToken>,
}

impl StopSet {
    /// Collects from the parsed files of a model (`null` if one is missing).
    pub fn collect(tokenizer: &Tokenizer, tokenizer_config: &Value, config: &Value, generation_config: &Value) -> Self {
        let mut set = Self::default();
        let eos = tokenizer_config.get("eos_token").and_then(token_content);
        if let Some(id) = eos.and_then(|content| tokenizer.id(content)) {
            set.add(tokenizer, id, "tokenizer_config.json eos_token");
        }
        // Also what is padding or a beginning elsewhere: Qwen's end of text is all three, and no model says anything
        // after one.
        let sources = [
            (config, "config.json eos_token_id"),
            (&config["text_config"], "config.json text_config.eos_token_id"),
            (generation_config, "generation_config.json eos_token_id"),
        ];
        for (file, source) in sources {
            for id in ids(&file["eos_token_id"]) {
                set.add(tokenizer, id, source);
            }
        }
        set
    }

    /// Adds the token that the template writes after an answer, which some models' files forget to name. Harmony's
    /// `<|end|>` is none: it also ends what comes before the answer.
    pub(crate) fn add_end_of_turn(&mut self, tokenizer: &Tokenizer, template: &Template) {
        const ANSWER: &str = "Zyzzyva";
        let messages = [Message::text(Role::User, "Hi"), Message::text(Role::Assistant, ANSWER)];
        let request = RenderRequest {
            messages: &messages,
            ..RenderRequest::default()
        };
        let text = template.render(template.variables(&request)).unwrap_or_default();
        let Some((_, tail)) = text.rsplit_once(ANSWER) else {
            return;
        };
        let ends = |content: &str| tail.trim_start().starts_with(content);
        let ends = tokenizer.control_tokens().iter().filter(|(_, content)| ends(content));
        let Some((id, content)) = ends.max_by_key(|(_, content)| content.len()) else {
            return;
        };
        let harmony = content == "<|end|>" && tokenizer.id("<|channel|>").is_some();
        if !harmony && !self.contains(*id) {
            self.add(tokenizer, *id, "chat template, after an answer");
        }
    }

    /// True if this id ends an answer.
    pub fn contains(&self, id: u32) -> bool {
        self.ids.contains_key(&id)
    }

    /// Adds the tokens that end an answer in the model's format.
    pub(crate) fn add_ends(&mut self, tokenizer: &Tokenizer, ends: &[&str]) {
        for id in ends.iter().filter_map(|text| tokenizer.id(text)) {
            self.add(tokenizer, id, "the format of its messages");
        }
    }

    fn add(&mut self, tokenizer: &Tokenizer, id: u32, source: &str) {
        let token = self.ids.entry(id).or_insert_with(|| StopToken {
            text: tokenizer.content(id).unwrap_or_default(),
            sources: Vec::new(),
        });
        if !token.sources.iter().any(|known| known == source) {
            token.sources.push(source.to_owned());
        }
    }
}

fn as_list<S: Serializer>(ids: &BTreeMap<u32, StopToken>, serializer: S) -> Result<S::Ok, S::Error> {
    let token = |(id, token): (&u32, &StopToken)| json!({"id": id, "text": token.text, "sources": token.sources});
    serializer.collect_seq(ids.iter().map(token))
}

/// An id, a list of ids or nothing.
fn ids(value: &Value) -> Vec<u32> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::Array(list) => list.iter().filter_map(id).collect(),
        one => id(one).into_iter().collect(),
    }
}
