//! The remedies of a history that cannot be opened, or that turned out to be damaged, as buttons of the failure window.

use std::path::PathBuf;
use std::process::Command;

use api::{HistoryDamage, HistoryRemedy, RepairedHistory};
use command::command;
use protocol::{Reason, Result};
use tauri::{AppHandle, Manager, State};

use crate::app::state::App;
use crate::system::failed;

/// The argument that opens a copy of the chats read-only.
pub const READ_ONLY: &str = "--read-only";

/// The place of the history that may be damaged.
pub struct Failure {
    /// The folder of all data.
    pub data_dir: PathBuf,
}

impl Failure {
    fn history(&self) -> PathBuf {
        self.data_dir.join(crate::app::state::HISTORY)
    }
}

/// Notes that a call failed because the history is damaged, upon which the failure window opens.
#[command(all)]
pub async fn note_history_damage(app: State<'_, App>) -> Result<()> {
    app.chat.library().note_damage();
    Ok(())
}

/// Counts what can be read of a damaged history. Nothing is changed.
#[command(failure)]
pub async fn examine_history(failure: State<'_, Failure>) -> Result<HistoryDamage> {
    chat::examine_history(&failure.history()).await
}

/// Puts what can be read in the place of a damaged history, which is kept. An app that runs ends its work before, and
/// has to be opened again.
#[command(failure)]
pub async fn repair_history(
    handle: AppHandle,
    failure: State<'_, Failure>,
    remedy: HistoryRemedy,
) -> Result<RepairedHistory> {
    if let Some(app) = handle.try_state::<App>() {
        app.shut_down().await;
    }
    chat::repair_history(&failure.history(), remedy).await
}

/// Opens the app again.
#[command(failure)]
pub async fn open_again(handle: AppHandle) -> Result<()> {
    if handle.try_state::<App>().is_none() {
        return start_again(&handle, &[]);
    }
    handle.request_restart();
    Ok(())
}

/// Shows the folder of all data in the system's file browser.
#[command(failure)]
pub async fn show_data_folder(failure: State<'_, Failure>) -> Result<()> {
    tauri_plugin_opener::open_path(&failure.data_dir, None::<&str>)
        .map_err(failed(Reason::NoFileBrowser, "no program showed the folder"))
}

/// Moves the history aside, where it is kept, and restarts the app with an empty one.
#[command(failure)]
pub async fn begin_anew(app: AppHandle, failure: State<'_, Failure>) -> Result<()> {
    let aside = chat::set_history_aside(&failure.history()).await?;
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
    started.map_err(failed(
        Reason::WindowSystem,
        "Ponder could not be started again, please open it",
    ))?;
    app.exit(0);
    Ok(())
}
