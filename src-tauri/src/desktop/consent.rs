//! The window in which calls of tools wait: it comes to the front when one does, or when a server asks for something,
//! and goes when none is left.

use std::time::Duration;

use api::WindowName;
use tauri::{AppHandle, Manager};
use tokio::time::{sleep, timeout};

use crate::app::state::App;
use crate::events::{tell, RUNNING_CALLS_CHANGED, TOOLS_CHANGED, WAITING_CALLS_CHANGED};
use crate::windows::window::{self, open_window};

/// The time that the window stays without anything in it: a server may ask for the next thing at once.
const LINGERS: Duration = Duration::from_millis(400);

/// The time between two messages about calls that run.
const BETWEEN_MESSAGES: Duration = Duration::from_millis(250);

/// Follows the calls that wait and run, and the servers of tools.
pub fn follow(app: AppHandle) {
    let tools = app.state::<App>().tools.clone();
    let (mut waiting, mut changes) = (tools.waiting_changes(), tools.changes());
    let mut running = app.state::<App>().chat.running_calls();
    let handle = app.clone();
    tauri::async_runtime::spawn(async move {
        let (mut waited, mut asked) = (0, 0);
        while waiting.changed().await.is_ok() {
            tell(&handle, WAITING_CALLS_CHANGED, (), "a call that waits");
            let asks = tools.elicitations().len();
            let now = tools.waiting().len() + asks;
            if waited > 0 && now == 0 && timeout(LINGERS, waiting.changed()).await.is_ok() {
                asked = 0;
                waiting.mark_changed();
                continue;
            }
            let is_open = open_window(&handle, WindowName::Consent).is_some();
            let shown = match (waited, now) {
                (0, 0) => Ok(()),
                (_, 0) => window::close(&handle, WindowName::Consent),
                (0, _) => window::show(&handle, WindowName::Consent),
                // The person closed it while a call waited, and a server asks.
                _ if asks > asked && !is_open => window::show(&handle, WindowName::Consent),
                // One that comes while another waits takes nobody's keys.
                _ => Ok(()),
            };
            if let Err(error) = shown {
                tracing::warn!("the window for calls of tools: {error}");
            }
            (waited, asked) = (now, asks);
        }
    });
    let handle = app.clone();
    tauri::async_runtime::spawn(async move {
        while running.changed().await.is_ok() {
            tell(&handle, RUNNING_CALLS_CHANGED, (), "the progress of a call");
            sleep(BETWEEN_MESSAGES).await;
        }
    });
    tauri::async_runtime::spawn(async move {
        while changes.changed().await.is_ok() {
            tell(&app, TOOLS_CHANGED, (), "a change of the tools");
        }
    });
}
