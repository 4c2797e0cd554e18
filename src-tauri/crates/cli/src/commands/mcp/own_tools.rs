//! The tools that other programs get: a response of a model, the models, the chats.

use anyhow::{ensure, Result};
use api::HistoryQuery;
use engine_socket::SharedEngine;
use protocol::{
    CancelOnDrop, Content, Engine, EngineEvent, Error, ErrorCode, FinishReason, FolderSource, Message, ModelKind,
    Priority, Request, Role,
};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{json, Value};

use super::messages::result;
use super::ServeArgs;
use crate::app::{self, App};
use crate::commands::{history, models};

/// Ponder's tools for a client.
pub struct OwnTools {
    engine: SharedEngine,
    /// The model of `ask` unless the client names one.
    model: Option<String>,
    allow_chats: bool,
}

/// The arguments of `ask`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    question: String,
    model: Option<String>,
    system_prompt: Option<String>,
}

/// The arguments of `list_models`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListModels {}

/// The arguments of `search_chats`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchChats {
    query: String,
}

impl OwnTools {
    /// With the options of the command.
    ///
    /// # Errors
    /// When this computer names no place for Ponder's data.
    pub async fn new(args: ServeArgs) -> Result<Self> {
        args.model.device.apply();
        Ok(Self {
            engine: app::shared_engine().await?,
            model: args.model.model,
            allow_chats: args.allow_chats,
        })
    }

    /// The tools as `tools/list` names them.
    pub fn declarations(&self) -> Vec<Value> {
        let text = |description: &str| json!({"type": "string", "description": description});
        let mut all = vec![
            declaration(
                "ask",
                "Ask a local model",
                "Asks a language model on this computer a question and returns its response. Nothing leaves the computer.",
                &json!({
                    "question": text("The question, with everything that the model has to know"),
                    "model": text("A model of list_models. Without it: the user's default model"),
                    "system_prompt": text("Instructions for the model"),
                }),
                &["question"],
            ),
            declaration(
                "list_models",
                "List local models",
                "Lists the language models on this computer.",
                &json!({}),
                &[],
            ),
        ];
        if self.allow_chats {
            all.push(declaration(
                "search_chats",
                "Search chats",
                "Searches the user's chats in Ponder for words and returns the places where they stand.",
                &json!({"query": text("The words")}),
                &["query"],
            ));
        }
        all
    }

    /// The result of a call; `None` if there is no such tool.
    pub async fn call(&self, name: &str, arguments: Value) -> Option<Value> {
        Some(result(match name {
            "ask" => self.ask(arguments).await,
            "list_models" => list_models(arguments).await,
            "search_chats" if self.allow_chats => search_chats(arguments).await,
            _ => return None,
        }))
    }

    async fn ask(&self, arguments: Value) -> Result<String> {
        let asked: Ask = read(arguments)?;
        ensure!(!asked.question.trim().is_empty(), "the question is empty");
        let model = local_model(asked.model.as_deref(), self.model.as_deref()).await?;
        let system = asked.system_prompt.filter(|text| !text.trim().is_empty());
        let system = system.map(|text| Message::text(Role::System, text));
        let question = Message::text(Role::User, asked.question);
        let mut request = Request::new(model, system.into_iter().chain([question]).collect());
        request.priority = Priority::Api;
        let mut job = self.engine.generate(request);
        // A request that is canceled drops this.
        let _cancel = CancelOnDrop(job.cancel.clone());
        let mut text = String::new();
        while let Some(event) = job.events.recv().await {
            match event {
                EngineEvent::Delta {
                    content: Content::Text { text: more },
                    ..
                } => text += &more,
                EngineEvent::Failed(error) => return Err(error.into()),
                EngineEvent::Done(done) if done.finish_reason == FinishReason::Length => {
                    text += "\n[response cut off]";
                }
                _ => {}
            }
        }
        Ok(text)
    }
}

/// The model that the client names, else that of the command, else the user's default one.
async fn local_model(named: Option<&str>, own: Option<&str>) -> Result<FolderSource> {
    let Some(named) = named else {
        return app::model(own).await;
    };
    // A client names what is listed, and no folder.
    let models = app::models().await;
    match server::reference_of(&models, named) {
        Some(reference) => app::model(Some(&reference)).await,
        None => {
            let message = format!("no model called {named} is on this computer. list_models has all");
            Err(Error::new(ErrorCode::ModelNotFound, message).into())
        }
    }
}

async fn list_models(arguments: Value) -> Result<String> {
    let ListModels {} = read(arguments)?;
    let listed = app::models().await.list().into_iter();
    let usable = listed.filter(|model| model.kind == ModelKind::Chat && model.problem.is_none());
    let lines = usable.map(|model| format!("{}: {}", model.reference, models::facts(&model)));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

async fn search_chats(arguments: Value) -> Result<String> {
    let SearchChats { query } = read(arguments)?;
    let app = App::open().await?;
    let found = app.chat.library().search(&HistoryQuery::words(&query)).await;
    app.chat.shut_down().await;
    let text: String = found?.hits.iter().map(history::hit_lines).collect();
    match text.is_empty() {
        true => Ok("No results.".to_owned()),
        false => Ok(text),
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T> {
    Ok(serde_json::from_value(arguments).map_err(|error| {
        let message = format!("these arguments do not fit: {error}");
        Error::new(ErrorCode::BadRequest, message)
    })?)
}

fn declaration(name: &str, title: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        },
        "annotations": {"title": title, "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false}
    })
}
