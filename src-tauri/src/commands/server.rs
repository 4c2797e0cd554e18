//! The server for other programs.

use std::time::{SystemTime, UNIX_EPOCH};

use api::{ClientSetup, ServerSettings, ServerStatus};
use command::command;
use protocol::{Error, ErrorCode, Result};
use serde_json::{json, Map};
use tauri::{Manager, State, WebviewWindow};

use crate::app::state::App;
use crate::windows::question::{self, Answer, Question};
use crate::words;

/// Stands for the key while it is hidden.
const HIDDEN: &str = "••••••••";

/// The server for other programs as it is now.
#[command(settings)]
pub async fn server_status(app: State<'_, App>) -> Result<ServerStatus> {
    Ok(app.server.status())
}

/// Switches the server on or off, or changes its address. Asks in a dialog of the system before it answers other
/// computers; if the user declines, it answers this one alone. Switched on without a key, it gets one, if there is a
/// keychain to keep it. Its state says if it could not be started.
#[command(settings)]
pub async fn set_server(
    window: WebviewWindow,
    app: State<'_, App>,
    on: bool,
    port: u16,
    network: bool,
) -> Result<ServerStatus> {
    if port == 0 {
        return Err(Error::new(ErrorCode::BadRequest, "a port is a number from 1 to 65535"));
    }
    let before = app.chat.settings().get().await?.server;
    let opens = on && network && !(before.on && before.network);
    let network = network && (!opens || allows_network(&window).await);
    // They may have changed while the question was open.
    let before = app.chat.settings().get().await?.server;
    let switched_on = on && !before.on;
    let key_made_at = match before.key_made_at {
        None if switched_on && !app.server.has_key_of_environment() => match app.server.make_key().await {
            Ok(()) => now(),
            // Without a keychain it answers this user's programs alone, as one does whose key was removed.
            Err(error) => {
                tracing::warn!(%error, "the server has no key");
                None
            }
        },
        key_made_at => key_made_at,
    };
    let settings = ServerSettings {
        on,
        port,
        network,
        key_made_at,
        ..before
    };
    store(&app, settings).await
}

/// True if the user allows other computers to ask the server.
async fn allows_network(window: &WebviewWindow) -> bool {
    let words = words::current(window.app_handle());
    let question = Question {
        title: words.network_question,
        text: words.network_text.to_owned(),
        yes: words.allow,
        more: None,
        no: words.cancel,
    };
    question::ask(window, question).await == Answer::Yes
}

/// Creates another key, which clients must send from now on.
#[command(settings)]
pub async fn new_server_key(app: State<'_, App>) -> Result<ServerStatus> {
    app.server.make_key().await?;
    set_key_made_at(&app, now()).await
}

/// Removes the key: clients need none until the server is switched on again, and other computers may not ask.
#[command(settings)]
pub async fn forget_server_key(app: State<'_, App>) -> Result<ServerStatus> {
    app.server.forget_key().await?;
    set_key_made_at(&app, None).await
}

/// The key, to be shown or copied; `null` if there is none.
#[command(settings)]
pub async fn server_key(app: State<'_, App>) -> Result<Option<String>> {
    app.server.key(&app.chat.settings().get().await?.server).await
}

/// Lets programs search these collections of documents and no others, by their ids. A running server goes on.
#[command(settings)]
pub async fn allow_server_collections(app: State<'_, App>, collections: Vec<String>) -> Result<ServerStatus> {
    let mut settings = app.chat.settings().get().await?.server;
    settings.collections = collections;
    store(&app, settings).await
}

/// The models that the server lists, by the names that clients use.
#[command(settings)]
pub async fn served_models(app: State<'_, App>) -> Result<Vec<String>> {
    let models = app.models.clone();
    let served = app.run_blocking(move || Ok(server::served_models(&models))).await?;
    Ok(served.into_iter().map(|model| model.id).collect())
}

/// The configuration of other programs for a model of the server, with its key or with dots in its place.
#[command(settings)]
pub async fn client_setups(app: State<'_, App>, model: String, with_key: bool) -> Result<Vec<ClientSetup>> {
    let status = app.server.status();
    let key = match (status.key, with_key) {
        (api::KeySource::None, _) => None,
        (_, false) => Some(HIDDEN.to_owned()),
        (_, true) => app.server.key(&status.settings).await?,
    };
    let models = app.models.clone();
    let served = app.run_blocking(move || Ok(server::served_models(&models))).await?;
    let context = served
        .iter()
        .find(|served| served.id == model)
        .and_then(|served| served.context);
    Ok(server::client_setups(&status.address, &model, key.as_deref(), context))
}

/// Milliseconds since 1970.
fn now() -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).ok()
}

async fn set_key_made_at(app: &App, key_made_at: Option<i64>) -> Result<ServerStatus> {
    let mut settings = app.chat.settings().get().await?.server;
    settings.key_made_at = key_made_at;
    store(app, settings).await
}

async fn store(app: &App, server: ServerSettings) -> Result<ServerStatus> {
    let change = Map::from_iter([("server".to_owned(), json!(server))]);
    let settings = app.chat.settings().change(&change).await?;
    app.server.apply(&settings).await;
    Ok(app.server.status())
}
