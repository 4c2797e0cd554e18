//! Previews of what a response wrote: a page with scripts, or a drawing without, under an address of its own,
//! `ponder-preview://ID/`. The chat's page shows it in a frame in a sandbox.
//!
//! A scheme, because a frame with its text in `srcdoc`, `data:` or `blob:` inherits the rules of the app's page, which
//! run no script of its own; here the answer brings stricter rules for all but that. To Tauri every scheme that an app
//! answers is the app's own, so what keeps a preview from commands is that it never is a window's page, and that Tauri
//! gives the key of calls to the window's page alone.

use std::sync::{Mutex, MutexGuard, PoisonError};

use api::WindowName;
use protocol::{Error, ErrorCode, Reason, Result};
use tauri::http::{header, Method, Request, Response, StatusCode};
use tauri::{Manager, UriSchemeContext, UriSchemeResponder, Wry};

use crate::system::failed;
use crate::system::navigation::{is_preview_id, PREVIEW};

/// The longest page, in bytes; the chat's page offers none for longer ones.
const LONGEST: usize = 4 << 20;

/// The rules of a page: its scripts and styles are inside it, and nothing leads out of it.
const PAGE_RULES: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    img-src data: blob:; font-src data:; media-src data: blob:; connect-src 'none'; frame-src 'none'; \
    worker-src 'none'; object-src 'none'; form-action 'none'; base-uri 'none'";

/// The rules of a drawing, which runs nothing.
const DRAWING_RULES: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; form-action 'none'; base-uri 'none'";

/// The page around a drawing, in which SVG may be as careless as HTML.
const DRAWING_STYLE: &str = "<style>html,body{height:100%;margin:0}body{display:grid;place-items:center}\
    svg{max-width:100%;max-height:100%}</style>";

/// The page that the preview shows now: one at most.
#[derive(Default)]
pub struct Previews(Mutex<Option<Preview>>);

struct Preview {
    id: String,
    html: String,
    rules: String,
}

