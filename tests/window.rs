//! The real window: asked, its chats renamed and deleted, its pictures of answers and failures, its first paint.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{json, Value};

use crate::support::driver::Window;
use crate::support::{log, ponder, ponder_json, ponder_program};

/// The stored messages of the only chat, from `ponder history export` next to the running app.
pub fn stored(home: &Path) -> Vec<Value> {
    let chats = ponder_json(home, &["history", "--json"]);
    let id = chats[0]["chats"][0]["id"].as_str().expect("one chat").to_owned();
    let chat = ponder_json(home, &["history", "export", "--format", "json", &id]);
    chat[0]["messages"].as_array().expect("messages").clone()
}

pub fn text_of(message: &Value) -> String {
    message["parts"]
        .as_array()
        .expect("parts")
        .iter()
        .filter(|part| part["kind"] == "text")
        .filter_map(|part| part["text"].as_str())
        .collect()
}

pub fn set_thinking(window: &Window, on: bool) {
    window.wait_for("thinking-switch");
    let wanted = if on { "true" } else { "false" };
    if window.attribute("thinking-switch", "aria-checked") != wanted {
        window.click("thinking-switch");
    }
    window.wait_until("the switch is where it should be", || {
        window.attribute("thinking-switch", "aria-checked") == wanted
    });
}

#[test]
fn a_question_is_answered_below_a_folded_thought() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    window.wait_for("empty-state");
    window.image("first-start");
    set_thinking(&window, true);
    window.ask("What is 347 + 589?");
    window.wait_for("thought-text");
    window.image("thinking");
    window.wait_until_answer_is("complete");
    assert_eq!(window.answer(), "347 + 589 = 936");
    assert_eq!(
        window.attribute("thought", "data-open"),
        "false",
        "a finished thought is folded"
    );
    window.image("answered");
    window.click("thought-toggle");
    assert!(window.newest("thought-text").contains("carry 1"));

    // The chat stores the switch, and the same question is answered without a thought.
    set_thinking(&window, false);
    window.ask("What is 2 + 3?");
    window.wait_until("two answers", || window.count("message-assistant") == 2);
    window.wait_until_answer_is("complete");
    assert_eq!(window.answer(), "2 + 3 = 5");
    assert_eq!(window.count("thought"), 1);
    window.close();

    let window = Window::open(home.path());
    window.click("chat-item");
    window.wait_until("the chat is back", || window.count("message-assistant") == 2);
    assert_eq!(window.attribute("thinking-switch", "aria-checked"), "false");
    window.close();
}

#[test]
fn a_deleted_chat_comes_back_and_a_renamed_one_keeps_its_name() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    window.ask("Hello");
    window.wait_until_answer_is("complete");
    window.wait_until("the chat has its title", || {
        window.newest("chat-item").contains("Hello")
    });
    window.click("chat-menu");
    window.click("delete-chat");
    window.wait_until("the chat is gone", || window.count("chat-item") == 0);
    window.image("undo");
    window.click("toast-undo");
    window.wait_until("the chat is back", || window.count("chat-item") == 1);

    window.click("chat-menu");
    window.click("rename-chat");
    window.type_into("rename-field", "A short greeting\u{e007}");
    window.wait_until("the new name is shown", || {
        window.newest("chat-item").contains("A short greeting")
    });
    window.close();

    let window = Window::open(home.path());
    window.wait_until("the name was kept", || {
        window.newest("chat-item").contains("A short greeting")
    });
    window.close();
}

#[test]
fn a_long_title_leaves_send_inside_the_window() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    window.ask("Hello");
    window.wait_until_answer_is("complete");
    window.click("chat-menu");
    window.click("rename-chat");
    window.type_into("rename-field", &format!("{}\u{e007}", "long".repeat(50)));
    window.wait_until("the new name is shown", || {
        window.newest("chat-item").contains("longlong")
    });
    let inside = "const box = document.querySelector('[data-testid=send]').getBoundingClientRect(); return box.right <= innerWidth";
    assert_eq!(window.run(inside, json!([])), true);
    window.close();
}

#[test]
fn a_model_that_vanished_is_an_error_with_words_and_nothing_is_lost() {
    let home = tempfile::tempdir().expect("a folder");
    let created = ponder_json_chat(home.path());
    let window = Window::open(home.path());
    window.click("chat-item");
    window.wait_for("error-box");
    assert_eq!(window.answer_state(), "failed");
    assert!(window.newest("message-user").contains(&created));
    window.image("error");
    window.close();
}

