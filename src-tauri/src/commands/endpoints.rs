//! Endpoints: other servers whose models answer.

use api::{Endpoint, EndpointAddress, EndpointInfo, EndpointModels};
use command::command;
use protocol::{Error, Result};
use tauri::{AppHandle, Manager, State, Url, WebviewWindow};

use super::models_changed;
use crate::app::state::App;
use crate::windows::question::{self, Answer, Question};
use crate::words;

/// The configured endpoints.
#[command(settings)]
pub async fn endpoints(app: State<'_, App>) -> Result<Vec<EndpointInfo>> {
    Ok(app.endpoints().await?.iter().map(remote::info).collect())
}

/// The meaning of an address that is not yet an endpoint. Opens no connection and rejects an invalid one.
#[command(settings)]
pub fn endpoint_address(url: String) -> Result<EndpointAddress> {
    Ok(remote::address(&url)?)
}

/// Asks every endpoint for its list of models.
#[command(chat)]
pub async fn endpoint_models(app: State<'_, App>) -> Result<Vec<EndpointModels>> {
    app.endpoints().await?;
    Ok(app.remote.models().await)
}

/// Asks one endpoint for its list of models.
#[command(settings)]
pub async fn test_endpoint(app: State<'_, App>, name: String) -> Result<EndpointModels> {
    app.endpoints().await?;
    Ok(app.remote.models_of(&name).await?)
}

/// Adds an endpoint. Its key goes to the keychain; `unencrypted_key` allows that it is sent unencrypted to another
/// computer. Asks in a dialog of the system before the first one on another computer; false if the user declines.
#[command(settings)]
pub async fn add_endpoint(
    window: WebviewWindow,
    handle: AppHandle,
    app: State<'_, App>,
    name: String,
    url: String,
    key: Option<String>,
    unencrypted_key: bool,
) -> Result<bool> {
    let mut endpoint = remote::endpoint(&name, &url)?;
    endpoint.unencrypted_key = unencrypted_key;
    let known = app.endpoints().await?;
    remote::check_name_is_free(&known, &name)?;
    let key = key.filter(|key| !key.trim().is_empty());
    if key.is_some() {
        remote::check_way(&endpoint)?;
    }
    if leaves_computer(&endpoint) && !known.iter().any(leaves_computer) && !agrees(&window, &endpoint).await {
        return Ok(false);
    }
    if let Some(key) = key {
        app.remote.store_first_key(&mut endpoint, &key).await?;
    }
    // A dialog and a keychain may wait for the user, and another window or process may change the list meanwhile.
    let mut endpoints = app.endpoints().await?;
    remote::check_name_is_free(&endpoints, &name)?;
    endpoints.push(endpoint);
    app.store_endpoints(endpoints).await?;
    models_changed(&handle);
    Ok(true)
}

fn leaves_computer(endpoint: &Endpoint) -> bool {
    remote::info(endpoint).address.leaves_computer
}

/// True if the user agrees that an endpoint on another computer is added.
async fn agrees(window: &WebviewWindow, endpoint: &Endpoint) -> bool {
    // The path of an address may be long, and have percent signs.
    let Ok(url) = Url::parse(&endpoint.base_url) else {
        return false;
    };
    let words = words::current(window.app_handle());
    let question = Question {
        title: words.endpoint_question,
        text: words
            .endpoint_text
            .replace("{address}", &url.origin().ascii_serialization()),
        yes: words.add,
        more: None,
        no: words.cancel,
    };
    question::ask(window, question).await == Answer::Yes
}

/// Replaces the key of an endpoint, or removes it. `unencrypted_key` allows that it is sent unencrypted to another
/// computer.
#[command(settings)]
pub async fn set_endpoint_key(
    app: State<'_, App>,
    name: String,
    key: Option<String>,
    unencrypted_key: bool,
) -> Result<()> {
    let unknown = || Error::from(remote::Error::NoEndpoint(name.clone()));
    if app.endpoints().await?.iter().all(|known| known.name != name) {
        return Err(unknown());
    }
    let key = key.filter(|key| !key.trim().is_empty());
    let done = match &key {
        Some(key) => app.remote.store_key(&name, key, unencrypted_key).await,
        None => app.remote.forget_key(&name).await,
    };
    done?;
    let mut endpoints = app.endpoints().await?;
    let endpoint = endpoints
        .iter_mut()
        .find(|known| known.name == name)
        .ok_or_else(unknown)?;
    endpoint.has_key = key.is_some();
    endpoint.unencrypted_key = key.is_some() && unencrypted_key;
    app.store_endpoints(endpoints).await
}

/// Allows that an endpoint is sent passages of the user's own chats and notes about them, or forbids it.
#[command(settings)]
pub async fn set_endpoint_personal(app: State<'_, App>, name: String, personal: bool) -> Result<()> {
    let mut endpoints = app.endpoints().await?;
    let endpoint = endpoints.iter_mut().find(|known| known.name == name);
    endpoint
        .ok_or_else(|| Error::from(remote::Error::NoEndpoint(name)))?
        .personal = personal;
    app.store_endpoints(endpoints).await
}

/// Removes an endpoint and its key.
#[command(settings)]
pub async fn remove_endpoint(handle: AppHandle, app: State<'_, App>, name: String) -> Result<()> {
    app.endpoints().await?;
    // A keychain that does not answer keeps nobody from removing the endpoint.
    if let Err(error) = app.remote.forget_key(&name).await {
        tracing::warn!("the key of a removed endpoint stays in the keychain: {error}");
    }
    let mut endpoints = app.endpoints().await?;
    endpoints.retain(|endpoint| endpoint.name != name);
    app.store_endpoints(endpoints).await?;
    models_changed(&handle);
    Ok(())
}
