//! What an engine is asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{Content, Error, ErrorCode, ImageBytes, ImageDetail, Message, ModelSource, Notice, NoticeCode, Result};

/// The Thinking switch of a chat. Effort levels count as on for models that only have a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// No reasoning before the answer.
    Off,
    /// Reasoning with the model's own effort.
    On,
    /// Little effort.
    Low,
    /// Some effort.
    Medium,
    /// All the effort it has.
    High,
}

/// How the next token is chosen. A field that is `None` follows the model's `generation_config.json`, and if that is
/// silent the value named here ([`Sampling::neutral`]). Order and meaning are those of mlx-lm (`sample_utils.py`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// Softmax temperature; 0 takes the likeliest token. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub temperature: Option<f32>,
    /// Keeps the smallest set of tokens with this much probability; 0 and 1 keep all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub top_p: Option<f32>,
    /// Keeps tokens at least this likely relative to the likeliest; 0 keeps all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub min_p: Option<f32>,
    /// Keeps the k likeliest tokens; 0 keeps all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub top_k: Option<u32>,
    /// The chance that XTC removes the likeliest tokens of a step; 0 never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub xtc_probability: Option<f32>,
    /// XTC removes all but the least likely of the tokens above this probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub xtc_threshold: Option<f32>,
    /// Divides positive and multiplies negative logits of recent tokens; 1 changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub repetition_penalty: Option<f32>,
    /// Taken once from the logit of every recent token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub presence_penalty: Option<f32>,
    /// Taken from the logit of a recent token for each of its occurrences.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub frequency_penalty: Option<f32>,
    /// How many recent tokens the three penalties look at. Default 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub penalty_context: Option<u32>,
    /// Added to the logits of single token ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[ts(type = "Record<string, number>", optional)]
    pub logit_bias: BTreeMap<u32, f32>,
    /// Makes sampling repeatable. Without one every answer differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub seed: Option<u64>,
}

impl Sampling {
    /// Always the likeliest token.
    pub fn greedy() -> Self {
        Self {
            temperature: Some(0.0),
            ..Self::default()
        }
    }
}

/// How many bits a key or value of full attention takes in the cache, if less than the model's own type is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum KvBits {
    /// A quarter of 16 bits; long contexts lose a little.
    Four,
    /// Half of 16 bits; hardly to be told from none.
    Eight,
}

impl TryFrom<u8> for KvBits {
    type Error = Error;

    fn try_from(bits: u8) -> Result<Self> {
        match bits {
            4 => Ok(Self::Four),
            8 => Ok(Self::Eight),
            other => Err(Error::new(
                ErrorCode::BadRequest,
                format!("keys and values are kept in 4 or 8 bits, not in {other}"),
            )),
        }
    }
}

impl From<KvBits> for u8 {
    fn from(bits: KvBits) -> Self {
        match bits {
            KvBits::Four => 4,
            KvBits::Eight => 8,
        }
    }
}

/// What an answer already says that is to be continued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPrefix {
    /// The ids that the model wrote, those of markers and of what ended its thought included, the stop token not. The answer goes on
    /// exactly as if it had never been interrupted.
    Tokens {
        /// The ids, in order.
        tokens: Vec<u32>,
        /// The model that wrote them, if it is known: another one is refused, because its ids mean something else.
        model_revision: Option<String>,
        /// Whether its thought was ended for the model, by somebody or by the budget, so that no second one shows.
        thinking_ended: bool,
    },
    /// What it said, if the ids are not known.
    Text {
        /// The reasoning. Without an answer after it, it is continued.
        thinking: Option<String>,
        /// The answer so far.
        text: Option<String>,
    },
}

/// A prompt that is no conversation: it is read without a chat template, and all that follows it is text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawPrompt {
    /// Text to be continued. Control tokens spelled in it are control tokens.
    Text(String),
    /// A gap to be filled, by a model that has control tokens for that.
    FillIn {
        /// What stands before the gap.
        before: String,
        /// What stands after it.
        after: String,
    },
    /// Token ids to be continued.
    Tokens(Vec<u32>),
}

/// Who waits for an answer: what comes first is served first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// A person in front of a window.
    #[default]
    Chat,
    /// A program that asked over an interface.
    Api,
    /// Nobody right now, as for titles and summaries.
    Background,
}

