//! A server of tools behind an address that misbehaves in a named way. It writes its bytes itself, so that nothing
//! corrects it.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{json, Value};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::wire::{json, read, send, ReceivedRequest};

/// The server.
pub struct BadServer {
    pub address: String,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    task: JoinHandle<()>,
}

impl BadServer {
    pub async fn start(way: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let (kept, way) = (asked.clone(), Arc::<str>::from(way));
        let task = tokio::spawn(async move {
            // They end with this task.
            let mut connections = JoinSet::new();
            while let Ok((mut connection, _)) = listener.accept().await {
                let (kept, way) = (kept.clone(), way.clone());
                connections.spawn(async move {
                    while let Ok(Some(request)) = read(&mut connection).await {
                        let times = {
                            let mut kept = kept.lock().unwrap();
                            kept.push(request.clone());
                            kept.iter().filter(|before| before.called() == request.called()).count()
                        };
                        if answer(&way, &mut connection, &request, times).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self {
            address: format!("{origin}/mcp"),
            asked,
            task,
        }
    }

    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for BadServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The head of a stream of events, which ends with its connection.
async fn begin_events(to: &mut TcpStream) -> io::Result<()> {
    to.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        .await
}

async fn event(to: &mut TcpStream, data: &Value) -> io::Result<()> {
    to.write_all(format!("data: {data}\n\n").as_bytes()).await
}

fn over() -> io::Result<()> {
    Err(io::ErrorKind::ConnectionAborted.into())
}

fn result(request: &ReceivedRequest, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": result })
}

fn text(request: &ReceivedRequest, text: &str) -> Value {
    result(request, json!({ "content": [{ "type": "text", "text": text }] }))
}

async fn forever() -> io::Result<()> {
    sleep(Duration::from_secs(600)).await;
    over()
}

async fn answer(way: &str, to: &mut TcpStream, request: &ReceivedRequest, times: usize) -> io::Result<()> {
    match way {
        "mute" => return forever().await,
        "web page" => return send(to, "200 OK", "Content-Type: text/html\r\n", b"<h1>Welcome</h1>").await,
        "nothing there" => return send(to, "404 Not Found", "Content-Type: text/html\r\n", b"<h1>404</h1>").await,
        "overloaded" => return send(to, "503 Service Unavailable", "", b"come back later").await,
        "strangers out" => return send(to, "401 Unauthorized", "", b"").await,
        "moved away" => {
            return send(
                to,
                "307 Temporary Redirect",
                "Location: http://127.0.0.1:9/mcp\r\n",
                b"",
            )
            .await;
        }
        "into the network" => {
            return send(
                to,
                "307 Temporary Redirect",
                "Location: http://192.168.1.1/mcp\r\n",
                b"",
            )
            .await;
        }
        "moved here" if request.path == "/mcp" => {
            return send(to, "308 Permanent Redirect", "Location: /there\r\n", b"").await;
        }
        "dropped body" => return send(to, "303 See Other", "Location: /there\r\n", b"").await,
        _ => {}
    }
    match (request.method.as_str(), request.called()) {
        ("GET", _) if way == "unasked for ever" => {
            begin_events(to).await?;
            loop {
                event(
                    to,
                    &json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }),
                )
                .await?;
                sleep(Duration::from_millis(5)).await;
            }
        }
        ("GET", _) if way == "ends every stream" => {
            let body = b"retry: 0\ndata:\n\n";
            send(to, "200 OK", "Content-Type: text/event-stream\r\n", body).await
        }
        ("GET", _) => send(to, "405 Method Not Allowed", "", b"").await,
        ("DELETE", _) => send(to, "200 OK", "", b"").await,
        (_, "subscriptions/listen") if way == "newest" => {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": request.body["id"] });
            let accepted = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
            begin_events(to).await?;
            for (method, params) in [
                ("notifications/subscriptions/acknowledged", accepted),
                ("notifications/tools/list_changed", json!({ "_meta": meta })),
            ] {
                event(to, &json!({ "jsonrpc": "2.0", "method": method, "params": params })).await?;
            }
            forever().await
        }
        (_, "server/discover") => match way {
            "newest" => {
                let about = json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                    "capabilities": { "tools": { "listChanged": true } },
                });
                json(to, "200 OK", "", &result(request, about)).await
            }
            "breaks on the probe" => send(to, "500 Internal Server Error", "", b"oops").await,
            "answers the probe" => {
                let error = json!({ "code": -32601, "message": "Method not found" });
                let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
                json(to, "400 Bad Request", "", &body).await
            }
            _ => send(to, "400 Bad Request", "Content-Type: text/plain\r\n", b"no such thing").await,
        },
        (_, "initialize") => {
            let server = json!({ "name": "bad", "version": "1" });
            let begun =
                json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": server });
            let session = format!("Mcp-Session-Id: s{times}\r\n");
            match way {
                "without session" => json(to, "200 OK", "", &result(request, begun)).await,
                _ => json(to, "200 OK", &session, &result(request, begun)).await,
            }
        }
        (_, "tools/list") => list(way, to, request).await,
        (_, "tools/call") => call(way, to, request, times).await,
        _ => send(to, "202 Accepted", "", b"").await,
    }
}

async fn list(way: &str, to: &mut TcpStream, request: &ReceivedRequest) -> io::Result<()> {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let echo = json!({ "name": "echo", "description": "Says it again.", "inputSchema": schema });
    match way {
        "mute in list" => forever().await,
        "never knows the session" => send(to, "404 Not Found", "", b"").await,
        "lying schema" => {
            let tools = json!({ "tools": [echo, { "name": "liar", "inputSchema": "yes" }, { "name": 5 }] });
            json(to, "200 OK", "", &result(request, tools)).await
        }
        _ => json(to, "200 OK", "", &result(request, json!({ "tools": [echo] }))).await,
    }
}

async fn call(way: &str, to: &mut TcpStream, request: &ReceivedRequest, times: usize) -> io::Result<()> {
    let fine = text(request, &request.body["params"]["arguments"].to_string());
    match way {
        "mute in call" => forever().await,
        "dies in call" => over(),
        "dies in stream" => {
            begin_events(to).await?;
            event(
                to,
                &json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} }),
            )
            .await?;
            over()
        }
        "breaks off" => {
            to.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{\"jsonrpc\"",
            )
            .await?;
            over()
        }
        "stream" => {
            begin_events(to).await?;
            event(to, &fine).await?;
            over()
        }
        "floods" => {
            begin_events(to).await?;
            for number in 0..5_000 {
                let params = json!({ "level": "info", "data": number });
                event(
                    to,
                    &json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }),
                )
                .await?;
            }
            event(to, &fine).await?;
            over()
        }
        "keeps alive for ever" => {
            begin_events(to).await?;
            loop {
                to.write_all(b": still here\n\n").await?;
                sleep(Duration::from_millis(20)).await;
            }
        }
        "event without end" => {
            begin_events(to).await?;
            to.write_all(b"data: ").await?;
            loop {
                to.write_all(&[b'x'; 1 << 16]).await?;
            }
        }
        "large event" => {
            begin_events(to).await?;
            event(to, &text(request, &"x".repeat(17 << 20))).await?;
            over()
        }
        "large body" => json(to, "200 OK", "", &text(request, &"x".repeat(17 << 20))).await,
        "second answer" => {
            begin_events(to).await?;
            event(to, &text(request, "first")).await?;
            event(to, &text(request, "second")).await?;
            over()
        }
        "other id" => {
            let mut other = fine;
            other["id"] = json!(4711);
            json(to, "200 OK", "", &other).await
        }
        "wrong json" => send(to, "200 OK", "Content-Type: application/json\r\n", b"{ not json").await,
        "no answer" => send(to, "200 OK", "", b"").await,
        "web page in call" => send(to, "200 OK", "Content-Type: text/html\r\n", b"<h1>Sign in</h1>").await,
        "forgets the session" if times == 1 => send(to, "404 Not Found", "", b"").await,
        "forgets it in its own way" if times == 1 => {
            let error = json!({ "code": -32000, "message": "Bad Request: No valid session ID provided" });
            let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
            json(to, "400 Bad Request", "", &body).await
        }
        "refuses" => {
            let error = json!({ "code": -32602, "message": "no such tool" });
            json(
                to,
                "400 Bad Request",
                "",
                &json!({ "jsonrpc": "2.0", "id": null, "error": error }),
            )
            .await
        }
        "forbids" => send(to, "403 Forbidden", "", b"not for you").await,
        "fails" => send(to, "500 Internal Server Error", "", b"out of memory").await,
        "wants a sign-in now" => send(to, "401 Unauthorized", "WWW-Authenticate: Bearer\r\n", b"").await,
        _ => json(to, "200 OK", "", &fine).await,
    }
}
