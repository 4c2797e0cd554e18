//! Endpoints: other programs whose models may be asked.

use protocol::{EndpointAddress, EndpointInfo, EndpointModels, Error, Result};
use tauri::{AppHandle, State};

use super::models_changed;
use crate::state::App;

#[tauri::command]
pub async fn endpoints(app: State<'_, App>) -> Result<Vec<EndpointInfo>> {
    Ok(app.endpoints().await?.iter().map(remote::info).collect())
}

/// What an address means that is not yet one of an endpoint. Nothing is sent there.
#[tauri::command]
pub fn endpoint_address(url: String) -> Result<EndpointAddress> {
    Ok(remote::address(&url).map_err(Error::from)?)
}

/// Asks every endpoint for the list of its models.
#[tauri::command]
pub async fn endpoint_models(app: State<'_, App>) -> Result<Vec<EndpointModels>> {
    app.endpoints().await?;
    Ok(app.remote.models().await)
}

/// Asks one endpoint for the list of its models.
#[tauri::command]
pub async fn test_endpoint(app: State<'_, App>, name: String) -> Result<EndpointModels> {
    app.endpoints().await?;
    Ok(app.remote.models_of(&name).await.map_err(Error::from)?)
}

#[tauri::command]
pub async fn add_endpoint(handle: AppHandle, app: State<'_, App>, name: String, url: String, key: Option<String>) -> Result<()> {
    let endpoint = remote::endpoint(&name, &url).map_err(Error::from)?;
    let mut endpoints = app.endpoints().await?;
    if endpoints.iter().any(|known| known.name == endpoint.name) {
        return Err(remote::Error::NameTaken(endpoint.name).into());
    }
    let name = endpoint.name.clone();
    endpoints.push(endpoint);
    app.remote.set_endpoints(endpoints.clone());
    if let Some(key) = key.filter(|key| !key.trim().is_empty()) {
        if let Err(error) = app.remote.store_key(&name, &key).await {
            endpoints.pop();
            app.remote.set_endpoints(endpoints);
            return Err(error.into());
        }
    }
    app.keep_endpoints().await?;
    models_changed(&handle);
    Ok(())
}

/// Stores another key of an endpoint, or removes it.
#[tauri::command]
pub async fn set_endpoint_key(app: State<'_, App>, name: String, key: Option<String>) -> Result<()> {
    app.endpoints().await?;
    let done = match key.filter(|key| !key.trim().is_empty()) {
        Some(key) => app.remote.store_key(&name, &key).await,
        None => app.remote.forget_key(&name).await,
    };
    done.map_err(Error::from)?;
    app.keep_endpoints().await
}

#[tauri::command]
pub async fn remove_endpoint(handle: AppHandle, app: State<'_, App>, name: String) -> Result<()> {
    let mut endpoints = app.endpoints().await?;
    endpoints.retain(|endpoint| endpoint.name != name);
    // A keychain that does not answer keeps nobody from removing the endpoint.
    if let Err(error) = app.remote.forget_key(&name).await {
        tracing::warn!("the key of a removed endpoint stays in the keychain: {error}");
    }
    app.remote.set_endpoints(endpoints);
    app.keep_endpoints().await?;
    models_changed(&handle);
    Ok(())
}
