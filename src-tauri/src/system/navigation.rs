//! Confines every window to Ponder's own pages, and to frames with previews of what a response wrote. A web view is a
//! browser by itself: it follows links, fetches files, opens windows and offers all of that in a menu. None of it is
//! wanted here, because text by a model or a stranger could lead it anywhere, past the offline switch and past the list
//! of requests. `commands::windows::open_link` opens links in the browser.

use tauri::webview::{DownloadEvent, NewWindowResponse};
use tauri::{Manager, Url, WebviewWindowBuilder, Wry};

/// Suppresses the web view's own menu everywhere. Runs before the page's own listeners, which still receive the event
/// and may show a menu of ours.
const NO_BROWSER_MENU: &str = "addEventListener('contextmenu', (event) => event.preventDefault(), true);";

/// Takes connections between peers from every frame: no content security policy speaks of them, and the page of a
/// preview could tell a server of its choice anything by them.
const NO_PEERS: &str = "for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'RTCIceGatherer'])
    delete globalThis[name];";

/// The scheme of previews, which `crate::windows::previews` answers.
pub const PREVIEW: &str = "ponder-preview";

/// A proxy without a listener (the port is the system's own). WebKitGTK sends the request of a link with `download`
/// before it asks the app, so on Linux the web view has no way to the network at all; the app's pages and calls need
/// none.
#[cfg(target_os = "linux")]
const NO_NETWORK: &str = "http://127.0.0.1:1";

/// Refuses every navigation away from Ponder's own pages, every new window and every download.
pub fn confine<'a, M: Manager<Wry>>(
    app: &M,
    window: WebviewWindowBuilder<'a, Wry, M>,
) -> WebviewWindowBuilder<'a, Wry, M> {
    let dev_server = app.config().build.dev_url.clone().filter(|_| tauri::is_dev());
    #[cfg(target_os = "linux")]
    let window = match (&dev_server, NO_NETWORK.parse()) {
        (None, Ok(nowhere)) => window.proxy_url(nowhere),
        _ => window,
    };
    window
        .on_navigation(move |url| {
            let own = is_own_page(url, dev_server.as_ref());
            if !own {
                // The target may contain text of a chat, which must not be logged.
                tracing::warn!("a page that is not Ponder's was refused");
            }
            own
        })
        .on_new_window(|_, _| {
            tracing::warn!("a new window was refused");
            NewWindowResponse::Deny
        })
        .on_download(|_, event| {
            if let DownloadEvent::Requested { .. } = event {
                tracing::warn!("a download by the web view was refused");
            }
            false
        })
        .initialization_script_for_all_frames(NO_BROWSER_MENU)
        .initialization_script_for_all_frames(NO_PEERS)
}

/// True for a page of the app: a file inside the program, or of the development server while there is one.
fn is_own_page(url: &Url, dev_server: Option<&Url>) -> bool {
    match url.scheme() {
        "tauri" => url.host_str() == Some("localhost"),
        // The web view of Windows has no custom schemes.
        "http" | "https" if cfg!(windows) && url.host_str() == Some("tauri.localhost") => true,
        "http" | "https" => dev_server.is_some_and(|server| url.origin() == server.origin()),
        // The web view asks for frames as well. A sandbox keeps the page of a preview in its frame, and a link of it
        // to another path would leave an empty one.
        PREVIEW => url.path() == "/" && url.query().is_none() && url.host_str().is_some_and(is_preview_id),
        _ => false,
    }
}

/// True for the host of a preview's address: 32 digits of base 16.
pub fn is_preview_id(host: &str) -> bool {
    host.len() == 32 && host.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::is_own_page;

    #[test]
    fn only_the_apps_own_origin_is_a_page_of_it() {
        let own = |url: &str, dev_server: Option<&str>| {
            let parse = |url: &str| url.parse().expect("an address");
            is_own_page(&parse(url), dev_server.map(parse).as_ref())
        };
        assert!(own("tauri://localhost/index.html?window=models", None));
        assert!(own("ponder-preview://0123456789abcdef0123456789abcdef/", None));
        assert!(own("ponder-preview://0123456789abcdef0123456789abcdef/#part", None));
        let strange = [
            "https://example.org/",
            "http://localhost:5173/",
            "http://127.0.0.1/",
            "tauri://example.org/",
            "file:///etc/passwd",
            "data:text/html,hello",
            "about:blank",
            "javascript:alert(1)",
            "ponder-preview://localhost/",
            "ponder-preview://0123456789abcdef0123456789abcdef/other.html",
            "ponder-preview://0123456789abcdef0123456789abcdef/?a=b",
        ];
        for url in strange {
            assert!(!own(url, None), "{url} is no page of the app");
        }
        assert!(own(
            "http://localhost:5173/?window=models",
            Some("http://localhost:5173")
        ));
        assert!(
            !own("http://localhost:5174/", Some("http://localhost:5173")),
            "another port is another server"
        );
    }
}
