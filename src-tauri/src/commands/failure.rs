//! What a person can do about a history that cannot be opened: the buttons of the window that says so. In an app that could be
//! opened they find nothing to do: its state is another.

use std::path::PathBuf;
use std::process::Command;

use protocol::{Error, ErrorCode, Result};
use tauri::{AppHandle, Manager, State};

/// The argument with which the app shows a copy of its chats that can be read and not be changed.
pub const READ_ONLY: &str = "--read-only";

/// The app that could not be opened.
pub struct Failure {
    /// The folder of all data.
    pub data_dir: PathBuf,
}

impl Failure {
    fn history(&self) -> PathBuf {
        self.data_dir.join(crate::app::state::HISTORY)
    }
}

/// Shows the folder of all data in the system's file browser.
#[tauri::command]
pub async fn show_data_folder(failure: State<'_, Failure>) -> Result<()> {
    tauri_plugin_opener::open_path(&failure.data_dir, None::<&str>)
        .map_err(|error| Error::new(ErrorCode::NotFound, format!("no program showed the folder: {error}")))
}

/// Moves the history out of the way, where it is kept, and starts the app again with an empty one.
#[tauri::command]
pub async fn begin_anew(app: AppHandle, failure: State<'_, Failure>) -> Result<()> {
    let aside = chat::set_history_aside(&failure.history())?;
    tracing::warn!("the history was set aside as {}", aside.display());
    start_again(&app, &[])
}

/// Starts the app again with a copy of all that can be read.
#[tauri::command]
pub async fn open_read_only(app: AppHandle, failure: State<'_, Failure>) -> Result<()> {
    chat::readable_history(&failure.history()).await?;
    start_again(&app, &[READ_ONLY])
}

fn start_again(app: &AppHandle, arguments: &[&str]) -> Result<()> {
    let program = tauri::process::current_binary(&app.env());
    let started = program.and_then(|program| Command::new(program).args(arguments).spawn());
    started.map_err(|error| {
        Error::new(
            ErrorCode::Engine,
            format!("Ponder could not be started again, please open it: {error}"),
        )
    })?;
    app.exit(0);
    Ok(())
}
