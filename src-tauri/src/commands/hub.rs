//! The models of the hub, and whether they fit this computer.

use api::{HubModel, MachineMemory, MemoryFit, SearchPage, SearchQuery};
use command::command;
use hub::memory_fit::{Memory, Question};
use protocol::Result;
use tauri::State;

use crate::app::state::App;

/// One page of the hub's search results.
#[command(models)]
pub async fn search_models(app: State<'_, App>, query: SearchQuery) -> Result<SearchPage> {
    Ok(app.hub.search().page(&query).await?)
}

/// Everything that is known about a model without downloading it.
#[command(models)]
pub async fn describe_model(app: State<'_, App>, id: String) -> Result<HubModel> {
    Ok(app.hub.catalog().describe(&id).await?)
}

/// The model's card, in Markdown.
#[command(models)]
pub async fn model_card(app: State<'_, App>, id: String) -> Result<String> {
    Ok(app.hub.catalog().card(&id).await?)
}

/// Recommended first models for this computer. Opens no connection.
#[command(chat, models)]
pub async fn first_models(app: State<'_, App>) -> Result<Vec<HubModel>> {
    let memory = Memory::now(Question::new().backend, app.engine_bytes().await)?;
    Ok(app.hub.catalog().recommended(&memory))
}

/// The memory that a model needs at this context; `null` is the context it is offered with.
#[command(chat, models)]
pub async fn fit_of(app: State<'_, App>, reference: String, context: Option<u32>) -> Result<MemoryFit> {
    let question = Question {
        context,
        ..Question::new()
    };
    Ok(app
        .hub
        .memory()
        .fit(&reference, &question, app.engine_bytes().await)
        .await?)
}

/// The memory that models may use on this computer, in bytes, and how much of it is free now.
#[command(chat, models, settings)]
pub async fn memory(app: State<'_, App>) -> Result<MachineMemory> {
    let Memory { total, free, .. } = Memory::now(Question::new().backend, app.engine_bytes().await)?;
    Ok(MachineMemory { total, free })
}
