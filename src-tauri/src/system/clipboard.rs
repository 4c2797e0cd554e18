//! The system's clipboard, where web views hide it from pages: WebKitGTK shows a page that is pasted into only text,
//! and lets no page paste.

use std::path::PathBuf;

use tauri::WebviewWindow;

/// The bytes of an image file; empty if the clipboard has none, or if the web view gives it to the page itself.
#[cfg(target_os = "linux")]
pub async fn image(window: &WebviewWindow) -> Vec<u8> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let ask = move || {
        let clipboard = gtk::Clipboard::get(&gtk::gdk::SELECTION_CLIPBOARD);
        clipboard.request_contents(&gtk::gdk::Atom::intern("image/png"), move |clipboard, data| {
            // The receiver may be gone; then nothing needs the data.
            if data.length() > 0 {
                drop(sender.send(data.data()));
                return;
            }
            // Programs that offer only another format, which GTK can decode.
            clipboard.request_image(move |_, image| {
                let written = image.and_then(|image| image.save_to_bufferv("png", &[]).ok());
                drop(sender.send(written.unwrap_or_default()));
            });
        });
    };
    match window.run_on_main_thread(ask) {
        Ok(()) => receiver.await.unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// The bytes of an image file; empty if the clipboard has none, or if the web view gives it to the page itself.
#[cfg(not(target_os = "linux"))]
pub async fn image(_window: &WebviewWindow) -> Vec<u8> {
    Vec::new()
}

/// The files that a file manager copied; none if the web view gives them to the page itself.
#[cfg(target_os = "linux")]
pub async fn files(window: &WebviewWindow) -> Vec<PathBuf> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let ask = move || {
        let clipboard = gtk::Clipboard::get(&gtk::gdk::SELECTION_CLIPBOARD);
        clipboard.request_contents(&gtk::gdk::Atom::intern("text/uri-list"), move |_, data| {
            let uris = data.uris();
            let paths = uris.iter().filter_map(|uri| gtk::glib::filename_from_uri(uri).ok());
            // The receiver may be gone; then nothing needs the data.
            drop(sender.send(paths.map(|(path, _)| path).collect()));
        });
    };
    match window.run_on_main_thread(ask) {
        Ok(()) => receiver.await.unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// The files that a file manager copied; none if the web view gives them to the page itself.
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

/// On other systems the page that was clicked pastes by itself.
///
/// # Errors
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn paste(_window: &WebviewWindow) -> tauri::Result<()> {
    Ok(())
}
