//! A model's prompt, channels and stop tokens, with Pebble.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{json, Value};

use crate::support::pebble::{image, pebble, pebble_with_vision, text};
use crate::support::{command, run, run_json, text as printed};

#[test]
fn a_template_renders_by_itself() {
    let home = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("text").to_owned()
    };
    let template = file(
        "t.jinja",
        "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ tools | length if tools else 'none' }}{% if add_generation_prompt %}>{% endif %}{{ enable_thinking }}",
    );
    let context = file(
        "c.json",
        r#"{"bos_token": "<s>", "messages": [{"role": "robot", "content": 1.0}], "enable_thinking": false}"#,
    );
    let tools = file("tools.json", r#"[{"type": "function", "function": {"name": "f"}}]"#);
    let render = |more: &[&str]| {
        let arguments: Vec<&str> = ["render", "--template", &template]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        let output = run(home.path(), &arguments);
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(render(&[]), "user:Hello!;none>");
    assert_eq!(render(&["--vars", &context]), "<s>robot:1.0;none>False");
    assert_eq!(
        render(&["--vars", &context, "--tools", &tools, "--no-generation-prompt"]),
        "<s>robot:1.0;1False"
    );
    assert_eq!(
        render(&["--context", &context, "--thinking", "on"]),
        "<s>robot:1.0;none>True"
    );
}

#[test]
fn responses_are_the_same_however_many_there_are_at_once() {
    let home = tempfile::tempdir().expect("a folder");
    let answers = |at_once: &str| {
        let arguments = [
            "answers",
            "--model",
            "pebble",
            "--prompts",
            "12",
            "--generate",
            "8",
            "--at-once",
            at_once,
        ];
        run_json(home.path(), &arguments).remove(0)
    };
    let together = answers("5");
    assert_eq!(together, answers("1"));
    let answers = together["answers"].as_array().expect("a list");
    let ways: Vec<&str> = answers.iter().filter_map(|answer| answer["way"].as_str()).collect();
    assert_eq!(
        ways[..7],
        ["plain", "repeating", "kv 4", "kv 8", "schema", "drawn", "cancelled"]
    );
    assert!(answers
        .iter()
        .all(|answer| answer["tokens"].as_array().is_some_and(|tokens| !tokens.is_empty())));
}

#[test]
fn stops_are_the_union_of_all_sources() {
    let home = tempfile::tempdir().expect("a folder");
    let stops = run_json(home.path(), &["stops", "--model", "pebble"]);
    let mut ids: Vec<u64> = stops[0]["stops"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|stop| stop["id"].as_u64())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 50, 106]);
    assert!(stops[0]["stops"]
        .as_array()
        .expect("a list")
        .iter()
        .all(|stop| stop["sources"].as_array().is_some_and(|from| !from.is_empty())));
}

#[test]
fn a_named_model_needs_no_history() {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("history.sqlite"), "no database ".repeat(1000)).expect("written");
    assert_eq!(run_json(home.path(), &["stops", "--model", "pebble"]).len(), 1);
}

#[test]
fn a_models_words_are_shown_without_its_weights() {
    let home = tempfile::tempdir().expect("a folder");
    let pebble = pebble();
    for name in [
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "generation_config.json",
    ] {
        if pebble.join(name).exists() {
            fs::copy(pebble.join(name), home.path().join(name)).expect("copied");
        }
    }
    let folder = home.path().to_str().expect("text");
    let rendered = |model: &str| {
        let output = run(home.path(), &["render", "--model", model]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    assert_eq!(rendered(folder), rendered("pebble"));
    assert!(!run(home.path(), &["logits", "--model", folder, "--tokens", "1"])
        .status
        .success());
}

#[test]
fn render_tells_how_many_tokens_an_image_takes() {
    let home = tempfile::tempdir().expect("a folder");
    let (model, image) = (pebble_with_vision(home.path()), image(home.path()));
    let messages = home.path().join("messages.json");
    fs::write(
        &messages,
        json!([{"role": "user", "content": "What is <|image|>?"}]).to_string(),
    )
    .expect("written");
    let options = [
        "render",
        "--model",
        text(&model),
        "--image",
        text(&image),
        "--messages",
        text(&messages),
    ];
    let rendered = printed(&run(home.path(), &options));
    let (before, after) = rendered.split_once("⟨image ").expect("an image");
    let (tokens, after) = after.split_once('⟩').expect("its end");
    assert!(tokens.parse::<u32>().expect("a number") > 0, "{rendered}");
    // Typed markers are text.
    assert!(
        before.ends_with("user\n") && after.contains("What is <|image|>?"),
        "{rendered}"
    );

    let mut piped = command(
        home.path(),
        &[
            "render",
            "--model",
            text(&model),
            "--image",
            "-",
            "--messages",
            text(&messages),
        ],
    );
    let output = piped
        .stdin(Stdio::from(fs::File::open(&image).expect("opened")))
        .output()
        .expect("it starts");
    assert_eq!(printed(&output), rendered);
}

#[test]
fn what_a_model_wrote_is_split_by_format_and_by_model() {
    let home = tempfile::tempdir().expect("a folder");
    let split = |args: &[&str], written: &str| -> Value {
        let mut child = command(home.path(), &[&["split"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(written.as_bytes()).expect("it reads");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    };
    let harmony = "<|channel|>analysis<|message|>T<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>";
    let read =
        json!({"thinking": "T", "text": "", "tool_calls": [{"name": "f", "arguments": {"a": 1}}], "notices": []});
    for chunk in ["1", "7", "1000"] {
        assert_eq!(split(&["--format", "harmony", "--chunk", chunk], harmony), read);
    }
    let opened = split(&["--model", "pebble", "--opened"], "T<channel|>1 <");
    assert_eq!((&opened["thinking"], &opened["text"]), (&json!("T"), &json!("1 <")));
    let off = split(
        &["--model", "pebble", "--thinking", "off"],
        "<|channel>thought\nT<channel|>A",
    );
    assert_eq!((&off["thinking"], &off["text"]), (&json!(""), &json!("A")));
    assert_eq!(off["notices"][0]["code"], "thought_while_off");
    assert_eq!(split(&["--format", "none"], "x")["code"], "failed");
}
