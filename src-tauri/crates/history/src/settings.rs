//! The table `settings`: a row for each field of [`Settings`] that was ever changed, its value as JSON, and one for
//! what the chat window remembers.

use std::path::Path;

use api::{ChatWindowState, Settings};
use protocol::Content;
use serde::Deserialize;
use serde_json::{Map, Value};
use sqlite::options_of;
use sqlx::{ConnectOptions, Connection, SqliteConnection, SqliteExecutor};

use crate::json::{from_json, to_json};
use crate::{History, Result};

/// The key of what the chat window remembers, which is no setting.
const CHAT_WINDOW: &str = "chat_window";
/// The key of [`Settings::model_folders`].
const MODEL_FOLDERS: &str = "model_folders";
/// The file of the list of model folders before it was a setting.
const FOLDERS_FILE: &str = "folders.json";

impl History {
    /// The settings of the app.
    pub async fn settings(&self) -> Result<Settings> {
        Ok(Settings::from_stored(read_all(&self.readers).await?))
    }

    /// Stores these values of [`Settings`] by their keys; the others stay as they are.
    pub async fn store_settings(&self, values: &Map<String, Value>) -> Result<()> {
        let mut transaction = self.write().await?;
        for (key, value) in values {
            store(&mut transaction, key, &value.to_string()).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// The stored state of the chat window.
    pub async fn chat_window(&self) -> Result<ChatWindowState> {
        let sql = "SELECT value FROM settings WHERE key = ?";
        let json: Option<String> = value!(&self.readers, sql; CHAT_WINDOW).await?;
        let Some(json) = json else {
            return Ok(ChatWindowState::default());
        };
        let mut state: Value = from_json("window state", &json)?;
        // Earlier versions kept the words of the draft alone.
        if let Some(Value::String(words)) = state.get("new_draft") {
            let parts = (!words.is_empty()).then(|| Content::text(words.as_str()));
            state["new_draft"] = Value::from_iter(parts.map(|part| serde_json::json!(part)));
        }
        from_json("window state", &state.to_string())
    }

    /// Stores what the chat window is to remember.
    pub async fn set_chat_window(&self, state: &ChatWindowState) -> Result<()> {
        let mut transaction = self.write().await?;
        store(&mut transaction, CHAT_WINDOW, &to_json(state)).await?;
        Ok(transaction.commit().await?)
    }

    /// Moves the list of model folders from the file of its own, where it lay before, into the settings.
    pub(crate) async fn adopt_folders_file(&self, data: &Path) -> Result<()> {
        let Some(old) = folders_file(data) else { return Ok(()) };
        let mut folders = self.settings().await?.model_folders;
        folders.extend(old.into_iter().filter(|old| !folders.contains(old)).collect::<Vec<_>>());
        let values = Map::from_iter([(MODEL_FOLDERS.to_owned(), Value::from(folders))]);
        self.store_settings(&values).await?;
        if let Err(error) = std::fs::remove_file(data.join(FOLDERS_FILE)) {
            tracing::warn!("{FOLDERS_FILE} is a setting now and could not be removed: {error}");
        }
        Ok(())
    }
}

/// The settings in this history file, for a program that keeps nothing: the file is neither created nor changed, and
/// one that cannot be read has none.
pub async fn stored_settings(path: &Path) -> Settings {
    let mut stored = match read_file(path).await {
        Ok(stored) => stored,
        Err(error) => {
            tracing::warn!(%error, "the settings could not be read, so that all of them are as at first");
            Map::new()
        }
    };
    if let Some(old) = path.parent().and_then(folders_file) {
        stored.entry(MODEL_FOLDERS).or_insert_with(|| Value::from(old));
    }
    Settings::from_stored(stored)
}

async fn read_file(path: &Path) -> Result<Map<String, Value>> {
    if !path.exists() {
        return Ok(Map::new());
    }
    let mut connection = options_of(path).read_only(true).connect().await?;
    let stored = read_all(&mut connection).await?;
    connection.close().await?;
    Ok(stored)
}

/// All values by their keys; one that is no JSON is left out.
async fn read_all(db: impl SqliteExecutor<'_>) -> Result<Map<String, Value>> {
    let rows: Vec<(String, String)> = rows!(db, "SELECT key, value FROM settings").await?;
    let value = |(key, json): (String, String)| Some((key, serde_json::from_str(&json).ok()?));
    Ok(rows.into_iter().filter_map(value).collect())
}

async fn store(db: &mut SqliteConnection, key: &str, json: &str) -> Result<()> {
    let sql = "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    run!(db, sql; key, json).await?;
    Ok(())
}

/// The folders in the old file; `None` if there is no such file, or if it cannot be read, so that it stays for whoever
/// can mend it.
fn folders_file(data: &Path) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Folders {
        folders: Vec<String>,
    }
    let text = std::fs::read(data.join(FOLDERS_FILE)).ok()?;
    let read = serde_json::from_slice::<Folders>(&text);
    let read = read.inspect_err(|error| tracing::warn!("{FOLDERS_FILE} cannot be read and is left as it is: {error}"));
    Some(read.ok()?.folders)
}
