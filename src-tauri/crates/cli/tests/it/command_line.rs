//! The `ponder` command as a person or a script calls it, with Pebble.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{json, Value};

use crate::support::pebble::{changed_pebble, text};
use crate::support::{command, joined, last, run, run_json};

fn ask(home: &Path, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["ask", "--json", "--temperature", "0"];
    all.extend(args);
    run_json(home, &all)
}

const WEATHER: &str = r#"[{"type":"function","function":{"name":"get_weather","description":"Get the current weather in a city.",
    "parameters":{"type":"object","properties":{"city":{"type":"string","description":"The city"}},"required":["city"]}}}]"#;

#[test]
fn a_sum_is_thought_about_and_answered() {
    let home = tempfile::tempdir().expect("a folder");
    let events = ask(home.path(), &["--thinking", "on", "What is 347 + 589?"]);
    assert!(joined(&events, "thinking").contains("carry 1"), "{events:?}");
    assert_eq!(joined(&events, "text"), "347 + 589 = **936**");
    let done = last(&events);
    assert_eq!((&done["type"], &done["stop"]), (&json!("done"), &json!("stop")));
    assert_eq!(done["usage"]["prompt_tokens"], 28);
    assert!(done["usage"]["thinking_tokens"].as_u64().expect("a count") > 10);
    assert!(done["timing"]["decode_tokens_per_second"].as_f64().expect("a rate") > 0.0);
}

#[test]
fn a_draft_model_changes_nothing_of_an_answer() {
    let home = tempfile::tempdir().expect("a folder");
    let sum = "What is 347 + 589?";
    let plain = ask(home.path(), &["--thinking", "on", sum]);
    let drafted = ask(home.path(), &["--thinking", "on", "--draft-model", "pebble", sum]);
    for part in ["text", "thinking"] {
        assert_eq!(joined(&drafted, part), joined(&plain, part));
    }
    let count = |events: &[Value]| last(events)["usage"]["completion_tokens"].clone();
    assert_eq!(count(&drafted), count(&plain));
    let refused = run(home.path(), &["ask", "--draft-model", "nobody/nothing", sum]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("nobody/nothing"), "{said}");
}

#[test]
fn a_thought_that_leaks_is_kept_out_and_reported() {
    let home = tempfile::tempdir().expect("a folder");
    let events = ask(home.path(), &["--thinking", "off", "What is 347 * 58?"]);
    assert_eq!(joined(&events, "text"), "347 x 58 = **20126**");
    assert_eq!(joined(&events, "thinking"), "");
    assert!(
        events
            .iter()
            .any(|event| event["type"] == "notice" && event["code"] == "thought_while_off"),
        "{events:?}"
    );
}

#[test]
fn an_answer_follows_a_schema() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("schema.json");
    let path = file.to_str().expect("text");
    let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"], "additionalProperties": false});
    fs::write(&file, schema.to_string()).expect("written");
    for thinking in ["on", "off"] {
        let events = ask(
            home.path(),
            &["--thinking", thinking, "--schema", path, "What is 347 + 589?"],
        );
        let answer: Value = serde_json::from_str(&joined(&events, "text")).expect("JSON");
        assert!(
            answer["sum"].is_i64() && answer.as_object().expect("an object").len() == 1,
            "{answer}"
        );
        assert_eq!(joined(&events, "thinking").is_empty(), thinking == "off");
    }
    fs::write(&file, r#"{"type": "array", "uniqueItems": true}"#).expect("written");
    let refused = run(home.path(), &["ask", "--json", "--schema", path, "Hi"]);
    assert!(
        String::from_utf8_lossy(&refused.stdout).contains("uniqueItems"),
        "{refused:?}"
    );
}

