//! The way back from the browser: an address of this computer that listens while somebody signs in.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

use super::error::Error;
use crate::visible::visible;

/// Bytes of a request's head at most.
const LONGEST: usize = 16 << 10;

/// How long a request's head may take. Browsers open connections in advance, which say nothing.
const LIMIT: Duration = Duration::from_secs(20);

/// Connections at the same time.
const MOST: usize = 32;

/// The path of the address.
const PATH: &str = "/callback";

/// The listener.
pub(super) struct Redirect {
    listener: TcpListener,
    address: String,
}

/// A page that the browser shows at the end.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    pub(super) done: String,
    pub(super) refused: String,
}

/// The answer that came back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Returned {
    pub(super) code: String,
    pub(super) issuer: Option<String>,
}

impl Redirect {
    /// Listens, at the address that was used before if it is free.
    pub(super) async fn listen(before: Option<&str>) -> Result<Self, Error> {
        let before = before.and_then(|address| Url::parse(address).ok()?.port());
        let known = match before {
            Some(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.ok(),
            None => None,
        };
        let failed = |error: std::io::Error| Error::NoWayBack(error.to_string());
        let listener = match known {
            Some(listener) => listener,
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?,
        };
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self {
            listener,
            address: format!("http://127.0.0.1:{port}{PATH}"),
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The answer with this state. Others are turned away, and the waiting goes on: any page can send a browser here.
    pub(super) async fn returned(self, state: &str, pages: &Pages) -> Result<Returned, Error> {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MOST => {
                    if let Ok((connection, _)) = accepted {
                        connections.spawn(serve(connection, state.to_owned(), pages.clone()));
                    }
                }
                Some(served) = connections.join_next() => {
                    if let Ok(Some(returned)) = served {
                        return returned;
                    }
                }
            }
        }
    }
}

/// Answers one request; `None` if it is not the one that is waited for.
async fn serve(mut connection: TcpStream, state: String, pages: Pages) -> Option<Result<Returned, Error>> {
    let head = timeout(LIMIT, head(&mut connection)).await.ok()??;
    let returned = read(&head, &state);
    let (status, text) = match &returned {
        Some(Ok(_)) => ("200 OK", pages.done.as_str()),
        Some(Err(_)) => ("200 OK", pages.refused.as_str()),
        None => ("404 Not Found", ""),
    };
    let page = page(text);
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\r\n{page}",
        page.len()
    );
    // A browser that is gone has lost a page and nothing else.
    let _ = timeout(LIMIT, async {
        connection.write_all(answer.as_bytes()).await?;
        connection.shutdown().await
    })
    .await;
    returned
}

/// The head of a request, up to its empty line.
async fn head(connection: &mut TcpStream) -> Option<String> {
    let (mut head, mut buffer) = (Vec::new(), [0; 2048]);
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let count = connection.read(&mut buffer).await.ok()?;
        if count == 0 || head.len() + count > LONGEST {
            return None;
        }
        head.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8(head).ok()
}

/// The answer in a request, if it has this state.
fn read(head: &str, state: &str) -> Option<Result<Returned, Error>> {
    let target = head.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    let address = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    let is_here = address.host_str() == Some("127.0.0.1") && address.path() == PATH;
    let value = |name: &str| {
        let mut pairs = address.query_pairs().filter(|(own, _)| own == name);
        let first = pairs.next().map(|(_, value)| value.into_owned());
        // One that is said twice is understood in two ways.
        first.filter(|_| pairs.next().is_none())
    };
    if !is_here || value("state").as_deref() != Some(state) {
        return None;
    }
    if let Some(error) = value("error") {
        let said = match value("error_description") {
            Some(description) => format!("{error}: {description}"),
            None => error,
        };
        let short: String = said.chars().take(300).collect();
        return Some(Err(Error::Refused(visible(&short))));
    }
    let code = value("code")?;
    let issuer = value("iss");
    Some(Ok(Returned { code, issuer }))
}

fn page(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("<!doctype html><meta charset=\"utf-8\"><title>Ponder</title><p dir=\"auto\">{text}</p>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_that_is_waited_for_counts() {
        let get = |target: &str| read(&format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"), "s1");
        let returned = |code: &str, issuer: Option<&str>| {
            Some(Ok(Returned {
                code: code.into(),
                issuer: issuer.map(str::to_owned),
            }))
        };
        assert_eq!(get("/callback?code=a%20b&state=s1"), returned("a b", None));
        assert_eq!(
            get("/callback?state=s1&iss=https%3A%2F%2Fa.example&code=c"),
            returned("c", Some("https://a.example"))
        );
        for other in [
            "/callback",
            "/callback?code=c",
            "/callback?code=c&state=s2",
            "/callback?code=c&state=s1&state=s2",
            "/callback?code=c&code=d&state=s1",
            "/callback?state=s1",
            "/favicon.ico",
            "/other?code=c&state=s1",
            "//evil.example/callback?code=c&state=s1",
            "http://evil.example/callback?code=c&state=s1",
            "",
        ] {
            assert_eq!(get(other), None, "{other}");
        }
        let post = read("POST /callback?code=c&state=s1 HTTP/1.1\r\n\r\n", "s1");
        assert_eq!(post, None);
        let refused = get("/callback?error=access_denied&error_description=no%0Away&state=s1").unwrap();
        assert!(matches!(refused, Err(Error::Refused(said)) if said.starts_with("access_denied: no")));
        assert_eq!(get("/callback?error=access_denied&state=s2"), None);
    }
}
