//! A page of the web as text.

use documents::Document;
use net::{public_host, Purpose, Response, Timeouts};
use serde_json::Value;
use tokio::time::timeout;

use super::body::{as_utf8, file_name, media_type, read, MOST_READ};
use crate::builtin::arguments::{number, text};
use crate::builtin::sources::Sources;
use crate::visible::readable;

/// Bytes of text in one result at most.
const LONGEST: usize = 30_000;

/// Bytes of an address at most.
const LONGEST_ADDRESS: usize = 4_000;

/// The host of a page that may be read.
pub fn host_of_page(address: &str) -> Result<String, String> {
    if address.len() > LONGEST_ADDRESS {
        return Err("this address is too long".to_owned());
    }
    public_host(address.trim()).map_err(|error| refusal(&error))
}

/// The text of the page that the arguments name.
pub async fn fetch(sources: &Sources, arguments: &Value) -> Result<String, String> {
    let address = text(arguments, "url").unwrap_or_default().trim();
    let host = host_of_page(address)?;
    let start = number(arguments, "start").unwrap_or(0);
    let fetched = timeout(sources.time, fetch_page(sources, address, start)).await;
    fetched.unwrap_or_else(|_| Err(format!("{host} took more than {} seconds", sources.time.as_secs())))
}

async fn fetch_page(sources: &Sources, address: &str, start: usize) -> Result<String, String> {
    let timeouts = Timeouts {
        head: sources.time / 3,
        first_bytes: None,
        stall: Some(sources.time / 4),
    };
    let asked = sources.net.get(address, Purpose::WebPage);
    let asked = asked.timeouts(timeouts).stay_on_host();
    let asked = asked.header(
        "accept",
        "text/html, text/plain;q=0.9, text/*;q=0.8, application/json;q=0.8",
    );
    let mut response = asked.send().await.map_err(|error| refusal(&error))?;
    check(&response)?;
    let header = response.header("content-type").map(str::to_owned);
    let kind = header.as_deref().map(media_type);
    let media = kind.as_ref().map(|(media, _)| media.as_str());
    let name = file_name(media).ok_or_else(|| {
        let media: String = readable(media.unwrap_or_default()).chars().take(100).collect();
        format!(
            "{} sent no text but {media:?}, which fetch_page does not read",
            response.host()
        )
    })?;
    let (bytes, more) = read(&mut response).await.map_err(|error| refusal(&error))?;
    let bytes = as_utf8(bytes, kind.as_ref().and_then(|(_, charset)| *charset));
    let page = tokio::task::spawn_blocking(move || documents::read(bytes, name)).await;
    let page = page.map_err(|_| "the page could not be read".to_owned())?;
    let page = page.map_err(|error| unreadable(&error))?;
    shown(response.address(), &page, start, more)
}

/// Refuses an answer that is no page.
fn check(response: &Response) -> Result<(), String> {
    let host = response.host();
    let status = response.status();
    if (300..400).contains(&status) {
        let next = response.redirects_to().unwrap_or_default();
        return Err(match public_host(&next) {
            Ok(other) => format!(
                "{host} redirects to another host, {other}, which was not followed, because the person consented to \
                 {host} alone. The page is at {next}"
            ),
            Err(_) => format!("{host} redirects to a place that is not on the internet, which was not followed"),
        });
    }
    match status {
        200..300 => {}
        401 | 403 => return Err(format!("{host} does not show this page to everybody (status {status})")),
        404 | 410 => return Err(format!("{host} has no such page (status {status})")),
        429 => return Err(format!("{host} got too many requests (status 429); try again later")),
        _ => return Err(format!("{host} answered with status {status} instead of a page")),
    }
    match response.header("content-encoding").map(str::trim) {
        None | Some("" | "identity") => Ok(()),
        Some(_) => Err(format!("{host} sent the page compressed, which was not asked for")),
    }
}

/// The text from a place on, as much as fits, and what was left out.
fn shown(address: &str, page: &Document, start: usize, more: bool) -> Result<String, String> {
    let text = readable(&page.text);
    if start > 0 && start >= text.len() {
        return Err(format!("the text of this page has {} bytes", text.len()));
    }
    let start = text.floor_char_boundary(start);
    let end = text.floor_char_boundary(start + LONGEST);
    let mut notes = Vec::new();
    if end < text.len() {
        notes.push(format!(
            "[cut: bytes {start} to {end} of {}; `start` {end} reads on]",
            text.len()
        ));
    }
    if more {
        let read = MOST_READ / 1_000_000;
        notes.push(format!(
            "[cut: the page is larger than {read} MB, and the rest was not read]"
        ));
    }
    let notes: String = notes.iter().map(|note| format!("\n{note}")).collect();
    Ok(format!(
        "Text of {address}, as its author wrote it:\n\n{}{notes}",
        &text[start..end]
    ))
}

fn unreadable(error: &documents::Error) -> String {
    match error {
        documents::Error::NoText { .. } | documents::Error::UnknownKind { .. } => {
            "there is no text on this page; it may need a browser".to_owned()
        }
        documents::Error::Broken { reason, .. } => format!("this page cannot be read: {reason}"),
        documents::Error::TooLarge(reason) => format!("this page is too large: {reason}"),
        documents::Error::Protected(_) => "this page is protected".to_owned(),
        documents::Error::Waiting => "two pages before it are still being read; try again in some minutes".to_owned(),
        // Only drawing ends so.
        documents::Error::NoPage { .. } | documents::Error::NotDrawn(_) => error.to_string(),
    }
}

/// Why a page was not asked for or did not come, in words for a model and a person.
fn refusal(error: &net::Error) -> String {
    match error {
        net::Error::LocalNetwork { host } => {
            format!("{host} is in this computer's own network, where fetch_page reads nothing; nothing was sent")
        }
        net::Error::BadAddress { address } => {
            let address: String = readable(address).chars().take(200).collect();
            format!("{address:?} is no address of a page; one looks like https://example.org/page")
        }
        other => other.to_string(),
    }
}
