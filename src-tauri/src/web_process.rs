//! The process of a web view may end at any time: a system takes it when memory is short, or it crashes. Its page is loaded
//! again then. What it showed, its draft and where it stood lie in the history, and running answers are followed again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tauri::{Webview, Wry};

/// A page that ends this often within [`WHILE`] may be what ends its process; it is loaded again after a [`PAUSE`].
const AT_ONCE: usize = 3;
const WHILE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(15);

/// When processes ended, the last of them.
static ENDED: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

/// Loads the page of a web view again whenever its process has ended. On a Mac the app's builder has a hook for all of them.
#[cfg(target_os = "linux")]
pub fn follow(view: &Webview<Wry>) -> tauri::Result<()> {
    use gtk::glib::prelude::ObjectExt;

    let followed = view.clone();
    view.with_webview(move |platform| {
        platform.inner().connect_local("web-process-terminated", false, move |_| {
            load_again(&followed);
            None
        });
    })
}

/// Loads the page of a web view again, whose process has ended.
pub fn load_again(view: &Webview<Wry>) {
    let pause = pause(&mut ENDED.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
    tracing::warn!("the process of the {} window's page ended; the page is loaded again", view.label());
    let view = view.clone();
    tauri::async_runtime::spawn(async move {
        tokio::time::sleep(pause).await;
        if let Err(error) = view.reload() {
            tracing::error!("the page of the {} window could not be loaded again: {error}", view.label());
        }
    });
}

/// How long a page whose process ended `now` is waited with.
fn pause(ended: &mut Vec<Instant>, now: Instant) -> Duration {
    ended.retain(|before| now.duration_since(*before) < WHILE);
    ended.push(now);
    if ended.len() > AT_ONCE {
        PAUSE
    } else {
        Duration::ZERO
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
