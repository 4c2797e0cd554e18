//! `ponder serve` with Pebble, asked by programs.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

#[cfg(target_os = "linux")]
use crate::support::command;
use crate::support::serving::{import_embedder, listening, scripts, Serving};
use crate::support::{lines, run};

fn question(text: &str) -> Value {
    json!({"model": "pebble", "temperature": 0, "messages": [{"role": "user", "content": text}],
        "chat_template_kwargs": {"enable_thinking": false}})
}

#[test]
fn pebble_answers_over_http_and_goes_quietly() {
    let mut serving = Serving::start(&[]);
    let (status, models) = serving.ask("/v1/models", &Value::Null);
    assert!(status == 200 && models.contains("\"pebble\""), "{models}");
    let (status, body) = serving.ask("/v1/chat/completions", &question("What is 2 + 3?"));
    let answer: Value = serde_json::from_str(&body).unwrap();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(status == 200 && text.contains('5'), "{body}");
    let first = &answer["usage"];
    assert!(first["prompt_tokens"].as_u64().unwrap() > 0 && first["completion_tokens"].as_u64().unwrap() > 0);
    // The same again: all but the last token of the prompt is known.
    let (_, body) = serving.ask("/v1/chat/completions", &question("What is 2 + 3?"));
    let again: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(again["choices"][0]["message"]["content"], text);
    let known = again["usage"]["prompt_tokens_details"]["cached_tokens"]
        .as_u64()
        .unwrap();
    assert!(known + 8 >= first["prompt_tokens"].as_u64().unwrap(), "{body}");

    let (status, body) = serving.ask("/v1/chat/completions", &json!({"model": "other", "messages": []}));
    assert!(status == 404 && body.contains("pebble"), "{body}");
    let (status, body) = serving.ask("/v1/chat/completions", &question(&"one two three ".repeat(4000)));
    assert!(status == 400 && body.contains("context_length_exceeded"), "{body}");

    let ended = Command::new("kill")
        .arg(serving.process.id().to_string())
        .status()
        .unwrap();
    assert!(ended.success());
    assert!(serving.process.wait().unwrap().success());
}

