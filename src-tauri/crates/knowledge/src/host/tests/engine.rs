//! An engine that embeds by words, takes notes of planted lines and describes images as it is told, and a shelf with
//! every model.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

use api::{LocalModel, ModelShelf};
use futures::future::BoxFuture;
use protocol::fake::FakeEngine;
use protocol::{
    mailbox, AnswerNowFlag, CancelFlag, Capabilities, Content, Done, EmbeddingInput, EmbeddingRequest, Embeddings,
    EndedBy, Engine, EngineEvent, Error as Failure, ErrorCode, FinishReason, FolderSource, JobHandle, Message,
    ModelSource, Request, Sender, Timing, TokenCount,
};

/// Embeds a text by its words: texts with the same words have the same direction, whatever their order.
#[derive(Default)]
pub(super) struct WordEngine {
    pub fake: FakeEngine,
    pub is_broken: AtomicBool,
    pub embedded: AtomicUsize,
    /// The models that were asked for embeddings.
    pub models: Mutex<Vec<String>>,
    pub asked: AtomicUsize,
    /// The responses to images, by the ids of the images. To others there is none, and their jobs stay open.
    pub images: Mutex<HashMap<String, protocol::Result<String>>>,
    /// The requests with images.
    pub shown: Mutex<Vec<Request>>,
    /// The jobs without a response.
    pub open: Mutex<Vec<(Sender<EngineEvent>, CancelFlag)>>,
}

impl WordEngine {
    /// The job for a request with an image.
    fn describe(&self, request: Request) -> JobHandle {
        let (sender, events) = mailbox();
        let cancel = CancelFlag::default();
        let shown = request.shown_images().next().map(|(id, _)| id.to_owned());
        let response = shown.and_then(|id| self.images.lock().unwrap().get(&id).cloned());
        self.shown.lock().unwrap().push(request);
        match response {
            Some(Ok(text)) => say(&sender, text),
            Some(Err(error)) => sender.send(EngineEvent::Failed(error)),
            None => self.open.lock().unwrap().push((sender, cancel.clone())),
        }
        JobHandle {
            events,
            cancel,
            end_thinking: AnswerNowFlag::default(),
        }
    }
}

/// A response and its end.
pub(super) fn say(sender: &Sender<EngineEvent>, text: String) {
    sender.send(EngineEvent::Delta {
        content: Content::text(text),
        tokens: Vec::new(),
        thinking_tokens: None,
    });
    sender.send(EngineEvent::Done(Done {
        finish_reason: FinishReason::Stop,
        ended_by: EndedBy::TokenLimit,
        tokens: Vec::new(),
        usage: None,
        timing: Timing::default(),
    }));
}

const DIMENSIONS: usize = 64;
/// Bytes that fit the context.
const CONTEXT: usize = 900;

fn direction(text: &str) -> Vec<f32> {
    let mut vector = vec![0.01; DIMENSIONS];
    for word in text.split(|letter: char| !letter.is_alphanumeric()) {
        let hash = word
            .to_lowercase()
            .bytes()
            .fold(7_u64, |hash, byte| hash * 31 + u64::from(byte));
        vector[(hash % DIMENSIONS as u64) as usize] += 1.0;
    }
    vector
}

/// The score of a pair: the number after *rank* in the text, whatever the question is.
fn score(input: &EmbeddingInput) -> Option<Vec<f32>> {
    let EmbeddingInput::Pair { text, .. } = input else {
        return None;
    };
    let after = text.split("rank ").nth(1).unwrap_or_default();
    let number = after.split_whitespace().next().unwrap_or_default();
    Some(vec![number.parse().unwrap_or(f32::NAN)])
}

impl Engine for WordEngine {
    /// Takes as notes the lines that begin with *Entry*, each with the number of its passage; of notes each line once.
    fn generate(&self, request: Request) -> JobHandle {
        if request.shown_images().next().is_some() {
            return self.describe(request);
        }
        let (sender, events) = mailbox();
        let text = request
            .messages
            .last()
            .map(Message::text_with_placeholders)
            .unwrap_or_default();
        let (mut notes, mut mark) = (std::collections::BTreeSet::new(), String::new());
        for line in text.lines() {
            if let Some((number, _)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
                mark = format!(" [{number}]");
            }
            if line.starts_with("Entry") {
                let mark = if line.contains('[') { "" } else { &mark };
                notes.insert(format!("{line}{mark}"));
            }
        }
        let said = match notes.is_empty() {
            true => "NOTHING".to_owned(),
            false => notes.into_iter().collect::<Vec<_>>().join("\n"),
        };
        self.asked.fetch_add(1, Ordering::SeqCst);
        say(&sender, said);
        JobHandle {
            events,
            cancel: CancelFlag::default(),
            end_thinking: AnswerNowFlag::default(),
        }
    }

    fn capabilities(&self, model: &ModelSource) -> Capabilities {
        self.fake.capabilities(model)
    }

    fn count(&self, request: Request) -> BoxFuture<'static, protocol::Result<TokenCount>> {
        self.fake.count(request)
    }

    fn embed(&self, request: EmbeddingRequest) -> BoxFuture<'static, protocol::Result<Embeddings>> {
        self.models.lock().unwrap().push(request.model.reference());
        let ranked: Vec<Vec<f32>> = request.inputs.iter().filter_map(score).collect();
        if !ranked.is_empty() {
            let made = Embeddings {
                vectors: ranked,
                prompt_tokens: 0,
            };
            return Box::pin(std::future::ready(match self.is_broken.load(Ordering::SeqCst) {
                true => Err(Failure::new(
                    ErrorCode::ModelBroken,
                    "a file of the reranker is missing",
                )),
                false => Ok(made),
            }));
        }
        let texts: Vec<String> = request
            .inputs
            .into_iter()
            .filter_map(|input| match input {
                EmbeddingInput::Text(text) => Some(text),
                EmbeddingInput::Tokens(_) | EmbeddingInput::Pair { .. } => None,
            })
            .collect();
        let made = if self.is_broken.load(Ordering::SeqCst) {
            Err(Failure::new(ErrorCode::ModelBroken, "a file of the model is missing"))
        } else if let Some(input) = texts.iter().position(|text| text.len() > CONTEXT) {
            Err(Failure::new(ErrorCode::ContextFull, "an input is too long").with("input", input as u32))
        } else {
            self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
            Ok(Embeddings {
                vectors: texts.iter().map(|text| direction(text)).collect(),
                prompt_tokens: 0,
            })
        };
        Box::pin(std::future::ready(made))
    }
}

/// A shelf with every model of any reference, that lists these.
#[derive(Default)]
pub(super) struct Shelf(pub Vec<LocalModel>);

impl ModelShelf for Shelf {
    fn resolve(&self, reference: &str) -> protocol::Result<ModelSource> {
        if let Some(remote) = ModelSource::remote(reference) {
            return Ok(remote);
        }
        match reference.is_empty() {
            true => Err(Failure::new(ErrorCode::ModelNotFound, "there is no model")),
            false => Ok(FolderSource {
                reference: reference.into(),
                path: PathBuf::from("/nowhere"),
                revision: None,
                adapter: None,
            }
            .into()),
        }
    }

    fn list(&self) -> Vec<LocalModel> {
        self.0.clone()
    }
}