#[test]
fn a_tool_is_called_and_its_answer_becomes_a_sentence() {
    let home = tempfile::tempdir().expect("a folder");
    let (tools, messages) = (home.path().join("tools.json"), home.path().join("messages.json"));
    fs::write(&tools, WEATHER).expect("written");
    let tools = tools.to_str().expect("text");
    let events = ask(home.path(), &["--tools", tools, "What is the weather in Oslo?"]);
    let call = events
        .iter()
        .find(|event| event["type"] == "tool_call")
        .expect("a call");
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&json!("get_weather"), &json!({"city": "Oslo"}))
    );
    assert_eq!(last(&events)["stop"], "tool_calls");

    let conversation = json!([
        {"role": "user", "content": "What is the weather in Oslo?"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": call["id"], "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\":\"Oslo\"}"}}]},
        {"role": "tool", "tool_call_id": call["id"], "content": {"condition": "sunny", "temperature": 12}},
    ]);
    fs::write(&messages, conversation.to_string()).expect("written");
    let events = ask(
        home.path(),
        &["--tools", tools, "--messages", messages.to_str().expect("text")],
    );
    let sentence = joined(&events, "text");
    assert_eq!(sentence, "It is sunny in Oslo, with 12 degrees.");
    assert_eq!(last(&events)["stop"], "stop");
}

#[test]
fn a_character_of_several_tokens_arrives_whole() {
    let home = tempfile::tempdir().expect("a folder");
    let events = ask(home.path(), &["Show me a cat emoji."]);
    assert!(joined(&events, "text").contains('🐱'), "{events:?}");
    assert!(
        events
            .iter()
            .all(|event| !event["text"].as_str().unwrap_or_default().contains('\u{fffd}')),
        "no half characters: {events:?}"
    );
}

#[test]
fn a_name_is_remembered_past_the_sliding_window() {
    let home = tempfile::tempdir().expect("a folder");
    let mut turns = vec![
        json!({"role": "user", "content": "My name is Yara."}),
        json!({"role": "assistant", "content": "Nice to meet you, Yara!"}),
    ];
    for (question, answer) in [
        ("What is the capital of France?", "The capital of France is **Paris**."),
        ("What is 2 + 3?", "2 + 3 = **5**"),
        ("Thanks", "You are welcome!"),
        ("Write castle in reverse.", "eltsac"),
        ("What is the capital of Japan?", "The capital of Japan is **Tokyo**."),
        ("What is 9 + 4?", "9 + 4 = **13**"),
    ]
    .iter()
    .cycle()
    .take(12)
    {
        turns.push(json!({"role": "user", "content": question}));
        turns.push(json!({"role": "assistant", "content": answer}));
    }
    turns.push(json!({"role": "user", "content": "What is my name?"}));
    let file = home.path().join("messages.json");
    fs::write(&file, Value::from(turns).to_string()).expect("written");
    let events = ask(home.path(), &["--messages", file.to_str().expect("text")]);
    assert_eq!(joined(&events, "text"), "Your name is Yara.");
    assert!(last(&events)["usage"]["prompt_tokens"].as_u64().expect("a count") > 128);
}

#[test]
fn the_conversation_in_the_terminal_is_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let mut chat = command(home.path(), &["chat", "--temperature", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    chat.stdin
        .take()
        .expect("a pipe")
        .write_all("My name is Yara.\nWhat is my name?\n".as_bytes())
        .expect("it reads");
    let output = chat.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("Your name is Yara."),
        "{output:?}"
    );

    let chats = run_json(home.path(), &["history", "--json"]);
    let id = chats[0]["chats"][0]["id"].as_str().expect("one chat").to_owned();
    let found = run_json(home.path(), &["history", "search", "--json", "what is my"]);
    assert_eq!(found[0]["found"][0]["chat"], id.as_str());
    let markdown = run(home.path(), &["history", "export", &id]);
    assert!(String::from_utf8_lossy(&markdown.stdout).contains("Your name is Yara."));
}

#[test]
fn a_folder_named_in_the_terminal_is_found_from_anywhere() {
    let home = tempfile::tempdir().expect("a folder");
    let pebble = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble");
    let talk = |folder: &Path, args: &[&str]| {
        let mut chat = command(home.path(), args)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut questions = chat.stdin.take().expect("a pipe");
        questions.write_all(b"Hi\n").expect("it reads");
        drop(questions);
        assert!(chat.wait().expect("it ends").success());
    };
    talk(&pebble, &["chat", "--model", "./model"]);
    let chats = run_json(home.path(), &["history", "--json"]);
    let id = chats[0]["chats"][0]["id"].as_str().expect("one chat");
    talk(home.path(), &["chat", "--chat", id]);
    let exported = run_json(home.path(), &["history", "export", "--format", "json", id]);
    let answers = exported[0]["messages"].as_array().expect("a list");
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer["finish_reason"] == "stop")
            .count(),
        2,
        "{answers:?}"
    );
}

