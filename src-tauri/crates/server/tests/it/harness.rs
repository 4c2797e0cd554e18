//! A server on loopback beside the fake engine, and scripts for that.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use api::{LocalModel, ModelPlace, ModelShelf};
use protocol::fake::{FakeEngine, FakeJob};
use protocol::{
    Content, Done, EndedBy, EngineEvent, Error, ErrorCode, FinishReason, FolderSource, ModelKind, ModelSource, Role,
    Timing, ToolCall, Usage,
};
use serde_json::json;
use server::{Limits, Server, ServerConfig};

/// Two models that chat, and one that makes embeddings.
pub struct Shelf;

impl ModelShelf for Shelf {
    fn resolve(&self, reference: &str) -> protocol::Result<ModelSource> {
        if !["pebble", "org/model", "org/embedder"].contains(&reference) {
            return Err(Error::new(ErrorCode::ModelNotFound, "no such model"));
        }
        Ok(FolderSource {
            reference: reference.into(),
            path: "/models".into(),
            revision: None,
            adapter: None,
        }
        .into())
    }

    fn list(&self) -> Vec<LocalModel> {
        ["pebble", "org/model", "org/embedder"].map(listed).into()
    }
}

/// A model as a shelf lists it.
pub fn listed(reference: &str) -> LocalModel {
    LocalModel {
        reference: reference.into(),
        name: reference.into(),
        kind: match reference {
            "org/embedder" => ModelKind::Embedding,
            _ => ModelKind::Chat,
        },
        built_in: false,
        path: "/models".into(),
        revision: None,
        family: None,
        quantization: None,
        bytes: 1,
        context: Some(4096),
        thinking: None,
        thought: None,
        sampling: Default::default(),
        sampling_by_makers: true,
        supports_vision: reference == "org/model",
        vision_problem: None,
        problem: None,
        incomplete: false,
        place: ModelPlace::Cache,
        last_used_at: None,
        revisions: Vec::new(),
        quantizable: false,
        adapter_of: None,
    }
}

/// A server and its engine.
pub struct Harness {
    pub server: Server,
    pub engine: FakeEngine,
    pub address: SocketAddr,
}

/// Limits that tests can wait for.
pub fn short_limits() -> Limits {
    Limits {
        header_time: Duration::from_millis(400),
        body_time: Duration::from_millis(600),
        body_bytes: 1 << 20,
        reader_patience: Duration::from_millis(500),
        ping: Duration::from_millis(50),
        counted_ping: Duration::from_millis(180),
        ..Limits::default()
    }
}

impl Harness {
    pub async fn open() -> Self {
        Self::with(ServerConfig::default()).await
    }

    pub async fn with(config: ServerConfig) -> Self {
        Self::serving(config, Arc::new(Shelf)).await
    }

    /// A server of these models.
    pub async fn serving(config: ServerConfig, shelf: Arc<dyn ModelShelf>) -> Self {
        let engine = FakeEngine::new();
        let config = ServerConfig {
            address: SocketAddr::new(config.address.ip(), 0),
            ..config
        };
        let server = Server::start(config, Arc::new(engine.clone()), shelf).await.unwrap();
        let address = server.address();
        Self {
            server,
            engine,
            address,
        }
    }

    /// The next job; waits for it.
    pub async fn job(&self) -> FakeJob {
        for _ in 0..24_000 {
            if let Some(job) = self.engine.take_job() {
                return job;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("nobody asked the engine")
    }

    /// Answers every job as a model would that thinks, calls the first tool once, and then answers.
    pub fn answer_all(&self) -> tokio::task::JoinHandle<()> {
        let engine = self.engine.clone();
        tokio::spawn(async move {
            loop {
                while let Some(job) = engine.take_job() {
                    answer(&job);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
    }
}

/// A piece of an answer.
pub fn delta(content: Content) -> EngineEvent {
    EngineEvent::Delta {
        content,
        tokens: vec![1],
        thinking_tokens: Some(1),
    }
}

/// An end with this reason.
pub fn done(finish_reason: FinishReason) -> EngineEvent {
    EngineEvent::Done(Done {
        finish_reason,
        ended_by: match finish_reason {
            FinishReason::Length => EndedBy::TokenLimit,
            _ => EndedBy::StopToken {
                token: 2,
                text: "</s>".into(),
                sources: Vec::new(),
            },
        },
        usage: Some(Usage {
            prompt_tokens: 20,
            cached_tokens: 8,
            prefilled_tokens: 12,
            completion_tokens: 5,
            thinking_tokens: Some(2),
            speculation: None,
        }),
        timing: Timing::default(),
        tokens: Vec::new(),
    })
}

/// A call of this tool.
pub fn call(name: &str) -> Content {
    Content::ToolCall {
        call: ToolCall::new(name.to_owned(), json!({"a": 2, "b": 3})),
    }
}

fn answer(job: &FakeJob) {
    let asked = job
        .request
        .messages
        .last()
        .is_some_and(|message| message.role == Role::User);
    let tool = job
        .request
        .tools
        .first()
        .and_then(|tool| tool["function"]["name"].as_str());
    job.events.send(EngineEvent::Started {
        prompt_tokens: Some(20),
        model_revision: None,
        template_hash: None,
    });
    job.events.send(delta(Content::thinking("I think.")));
    if let (true, Some(tool)) = (asked, tool) {
        job.events.send(delta(call(tool)));
        job.events.send(done(FinishReason::ToolCalls));
    } else {
        job.events.send(delta(Content::text("Hello ")));
        job.events.send(delta(Content::text("there.")));
        job.events.send(done(FinishReason::Stop));
    }
}
