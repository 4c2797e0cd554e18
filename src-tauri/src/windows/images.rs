//! Images for the windows' pages, under addresses of their own: `attachment://localhost/SHA256?size=preview|whole`. A
//! page names an image by its hash in the history, never by a path.

use api::WindowName;
use chat::ShownImage;
use protocol::{Error, ErrorCode, ImageBytes};
use tauri::http::{header, Method, Request, Response, StatusCode};
use tauri::{Manager, UriSchemeContext, UriSchemeResponder, Wry};

use crate::app::state::App;

/// The scheme of their addresses; `tauri.conf.json` allows it for images only.
pub const SCHEME: &str = "attachment";

/// The form of an image that an address asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Preview,
    Whole,
}

/// Answers the request of a page for an image.
pub fn answer(context: UriSchemeContext<'_, Wry>, request: Request<Vec<u8>>, responder: UriSchemeResponder) {
    let asked = asked_for(context.webview_label(), &request);
    let app = context.app_handle().clone();
    tauri::async_runtime::spawn(async move {
        let found = match asked {
            Some((attachment, size)) => find(&app.state::<App>(), &attachment, size).await,
            None => Err(Error::new(ErrorCode::BadRequest, "this is not the address of an image")),
        };
        responder.respond(response(found));
    });
}

/// The image that a request names; `None` for any other address, or a window that shows no images.
fn asked_for(window: &str, request: &Request<Vec<u8>>) -> Option<(String, Size)> {
    let attachment = request.uri().path().strip_prefix('/')?;
    let size = match request.uri().query()? {
        "size=preview" => Size::Preview,
        "size=whole" => Size::Whole,
        _ => return None,
    };
    let meant = window == WindowName::Chat.as_str() && request.method() == Method::GET && ImageBytes::is_id(attachment);
    meant.then(|| (attachment.to_owned(), size))
}

async fn find(app: &App, attachment: &str, size: Size) -> protocol::Result<ShownImage> {
    match size {
        Size::Preview => app.chat_with(attachment).await.files().preview(attachment).await,
        Size::Whole => app.chat_with(attachment).await.files().whole_image(attachment).await,
    }
}

fn response(found: protocol::Result<ShownImage>) -> Response<Vec<u8>> {
    let (status, media_type, bytes) = match found {
        Ok(image) => (StatusCode::OK, image.media_type, image.bytes.to_vec()),
        Err(error) if error.code == ErrorCode::NotFound => (StatusCode::NOT_FOUND, "text/plain", Vec::new()),
        Err(error) => {
            tracing::warn!(code = ?error.code, "an image could not be shown");
            (StatusCode::BAD_REQUEST, "text/plain", Vec::new())
        }
    };
    let mut response = Response::new(bytes);
    *response.status_mut() = status;
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        // An address always names the same image.
        (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
        // A page reads an image back to copy it. The app's windows only ever contain Ponder's pages.
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ];
    for (name, value) in headers {
        let value = header::HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(window: &str, method: &str, address: &str) -> Option<(String, Size)> {
        let request = Request::builder().method(method).uri(address).body(Vec::new());
        asked_for(window, &request.expect("a request"))
    }

    #[test]
    fn only_hashes_are_addresses_and_only_the_chat_window_asks() {
        let id = "0123456789abcdef".repeat(4);
        let address = |rest: &str| format!("attachment://localhost/{rest}");
        let whole = address(&format!("{id}?size=whole"));
        assert_eq!(asked("chat", "GET", &whole), Some((id.clone(), Size::Whole)));
        assert_eq!(
            asked("chat", "GET", &address(&format!("{id}?size=preview"))),
            Some((id.clone(), Size::Preview))
        );
        assert_eq!(asked("models", "GET", &whole), None);
        assert_eq!(asked("chat", "POST", &whole), None);
        let strange = [
            id.clone(),
            format!("{id}?size=512"),
            format!("{id}/?size=whole"),
            format!("../{id}?size=whole"),
            format!("{}?size=whole", id.to_uppercase()),
            format!("{}?size=whole", &id[1..]),
            "..%2f..%2fetc%2fpasswd?size=whole".into(),
            "history.sqlite?size=whole".into(),
        ];
        for rest in strange {
            assert_eq!(asked("chat", "GET", &address(&rest)), None, "{rest}");
        }
    }
}
