//! A server of tools that misbehaves in the way its first argument names, for tests.

use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};

fn main() {
    let way = std::env::args().nth(1).unwrap_or_default();
    if way == "grandchild" {
        // In a group of its own, and nobody waits for it.
        let marker = std::env::args().nth(2).unwrap_or_default();
        let mut sleep = Command::new("sh");
        sleep.args(["-c", &format!("sleep 1000; : {marker}")]).process_group(0);
        let _ = sleep.spawn();
    }
    if way == "floods" {
        for line in 0..50_000 {
            println!("text that is no JSON, line {line}");
            eprintln!("a complaint, line {line}");
        }
    }
    let mut lists = 0;
    let mut relay = Relay::default();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let id = message["id"].clone();
        match message["method"].as_str() {
            Some("initialize") => begin(&way, &id),
            Some("tools/list") => {
                lists += 1;
                list(&way, &id, lists);
            }
            Some("tools/call") if way.starts_with("relays") => relay.begin(&way, id, &message["params"]),
            Some("tools/call") => call(&way, &id, &message["params"]),
            None => relay.hear(message),
            Some("notifications/cancelled") if way == "after cancel" => {
                let id = message["params"]["requestId"].clone();
                progress(&json!(0), 99);
                text(&id, "too late");
            }
            _ => {}
        }
    }
    if way == "stays" {
        loop {
            thread::sleep(Duration::from_secs(1));
        }
    }
}

/// Requests to the client that the arguments of a call name. The result of the call is what the client said to them.
#[derive(Default)]
struct Relay {
    call: Value,
    requests: VecDeque<Value>,
    replies: Vec<Value>,
    expected: usize,
    at_once: bool,
}

impl Relay {
    fn begin(&mut self, way: &str, call: Value, params: &Value) {
        // Those of an answer that wanted something of the person first.
        if let Some(responses) = params.get("inputResponses") {
            return text(&call, &json!([params["requestState"], responses]).to_string());
        }
        let requests = params["arguments"]["requests"].as_array().cloned().unwrap_or_default();
        if way == "relays in answers" {
            let named = requests.into_iter().enumerate();
            let named: serde_json::Map<String, Value> = named.map(|(n, request)| (n.to_string(), request)).collect();
            return answer(
                &call,
                &json!({ "resultType": "input_required", "inputRequests": named, "requestState": "state" }),
            );
        }
        if way == "relays in errors" {
            let pages: Vec<&Value> = requests.iter().map(|request| &request["params"]).collect();
            let error = json!({ "code": -32042, "message": "pages first", "data": { "elicitations": pages } });
            return send(&json!({ "jsonrpc": "2.0", "id": call, "error": error }));
        }
        let expected = requests.len();
        *self = Self {
            call,
            requests: requests.into(),
            replies: Vec::new(),
            expected,
            at_once: way == "relays at once",
        };
        if expected == 0 {
            return text(&self.call, &params["arguments"].to_string());
        }
        if way == "relays after" {
            text(&self.call, "over");
            thread::sleep(Duration::from_millis(500));
        }
        self.ask();
        if way == "relays and ends" {
            thread::sleep(Duration::from_millis(500));
            text(&self.call, "without you");
        }
    }

    fn ask(&mut self) {
        while let Some(request) = self.requests.pop_front() {
            let mut request = request;
            request["jsonrpc"] = json!("2.0");
            request["id"] = json!(format!("relayed-{}", self.requests.len()));
            send(&request);
            if !self.at_once {
                return;
            }
        }
    }

    fn hear(&mut self, message: Value) {
        let reply = message.get("result").or_else(|| message.get("error")).cloned();
        self.replies.extend(reply);
        if let Some(path) = std::env::var_os("BAD_CALLS") {
            let calls = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let _ = calls.and_then(|mut calls| writeln!(calls, "heard {message}"));
        }
        match self.replies.len() == self.expected {
            true => text(&self.call, &json!(self.replies).to_string()),
            false => self.ask(),
        }
    }
}

fn send(message: &Value) {
    let mut output = std::io::stdout().lock();
    let _ = writeln!(output, "{message}").and_then(|()| output.flush());
}

fn answer(id: &Value, result: &Value) {
    send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn text(id: &Value, text: &str) {
    answer(id, &json!({ "content": [{ "type": "text", "text": text }] }));
}

fn progress(token: &Value, done: u32) {
    let params = json!({ "progressToken": token, "progress": done, "total": 10, "message": "working" });
    send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
}

fn begin(way: &str, id: &Value) {
    match way {
        "mute" => return,
        "dies" => {
            eprintln!("bad_server: API_KEY is not set");
            std::process::exit(3);
        }
        "late" => thread::sleep(Duration::from_millis(1500)),
        "wrong json" => return println!("{{ this is not JSON"),
        "refuses" => {
            let error = json!({ "code": -32603, "message": "no license" });
            return send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
        _ => {}
    }
    let server = json!({ "name": "bad", "version": "1" });
    let begun = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": server });
    answer(id, &begun);
    if way == "second answer" {
        answer(id, &begun);
    }
}

fn list(way: &str, id: &Value, times: u32) {
    // A test may write another one meanwhile.
    let described = std::env::var("BAD_DESCRIPTION").map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let described = described.unwrap_or_else(|_| "Says it again.".to_owned());
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let echo = json!({ "name": "echo", "description": described, "inputSchema": schema });
    match way {
        "mute in list" => {}
        "lying schema" => answer(
            id,
            &json!({ "tools": [echo, { "name": "liar", "inputSchema": "yes" }, { "name": 5 }, { "name": "bare" }] }),
        ),
        "changing" => {
            send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
            answer(
                id,
                &json!({ "tools": [{ "name": format!("tool{times}"), "inputSchema": {} }] }),
            );
        }
        "pages" => answer(id, &json!({ "tools": [echo], "nextCursor": format!("{times}") })),
        _ => answer(id, &json!({ "tools": [echo] })),
    }
}

fn call(way: &str, id: &Value, params: &Value) {
    if let Some(path) = std::env::var_os("BAD_CALLS") {
        let calls = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = calls.and_then(|mut calls| writeln!(calls, "{}", params["arguments"]));
    }
    match way {
        "dies in call" => std::process::exit(4),
        "mute in call" | "after cancel" => {}
        "late" => {
            for done in 0..4 {
                progress(&params["_meta"]["progressToken"], done);
                thread::sleep(Duration::from_millis(400));
            }
            text(id, "late");
        }
        "asks" => {
            let asked = json!({ "messages": [], "maxTokens": 1_000_000 });
            for number in 0..5_000 {
                let method = ["sampling/createMessage", "roots/list", "elicitation/create", "no/such"][number % 4];
                send(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": asked }));
                progress(&params["_meta"]["progressToken"], 1);
            }
            text(id, &params["arguments"].to_string());
        }
        "long line" => text(id, &"x".repeat(17 << 20)),
        "second answer" => {
            text(id, "first");
            text(id, "second");
        }
        "lying schema" => answer(
            id,
            &json!({ "content": [{ "type": "hologram" }, { "type": "text", "text": "still" }] }),
        ),
        _ => text(id, &params["arguments"].to_string()),
    }
}
