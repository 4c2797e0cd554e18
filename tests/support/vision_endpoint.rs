//! A model server on loopback that answers with the number of images in a request, and stores its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{json, Value};

/// The server; it ends with the test's process.
pub struct VisionEndpoint {
    /// Its address, for an endpoint.
    pub url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl VisionEndpoint {
    /// Starts listening.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("it has an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = kept.clone();
                thread::spawn(move || answer(stream, &kept));
            }
        });
        Self { url, asked }
    }

    /// The addresses of the images in the last question, in order.
    pub fn images(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.last().map(images).unwrap_or_default()
    }
}

fn images(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let parts = messages.filter_map(|message| message["content"].as_array()).flatten();
    parts
        .filter_map(|part| part["image_url"]["url"].as_str().map(str::to_owned))
        .collect()
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let (mut first, mut length) = (String::new(), 0);
    let _ = reader.read_line(&mut first);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let (kind, text) = if first.starts_with("GET") {
        (
            "application/json",
            json!({"object": "list", "data": [{"id": "seer", "object": "model"}]}).to_string(),
        )
    } else {
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = format!("I see {} images.", images(&body).len());
        asked.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        let chunk = |delta: Value, reason: Value| json!({"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
        let chunks = [
            chunk(json!({"role": "assistant", "content": said}), Value::Null),
            chunk(json!({}), json!("stop")),
        ];
        let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        ("text/event-stream", events + "data: [DONE]\n\n")
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let _ = stream.write_all((head + &text).as_bytes());
}
