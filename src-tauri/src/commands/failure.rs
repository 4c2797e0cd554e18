//! The remedies of a history that cannot be opened, as buttons of the failure window. They need the state [`Failure`],
//! which an app that could be opened does not have.

use std::path::PathBuf;
use std::process::Command;

use command::command;
use protocol::{Error, ErrorCode, Result};
use tauri::{AppHandle, Manager, State};

/// The argument that opens a copy of the chats read-only.
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
#[command(failure)]
pub async fn show_data_folder(failure: State<'_, Failure>) -> Result<()> {
    tauri_plugin_opener::open_path(&failure.data_dir, None::<&str>)
        .map_err(|error| Error::new(ErrorCode::NotFound, format!("no program showed the folder: {error}")))
}

/// Moves the history aside, where it is kept, and restarts the app with an empty one.
#[command(failure)]
pub async fn begin_anew(app: AppHandle, failure: State<'_, Failure>) -> Result<()> {
    let aside = chat::set_history_aside(&failure.history())?;
    tracing::warn!("the history was set aside as {}", aside.display());
    start_again(&app, &[])
}

/// Restarts the app with a copy of everything that can be read.
#[command(failure)]
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
