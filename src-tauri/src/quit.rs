//! The end of the app. It asks only while an answer or a download runs; what was written is stored either way. If the page does not
//! answer, the app ends: nobody is kept in it by a page that hangs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use protocol::{Download, DownloadState, QuitChoice, Result, Unfinished, WindowName};
use tauri::{AppHandle, Emitter, EventTarget, Manager};
use tokio_util::sync::CancellationToken;

use crate::commands::QUIT_ASKED;
use crate::state::App;
use crate::{tray, window};

/// How long the page has to say that it asks.
const PATIENCE: Duration = Duration::from_secs(10);

/// How far the end has come.
#[derive(Default)]
pub struct Quit {
    /// Whether the page has taken the question.
    taken: AtomicBool,
    /// Calls off the end that waits until nothing runs.
    waiting: Mutex<CancellationToken>,
}

impl Quit {
    /// Who opens a window again stays.
    pub fn call_off(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    fn wait_anew(&self) -> CancellationToken {
        let token = CancellationToken::new();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *waiting, token.clone()).cancel();
        token
    }
}

/// Whether the app goes on without a window: in the Dock, or as an icon of the tray.
pub fn stays_without_windows(app: &AppHandle) -> bool {
    cfg!(target_os = "macos") || tray::is_shown(app)
}

/// Ends the app, or asks first.
pub fn request(app: &AppHandle) {
    if is_busy(app) {
        ask(app);
    } else {
        app.exit(0);
    }
}

/// The chat window is to be closed. Returns whether it may be: hidden instead, it stays ready, and while something runs with which the
/// app would end, a person is asked.
pub fn may_close(app: &AppHandle) -> bool {
    if stays_without_windows(app) {
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
    !state.chat.running().is_empty() || !fetching(&state.hub.downloads().borrow()).is_empty()
}

/// The models that are being fetched now. What waits or was paused goes on the next time as well.
fn fetching(downloads: &[Download]) -> Vec<String> {
    use DownloadState::{Done, Failed, Listing, Paused, Queued, Running, Verifying, Waiting};
    let running = downloads.iter().filter(|download| match download.state {
        Queued | Listing | Running | Verifying => true,
        Paused | Waiting | Done | Failed => false,
    });
    running.map(|download| download.id.clone()).collect()
}

/// What runs, for the question whether it may end. The page that asks for it has taken the question.
///
/// # Errors
/// When the history cannot be read.
pub async fn unfinished(app: &AppHandle) -> Result<Unfinished> {
    app.state::<Quit>().taken.store(true, Ordering::Relaxed);
    let state = app.state::<App>();
    let running = state.chat.running();
    let mut chats = state.chat.chats().await?;
    chats.retain(|chat| running.iter().any(|answer| answer.chat == chat.id));
    let downloads = fetching(&state.hub.downloads().borrow());
    Ok(Unfinished {
        answers: chats.into_iter().map(|chat| chat.title).collect(),
        downloads,
    })
}

fn ask(app: &AppHandle) {
    let quit = app.state::<Quit>();
    quit.taken.store(false, Ordering::Relaxed);
    let target = EventTarget::webview_window(WindowName::Chat.as_str());
    let asked = window::show(app, WindowName::Chat).and_then(|()| app.emit_to(target, QUIT_ASKED, ()));
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

/// Does what a person has chosen.
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

/// Waits until nothing runs.
async fn done(app: &AppHandle) {
    let (mut changes, mut downloads) = {
        let state = app.state::<App>();
        (state.chat.changes(), state.hub.downloads())
    };
    while is_busy(app) {
        let more = tokio::select! {
            more = changes.changed() => more,
            more = downloads.changed() => more,
        };
        if more.is_err() {
            break;
        }
    }
}
