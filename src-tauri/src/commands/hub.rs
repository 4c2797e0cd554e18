//! What the hub has, and what of it fits this computer.

use api::{HubModel, MachineMemory, MemoryFit, SearchPage, SearchQuery};
use hub::memory_fit::{Memory, Question};
use protocol::Result;
use tauri::State;

use crate::app::state::App;

#[tauri::command]
pub async fn search_models(app: State<'_, App>, query: SearchQuery) -> Result<SearchPage> {
    Ok(app.hub.search().page(&query).await?)
}

#[tauri::command]
pub async fn describe_model(app: State<'_, App>, id: String) -> Result<HubModel> {
    Ok(app.hub.catalog().describe(&id).await?)
}

#[tauri::command]
pub async fn model_card(app: State<'_, App>, id: String) -> Result<String> {
    Ok(app.hub.catalog().card(&id).await?)
}

#[tauri::command]
pub async fn first_models(app: State<'_, App>) -> Result<Vec<HubModel>> {
    let memory = Memory::now(Question::new().backend, app.engine_bytes().await)?;
    Ok(app.hub.catalog().recommended(&memory))
}

#[tauri::command]
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

#[tauri::command]
pub async fn memory(app: State<'_, App>) -> Result<MachineMemory> {
    let Memory { total, free, .. } = Memory::now(Question::new().backend, app.engine_bytes().await)?;
    Ok(MachineMemory { total, free })
}
