//! A client that sends bytes as it is told, so that a test may break every rule.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The time limit of each step, which only a hang reaches.
pub const LONG: Duration = Duration::from_secs(120);

/// A connection, and what came over it and was not read yet.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    chunked: bool,
}

/// The head of a response.
#[derive(Debug, Clone)]
pub struct Head {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// A header, if it came.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// A whole response.
#[derive(Debug, Clone)]
pub struct Response {
    pub head: Head,
    pub body: String,
}

impl Response {
    /// Its JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The data of its events.
    pub fn events(&self) -> Vec<Value> {
        self.body.split("\n\n").filter_map(event).collect()
    }
}

/// The data of one event, checked against its name; `None` for comments and `[DONE]`.
fn event(block: &str) -> Option<Value> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    let data = field("data: ").filter(|data| *data != "[DONE]")?;
    let data: Value = serde_json::from_str(data).unwrap();
    if let Some(name) = field("event: ") {
        assert_eq!(data["type"], name);
    }
    Some(data)
}

async fn soon<T>(what: impl std::future::Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what).await.expect("it takes too long")
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Self {
        Self {
            stream: soon(TcpStream::connect(address)).await.unwrap(),
            buffer: Vec::new(),
            chunked: false,
        }
    }

    /// Sends bytes; an error means that the server has closed.
    pub async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        soon(self.stream.write_all(bytes)).await
    }

    /// More bytes; `false` at the end.
    async fn more(&mut self) -> bool {
        let mut piece = [0; 16 << 10];
        match soon(self.stream.read(&mut piece)).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.buffer.extend_from_slice(&piece[..count]);
                true
            }
        }
    }

    /// Everything up to this mark, or `None` at the end.
    async fn until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|window| window == mark) {
                let taken = self.buffer.drain(..at + mark.len()).collect();
                return Some(taken);
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// The head of a response; `None` if the server closed.
    pub async fn head(&mut self) -> Option<Head> {
        let text = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        let mut lines = text.trim_end().split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let head = Head { status, headers };
        self.chunked = head.header("transfer-encoding") == Some("chunked");
        Some(head)
    }

    /// The next piece of a chunked body; `None` at its end.
    pub async fn chunk(&mut self) -> Option<String> {
        let size = String::from_utf8(self.until(b"\r\n").await?).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        while self.buffer.len() < size + 2 {
            if !self.more().await {
                return None;
            }
        }
        let chunk: Vec<u8> = self.buffer.drain(..size + 2).collect();
        (size > 0).then(|| String::from_utf8(chunk[..size].to_vec()).unwrap())
    }

    /// The rest of a response.
    pub async fn body(&mut self, head: &Head) -> String {
        let mut body = String::new();
        if self.chunked {
            while let Some(chunk) = self.chunk().await {
                body.push_str(&chunk);
            }
            return body;
        }
        let length: usize = head
            .header("content-length")
            .map_or(0, |length| length.parse().unwrap());
        while self.buffer.len() < length && self.more().await {}
        String::from_utf8(self.buffer.drain(..length.min(self.buffer.len())).collect()).unwrap()
    }

    /// True if the server has closed.
    pub async fn is_closed(&mut self) -> bool {
        while self.more().await {}
        true
    }
}

/// A request as text.
pub fn request(method: &str, address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    let mut all = headers.to_vec();
    let host = address.to_string();
    if !all.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        all.push(("host", &host));
    }
    for (name, value) in all {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || method == "POST" {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Asks, and reads the whole response.
pub async fn ask(method: &str, address: SocketAddr, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let mut connection = Connection::open(address).await;
    connection
        .send(&request(method, address, path, headers, body))
        .await
        .unwrap();
    let head = connection.head().await.expect("the server answers");
    let body = if method == "HEAD" {
        String::new()
    } else {
        connection.body(&head).await
    };
    Response { head, body }
}

/// Posts JSON.
pub async fn post(address: SocketAddr, path: &str, body: &Value) -> Response {
    let json = [("content-type", "application/json")];
    ask("POST", address, path, &json, body.to_string().as_bytes()).await
}

/// Gets.
pub async fn get(address: SocketAddr, path: &str) -> Response {
    ask("GET", address, path, &[], b"").await
}
