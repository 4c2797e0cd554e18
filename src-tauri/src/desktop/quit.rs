//! Quitting the app. It asks only while an answer or a download runs; written text is stored either way. If the page
//! does not answer, the app ends: a page that hangs cannot block it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use api::{Download, DownloadState, QuitChoice, RunningWork, WindowName};
use protocol::Result;
use tauri::{AppHandle, Manager};

use crate::app::state::App;
use crate::desktop::tray;
use crate::events::QUIT_ASKED;
use crate::windows::pending_quit::Quit;
use crate::windows::window;

/// The time in which the page must take the question.
const PATIENCE: Duration = Duration::from_secs(10);

/// Quits the app, or asks first.
pub fn request(app: &AppHandle) {
    match is_busy(app) {
        true => ask(app),
        false => app.exit(0),
    }
}

/// Handles a request to close the chat window. Returns true if it may close: a hidden one stays ready, and the user is
/// asked if running work would end with the app.
pub fn may_close(app: &AppHandle) -> bool {
    if tray::stays_without_windows(app) {
        window::hide(app, WindowName::Chat);
        return false;
    }
    if is_busy(app) {
        ask(app);
        return false;
    }
    true
}

fn is_busy(app: &AppHandle) -> bool {
    let state = app.state::<App>();
    !state.running().is_empty() || !fetching(&state.hub.downloads().watch().borrow()).is_empty()
}

/// The models that are being downloaded now. Queued and paused downloads continue at the next start.
fn fetching(downloads: &[Download]) -> Vec<String> {
    use DownloadState::{Done, Failed, Listing, Paused, Queued, Running, Verifying, Waiting};
    let running = downloads.iter().filter(|download| match download.state {
        Queued | Listing | Running | Verifying => true,
        Paused | Waiting | Done | Failed => false,
    });
    running.map(|download| download.id.clone()).collect()
}

/// The running work, for the page's question. The page that asks for it has taken the question.
///
/// # Errors
/// When the history cannot be read.
pub async fn running_work(app: &AppHandle) -> Result<RunningWork> {
    app.state::<Quit>().taken.store(true, Ordering::Relaxed);
    let state = app.state::<App>();
    let running = state.running();
    let mut chats = state.chat.chats().list().await?;
    chats.extend(state.temporary.view().await?.map(|temporary| temporary.summary));
    chats.retain(|chat| running.iter().any(|answer| answer.chat == chat.id));
    let downloads = fetching(&state.hub.downloads().watch().borrow());
    Ok(RunningWork {
        answers: chats.into_iter().map(|chat| chat.title).collect(),
        downloads,
    })
}

fn ask(app: &AppHandle) {
    let quit = app.state::<Quit>();
    quit.taken.store(false, Ordering::Relaxed);
    let asked = window::show(app, WindowName::Chat).and_then(|()| window::send(app, WindowName::Chat, QUIT_ASKED, ()));
    if let Err(error) = asked {
        tracing::warn!("nobody could be asked whether the app may end: {error}");
        return app.exit(0);
    }
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        tokio::time::sleep(PATIENCE).await;
        if !app.state::<Quit>().taken.load(Ordering::Relaxed) {
            tracing::warn!("the window did not ask whether the app may end, so it ends");
            app.exit(0);
        }
    });
}

/// Applies the user's choice.
pub fn choose(app: &AppHandle, choice: QuitChoice) {
    match choice {
        QuitChoice::Now => app.exit(0),
        QuitChoice::Cancel => app.state::<Quit>().call_off(),
        QuitChoice::WhenDone => {
            let called_off = app.state::<Quit>().wait_anew();
            for name in WindowName::ALL {
                window::hide(app, name);
            }
            let app = app.clone();
            tauri::async_runtime::spawn(async move {
                tokio::select! {
                    () = called_off.cancelled() => {}
                    () = done(&app) => app.exit(0),
                }
            });
        }
    }
}

/// Waits until no work is left.
async fn done(app: &AppHandle) {
    let (mut changes, mut downloads) = {
        let state = app.state::<App>();
        (state.chat.changes(), state.hub.downloads().watch())
    };
    while is_busy(app) {
        let more = tokio::select! {
            more = changes.changed() => more,
            more = downloads.changed() => more,
        };
        if more.is_err() {
            return;
        }
    }
}