/// One answer to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The model that answers.
    pub model: ModelSource,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The pictures of the conversation, by the attachment that [`Content::Image`] names. One that is missing here is not shown. When a
    /// conversation is prefetched, there may be more of them: those of the question that will follow.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, ImageBytes>,
    /// How closely the model looks at pictures.
    #[serde(default)]
    pub image_detail: ImageDetail,
    /// What is continued instead of a conversation; then there are no messages.
    pub raw_prompt: Option<RawPrompt>,
    /// Tools the model may call, each in the OpenAI form `{"type":"function","function":{…}}`.
    pub tools: Vec<serde_json::Value>,
    /// The Thinking switch; `None` leaves the template's own default.
    pub thinking: Option<Thinking>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// At most this many tokens, thinking included, those of an answer prefix not; `None`: as many as the context holds.
    pub max_tokens: Option<u32>,
    /// Ends the thought when it has taken this many tokens, those of an answer prefix included; 0 ends it before it begins. `None`: never.
    pub thinking_budget: Option<u32>,
    /// At most so many tokens of the context are used, if the model has more; `None`: all of it. Only for models of this computer.
    #[serde(default)]
    pub context: Option<u32>,
    /// The answer is continued from here instead of being begun.
    pub answer_prefix: Option<AnswerPrefix>,
    /// Texts that end the answer where they first appear in it; they are cut off.
    pub stop: Vec<String>,
    /// Keeps keys and values of full attention in this many bits; `None`: as they are computed. Layers whose heads do not
    /// allow it keep theirs, and a notice `kv_bits` says so.
    pub kv_bits: Option<KvBits>,
    /// Reports the log probability of each token that is chosen, and of so many of the likeliest beside it, at most 20
    /// ([`EngineEvent::Logprobs`](crate::EngineEvent::Logprobs)); `None`: none. Engines without the capability `logprobs` ignore it.
    pub top_logprobs: Option<u8>,
    /// The answer's text is JSON that follows this JSON Schema; `None`: it is free. Thoughts and calls always
    /// are. An endpoint is asked for it and may not know how.
    pub schema: Option<serde_json::Value>,
    /// The answer has to be a call of one of the tools. Engines hold those models to it whose calls they can say in a grammar; others
    /// are asked for it in words, if at all.
    pub call_required: bool,
    /// Who waits for it.
    pub priority: Priority,
    /// The time for which the model stays loaded after its last use, from now on; [`Duration::MAX`]: until another one
    /// needs the memory. `None` leaves it as it is. Engines without models of their own ignore it.
    #[serde(default)]
    pub keep_alive: Option<Duration>,
}

impl Request {
    /// Replaces what the model will not see by its name in words ([`Content::as_text`]): all pictures if it does not see (`sees`), else
    /// those whose bytes the request does not carry; files in any case. What is left of [`Content::Image`] is to be shown to the model.
    /// Returns what the person should know about it.
    pub fn leave_out_unseen(&mut self, sees: bool) -> Vec<Notice> {
        let (mut images, mut files) = (0u32, 0u32);
        for message in &mut self.messages {
            if !message.has_media() {
                continue;
            }
            let mut content = Vec::with_capacity(message.content.len());
            for part in message.content.drain(..) {
                let seen = match &part {
                    Content::Image { attachment, .. } if sees && self.images.contains_key(attachment) => true,
                    Content::Image { .. } => {
                        images += 1;
                        false
                    }
                    Content::File { .. } => {
                        files += 1;
                        false
                    }
                    Content::Text { .. }
                    | Content::Thinking { .. }
                    | Content::ToolCall { .. }
                    | Content::Data { .. } => true,
                };
                let named = if seen { None } else { part.as_text().map(Content::text) };
                Content::push(&mut content, named.unwrap_or(part));
            }
            message.content = content;
        }
        let image = (images > 0).then(|| {
            let message = match (sees, images) {
                (false, 1) => "This model cannot see; it was told the picture's name instead.".to_owned(),
                (false, _) => format!("This model cannot see; it was told the names of {images} pictures instead."),
                (true, 1) => "The file of a picture is gone; the model was told its name instead.".to_owned(),
                (true, _) => {
                    format!("The files of {images} pictures are gone; the model was told their names instead.")
                }
            };
            Notice::new(NoticeCode::ImageLeftOut, message).with("images", images)
        });
        let file = (files > 0).then(|| {
            let message = "This model cannot see files; it was told their names instead.";
            Notice::new(NoticeCode::MediaNotSeen, message)
        });
        image.into_iter().chain(file).collect()
    }

