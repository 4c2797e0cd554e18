//! The shell: the only crate that knows Tauri. It opens the windows, turns commands into calls of the other crates and
//! their events into messages to the web views. It decides nothing about chats or models.

mod app;
mod commands;
mod desktop;
mod events;
mod failure;
mod system;
mod windows;
mod words;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use api::{DownloadState, Settings, WindowName};
use engine::MlxEngine;
use tauri::{AppHandle, Manager, RunEvent, WindowEvent, Wry};
use tracing_appender::non_blocking::WorkerGuard;

use crate::app::app_update;
use crate::app::state::{self, App};
use crate::commands::Failure;
use crate::desktop::menu::{self, Commands};
use crate::desktop::open_requests::{self, OpenRequests};
use crate::desktop::tray::{self, Tray};
use crate::desktop::{closing, consent, notify, power, run_command};
use crate::system::deferred_tasks::DeferredTasks;
use crate::system::logging;
use crate::system::login::{Login, AT_LOGIN};
use crate::system::navigation::PREVIEW;
#[cfg(target_os = "macos")]
use crate::system::web_process;
#[cfg(target_os = "linux")]
use crate::system::{caret, graphics, running_app};
use crate::windows::pending_quit::Quit;
use crate::windows::places::{self, Places};
use crate::windows::previews::{self, Previews};
use crate::windows::quick::{self, QuickEntry};
use crate::windows::{appearance, images, window};
use crate::words::Words;

/// Reads files of strangers or guards a server of tools if this process was started for that; returns `None` in the app itself.
pub fn take_role() -> Option<ExitCode> {
    tools::stdio::take_role()
        .or_else(|| sandbox::take_role(&[&documents::TASKS, &media::TASKS, &prompt::TASKS, &tools::bundle::TASKS]))
}

/// Starts the app and returns when it is quit.
///
/// # Errors
/// When the data folder, the history or the window system cannot be opened; a window has said so then.
pub fn run() -> Result<()> {
    #[cfg(target_os = "linux")]
    graphics::choose();
    let context = context();
    if let Ok(data_dir) = hub::data_dir() {
        // Before any thread starts.
        MlxEngine::prepare_process(Some(&state::compiled_kernels(&data_dir)));
        #[cfg(target_os = "linux")]
        if running_app::takes(
            &name_of_app(&context, &data_dir),
            &arguments(),
            &current_folder().to_string_lossy(),
        ) {
            return Ok(());
        }
    }
    // Dropped at the very end: later log lines are lost.
    let mut log = None;
    let releases = app_update::address(context.config());
    let takes_updates = releases.is_some();
    let opened = std::thread::scope(|scope| {
        let opening = scope.spawn(|| open(&mut log, releases));
        // The toolkit takes as long to start; a fault of the display is reported when a window is opened.
        #[cfg(target_os = "linux")]
        let _ = gtk::init();
        opening.join()
    });
    let (data_dir, state) = match opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
        Ok(opened) => opened,
        Err(error) => {
            tracing::error!("could not start: {error:#}");
            failure::show(&error, hub::data_dir().ok().as_deref(), context)?;
            return Err(error);
        }
    };

    let hidden = starts_hidden(&state);
    let mut builder = builder(name_of_app(&context, &data_dir));
    #[cfg(target_os = "macos")]
    {
        builder = builder.on_web_content_process_terminate(web_process::load_again);
    }
    if takes_updates {
        builder = builder.plugin(tauri_plugin_updater::Builder::new().build());
    }
    let app = builder
        .plugin(tauri_plugin_dialog::init())
        .manage(Failure {
            data_dir: data_dir.clone(),
        })
        .manage(state)
        .manage(Places::open(data_dir.join("windows.json")))
        .manage(OpenRequests::default())
        .manage(Quit::default())
        .manage(Tray::default())
        .manage(QuickEntry::default())
        .manage(Previews::default())
        .manage(DeferredTasks::<AppHandle>::default())
        .manage(Commands::<Wry>::default())
        .register_asynchronous_uri_scheme_protocol(images::SCHEME, images::answer)
        .register_asynchronous_uri_scheme_protocol(PREVIEW, previews::answer)
        .invoke_handler(commands::all())
        .on_menu_event(|app, event| run_command::chosen(app, event.id().as_ref()))
        .setup(move |app| {
            let app = app.handle();
            app.manage(Login::of(app));
            set_menu(app, words::current(app))?;
            #[cfg(target_os = "linux")]
            caret::hold_still();
            window::open_chat(app, !hidden)?;
            forward_changes(app.clone());
            show_damage(app.clone());
            forward_downloads(app.clone());
            forward_settings(app.clone());
            consent::follow(app.clone());
            forward_collections(app.clone());
            tauri::async_runtime::spawn(notify::follow_answers(app.clone()));
            tauri::async_runtime::spawn(notify::follow_downloads(app.clone()));
            started(app, &arguments(), &current_folder(), false);
            forward_app_update(app.clone());
            power::start(app);
            heal_login(app.clone());
            app.state::<DeferredTasks<AppHandle>>().begin(app);
            Ok(())
        })
        .build(context)
        .context("the window could not be opened")?;

    app.run(|app, event| match event {
        RunEvent::WindowEvent { label, event, .. } => match event {
            WindowEvent::CloseRequested { api, .. } => {
                places::note(app, &label);
                if !closing::may_close(app, &label) {
                    api.prevent_close();
                }
            }
            WindowEvent::Destroyed => closing::closed(app, &label),
            WindowEvent::Focused(focused) => {
                places::note(app, &label);
                if let Some(name) = window::name_of(&label) {
                    app.state::<Commands<Wry>>().set_front(name, focused);
                    if name == WindowName::Quick && !focused {
                        quick::left(app);
                    }
                }
            }
            _ => {}
        },
        // Quick entry alone does not count as a window for a click in the Dock.
        #[cfg(target_os = "macos")]
        RunEvent::Reopen { .. } if !window::is_any_visible(app) => started(app, &[], Path::new("/"), true),
        #[cfg(target_os = "macos")]
        RunEvent::Opened { urls } => {
            let requests = urls.iter().filter_map(open_requests::of_url).collect();
            when_ready(app, |app| open_requests::open(app, requests));
        }
        // The event loop goes on meanwhile: a task that asks about a window waits for it, and the end for the task.
        RunEvent::ExitRequested { code, api, .. } if !app.state::<App>().has_shut_down() => {
            api.prevent_exit();
            let app = app.clone();
            tauri::async_runtime::spawn(async move {
                app.state::<App>().shut_down().await;
                app.exit(code.unwrap_or_default());
            });
        }
        // The unsaved part of a running answer is stored before the process ends, also if the system ends it.
        RunEvent::Exit => {
            places::note_all(app);
            tauri::async_runtime::block_on(app.state::<App>().shut_down());
        }
        _ => {}
    });
    Ok(())
}

