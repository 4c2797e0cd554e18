//! The system's clipboard, where web views keep it from pages: WebKitGTK tells a page that is pasted into of texts alone, and lets none paste.

use std::path::PathBuf;

use tauri::WebviewWindow;

/// The bytes of a picture's file; empty if the clipboard has none, and if the page is told of it by the web view.
#[cfg(target_os = "linux")]
pub async fn picture(window: &WebviewWindow) -> Vec<u8> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let ask = move || {
        let clipboard = gtk::Clipboard::get(&gtk::gdk::SELECTION_CLIPBOARD);
        clipboard.request_contents(&gtk::gdk::Atom::intern("image/png"), move |clipboard, data| {
            // Who asked may be gone; then nobody needs it.
            if data.length() > 0 {
                drop(sender.send(data.data()));
                return;
            }
            // Programs that offer another format only, which GTK knows how to read.
            clipboard.request_image(move |_, picture| {
                let written = picture.and_then(|picture| picture.save_to_bufferv("png", &[]).ok());
                drop(sender.send(written.unwrap_or_default()));
            });
        });
    };
    match window.run_on_main_thread(ask) {
        Ok(()) => receiver.await.unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// The bytes of a picture's file; empty if the clipboard has none, and if the page is told of it by the web view.
#[cfg(not(target_os = "linux"))]
pub async fn picture(_window: &WebviewWindow) -> Vec<u8> {
    Vec::new()
}

/// The files that a file manager has put into the clipboard; none if the page is told of them by the web view.
#[cfg(target_os = "linux")]
pub async fn files(window: &WebviewWindow) -> Vec<PathBuf> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let ask = move || {
        let clipboard = gtk::Clipboard::get(&gtk::gdk::SELECTION_CLIPBOARD);
        clipboard.request_contents(&gtk::gdk::Atom::intern("text/uri-list"), move |_, data| {
            let uris = data.uris();
            let paths = uris.iter().filter_map(|uri| gtk::glib::filename_from_uri(uri).ok());
            // Who asked may be gone; then nobody needs it.
            drop(sender.send(paths.map(|(path, _)| path).collect()));
        });
    };
    match window.run_on_main_thread(ask) {
        Ok(()) => receiver.await.unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// The files that a file manager has put into the clipboard; none if the page is told of them by the web view.
#[cfg(not(target_os = "linux"))]
pub async fn files(_window: &WebviewWindow) -> Vec<PathBuf> {
    Vec::new()
}

/// Pastes where the focus of the page is, as the keys for it do.
///
/// # Errors
/// When the window is gone.
#[cfg(target_os = "linux")]
pub fn paste(window: &WebviewWindow) -> tauri::Result<()> {
    use webkit2gtk::WebViewExt;

    window.with_webview(|view| view.inner().execute_editing_command("Paste"))
}

/// Elsewhere a page that was pressed pastes itself.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn paste(_window: &WebviewWindow) -> tauri::Result<()> {
    Ok(())
}