    /// The pictures that the model is to be shown, in the order in which they stand in the conversation; one that stands there twice is
    /// there twice.
    pub fn shown_images(&self) -> impl Iterator<Item = (&str, &ImageBytes)> {
        let parts = self.messages.iter().flat_map(|message| &message.content);
        parts.filter_map(|part| match part {
            Content::Image { attachment, .. } => Some((attachment.as_str(), self.images.get(attachment)?)),
            Content::Text { .. }
            | Content::Thinking { .. }
            | Content::ToolCall { .. }
            | Content::Data { .. }
            | Content::File { .. } => None,
        })
    }

    /// The tokens of a model's context that are used.
    #[must_use]
    pub fn context_of(&self, model: u32) -> u32 {
        self.context.map_or(model, |most| most.min(model))
    }

    /// A request with the model's own defaults.
    pub fn new(model: impl Into<ModelSource>, messages: Vec<Message>) -> Self {
        Self {
            model: model.into(),
            messages,
            images: BTreeMap::new(),
            image_detail: ImageDetail::default(),
            raw_prompt: None,
            tools: Vec::new(),
            thinking: None,
            sampling: Sampling::default(),
            max_tokens: None,
            thinking_budget: None,
            context: None,
            answer_prefix: None,
            stop: Vec::new(),
            kv_bits: None,
            top_logprobs: None,
            schema: None,
            call_required: false,
            priority: Priority::default(),
            keep_alive: None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{FolderSource, Role};

    fn picture(attachment: &str, alt: &str) -> Content {
        Content::Image {
            attachment: attachment.into(),
            media_type: "image/png".into(),
            width: 1,
            height: 1,
            alt: alt.into(),
        }
    }

    fn request() -> Request {
        let model = FolderSource {
            reference: "pebble".into(),
            path: "/m".into(),
            revision: None,
        };
        let mut question = Message::text(Role::User, "Which is it? ");
        question.content.extend([picture("a", "cat.png"), picture("b", "")]);
        let mut request = Request::new(model, vec![question]);
        request.images.insert("a".into(), ImageBytes::from(vec![1]));
        request
    }

    #[test]
    fn what_is_not_seen_is_told_by_name_and_said_once() {
        let mut blind = request();
        let notices = blind.leave_out_unseen(false);
        assert_eq!(
            blind.messages[0].content,
            [Content::text("Which is it? [image: cat.png][image]")]
        );
        let codes: Vec<_> = notices
            .iter()
            .map(|notice| (notice.code, notice.arguments["images"].clone()))
            .collect();
        assert_eq!(codes, [(NoticeCode::ImageLeftOut, 2u32.into())]);
        assert!(blind.leave_out_unseen(false).is_empty());
        assert_eq!(blind.shown_images().count(), 0);
    }

    #[test]
    fn a_picture_without_bytes_is_not_shown_and_others_are() {
        let mut seeing = request();
        assert_eq!(seeing.leave_out_unseen(true).len(), 1);
        assert_eq!(
            seeing.messages[0].content,
            [
                Content::text("Which is it? "),
                picture("a", "cat.png"),
                Content::text("[image]")
            ]
        );
        let shown: Vec<_> = seeing.shown_images().map(|(id, bytes)| (id, bytes.len())).collect();
        assert_eq!(shown, [("a", 1)]);
    }

    #[test]
    fn pictures_go_over_a_socket_and_none_cost_nothing() {
        let request = request();
        let json = serde_json::to_value(&request).unwrap();
        assert_eq!(json["images"], serde_json::json!({"a": "AQ=="}));
        assert_eq!(serde_json::from_value::<Request>(json).unwrap(), request);
        let bare = Request::new(request.model, Vec::new());
        assert!(serde_json::to_value(&bare).unwrap().get("images").is_none());
    }
}