/// The name by which one start of the app finds another: each data folder is an app of its own.
fn name_of_app(context: &tauri::Context, data_dir: &Path) -> String {
    let name = context.config().identifier.clone();
    if std::env::var_os("PONDER_HOME").is_none() {
        return name;
    }
    let mut hash = DefaultHasher::new();
    data_dir.hash(&mut hash);
    format!("{name}.d{:016x}", hash.finish())
}

/// A builder for the only app of its data folder: another start hands its arguments to the running one, and ends.
fn builder(name: String) -> tauri::Builder<Wry> {
    // On macOS the plugin supports a single app per name.
    if cfg!(target_os = "macos") && std::env::var_os("PONDER_HOME").is_some() {
        return tauri::Builder::default();
    }
    let alone = tauri_plugin_single_instance::Builder::new()
        .dbus_id(name)
        .callback(|app, arguments, folder| {
            when_ready(app, move |app| started(app, &arguments, Path::new(&folder), true));
        });
    tauri::Builder::default().plugin(alone.build())
}

/// Runs a task as soon as the windows of the start exist.
fn when_ready(app: &AppHandle, task: impl FnOnce(&AppHandle) + Send + 'static) {
    app.state::<DeferredTasks<AppHandle>>().run(app, task);
}

/// Updates the login item of an app that was moved.
fn heal_login(app: AppHandle) {
    tauri::async_runtime::spawn_blocking(move || match app.state::<Login>().heal() {
        Ok(true) => tracing::info!("what opened Ponder at login named a program that is gone; it names this one now"),
        Ok(false) => {}
        Err(error) => tracing::warn!("{error}"),
    });
}

/// The arguments of this start, as the plugin passes those of another one: invalid Unicode is replaced.
fn arguments() -> Vec<String> {
    std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect()
}

/// The folder against which the arguments of this start are resolved.
fn current_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

/// True if this start shows no window: at login, if the app can be reached without one.
fn starts_hidden(state: &App) -> bool {
    let at_login = arguments().iter().any(|argument| argument == AT_LOGIN);
    at_login && (cfg!(target_os = "macos") || state.chat.settings().follow().borrow().tray)
}

/// The menu bar of macOS. Other systems have none: there the palette offers the same commands, with the same keys.
fn set_menu(app: &AppHandle, words: &Words) -> tauri::Result<()> {
    if cfg!(target_os = "macos") {
        menu::set(app, words)?;
    }
    Ok(())
}

/// Applies a language to everything outside the pages.
fn speak(app: &AppHandle, words: &'static Words) {
    let handle = app.clone();
    let spoken = app.run_on_main_thread(move || {
        let parts = [
            set_menu(&handle, words),
            tray::speak(&handle, words),
            window::speak(&handle, words),
        ];
        for error in parts.into_iter().filter_map(Result::err) {
            tracing::warn!("a part of the app keeps its language: {error}");
        }
    });
    if let Err(error) = spoken {
        tracing::warn!("the app keeps its language: {error}");
    }
}

