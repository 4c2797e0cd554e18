//! The picture in the system's clipboard, where web views keep it from pages: WebKitGTK tells a page that is pasted into of texts alone.

use tauri::WebviewWindow;

/// The bytes of a picture's file; empty if the clipboard has none, and where the page is told of it by the web view.
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

/// The bytes of a picture's file; empty if the clipboard has none, and where the page is told of it by the web view.
#[cfg(not(target_os = "linux"))]
pub async fn picture(_window: &WebviewWindow) -> Vec<u8> {
    Vec::new()
}
