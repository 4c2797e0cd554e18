//! Closing windows.

use api::WindowName;
use tauri::{AppHandle, Manager, WebviewWindow};

use crate::app::state::App;
use crate::desktop::quit;
use crate::windows::quick;
use crate::windows::window::{name_of, open_window};

/// True if a window may close; otherwise it was hidden, or its page asks something.
pub fn may_close(app: &AppHandle, label: &str) -> bool {
    match name_of(label) {
        Some(WindowName::Chat) => quit::may_close(app),
        // It stays ready while there is an app to open it again.
        Some(WindowName::Quick) if open_window(app, WindowName::Chat).is_some() => {
            quick::hide(app);
            false
        }
        Some(WindowName::Consent) => {
            // Whoever closes it wants to answer nothing. Calls go on waiting.
            app.state::<App>().tools.dismiss_elicitations();
            true
        }
        _ => true,
    }
}

/// Called after a window was closed. Without the chat window the others are unreachable, so they close as well; with
/// the last window the app ends.
pub fn closed(app: &AppHandle, label: &str) {
    if label != WindowName::Chat.as_str() {
        // A repair, done or not, ended the work of the app, and its windows lead nowhere.
        let ended = app.state::<App>().has_shut_down() && open_window(app, WindowName::Chat).is_some();
        if label == WindowName::Failure.as_str() && ended {
            app.request_restart();
        }
        return;
    }
    for name in WindowName::ALL.into_iter().filter(|name| *name != WindowName::Chat) {
        // Quick entry would only hide.
        let end = |window: WebviewWindow| match name {
            WindowName::Quick => window.destroy(),
            _ => window.close(),
        };
        if let Some(Err(error)) = open_window(app, name).map(end) {
            tracing::warn!("the {} window could not be closed: {error}", name.as_str());
        }
    }
}