#[test]
fn a_key_is_made_unless_one_is_given() {
    let status = |listening: &Value, key: Option<&str>| {
        let address = listening["address"].as_str().unwrap();
        let key = key.map_or_else(String::new, |key| format!("authorization: Bearer {key}\r\n"));
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /v1/models HTTP/1.1\r\nhost: {address}\r\n{key}connection: close\r\n\r\n"
        )
        .unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    let home = tempfile::tempdir().unwrap();
    let (mut process, first) = listening(home.path(), &[]);
    let made = first["key"].as_str().unwrap();
    assert_eq!(
        (status(&first, None), status(&first, Some(made))),
        ("401".into(), "200".into())
    );
    // A start makes its own; a given key is not printed.
    let (mut other, second) = listening(home.path(), &[]);
    assert!(second["key"].is_string() && second["key"] != first["key"]);
    let (mut given, third) = listening(home.path(), &["--no-key", "--api-key", "secret"]);
    assert_eq!(third["key"], Value::Null);
    assert_eq!(
        (status(&third, None), status(&third, Some("secret"))),
        ("401".into(), "200".into())
    );
    for process in [&mut process, &mut other, &mut given] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[test]
fn what_keeps_it_from_serving_is_said_in_one_line() {
    let serving = Serving::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let port = serving.port.to_string();
    // Linux tells who has it.
    let holder = match cfg!(target_os = "linux") {
        true => format!("is taken by ponder (process {})", serving.process.id()),
        false => "is taken by another program".to_owned(),
    };
    for (args, word) in [
        (vec!["serve", "--port", &port, "--json"], holder.as_str()),
        (
            vec!["serve", "--no-key", "--host", "0.0.0.0", "--json"],
            "a key is needed",
        ),
        (vec!["serve", "--host", "example.test", "--json"], "127.0.0.1"),
        (
            vec!["serve", "--port", "0", "--model", "none/here", "--json"],
            "none/here",
        ),
    ] {
        let output = run(home.path(), &args);
        assert!(!output.status.success(), "{args:?}");
        let printed = lines(&output);
        let message = printed.last().unwrap()["message"].as_str().unwrap();
        assert!(message.contains(word), "{args:?}: {message}");
    }
}

#[test]
fn the_official_sdks_talk_with_pebble() {
    let Some(python) = std::env::var_os("PONDER_CLIENTS_PYTHON") else {
        println!("skipped: PONDER_CLIENTS_PYTHON names no Python with the SDKs; `./dev test` provides one");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let embedder = import_embedder(home.path());
    let serving = Serving::at(home, &[]);
    let mut asking = Command::new(python);
    asking
        .arg(scripts().join("sdks.py"))
        .arg(serving.url())
        .arg("pebble")
        .args(embedder);
    let output = asking.output().unwrap();
    let cells: Vec<Value> = lines(&output);
    let wrong: Vec<&Value> = cells.iter().filter(|cell| cell["ok"] != true).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let all = if embedder.is_some() { 86 } else { 85 };
    assert_eq!(cells.len(), all, "{}", String::from_utf8_lossy(&output.stderr));
}

/// The JSON lines of a command, and the most memory of its own that it took, in bytes.
#[cfg(target_os = "linux")]
fn run_and_weigh(home: &Path, args: &[&str]) -> (Vec<Value>, u64) {
    let mut process = command(home, args).stdout(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", process.id());
    let mut peak = 0;
    while process.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        // Pages of the program's own file are those of every process that runs it.
        let own = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = own.and_then(|own| own.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = kilobytes.map_or(peak, |kilobytes| peak.max(kilobytes * 1024));
        thread::sleep(std::time::Duration::from_millis(2));
    }
    (lines(&process.wait_with_output().unwrap()), peak)
}

#[cfg(target_os = "linux")]
#[test]
fn ask_answers_with_the_weights_of_a_ponder_that_runs() {
    let serving = Serving::start(&[]);
    let home = serving.home.path();
    let ask = [
        "ask",
        "--json",
        "--model",
        "pebble",
        "--thinking",
        "off",
        "--temperature",
        "0",
        "What is 2 + 3?",
    ];
    let alone = tempfile::tempdir().unwrap();
    let (own, own_bytes) = run_and_weigh(alone.path(), &ask);
    let (_, _) = run_and_weigh(home, &ask);
    let (shared, shared_bytes) = run_and_weigh(home, &ask);
    let text = |lines: &[Value]| -> String { lines.iter().filter_map(|line| line["text"].as_str()).collect() };
    assert!(text(&own).contains('5') && text(&shared) == text(&own), "{shared:?}");
    let done = |lines: &[Value]| lines.last().unwrap().clone();
    assert_eq!(done(&shared)["type"], "done", "{shared:?}");
    assert_eq!(done(&shared)["tokens"], done(&own)["tokens"]);
    // It was loaded by the question before, in another process.
    assert!(done(&own)["timing"]["load_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(done(&shared)["timing"]["load_ms"], 0.0);
    assert!(done(&shared)["usage"]["cached_tokens"].as_u64().unwrap() > 0);
    println!("report: ponder ask takes {own_bytes} bytes with an engine of its own and {shared_bytes} with that of a running Ponder");
    assert!(shared_bytes * 4 < own_bytes, "{shared_bytes} {own_bytes}");
    // Unloaded, the next question loads it again.
    assert!(run(home, &["models", "unload", "pebble"]).status.success());
    assert!(
        done(&run_and_weigh(home, &ask).0)["timing"]["load_ms"]
            .as_f64()
            .unwrap()
            > 0.0
    );
}

#[test]
fn what_a_killed_server_left_keeps_nobody_from_answering() {
    let mut serving = Serving::start(&[]);
    serving.process.kill().unwrap();
    serving.process.wait().unwrap();
    assert!(serving.home.path().join("run/engine.sock").exists());
    let asked = run(
        serving.home.path(),
        &["ask", "--json", "--model", "pebble", "--max-tokens", "3", "Hello"],
    );
    assert_eq!(
        asked.status.code(),
        Some(3),
        "{}",
        String::from_utf8_lossy(&asked.stderr)
    );
}

#[test]
fn a_message_begins_with_the_tokens_of_its_prompt() {
    let serving = Serving::start(&[]);
    let question = json!({"model": "pebble", "max_tokens": 8, "stream": true, "messages": [{"role": "user", "content": "What is 2 + 3?"}]});
    // The second time the prompt is in the cache.
    for _ in 0..2 {
        let (status, body) = serving.ask("/v1/messages", &question);
        assert_eq!(status, 200, "{body}");
        let usage = |kind: &str| -> Value {
            let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
            let mut events = lines.map(|data| serde_json::from_str::<Value>(data).unwrap());
            let event = events.find(|event| event["type"] == kind).unwrap();
            if kind == "message_start" {
                event["message"]["usage"].clone()
            } else {
                event["usage"].clone()
            }
        };
        let (first, last) = (usage("message_start"), usage("message_delta"));
        let count = |usage: &Value, name: &str| usage[name].as_u64().unwrap();
        let whole = count(&last, "input_tokens") + count(&last, "cache_read_input_tokens");
        assert!(whole > 0);
        assert_eq!(count(&first, "input_tokens"), whole, "{body}");
    }
}

/// A call that the token limit cuts is no text, least of all with its markers, on any surface, streamed or not.
#[test]
fn a_call_that_is_cut_is_told_as_one() {
    let serving = Serving::start(&[]);
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let question = json!([{"role": "user", "content": "What is the weather in Paris? Use the tool."}]);
    let chat = json!({"type": "function", "function": {"name": "get_weather", "parameters": parameters}});
    let flat = json!({"type": "function", "name": "get_weather", "parameters": parameters});
    let anthropic = json!({"name": "get_weather", "input_schema": parameters});
    let off = json!({"enable_thinking": false});
    let mut cut = 0;
    for tokens in 1..14 {
        for stream in [false, true] {
            for (path, body, call, end) in [
                (
                    "/v1/chat/completions",
                    json!({"messages": question, "max_tokens": tokens, "tools": [chat], "tool_choice": "required", "chat_template_kwargs": off}),
                    "\"tool_calls\":[",
                    "\"length\"",
                ),
                (
                    "/v1/responses",
                    json!({"input": question, "max_output_tokens": tokens, "tools": [flat], "tool_choice": "required", "chat_template_kwargs": off}),
                    "\"function_call\"",
                    "\"incomplete\"",
                ),
                (
                    "/v1/messages",
                    json!({"messages": question, "max_tokens": tokens, "tools": [anthropic], "tool_choice": {"type": "any"}}),
                    "\"tool_use\"",
                    "\"max_tokens\"",
                ),
            ] {
                let mut body = body;
                (body["model"], body["temperature"], body["stream"]) = (json!("pebble"), json!(0), json!(stream));
                let (status, answer) = serving.ask(path, &body);
                assert_eq!(status, 200, "{answer}");
                assert!(
                    !answer.contains("tool_call>") && !answer.contains("call:"),
                    "{path} {tokens}: {answer}"
                );
                let is_cut = answer.contains(end) && answer.contains(call);
                cut += usize::from(is_cut);
                if is_cut && !stream && path != "/v1/messages" {
                    // The conversation goes on without it.
                    let answer: Value = serde_json::from_str(&answer).unwrap();
                    let next = json!({"role": "user", "content": "What is 2 + 3?"});
                    if path == "/v1/responses" {
                        (body["previous_response_id"], body["input"]) = (answer["id"].clone(), json!([next]));
                    } else {
                        body["messages"] = json!([question[0], answer["choices"][0]["message"], next]);
                    }
                    let (status, answer) = serving.ask(path, &body);
                    assert_eq!(status, 200, "{answer}");
                }
            }
        }
    }
    assert!(cut >= 12, "{cut}");
}

#[test]
fn pebble_leaves_memory_when_nobody_asks_it_and_comes_back_when_somebody_does() {
    let serving = Serving::start(&["--keep-alive", "1s"]);
    assert_eq!(serving.gauge("ponder_models_loaded"), 0);
    for round in 0..2 {
        let (status, body) = serving.ask("/v1/chat/completions", &question("What is 2 + 3?"));
        assert_eq!(status, 200, "{body}");
        assert_eq!(serving.gauge("ponder_models_loaded"), 1, "{round}");
        let begun = Instant::now();
        while serving.gauge("ponder_models_loaded") > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "it stays");
            thread::sleep(Duration::from_millis(50));
        }
        println!(
            "report: a model that is kept for 1 s leaves memory {} ms after its answer",
            begun.elapsed().as_millis()
        );
    }
    // A request may say otherwise.
    let mut longer = question("What is 2 + 3?");
    longer["keep_alive"] = json!("1h");
    assert_eq!(serving.ask("/v1/chat/completions", &longer).0, 200);
    thread::sleep(Duration::from_secs(3));
    assert_eq!(serving.gauge("ponder_models_loaded"), 1);
    let pebble = json!({"model": "pebble"});
    assert_eq!(
        serving.ask("/v1/models/unload", &pebble),
        (200, "{\"success\":true}".to_owned())
    );
    assert_eq!(serving.gauge("ponder_models_loaded"), 0);
}

/// After this long without a word an answer is lost.
const LOST: Duration = Duration::from_secs(120);

/// The part of a streamed answer that a client received.
#[derive(Debug, Default, PartialEq)]
struct Streamed {
    text: String,
    errors: Vec<String>,
    done: bool,
}

/// Streams the answer to a question and tells `begun` when its first text is there.
fn stream(port: u16, text: &str, begun: &mpsc::Sender<()>) -> Streamed {
    let mut body = question(text);
    body["stream"] = true.into();
    let body = body.to_string();
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    // Comments come every few seconds, so an answer that is silent for longer is lost.
    connection.set_read_timeout(Some(LOST)).unwrap();
    // Without chunks, the events are lines.
    let head =
        format!("POST /v1/chat/completions HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json");
    write!(connection, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut told = Streamed::default();
    for line in BufReader::new(connection).lines() {
        let line = match line {
            Ok(line) => line,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("nothing came: {told:?}")
            }
            // A connection that is reset has ended too.
            Err(_) => break,
        };
        // Before a stream has begun, an error is the body.
        let Some(data) = line
            .strip_prefix("data: ")
            .or_else(|| line.starts_with('{').then_some(&line))
        else {
            continue;
        };
        assert!(!told.done && told.errors.is_empty(), "{data} came after the end");
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            assert_eq!(data, "[DONE]");
            told.done = true;
            continue;
        };
        told.errors
            .extend(event["error"]["message"].as_str().map(str::to_owned));
        if let Some(piece) = event["choices"][0]["delta"]["content"]
            .as_str()
            .filter(|piece| !piece.is_empty())
        {
            told.text.push_str(piece);
            // Nobody may wait for it any more.
            let _ = begun.send(());
        }
    }
    told
}

#[test]
fn a_server_whose_engine_was_killed_says_so_once_and_answers_with_its_own() {
    const LONG: &str = "Count from 1 to 120";
    let mut first = Serving::start_slow();
    let second = first.beside_slow();
    let third = first.beside_slow();
    let (begun, wait) = mpsc::channel();
    let whole = stream(second.port, LONG, &begun);
    assert!(
        whole.done && whole.text.len() > 100 && whole.errors.is_empty(),
        "{whole:?}"
    );
    wait.try_iter().for_each(drop);

    // More answers than are made at once, by both that have no engine of their own and by the one that has.
    let ports = [first.port, second.port, second.port, third.port, third.port];
    let (told, cut) = thread::scope(|scope| {
        let asked: Vec<_> = ports
            .iter()
            .map(|port| {
                let begun = begun.clone();
                scope.spawn(move || stream(*port, LONG, &begun))
            })
            .collect();
        wait.recv_timeout(LOST).unwrap();
        // A question that comes after the kill would be answered whole, by an engine of its server's own.
        for (serving, questions) in [(&first, 1), (&second, 2), (&third, 2)] {
            while serving.gauge("ponder_requests_in_flight") < questions {
                thread::sleep(Duration::from_millis(5));
            }
        }
        // On Unix this is SIGKILL.
        first.process.kill().unwrap();
        let mut told: Vec<Streamed> = asked.into_iter().map(|asked| asked.join().unwrap()).collect();
        let cut = told.remove(0);
        (told, cut)
    });
    assert!(!cut.done && cut.errors.is_empty(), "{cut:?}");
    for told in &told {
        assert!(!told.done && whole.text.starts_with(&told.text), "{told:?}");
        assert!(
            matches!(&told.errors[..], [error] if error.contains("engine")),
            "{told:?}"
        );
    }
    // Asked again, all at once, each has an engine of its own, and answers once and as before.
    thread::scope(|scope| {
        let again: Vec<_> = ports[1..]
            .iter()
            .map(|port| {
                let begun = begun.clone();
                scope.spawn(move || stream(*port, LONG, &begun))
            })
            .collect();
        for told in again {
            assert_eq!(told.join().unwrap(), whole);
        }
    });
}
