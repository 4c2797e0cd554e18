//! Turns over a real history file, with an engine that says what the test wants.

#![allow(clippy::unwrap_used)]

mod branches;
mod compaction;
mod continuation;
mod damage;
mod failures;
mod files;
mod generated_titles;
mod images;
mod injections;
mod passages;
mod personal;
mod prefetch;
mod previews;
mod processes;
mod project_files;
mod settings;
mod temporary;
mod thoughts;
mod tool_calls;
mod tool_results;
mod tools;
mod tools_change;
mod turns;
mod two_answers;
mod watching;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api::{AnswerBody, AnswerEvent, ChatSettings, LocalModel, ModelPlace, ModelShelf, Position, StoredMessage};
use chat::Chat;
use protocol::fake::{FakeEngine, FakeJob};
use protocol::{
    Content, Done, EndedBy, EngineEvent, Error, ErrorCode, FinishReason, FolderSource, ModelKind, ModelSource,
    Receiver, Result, Sampling, Timing, Usage,
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// Has every model but `missing`.
struct Shelf;

impl ModelShelf for Shelf {
    fn resolve(&self, reference: &str) -> Result<ModelSource> {
        match reference {
            "missing" => Err(Error::new(ErrorCode::ModelNotFound, "there is no such model")),
            _ => Ok(ModelSource::remote(reference).unwrap_or_else(|| {
                ModelSource::Folder(FolderSource {
                    reference: reference.into(),
                    path: PathBuf::from("/models").join(reference),
                    revision: None,
                    adapter: None,
                })
            })),
        }
    }

    fn list(&self) -> Vec<LocalModel> {
        let model = |(reference, supports_vision): (&str, bool)| LocalModel {
            reference: reference.into(),
            name: reference.into(),
            kind: ModelKind::Chat,
            built_in: false,
            path: "/models".into(),
            revision: None,
            family: None,
            quantization: None,
            bytes: 1,
            context: None,
            thinking: None,
            thought: None,
            sampling: Sampling::default(),
            sampling_by_makers: true,
            supports_vision,
            vision_problem: None,
            problem: None,
            incomplete: false,
            place: ModelPlace::Cache,
            last_used_at: None,
            revisions: Vec::new(),
            quantizable: false,
            adapter_of: None,
        };
        [("owl", true), ("mole", false), ("hawk", true)].map(model).into()
    }
}

struct Harness {
    _folder: TempDir,
    path: PathBuf,
    engine: FakeEngine,
    chat: Chat,
}

async fn open(path: &Path) -> (FakeEngine, Chat) {
    let engine = FakeEngine::new();
    let chat = Chat::open(path, Arc::new(engine.clone()), Arc::new(Shelf))
        .await
        .unwrap();
    (engine, chat)
}

impl Harness {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.sqlite");
        let (engine, chat) = open(&path).await;
        Self {
            _folder: folder,
            path,
            engine,
            chat,
        }
    }

    async fn new_chat(&self) -> String {
        self.chat
            .chats()
            .create(ChatSettings::default())
            .await
            .unwrap()
            .summary
            .id
    }

    /// A question, and the job that the engine got for it.
    async fn ask(&self, chat: &str, question: &str) -> (String, FakeJob) {
        let turn = self
            .chat
            .answers()
            .send(chat, &[Content::text(question)], &Position::End)
            .await
            .unwrap();
        (turn.answer.id, self.job().await)
    }

    /// How a question that cannot be asked is refused.
    async fn refusal(&self, chat: &str, question: &str) -> ErrorCode {
        let asked = self
            .chat
            .answers()
            .send(chat, &[Content::text(question)], &Position::End)
            .await;
        asked.unwrap_err().code
    }

    async fn job(&self) -> FakeJob {
        for _ in 0..6000 {
            if let Some(job) = self.engine.take_job() {
                return job;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("the engine was not asked");
    }

    /// How the answer ended.
    async fn end(&self, message: &str) -> StoredMessage {
        let events = all(self.chat.answers().attach(message, 0).await.unwrap()).await;
        finished(events.last().unwrap())
    }

    async fn stored(&self, chat: &str) -> Vec<StoredMessage> {
        self.chat.chats().get(chat).await.unwrap().messages
    }
}

fn text(text: &str, token: u32) -> EngineEvent {
    EngineEvent::Delta {
        content: Content::text(text),
        tokens: vec![token],
        thinking_tokens: Some(1),
    }
}

fn thought(text: &str, token: u32) -> EngineEvent {
    EngineEvent::Delta {
        content: Content::thinking(text),
        tokens: vec![token],
        thinking_tokens: Some(1),
    }
}

fn done(finish_reason: FinishReason) -> EngineEvent {
    EngineEvent::Done(Done {
        ended_by: EndedBy::Cancelled,
        finish_reason,
        usage: Some(usage()),
        timing: timing(),
        tokens: vec![99],
    })
}

fn usage() -> Usage {
    Usage {
        prompt_tokens: 28,
        cached_tokens: 0,
        prefilled_tokens: 28,
        completion_tokens: 3,
        thinking_tokens: Some(1),
        speculation: None,
    }
}

fn timing() -> Timing {
    Timing {
        load_ms: 1.0,
        first_token_ms: 2.0,
        prefill_tokens_per_second: 3.0,
        decode_tokens_per_second: 4.0,
    }
}

async fn next(events: &mut Receiver<AnswerEvent>) -> AnswerEvent {
    timeout(Duration::from_secs(120), events.recv())
        .await
        .expect("an event comes in time")
        .expect("there is another event")
}

/// All events to the end.
async fn all(mut events: Receiver<AnswerEvent>) -> Vec<AnswerEvent> {
    let mut all = Vec::new();
    while let Some(event) = timeout(Duration::from_secs(120), events.recv())
        .await
        .expect("an event comes in time")
    {
        all.push(event);
    }
    all
}

fn finished(event: &AnswerEvent) -> StoredMessage {
    match &event.body {
        AnswerBody::Finished { message } => (**message).clone(),
        other => panic!("not the end: {other:?}"),
    }
}
