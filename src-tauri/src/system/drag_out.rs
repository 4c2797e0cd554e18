//! Dragging a file out of a window, which web views cannot do: they drag URLs, and other programs do not know ours.

use std::path::PathBuf;

use protocol::{Reason, Result};
use tauri::WebviewWindow;

use crate::system::failed;

/// Begins to drag a file while a mouse button is pressed over the window; `icon` follows the pointer.
///
/// # Errors
/// If the window is gone. A refusal of the window system is only logged: the drag is over by then.
pub fn begin(window: &WebviewWindow, file: PathBuf, icon: Vec<u8>) -> Result<()> {
    let dragged = window.clone();
    let begin = move || {
        let done = |_, _| {};
        let (item, icon, options) = (
            drag::DragItem::Files(vec![file]),
            drag::Image::Raw(icon),
            drag::Options::default(),
        );
        #[cfg(target_os = "linux")]
        let begun = dragged
            .gtk_window()
            .map(|window| drag::start_drag(&window, item, icon, done, options));
        #[cfg(not(target_os = "linux"))]
        let begun = tauri::Result::Ok(drag::start_drag(&dragged, item, icon, done, options));
        match begun {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("a file could not be dragged out: {error}"),
            Err(error) => tracing::warn!("a file could not be dragged out: {error}"),
        }
    };
    let done = window.run_on_main_thread(begin);
    done.map_err(failed(Reason::WindowSystem, "the file cannot be dragged"))
}