impl Previews {
    /// Holds a page or a drawing in place of the one before, under an address that nobody has known yet.
    ///
    /// # Errors
    /// `BadRequest` for one that is too long.
    pub fn show(&self, code: &str, drawing: bool) -> Result<String> {
        if code.len() > LONGEST {
            return Err(Error::new(ErrorCode::BadRequest, "this is too long for a preview"));
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(failed(Reason::PonderFault, "a preview got no address"))?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let (rules, sandbox, style) = match drawing {
            true => (DRAWING_RULES, "sandbox", DRAWING_STYLE),
            false => (PAGE_RULES, "sandbox allow-scripts", ""),
        };
        let html = format!(
            "<!doctype html><meta charset=\"utf-8\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{rules}\">{style}{code}"
        );
        let address = format!("{PREVIEW}://{id}/");
        let rules = format!("{rules}; {sandbox}");
        *self.open() = Some(Preview { id, html, rules });
        Ok(address)
    }

    /// Forgets the page; true if there was one.
    pub fn close(&self) -> bool {
        self.open().take().is_some()
    }

    /// True while there is one.
    #[cfg(target_os = "linux")]
    pub fn is_any_open(&self) -> bool {
        self.open().is_some()
    }

    fn open(&self) -> MutexGuard<'_, Option<Preview>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a request of this window; `ancestors` are the pages that may show it in a frame.
    fn response(&self, window: &str, request: &Request<Vec<u8>>, ancestors: &str) -> Response<Vec<u8>> {
        let open = self.open();
        let uri = request.uri();
        let meant = window == WindowName::Chat.as_str()
            && request.method() == Method::GET
            && uri.path() == "/"
            && uri.query().is_none();
        let host = uri.host().filter(|host| meant && is_preview_id(host));
        let found = open.as_ref().filter(|preview| Some(preview.id.as_str()) == host);
        let (status, media_type, body, rules) = match found {
            Some(preview) => (
                StatusCode::OK,
                "text/html; charset=utf-8",
                preview.html.clone(),
                preview.rules.as_str(),
            ),
            None => (
                StatusCode::NOT_FOUND,
                "text/plain",
                String::new(),
                "default-src 'none'; sandbox",
            ),
        };
        let mut response = Response::new(body.into_bytes());
        *response.status_mut() = status;
        let rules = format!("{rules}; frame-ancestors {ancestors}");
        let headers = [
            (header::CONTENT_TYPE, media_type),
            (header::CONTENT_SECURITY_POLICY, rules.as_str()),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-store"),
            (header::HeaderName::from_static("permissions-policy"), NOTHING_ALLOWED),
        ];
        for (name, value) in headers {
            // All of them are letters of ours.
            if let Ok(value) = header::HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// The abilities that a page asks a person for, given to nobody.
const NOTHING_ALLOWED: &str = "camera=(), clipboard-read=(), clipboard-write=(), display-capture=(), fullscreen=(), \
    geolocation=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), usb=(), \
    web-share=()";

/// Answers a frame's request for the page of its preview.
pub fn answer(context: UriSchemeContext<'_, Wry>, request: Request<Vec<u8>>, responder: UriSchemeResponder) {
    let app = context.app_handle();
    let dev_server = app.config().build.dev_url.as_ref().filter(|_| tauri::is_dev());
    let ancestors = match dev_server {
        Some(server) => server.origin().ascii_serialization(),
        None => "tauri://localhost".to_owned(),
    };
    responder.respond(
        app.state::<Previews>()
            .response(context.webview_label(), &request, &ancestors),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(previews: &Previews, window: &str, method: &str, address: &str) -> Response<Vec<u8>> {
        let request = Request::builder().method(method).uri(address).body(Vec::new());
        previews.response(window, &request.expect("a request"), "tauri://localhost")
    }

    fn rules(response: &Response<Vec<u8>>) -> String {
        let rules = &response.headers()[header::CONTENT_SECURITY_POLICY];
        rules.to_str().expect("text").to_owned()
    }

    #[test]
    fn a_page_is_given_to_the_chat_window_alone_and_under_its_address_alone() {
        let previews = Previews::default();
        let address = previews.show("<h1>Tide</h1>", false).expect("it is held");
        let given = ask(&previews, "chat", "GET", &address);
        assert_eq!(given.status(), StatusCode::OK);
        let page = String::from_utf8(given.body().clone()).expect("text");
        assert!(
            page.starts_with("<!doctype html>") && page.ends_with("<h1>Tide</h1>"),
            "{page}"
        );
        let other = format!("{PREVIEW}://{}/", "0".repeat(32));
        for (window, method, address) in [
            ("models", "GET", address.as_str()),
            ("consent", "GET", &address),
            ("chat", "POST", &address),
            ("chat", "GET", &format!("{address}index.html")),
            ("chat", "GET", &format!("{address}?a=b")),
            (
                "chat",
                "GET",
                &address.to_uppercase().replace("PONDER-PREVIEW", PREVIEW),
            ),
            ("chat", "GET", &other),
        ] {
            let refused = ask(&previews, window, method, address);
            assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{window} {method} {address}");
            assert!(refused.body().is_empty());
            assert!(rules(&refused).starts_with("default-src 'none'; sandbox;"));
        }
    }

    #[test]
    fn the_page_before_is_gone_and_no_address_comes_twice() {
        let previews = Previews::default();
        assert!(!previews.close());
        let first = previews.show("one", false).expect("it is held");
        let second = previews.show("one", false).expect("it is held");
        assert_ne!(first, second);
        assert_eq!(ask(&previews, "chat", "GET", &first).status(), StatusCode::NOT_FOUND);
        assert_eq!(ask(&previews, "chat", "GET", &second).status(), StatusCode::OK);
        assert!(previews.close());
        assert_eq!(ask(&previews, "chat", "GET", &second).status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn scripts_run_in_pages_and_in_no_drawing() {
        let previews = Previews::default();
        let page = previews.show("<script>1</script>", false).expect("it is held");
        let page = rules(&ask(&previews, "chat", "GET", &page));
        assert!(page.contains("script-src 'unsafe-inline'") && page.contains("; sandbox allow-scripts;"));
        assert!(!page.contains("allow-same-origin") && !page.contains("http"), "{page}");
        let drawing = previews
            .show("<svg><script>1</script></svg>", true)
            .expect("it is held");
        let drawing = rules(&ask(&previews, "chat", "GET", &drawing));
        assert!(
            !drawing.contains("script") && drawing.contains("; sandbox;"),
            "{drawing}"
        );
        for rules in [page, drawing] {
            assert!(rules.starts_with("default-src 'none'") && rules.ends_with("frame-ancestors tauri://localhost"));
        }
    }

    #[test]
    fn a_page_without_measure_is_refused() {
        let previews = Previews::default();
        assert!(previews.show(&"x".repeat(LONGEST), false).is_ok());
        let error = previews.show(&"x".repeat(LONGEST + 1), false).expect_err("too long");
        assert_eq!(error.code, ErrorCode::BadRequest);
    }
}
