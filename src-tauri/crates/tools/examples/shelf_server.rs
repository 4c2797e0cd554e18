//! A server with resources, prompts and pictures, some of them odd, for tests. Its first argument names what it lacks or
//! does wrong.

use std::io::{BufRead, Write};

use serde_json::{json, Value};

/// A PNG of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let (id, params) = (message["id"].clone(), &message["params"]);
        let Some(method) = message["method"].as_str() else {
            continue;
        };
        match method {
            "initialize" => {
                let capabilities = match way.as_str() {
                    "bare" => json!({ "tools": {} }),
                    _ => json!({ "tools": {}, "resources": {}, "prompts": {} }),
                };
                let server = json!({ "name": "shelf", "version": "1" });
                let begun =
                    json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server });
                answer(&id, &begun);
            }
            "tools/list" => {
                let picture = json!({ "name": "picture", "inputSchema": { "type": "object" } });
                answer(&id, &json!({ "tools": [picture] }));
            }
            "tools/call" => answer(&id, &picture()),
            _ if way == "mute" && message.get("id").is_some() => {}
            "resources/list" | "prompts/list" if way == "refuses" => {
                let error = json!({ "code": -32603, "message": "the shelf is locked \u{202e}" });
                send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            "resources/list" => answer(&id, &resources(params["cursor"].as_str())),
            "resources/templates/list" if way == "no templates" => unknown(&id),
            "resources/templates/list" => {
                let template = json!({ "uriTemplate": "memo://{day}", "name": "A day", "mimeType": "text/plain" });
                answer(
                    &id,
                    &json!({ "resourceTemplates": [template, { "name": "no address" }] }),
                );
            }
            "resources/read" => read(&id, params["uri"].as_str().unwrap_or_default()),
            "prompts/list" => {
                let review =
                    json!({ "name": "review", "title": "Review", "arguments": [{ "name": "file", "required": true }] });
                answer(&id, &json!({ "prompts": [review, { "title": "nameless" }, 7] }));
            }
            "prompts/get" if params["name"] == "review" => {
                let text = format!(
                    "Review {} \u{200b}please.\r\nThanks.",
                    params["arguments"]["file"].as_str().unwrap_or("?")
                );
                let content = json!({ "type": "text", "text": text });
                answer(&id, &json!({ "messages": [{ "role": "user", "content": content }] }));
            }
            _ if message.get("id").is_some() => unknown(&id),
            _ => {}
        }
    }
}

fn resources(cursor: Option<&str>) -> Value {
    match cursor {
        None => json!({ "resources": [
            { "uri": "memo://tea", "name": "Tea", "mimeType": "text/markdown", "size": 12 }, { "name": "no address" },
        ], "nextCursor": "2" }),
        // The same page for ever.
        Some(_) => json!({ "resources": [
            { "uri": "memo://pixel", "name": "../../pixel\u{202e}gnp", "mimeType": "image/png" },
            { "uri": "memo://page", "name": "Page", "mimeType": "text/html" },
        ], "nextCursor": "2" }),
    }
}

fn read(id: &Value, uri: &str) {
    let content = match uri {
        "memo://tea" => json!({ "uri": uri, "mimeType": "text/markdown", "text": "# Tea\n\nGreen." }),
        "memo://pixel" => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        "memo://page" => {
            let page = "<h1>Hello</h1><img src=\"http://127.0.0.1:9/x.png\"><script>alert(1)</script>";
            json!({ "uri": uri, "mimeType": "text/html", "text": page })
        }
        "memo://monday" => json!({ "uri": uri, "text": "Rain." }),
        "memo://broken" => json!({ "uri": uri, "mimeType": "image/png", "blob": "bm8gaW1hZ2U=" }),
        "memo://empty" => return answer(id, &json!({ "contents": [] })),
        _ => return unknown(id),
    };
    answer(id, &json!({ "contents": [content] }));
}

fn picture() -> Value {
    json!({ "content": [
        { "type": "text", "text": "A pixel." },
        { "type": "image", "data": PNG, "mimeType": "image/png" },
        { "type": "resource_link", "uri": "http://127.0.0.1:9/secret", "name": "page" },
    ] })
}

fn unknown(id: &Value) {
    let error = json!({ "code": -32002, "message": "there is no such thing" });
    send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
}

fn answer(id: &Value, result: &Value) {
    send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn send(message: &Value) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{message}").and_then(|()| output.flush());
}
