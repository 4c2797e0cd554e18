//! A request to an engine.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Content, FolderSource, ImageBytes, ImageDetail, KvBits, Message, ModelSource, Notice, NoticeCode, Role, Sampling,
    Thinking,
};

/// The beginning of an answer that is to be continued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPrefix {
    /// The model's token ids, including those of markers and of the end of its thought, without the stop token. The
    /// answer goes on exactly as if it had never been interrupted.
    Tokens {
        /// The ids, in order.
        tokens: Vec<u32>,
        /// The model that generated them, if known; another one is refused, because its ids differ.
        model_revision: Option<String>,
        /// True if its thought was ended for the model, by the user or by the budget, so that no second one is shown.
        thinking_ended: bool,
    },
    /// The text so far, if the ids are not known.
    Text {
        /// The reasoning. It is continued if no answer follows it.
        thinking: Option<String>,
        /// The answer so far.
        text: Option<String>,
    },
}

/// A prompt that is not a conversation: it is encoded without a chat template, and the whole completion is text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawPrompt {
    /// Text to be continued. Control tokens spelled in it are control tokens.
    Text(String),
    /// A gap to fill, for models with control tokens for that.
    FillIn {
        /// The text before the gap.
        before: String,
        /// The text after the gap.
        after: String,
    },
    /// Token ids to be continued.
    Tokens(Vec<u32>),
}

/// The priority of a request: smaller values are served first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// A user in front of a window.
    #[default]
    Chat,
    /// A program that uses an API.
    Api,
    /// Nobody is waiting, as for titles and summaries.
    Background,
}

/// A request for one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The model that answers.
    pub model: ModelSource,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The images of the conversation, by the attachment that [`Content::Image`] names. Missing ones are not shown. For
    /// a prefetch there may be more of them: those of the question that will follow.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, ImageBytes>,
    /// The detail at which the model sees images.
    #[serde(default)]
    pub image_detail: ImageDetail,
    /// A prompt to complete instead of a conversation; `messages` is empty then.
    pub raw_prompt: Option<RawPrompt>,
    /// Tools the model may call, each in the OpenAI form `{"type":"function","function":{…}}`.
    pub tools: Vec<serde_json::Value>,
    /// The Thinking switch; `None` leaves the template's own default.
    pub thinking: Option<Thinking>,
    /// The sampling options.
    pub sampling: Sampling,
    /// True in chats: a model whose makers set no temperature has [`Sampling::or_chat_defaults`] instead of answering
    /// greedily. Endpoints have defaults of their own.
    #[serde(default)]
    pub chat_defaults: bool,
    /// The maximum number of tokens, thinking included, an answer prefix not; `None` for the rest of the context.
    pub max_tokens: Option<u32>,
    /// The number of tokens after which the thought is ended, those of an answer prefix included; 0 skips it. `None`
    /// for no limit.
    pub thinking_budget: Option<u32>,
    /// The maximum size of the context, if the model has more; `None` for all of it. Only for local models.
    #[serde(default)]
    pub context: Option<u32>,
    /// The beginning of the answer, if it is to be continued.
    pub answer_prefix: Option<AnswerPrefix>,
    /// Stop texts: the answer ends before the first occurrence.
    pub stop: Vec<String>,
    /// KV cache quantization of full attention; `None` for full precision. Layers whose heads do not support it keep
    /// full precision, which a notice `kv_bits` reports.
    pub kv_bits: Option<KvBits>,
    /// A smaller model with the same tokens that drafts the answer: the tokens stay those of `model`, and there may be
    /// more of them a second. Only for local models.
    #[serde(default)]
    pub draft_model: Option<FolderSource>,
    /// Reports the log probability of each sampled token and of this many of the likeliest, at most 20
    /// ([`EngineEvent::Logprobs`](crate::EngineEvent::Logprobs)); `None` for none. Engines without the capability
    /// `logprobs` ignore it.
    pub top_logprobs: Option<u8>,
    /// The JSON Schema of the answer's text; `None` for free text. Thoughts and calls are always free. An endpoint gets
    /// the schema and may not support it.
    pub schema: Option<serde_json::Value>,
    /// The answer has to be a tool call. Engines enforce it for models whose calls they can express as a grammar; the
    /// others get it as an instruction, if at all.
    pub call_required: bool,
    /// The priority among other requests.
    pub priority: Priority,
    /// The time for which the model stays loaded after its last use, from now on; [`Duration::MAX`]: until another one
    /// needs the memory. `None` leaves it as it is. Engines without models of their own ignore it.
    #[serde(default)]
    pub keep_alive: Option<Duration>,
}