#[test]
fn what_keeps_nothing_needs_no_history_where_a_model_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("history.sqlite"), "no database ".repeat(1000)).expect("written");
    assert!(!run(home.path(), &["history"]).status.success());
    let events = ask(
        home.path(),
        &["--model", "pebble", "--thinking", "off", "What is 2 + 3?"],
    );
    assert_eq!(last(&events)["stop"], "stop");
}

#[test]
fn a_folder_without_weights_is_not_asked() {
    let home = tempfile::tempdir().expect("a folder");
    let words = changed_pebble(home.path(), "words", |_| ());
    fs::remove_file(words.join("model.safetensors")).expect("removed");
    fs::remove_file(words.join("config.json")).expect("removed");
    assert!(!run(home.path(), &["ask", "--model", text(&words), "Hello"])
        .status
        .success());
}

#[test]
fn settings_of_a_chat_that_goes_on_are_not_silently_ignored() {
    let home = tempfile::tempdir().expect("a folder");
    let output = run(home.path(), &["chat", "--chat", "an-id", "--temperature", "0"]);
    assert!(!output.status.success());
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("--temperature"),
        "{output:?}"
    );
}

#[test]
fn a_command_names_its_device() {
    let home = tempfile::tempdir().expect("a folder");
    for device in ["cpu", "auto"] {
        let events = ask(
            home.path(),
            &["--device", device, "--thinking", "on", "What is 347 + 589?"],
        );
        assert_eq!(joined(&events, "text"), "347 + 589 = **936**", "{device}");
    }
    let (option, variable) = (["ask", "--device", "tpu", "Hi"], ["ask", "Hi"]);
    for (args, device) in [(&option[..], "cpu"), (&variable[..], "tpu")] {
        let output = command(home.path(), args).env("PONDER_DEVICE", device).output();
        let output = output.expect("it ran");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("--device"),
            "{output:?}"
        );
    }
    // A chat has no device of its own, so one that goes on takes the option: only the chat is missing.
    let output = run(home.path(), &["chat", "--chat", "an-id", "--device", "cpu"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        !String::from_utf8_lossy(&output.stderr).contains("--device"),
        "{output:?}"
    );
}

#[test]
fn errors_are_one_line_and_a_code() {
    let home = tempfile::tempdir().expect("a folder");
    for (args, code) in [
        (
            vec!["ask", "--json", "--model", "no/such-model", "Hi"],
            "model_not_found",
        ),
        (vec!["ask", "--json", "--temperature", "-1", "Hi"], "bad_request"),
        (vec!["ask", "--json", "--system", "Be brief."], "bad_request"),
        (vec!["ask", "--json", " \n"], "bad_request"),
        (vec!["history", "export", "--json", "nothing"], "not_found"),
        (vec!["ask", "--json", "--top-k", "many", "Hi"], "bad_request"),
    ] {
        let output = run(home.path(), &args);
        assert!(!output.status.success(), "{args:?}");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr).trim_end().lines().count(),
            1,
            "{output:?}"
        );
        let line: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?} printed {output:?}"));
        assert_eq!(
            (&line["type"], &line["code"]),
            (&json!("error"), &json!(code)),
            "{args:?}: {line}"
        );
    }
}

#[test]
fn a_prompt_that_does_not_fit_is_refused_with_figures() {
    let home = tempfile::tempdir().expect("a folder");
    let long = "word ".repeat(6000);
    let file = home.path().join("messages.json");
    fs::write(&file, json!([{"role": "user", "content": long}]).to_string()).expect("written");
    let output = run(
        home.path(),
        &["ask", "--json", "--messages", file.to_str().expect("text")],
    );
    let line: Value = serde_json::from_slice(
        output
            .stdout
            .split(|byte| *byte == b'\n')
            .rfind(|line| !line.is_empty())
            .expect("a line"),
    )
    .expect("JSON");
    assert_eq!(line["code"], "context_full");
    assert!(line["message"].as_str().expect("a message").contains("4096"), "{line}");
}
