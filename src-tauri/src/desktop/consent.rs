//! The window in which calls of tools wait: it comes to the front when one does, and goes when none is left.

use api::WindowName;
use tauri::{AppHandle, Manager};

use crate::app::state::App;
use crate::events::{tell, TOOLS_CHANGED, WAITING_CALLS_CHANGED};
use crate::windows::window;

/// Follows the calls that wait, and the servers of tools.
pub fn follow(app: AppHandle) {
    let tools = app.state::<App>().tools.clone();
    let (mut waiting, mut changes) = (tools.waiting_changes(), tools.changes());
    let handle = app.clone();
    tauri::async_runtime::spawn(async move {
        let mut waited = 0;
        while waiting.changed().await.is_ok() {
            let now = tools.waiting().len();
            // One that comes while another waits takes nobody's keys.
            let shown = match (waited, now) {
                (0, 0) => Ok(()),
                (0, _) => window::show(&handle, WindowName::Consent),
                (_, 0) => window::close(&handle, WindowName::Consent),
                _ => Ok(()),
            };
            if let Err(error) = shown {
                tracing::warn!("the window for calls of tools: {error}");
            }
            waited = now;
            tell(&handle, WAITING_CALLS_CHANGED, (), "a call that waits");
        }
    });
    tauri::async_runtime::spawn(async move {
        while changes.changed().await.is_ok() {
            tell(&app, TOOLS_CHANGED, (), "a change of the tools");
        }
    });
}