impl Request {
    /// Replaces content that the model will not see by its name as text ([`Content::as_text`]): all images for a model
    /// without vision (`sees` is false), otherwise those whose bytes the request lacks; files in any case. The
    /// remaining [`Content::Image`] are for the model to see. Returns notices for the user.
    pub fn leave_out_unseen(&mut self, supports_vision: bool) -> Vec<Notice> {
        let (mut images, mut files) = (0u32, 0u32);
        for message in &mut self.messages {
            if !message.has_media() {
                continue;
            }
            let mut content = Vec::with_capacity(message.content.len());
            for part in message.content.drain(..) {
                let unseen = match &part {
                    Content::Image { attachment, .. } => !supports_vision || !self.images.contains_key(attachment),
                    part => part.is_media(),
                };
                match &part {
                    Content::Image { .. } => images += u32::from(unseen),
                    _ => files += u32::from(unseen),
                }
                let named = unseen.then(|| part.as_text().map(Content::text)).flatten();
                Content::push(&mut content, named.unwrap_or(part));
            }
            message.content = content;
        }
        let image = (images > 0).then(|| {
            let message = match (supports_vision, images) {
                (false, 1) => "This model cannot see; it was told the image's name instead.".to_owned(),
                (false, _) => format!("This model cannot see; it was told the names of {images} images instead."),
                (true, 1) => "The file of an image is gone; the model was told its name instead.".to_owned(),
                (true, _) => format!("The files of {images} images are gone; the model was told their names instead."),
            };
            Notice::new(NoticeCode::ImageLeftOut, message).with("images", images)
        });
        let file = (files > 0).then(|| {
            let message = "This model cannot see files; it was told their names instead.";
            Notice::new(NoticeCode::MediaNotSeen, message)
        });
        image.into_iter().chain(file).collect()
    }

    /// The request with a line in place of each image in the result of a tool, for templates that have no place for it;
    /// `None` if there is no such image.
    #[must_use]
    pub fn without_result_images(&self) -> Option<Self> {
        let is_image = |part: &Content| matches!(part, Content::Image { .. });
        let has_image = |message: &Message| message.role == Role::Tool && message.content.iter().any(is_image);
        if !self.messages.iter().any(has_image) {
            return None;
        }
        let mut request = self.clone();
        for message in request.messages.iter_mut().filter(|message| has_image(message)) {
            let parts = std::mem::take(&mut message.content);
            let (images, mut words): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_image);
            for line in images.iter().filter_map(Content::as_text) {
                let gap = if words.is_empty() { "" } else { "\n" };
                Content::push(&mut words, Content::text(format!("{gap}{line}")));
            }
            message.content = words;
        }
        Some(request)
    }

    /// The images that the model will see, in the order of the conversation; one that occurs twice is returned twice.
    pub fn shown_images(&self) -> impl Iterator<Item = (&str, &ImageBytes)> {
        let parts = self.messages.iter().flat_map(|message| &message.content);
        parts.filter_map(|part| match part {
            Content::Image { attachment, .. } => Some((attachment.as_str(), self.images.get(attachment)?)),
            _ => None,
        })
    }

    /// The usable part of a model's context, in tokens.
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
            chat_defaults: false,
            max_tokens: None,
            thinking_budget: None,
            context: None,
            answer_prefix: None,
            stop: Vec::new(),
            kv_bits: None,
            draft_model: None,
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

    fn image(attachment: &str, alt: &str) -> Content {
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
            adapter: None,
        };
        let mut question = Message::text(Role::User, "Which is it? ");
        question.content.extend([image("a", "cat.png"), image("b", "")]);
        let mut request = Request::new(model, vec![question]);
        request.images.insert("a".into(), ImageBytes::from(vec![1]));
        request
    }

    #[test]
    fn images_of_results_can_be_told_in_words_and_those_of_questions_stay() {
        let mut with_result = request();
        assert!(with_result.without_result_images().is_none());
        let mut result = Message::text(Role::Tool, "A map.");
        result.content.push(image("a", "map.png"));
        with_result.messages.push(result);
        let in_words = with_result.without_result_images().unwrap();
        assert_eq!(in_words.messages[0], with_result.messages[0]);
        assert_eq!(
            in_words.messages[1].content,
            [Content::text("A map.\n[image: map.png]")]
        );
    }

    #[test]
    fn what_is_not_seen_is_told_by_name_and_said_once() {
        let mut without_vision = request();
        let notices = without_vision.leave_out_unseen(false);
        assert_eq!(
            without_vision.messages[0].content,
            [Content::text("Which is it? [image: cat.png][image]")]
        );
        let codes: Vec<_> = notices
            .iter()
            .map(|notice| (notice.code, notice.arguments["images"].clone()))
            .collect();
        assert_eq!(codes, [(NoticeCode::ImageLeftOut, 2u32.into())]);
        assert!(without_vision.leave_out_unseen(false).is_empty());
        assert_eq!(without_vision.shown_images().count(), 0);
    }

    #[test]
    fn an_image_without_bytes_is_not_shown_and_others_are() {
        let mut with_vision = request();
        assert_eq!(with_vision.leave_out_unseen(true).len(), 1);
        assert_eq!(
            with_vision.messages[0].content,
            [
                Content::text("Which is it? "),
                image("a", "cat.png"),
                Content::text("[image]")
            ]
        );
        let shown: Vec<_> = with_vision
            .shown_images()
            .map(|(id, bytes)| (id, bytes.len()))
            .collect();
        assert_eq!(shown, [("a", 1)]);
    }

    #[test]
    fn images_go_over_a_socket_and_none_cost_nothing() {
        let request = request();
        let json = serde_json::to_value(&request).unwrap();
        assert_eq!(json["images"], serde_json::json!({"a": "AQ=="}));
        assert_eq!(serde_json::from_value::<Request>(json).unwrap(), request);
        let bare = Request::new(request.model, Vec::new());
        assert!(serde_json::to_value(&bare).unwrap().get("images").is_none());
    }
}
