//! The shell: the only room that knows Tauri. It opens the windows, turns commands into calls of the other rooms and
//! their events into messages to the web views. It decides nothing about chats or models.

mod clipboard;
mod commands;
mod drag_out;
mod failure;
mod local_server;
mod logging;
mod navigation;
mod pictures;
mod state;
mod window;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use protocol::{DownloadState, WindowName};
use tauri::{Emitter, Manager, RunEvent, WindowEvent};
use tracing_appender::non_blocking::WorkerGuard;

use crate::state::App;

/// Starts the app and returns when it is quit.
///
/// # Errors
/// When the data folder, the history or the window system cannot be opened; a window has said so then.
pub fn run() -> Result<()> {
    // Lives until the end: what is logged after it is dropped is lost.
    let mut log = None;
    let (data_dir, state) = match open(&mut log) {
        Ok(opened) => opened,
        Err(error) => {
            tracing::error!("could not start: {error:#}");
            failure::show(&error)?;
            return Err(error);
        }
    };

    let mut builder = tauri::Builder::default();
    // A data folder of one's own is an app of one's own; only the usual one is kept to a single window.
    if std::env::var_os("PONDER_HOME").is_none() {
        builder = builder.plugin(tauri_plugin_single_instance::init(|app, _, _| {
            if let Err(error) = window::show(app, WindowName::Chat) {
                tracing::warn!("the chat window did not come to the front: {error}");
            }
        }));
    }
    let app = builder
        .plugin(
            tauri_plugin_window_state::Builder::default()
                .with_filename(data_dir.join("windows.json").to_string_lossy())
                .build(),
        )
        .manage(state)
        .register_asynchronous_uri_scheme_protocol(pictures::SCHEME, pictures::answer)
        .invoke_handler(commands::all())
        .setup(|app| {
            window::show(app.handle(), WindowName::Chat)?;
            forward_changes(app.handle().clone());
            forward_downloads(app.handle().clone());
            forward_settings(app.handle().clone());
            Ok(())
        })
        .build(context())
        .context("the window could not be opened")?;

    app.run(|app, event| match event {
        RunEvent::WindowEvent {
            label,
            event: WindowEvent::Destroyed,
            ..
        } => window::closed(app, &label),
        // The last words of a running answer are stored before the process ends.
        RunEvent::Exit => tauri::async_runtime::block_on(app.state::<App>().shut_down()),
        _ => {}
    });
    Ok(())
}

/// The folder of all data and what lies in it. `log` is there as soon as the folder is, also if the rest cannot be opened.
fn open(log: &mut Option<WorkerGuard>) -> Result<(PathBuf, App)> {
    let data_dir = hub::data_dir()?;
    *log = Some(logging::start(&data_dir.join("logs"))?);
    let state = tauri::async_runtime::block_on(App::open(&data_dir))?;
    Ok((data_dir, state))
}

/// What the build put into the program: tauri.conf.json and the pages.
fn context() -> tauri::Context {
    tauri::generate_context!()
}

/// Tells every window when the list of chats may look different.
fn forward_changes(app: tauri::AppHandle) {
    let mut changes = app.state::<App>().chat.changes();
    tauri::async_runtime::spawn(async move {
        while changes.changed().await.is_ok() {
            if let Err(error) = app.emit(commands::CHATS_CHANGED, ()) {
                tracing::warn!("a window missed a change of the chats: {error}");
            }
            app.state::<App>().record_peak().await;
        }
    });
}

/// Gives the rooms and the windows what is set, whenever it changes, here or in another process.
fn forward_settings(app: tauri::AppHandle) {
    let mut settings = app.state::<App>().chat.follow_settings();
    tauri::async_runtime::spawn(async move {
        // The server may have been on when the app ended.
        let now = settings.borrow_and_update().clone();
        app.state::<App>().server.apply(&now.server).await;
        while settings.changed().await.is_ok() {
            let settings = settings.borrow_and_update().clone();
            app.state::<App>().apply(&settings);
            app.state::<App>().server.apply(&settings.server).await;
            if let Err(error) = app.emit(commands::SETTINGS_CHANGED, settings) {
                tracing::warn!("a window missed a change of the settings: {error}");
            }
            // The default model and the folders are among them.
            commands::models_changed(&app);
        }
    });
}

/// Resumes the downloads of the last time, and tells every window when a model has become ready.
fn forward_downloads(app: tauri::AppHandle) {
    tauri::async_runtime::spawn(async move {
        let hub = app.state::<App>().hub.clone();
        let mut downloads = hub.downloads();
        tauri::async_runtime::spawn(resume_pending(hub));
        let mut ready = BTreeSet::new();
        while downloads.changed().await.is_ok() {
            let now: BTreeSet<(String, Option<String>)> = downloads
                .borrow_and_update()
                .iter()
                .filter(|download| download.state == DownloadState::Done)
                .map(|download| (download.id.clone(), download.commit.clone()))
                .collect();
            if !now.is_subset(&ready) {
                commands::models_changed(&app);
            }
            ready = now;
        }
    });
}

/// Resumes the downloads of the last time. The process that had them may still be ending, so that they are asked for more than
/// once; who has them already is not disturbed by it.
async fn resume_pending(hub: hub::Hub) {
    const TIMES: usize = 12;
    const PAUSE: Duration = Duration::from_secs(5);
    for _ in 0..TIMES {
        if let Err(error) = hub.resume_pending().await {
            tracing::warn!("the downloads of the last time were not resumed: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
