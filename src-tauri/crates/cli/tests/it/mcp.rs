//! `ponder mcp serve` as a process, driven by lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{json, Value};
use tempfile::TempDir;

use crate::support::{command, run};

/// A server and its pipes; it ends with this.
struct Serving {
    process: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    _home: TempDir,
}

impl Serving {
    fn start(args: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut process = command(home.path(), &[&["mcp", "serve"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: process.stdin.take(),
            output: process.stdout.take().map(BufReader::new),
            process,
            _home: home,
        }
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
    }

    fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let id: Value = id.into();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
    }

    fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        self.ask(id, "tools/call", json!({"name": tool, "arguments": arguments}));
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// The response to the request that was just made.
    fn outcome(&mut self, method: &str, params: Value) -> Value {
        self.ask(1, method, params);
        self.next()["result"].take()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn said(response: &Value) -> (&str, bool) {
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str();
    (text.unwrap_or_default(), result["isError"] == true)
}

#[test]
fn a_client_begins_lists_and_asks() {
    let mut serving = Serving::start(&["-m", "pebble"]);
    for version in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let begun = serving.outcome("initialize", json!({"protocolVersion": version}));
        assert_eq!(begun["protocolVersion"], version);
        assert_eq!(begun["serverInfo"]["name"], "ponder");
    }
    let begun = serving.outcome("initialize", json!({"protocolVersion": "1999-01-01"}));
    assert_eq!(begun["protocolVersion"], "2025-11-25");
    serving.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(serving.outcome("ping", Value::Null), json!({}));
    let listed = serving.outcome("tools/list", json!({}));
    let names: Vec<&str> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, ["ask", "list_models"]);
    assert_eq!(listed["tools"][0]["inputSchema"]["required"], json!(["question"]));

    serving.call("a", "list_models", json!({}));
    assert!(said(&serving.next()).0.starts_with("pebble: "));
    let question = json!({"question": "What is 347 + 589?", "model": "pebble"});
    serving.call("b", "ask", question);
    let answer = serving.next();
    assert_eq!(answer["id"], "b");
    assert!(said(&answer).0.contains("936") && !said(&answer).1, "{answer}");
}

#[test]
fn what_is_wrong_is_refused_and_the_server_goes_on() {
    let mut serving = Serving::start(&[]);
    for (line, id, code) in [
        ("{", Value::Null, -32700),
        ("7", Value::Null, -32600),
        ("[]", Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null, -32600),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"resources/list"}"#,
            json!(5),
            -32601,
        ),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#, json!(5), -32602),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"shell"}}"#,
            json!(5),
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"search_chats","arguments":{"query":"a"}}}"#,
            json!(5),
            -32602,
        ),
        (r#"{"jsonrpc":"2.0","id":5,"method":"initialize"}"#, json!(5), -32602),
    ] {
        serving.send(line);
        let refused = serving.next();
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&id, &json!(code)),
            "{line}: {refused}"
        );
    }
    // Notifications and responses get no response.
    for line in [
        "",
        "  ",
        r#"{"jsonrpc":"2.0","method":"no/such"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        serving.send(line);
    }
    for (arguments, word) in [
        (json!({}), "question"),
        (json!({"question": 7}), "string"),
        (json!({"question": " "}), "empty"),
        (json!({"question": "Hi", "prompt": "Hi"}), "prompt"),
        (json!({"question": "Hi", "model": "no/such-model"}), "no/such-model"),
        (
            json!({"question": "Hi", "model": "endpoint:lab/large"}),
            "endpoint:lab/large",
        ),
        (json!({"question": "Hi", "model": "/etc"}), "/etc"),
    ] {
        serving.call(9, "ask", arguments);
        let refused = serving.next();
        let (text, is_error) = said(&refused);
        assert!(is_error && text.contains(word), "{refused}");
    }
    serving.send(&format!("\"{}\"", "x".repeat(17 << 20)));
    assert_eq!(serving.next()["error"]["code"], -32600);
    // A list of messages, as the version 2025-03-26 has them.
    serving.send(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"ping"},{"jsonrpc":"2.0","id":2,"method":"no/such"},3]"#);
    let list = serving.next();
    let ids: Vec<&Value> = list.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2), &Value::Null]);
    assert_eq!(serving.outcome("ping", Value::Null), json!({}));
}

#[test]
fn requests_run_beside_each_other_and_are_canceled() {
    let mut serving = Serving::start(&["-m", "pebble"]);
    let count = json!({"question": "Count from 1 to 40."});
    serving.call("long", "ask", count.clone());
    serving
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"long","reason":"late"}}"#);
    serving.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unknown"}}"#);
    serving.call("slow", "ask", count);
    serving.ask("quick", "ping", Value::Null);
    assert_eq!(serving.next()["id"], "quick");
    let answer = serving.next();
    assert_eq!(answer["id"], "slow", "the one that was canceled has no response");
    assert!(said(&answer).0.contains("40"), "{answer}");
    // The end of the input ends the server.
    drop(serving.input.take());
    assert!(serving.process.wait().unwrap().success());
}

#[test]
fn a_server_ends_when_nobody_reads() {
    let mut serving = Serving::start(&["-m", "pebble"]);
    assert_eq!(serving.outcome("ping", Value::Null), json!({}));
    // The input stays open.
    drop(serving.output.take());
    assert!(serving.process.wait().unwrap().success());
}

#[test]
fn ponder_is_a_server_of_its_own_tools() {
    let home = tempfile::tempdir().unwrap();
    let place = format!("PONDER_HOME={}", home.path().display());
    let add = [
        "tools",
        "add",
        "local",
        "--env",
        &place,
        "--",
        crate::PROGRAM,
        "mcp",
        "serve",
    ];
    assert!(run(home.path(), &add).status.success());
    assert!(run(home.path(), &["tools", "enable", "--yes", "local"])
        .status
        .success());
    let listed = run(home.path(), &["tools", "list", "--start"]);
    let listed = String::from_utf8_lossy(&listed.stdout);
    assert!(listed.contains("list_models  Lists the language models"), "{listed}");
}
