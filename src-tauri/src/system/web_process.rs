//! Recovers from the end of a web view's process, which may happen at any time: the system kills it when memory is
//! short, it crashes, or a preview in it never ends. Its page is loaded again. Its content, draft and scroll position
//! are in the history, and running answers are followed again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tauri::{Webview, Wry};

/// A page that ends this often within [`WHILE`] may cause the crash itself; it is loaded again after a [`PAUSE`].
const AT_ONCE: usize = 3;
const WHILE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(15);

/// The time that a page has once the web view reports that it does not react to a person, which takes 3 s.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_secs(4);

/// The times at which processes ended, the last ones only.
static ENDED: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

/// Reloads the page of a web view whenever its process ends. On a Mac the app's builder has a hook for all of them.
#[cfg(target_os = "linux")]
pub fn follow(view: &Webview<Wry>) -> tauri::Result<()> {
    use gtk::glib::prelude::ObjectExt;

    let followed = view.clone();
    view.with_webview(move |platform| {
        let ended = move |_: &[gtk::glib::Value]| {
            load_again(&followed);
            None
        };
        platform.inner().connect_local("web-process-terminated", false, ended);
    })
}

/// Ends the process of a web view that no longer reacts to a person, if `may_end` says so then and after a while.
/// Scripts of frames run in the process of their page, so an endless one would hold up the window for ever. The web view
/// of macOS has no such report.
#[cfg(target_os = "linux")]
pub fn end_if_stuck(view: &Webview<Wry>, may_end: impl Fn() -> bool + Clone + Send + 'static) -> tauri::Result<()> {
    use webkit2gtk::WebViewExt;

    view.with_webview(move |platform| {
        platform.inner().connect_is_web_process_responsive_notify(move |view| {
            let (view, may_end) = (view.clone(), may_end.clone());
            let is_stuck = move |view: &webkit2gtk::WebView| !view.is_web_process_responsive() && may_end();
            if !is_stuck(&view) {
                return;
            }
            gtk::glib::timeout_add_local_once(PATIENCE, move || {
                if is_stuck(&view) {
                    tracing::warn!("a page with a preview does not react; its process is ended");
                    view.terminate_web_process();
                }
            });
        });
    })
}

/// Reloads the page of a web view whose process ended.
pub fn load_again(view: &Webview<Wry>) {
    let mut ended = ENDED.lock().unwrap_or_else(PoisonError::into_inner);
    let pause = pause(&mut ended, Instant::now());
    let (view, name) = (view.clone(), view.label().to_owned());
    tracing::warn!("the process of the {name} window's page ended; the page is loaded again");
    tauri::async_runtime::spawn(async move {
        tokio::time::sleep(pause).await;
        if let Err(error) = view.reload() {
            tracing::error!("the page of the {name} window could not be loaded again: {error}");
        }
    });
}

/// The delay before a page whose process ended `now` is reloaded.
fn pause(ended: &mut Vec<Instant>, now: Instant) -> Duration {
    ended.retain(|before| now.duration_since(*before) < WHILE);
    ended.push(now);
    match ended.len() > AT_ONCE {
        true => PAUSE,
        false => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_ends_again_and_again_is_loaded_less_often() {
        let (mut ended, start) = (Vec::new(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let pauses: Vec<_> = [0, 1, 2, 3, 20].map(|seconds| pause(&mut ended, after(seconds))).into();
        assert_eq!(pauses, [Duration::ZERO, Duration::ZERO, Duration::ZERO, PAUSE, PAUSE]);
        assert_eq!(
            pause(&mut ended, after(200)),
            Duration::ZERO,
            "what was a minute ago no longer counts"
        );
    }
}