/// Sends a question to a model without its tensors in the terminal chat, which leaves a failed answer in the history.
pub fn ponder_json_chat(home: &Path) -> String {
    let model = home.join("broken-model");
    std::fs::create_dir_all(&model).expect("a folder");
    let pebble = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src-tauri/pebble/model");
    for name in [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
    ] {
        std::fs::copy(pebble.join(name), model.join(name)).expect("copied");
    }
    std::fs::write(model.join("model.safetensors"), b"\x08\0\0\0\0\0\0\0{}      ").expect("written");
    let mut chat = Command::new(ponder_program())
        .args(["chat", "--model", model.to_str().expect("text")])
        .env("PONDER_HOME", home)
        .env("HF_HOME", home.join("hub"))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    chat.stdin
        .take()
        .expect("a pipe")
        .write_all(b"Is anybody there?\n")
        .expect("it reads");
    chat.wait().expect("it ends");
    "Is anybody there?".into()
}

#[test]
fn a_rich_answer_is_drawn_with_tables_code_and_formulas() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, true);
    for (number, question) in [
        "Make a table of the squares from 1 to 4",
        "Write FizzBuzz in Rust",
        "What is the quadratic formula?",
    ]
    .iter()
    .enumerate()
    {
        window.ask(question);
        window.wait_until("the answer is there", || {
            window.count("message-assistant") == number as u64 + 1 && window.answer_state() == "complete"
        });
        if number == 1 {
            window.image("chat");
        }
    }
    let drawn = |css: &str| {
        window
            .run("return document.querySelectorAll(arguments[0]).length", json!([css]))
            .as_u64()
            .expect("a number")
    };
    assert_eq!(drawn("[data-testid=answer-text] table tr"), 5);
    window.wait_until("the code has colours", || {
        drawn("[data-testid=answer-text] pre code span[style], [data-testid=answer-text] pre code span[class]") > 10
    });
    window.wait_until("the formula is set", || drawn("[data-testid=answer-text] .katex") >= 1);
    window.image("rich");
    window.close();
}

#[test]
fn a_history_that_cannot_be_read_is_explained_in_a_window() {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("history.sqlite");
    assert!(ponder(home.path(), &["history"]).status.success());
    // The format of a later version, at its place in the header.
    let mut bytes = std::fs::read(&file).expect("a history");
    bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
    std::fs::write(&file, &bytes).expect("written");
    let window = Window::start(home.path(), &[]);
    window.wait_for("failure");
    assert!(
        window.newest("failure").contains("history.sqlite"),
        "{}",
        window.newest("failure")
    );
    let reason = window.run(
        "return document.querySelector('[data-testid=failure] p').textContent",
        json!([]),
    );
    let reason = reason.as_str().expect("text");
    assert!(
        reason.starts_with(char::is_uppercase) && reason.ends_with('.'),
        "{reason}"
    );
    window.image("failed-start");
    window.close();
    assert_eq!(std::fs::read(&file).expect("it is still there"), bytes);
}

#[test]
fn the_models_window_lists_what_is_here() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    window.click("open-models");
    window.switch_to("Models");
    window.click("tab-local");
    window.wait_for("model-row");
    assert!(window.newest("model-row").contains("Pebble"));
    window.image("models");
    window.close();
}

#[test]
fn the_dark_window_is_drawn_dark() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_with(home.path(), &[("GTK_THEME", "Adwaita:dark")]);
    window.ask("Make a table of the squares from 1 to 4");
    window.wait_until_answer_is("complete");
    let paper = window.run("return getComputedStyle(document.body).backgroundColor", json!([]));
    assert_eq!(paper.as_str(), Some("rgb(28, 28, 30)"));
    window.image("dark");
    window.close();
}

/// The time from the start of the process to the first painted frame, and the memory of all its processes: reported
/// only, because the machine may be busy.
#[test]
fn the_first_paint_is_reported() {
    let home = tempfile::tempdir().expect("a folder");
    let started = Instant::now();
    let window = Window::open(home.path());
    let opened = started.elapsed();
    let mut paint = None;
    window.wait_until("the first paint is in the log", || {
        paint = paint.or_else(|| first_paint(home.path()));
        paint.is_some()
    });
    let paint = paint.expect("waited for");
    println!(
        "report: first paint {paint} ms after the start, session ready after {} ms, {} MB of memory",
        opened.as_millis(),
        memory_mb(window.process())
    );
    assert!(paint > 0);
    window.close();
}

fn first_paint(home: &Path) -> Option<u64> {
    let text = log(home);
    let line = text.lines().find(|line| line.contains("first paint"))?;
    line.split("milliseconds=")
        .nth(1)?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Proportional memory of a process and its descendants, in MB.
fn memory_mb(process: u32) -> u64 {
    let mut family = vec![process];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        family.extend(
            children
                .split_whitespace()
                .filter_map(|child| child.parse::<u32>().ok()),
        );
        next += 1;
    }
    let kilobytes = |pid: &u32| {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        rollup
            .lines()
            .find(|line| line.starts_with("Pss:"))?
            .split_whitespace()
            .nth(1)?
            .parse::<u64>()
            .ok()
    };
    family.iter().filter_map(kilobytes).sum::<u64>() / 1024
}
