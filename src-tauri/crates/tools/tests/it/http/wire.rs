//! HTTP/1.1 as bytes, for servers that misbehave.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    pub head: String,
    pub body: Value,
    /// The body as it came, for one that is no JSON.
    pub text: String,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn called(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// The next request of a connection; `None` at its end.
pub async fn read(connection: &mut TcpStream) -> io::Result<Option<ReceivedRequest>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        let mut piece = [0; 4096];
        match connection.read(&mut piece).await? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut request = ReceivedRequest {
        method: head.split(' ').next().unwrap_or_default().to_owned(),
        path: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        head,
        body: Value::Null,
        text: String::new(),
    };
    let length: usize = request
        .header("content-length")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    while bytes.len() < end + length {
        let mut piece = vec![0; 4096];
        let count = connection.read(&mut piece).await?;
        bytes.extend_from_slice(&piece[..count]);
    }
    request.body = serde_json::from_slice(&bytes[end..]).unwrap_or_default();
    request.text = String::from_utf8_lossy(&bytes[end..]).into_owned();
    Ok(Some(request))
}

/// Answers with a body.
pub async fn send(to: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    to.write_all(head.as_bytes()).await?;
    to.write_all(body).await
}

/// Answers with JSON.
pub async fn json(to: &mut TcpStream, status: &str, headers: &str, body: &Value) -> io::Result<()> {
    let headers = format!("{headers}Content-Type: application/json\r\n");
    send(to, status, &headers, body.to_string().as_bytes()).await
}
