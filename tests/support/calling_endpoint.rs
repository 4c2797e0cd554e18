//! A model server on loopback that calls one tool, and tells the result of the call as its answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::{json, Value};

/// The server; it ends with the test's process.
pub struct CallingEndpoint {
    /// Its address, for an endpoint.
    pub url: String,
}

impl CallingEndpoint {
    /// Starts listening. It calls the tool whose name ends like this.
    pub fn start(tool: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("it has an address"));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || answer(stream, tool));
            }
        });
        Self { url }
    }
}

fn answer(mut stream: TcpStream, tool: &str) {
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
        let models = json!({"object": "list", "data": [{"id": "caller", "object": "model"}]});
        ("application/json", models.to_string())
    } else {
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        ("text/event-stream", events(&body, tool))
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    let _ = stream.write_all((head + &text).as_bytes());
}

fn events(body: &Value, tool: &str) -> String {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let result = messages.last().filter(|message| message["role"] == "tool");
    let mut names = body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["function"]["name"].as_str());
    let offered = names.find(|name| name.ends_with(tool));
    let (delta, reason) = match (result, offered) {
        (None, Some(name)) => {
            let function = json!({"name": name, "arguments": "{}"});
            let call = json!({"index": 0, "id": "a1b2c3d4e", "type": "function", "function": function});
            (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
        }
        (Some(result), _) => {
            let said = result["content"].as_str().unwrap_or("no text").to_owned();
            (json!({"role": "assistant", "content": said}), "stop")
        }
        (None, None) => (json!({"role": "assistant", "content": "No tool."}), "stop"),
    };
    let chunk = |delta: Value, reason: Value| json!({"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let chunks = [chunk(delta, Value::Null), chunk(json!({}), json!(reason))];
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events + "data: [DONE]\n\n"
}