/// Handles the arguments of a start. A second start without any shows the window of the running app.
fn started(app: &AppHandle, arguments: &[String], folder: &Path, again: bool) {
    let requests = open_requests::of_arguments(arguments, folder);
    let shown = if arguments.iter().any(|argument| argument == quick::QUICK_ENTRY) {
        quick::show(app)
    } else if again && requests.is_empty() {
        window::show(app, WindowName::Chat)
    } else {
        Ok(())
    };
    if let Err(error) = shown {
        tracing::warn!("no window came to the front: {error}");
    }
    open_requests::open(app, requests);
}

/// Opens the data folder and the app's state. `log` is set as soon as the folder exists, even if the rest cannot be
/// opened.
fn open(log: &mut Option<WorkerGuard>, releases: Option<String>) -> Result<(PathBuf, App)> {
    let data_dir = hub::data_dir()?;
    *log = Some(logging::start(&data_dir.join("logs"))?);
    let read_only = std::env::args_os().any(|argument| argument == commands::READ_ONLY);
    let state = tauri::async_runtime::block_on(App::open(&data_dir, read_only, releases))?;
    Ok((data_dir, state))
}

/// The build's context: tauri.conf.json and the pages.
fn context() -> tauri::Context {
    tauri::generate_context!()
}

/// Shows the failure window as soon as a part of the history turns out to be damaged.
fn show_damage(app: AppHandle) {
    tauri::async_runtime::spawn(async move {
        app.state::<App>().chat.library().damage().await;
        if let Err(error) = window::show_damage(&app) {
            tracing::error!("the history is damaged, which could not be shown: {error}");
        }
    });
}

/// Notifies every window when the list of chats may have changed.
fn forward_changes(app: AppHandle) {
    let mut changes = app.state::<App>().chat.changes();
    tauri::async_runtime::spawn(async move {
        while changes.changed().await.is_ok() {
            events::tell(&app, events::CHATS_CHANGED, (), "a change of the chats");
            app.state::<App>().record_peak().await;
        }
    });
}

/// Passes the settings to the other crates and the windows whenever they change, here or in another process.
fn forward_settings(app: AppHandle) {
    let mut settings = app.state::<App>().chat.settings().follow();
    tauri::async_runtime::spawn(async move {
        // The server may have been on when the app ended.
        let now = settings.borrow_and_update().clone();
        let mut language = now.language.clone();
        app.state::<App>().server.apply(&now).await;
        apply_to_desktop(&app, &now).await;
        // Without the tray icon there would be no way to the hidden window.
        if !tray::stays_without_windows(&app) && !window::is_visible(&app, WindowName::Chat) {
            window::show(&app, WindowName::Chat)
                .unwrap_or_else(|error| tracing::warn!("the window stays hidden: {error}"));
        }
        while settings.changed().await.is_ok() {
            let settings = settings.borrow_and_update().clone();
            app.state::<App>().apply(&settings);
            app.state::<App>().server.apply(&settings).await;
            apply_to_desktop(&app, &settings).await;
            if language != settings.language {
                language.clone_from(&settings.language);
                speak(&app, words::of(language.as_deref()));
            }
            appearance::apply_everywhere(&app, &settings.appearance);
            events::tell(&app, events::SETTINGS_CHANGED, settings, "a change of the settings");
            // The default model and the folders are among them.
            commands::models_changed(&app);
        }
    });
}

/// Applies the settings to everything outside the pages.
async fn apply_to_desktop(app: &AppHandle, settings: &Settings) {
    quick::apply(app, settings.quick_entry.clone());
    tray::apply(app, settings.tray).await;
}

/// Keeps collections of documents up to date, and notifies the windows at a limited rate.
fn forward_collections(app: AppHandle) {
    const PAUSE: Duration = Duration::from_millis(250);
    let knowledge = app.state::<App>().knowledge.clone();
    let mut changes = knowledge.changes();
    tauri::async_runtime::spawn(async move {
        knowledge.follow_all().await;
        while changes.changed().await.is_ok() {
            events::tell(&app, events::COLLECTIONS_CHANGED, (), "a change of the documents");
            tokio::time::sleep(PAUSE).await;
        }
    });
}

/// Notifies the windows about the app update, at a limited rate during the download.
fn forward_app_update(app: AppHandle) {
    const PAUSE: Duration = Duration::from_millis(100);
    let mut updates = app.state::<App>().updates.follow();
    tauri::async_runtime::spawn(async move {
        while updates.changed().await.is_ok() {
            let update = updates.borrow_and_update().clone();
            events::tell(&app, events::APP_UPDATE_CHANGED, update, "what became of an update");
            tokio::time::sleep(PAUSE).await;
        }
    });
}

/// Resumes the downloads of the last run, and notifies every window when a model becomes ready.
fn forward_downloads(app: AppHandle) {
    tauri::async_runtime::spawn(async move {
        let hub = app.state::<App>().hub.clone();
        let mut downloads = hub.downloads().watch();
        hub.removals().free_all().await;
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

/// Resumes the downloads of the last run. The process that owned them may still be ending; then it tries again.
async fn resume_pending(hub: hub::Hub) {
    const TIMES: usize = 12;
    const PAUSE: Duration = Duration::from_secs(5);
    for _ in 0..TIMES {
        match hub.downloads().resume_pending().await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => tracing::warn!("the downloads of the last time were not resumed: {error}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}
