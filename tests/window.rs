//! The real window: typed into, watched, stopped, killed, reloaded.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::driver::Window;
use crate::support::{ponder, ponder_json};

/// More than 300 tokens of answer, and every part of it can be foretold.
const LONG: &str = "Count from 1 to 120";

fn counting(to: u32) -> String {
    (1..=to).map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

/// The stored messages of the only chat, as `ponder history export` sees them beside the running app.
fn stored(home: &Path) -> Vec<Value> {
    let chats = ponder_json(home, &["history", "--json"]);
    let id = chats[0]["chats"][0]["id"].as_str().expect("one chat").to_owned();
    let chat = ponder_json(home, &["history", "export", "--format", "json", &id]);
    chat[0]["messages"].as_array().expect("messages").clone()
}

fn text_of(message: &Value) -> String {
    message["parts"].as_array().expect("parts").iter().filter(|part| part["kind"] == "text").filter_map(|part| part["text"].as_str()).collect()
}

async fn wait_for_some_answer(window: &Window, characters: usize) -> String {
    window.wait_until("some of the answer is there", || async { window.answer().await.len() >= characters }).await;
    window.answer().await
}

async fn set_thinking(window: &Window, on: bool) {
    let switch = window.wait_for("thinking-switch").await;
    if (switch.attr("aria-checked").await.expect("an attribute").as_deref() == Some("true")) != on {
        switch.click().await.expect("it can be clicked");
    }
    assert_eq!(switch.attr("aria-checked").await.expect("an attribute").as_deref(), Some(if on { "true" } else { "false" }));
}

#[tokio::test]
async fn a_question_is_answered_below_a_folded_thought() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path()).await;
    window.wait_for("empty-state").await;
    window.picture("first-start").await;
    set_thinking(&window, true).await;
    window.ask("What is 347 + 589?").await;
    window.wait_for("thought-text").await;
    window.picture("thinking").await;
    window.wait_until_answer_is("complete").await;
    assert_eq!(window.answer().await, "347 + 589 = 936");
    let thought = window.wait_for("thought").await;
    assert_eq!(thought.attr("data-open").await.expect("an attribute").as_deref(), Some("false"), "a finished thought is folded");
    window.picture("answered").await;
    window.click("thought-toggle").await;
    assert!(window.newest("thought-text").await.contains("carry 1"));

    // Switching off is remembered by this chat, and the same question is answered without a thought.
    set_thinking(&window, false).await;
    window.ask("What is 2 + 3?").await;
    window.wait_until("two answers", || async { window.all("message-assistant").await.len() == 2 }).await;
    window.wait_until_answer_is("complete").await;
    assert_eq!(window.answer().await, "2 + 3 = 5");
    assert_eq!(window.all("thought").await.len(), 1);
    window.close().await;

    let window = Window::open(home.path()).await;
    window.click("chat-item").await;
    window.wait_until("the chat is back", || async { window.all("message-assistant").await.len() == 2 }).await;
    let switch = window.wait_for("thinking-switch").await;
    assert_eq!(switch.attr("aria-checked").await.expect("an attribute").as_deref(), Some("false"));
    window.close().await;
}

#[tokio::test]
async fn tokens_arrive_one_after_another_and_stop_keeps_what_came() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path()).await;
    set_thinking(&window, false).await;
    window.ask(LONG).await;
    let mut seen = vec![wait_for_some_answer(&window, 3).await];
    while seen.len() < 12 {
        let now = window.answer().await;
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    window.picture("streaming").await;
    window.click("stop").await;
    window.wait_until_answer_is("stopped").await;
    let kept = window.answer().await;
    let whole = counting(120);
    for text in &seen {
        assert!(whole.starts_with(text.trim_end()), "{text:?} is not how the answer begins");
        assert!(kept.starts_with(text.trim_end()), "{text:?} was shown and is gone from {kept:?}");
    }
    assert!(kept.len() < whole.len(), "it was stopped in the middle");
    assert_eq!(text_of(&stored(home.path())[1]).trim(), kept);

    // A new answer is a sibling, and both can be seen.
    window.click("regenerate").await;
    window.wait_until("the new answer is there", || async { window.answer_attribute("data-state").await == "complete" }).await;
    assert_eq!(window.answer().await, whole);
    assert!(window.wait_for("pager").await.text().await.expect("text").contains("2 / 2"));
    window.close().await;
}

#[tokio::test]
async fn a_reload_in_the_middle_loses_and_repeats_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path()).await;
    set_thinking(&window, false).await;
    window.ask(LONG).await;
    let before = wait_for_some_answer(&window, 60).await;
    window.reload().await;
    // The page finds the running answer by itself.
    let after = wait_for_some_answer(&window, before.len()).await;
    let still_running = window.answer_attribute("data-state").await;
    let whole = counting(120);
    assert!(whole.starts_with(after.trim_end()), "a gap or a repeat: {after:?}");
    assert_eq!(still_running, "streaming", "the reload came too late to prove anything");
    while window.answer_attribute("data-state").await == "streaming" {
        let now = window.answer().await;
        assert!(whole.starts_with(now.trim_end()), "a gap or a repeat: {now:?}");
    }
    assert_eq!(window.answer().await, whole);
    window.close().await;
}

#[tokio::test]
async fn a_killed_app_finds_its_answer_again() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path()).await;
    set_thinking(&window, false).await;
    window.ask(LONG).await;
    wait_for_some_answer(&window, 60).await;
    let seen = window.answer().await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    window.kill().await;

    let window = Window::open(home.path()).await;
    window.click("chat-item").await;
    window.wait_until_answer_is("interrupted").await;
    let kept = window.answer().await;
    assert!(kept.starts_with(seen.trim_end()), "{seen:?} was on the screen 250 ms before the kill and only {kept:?} is left");
    assert!(counting(120).starts_with(kept.trim_end()));
    window.picture("interrupted").await;
    window.close().await;
}

#[tokio::test]
async fn the_command_line_runs_beside_a_busy_window() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path()).await;
    set_thinking(&window, false).await;
    window.ask(LONG).await;
    wait_for_some_answer(&window, 20).await;
    let events = ponder_json(home.path(), &["ask", "--json", "--temperature", "0", "What is 2 + 3?"]);
    assert_eq!(events.last().expect("events")["stop"], "stop");
    let listed = ponder(home.path(), &["history"]);
    assert!(listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains(LONG));
    window.wait_until("the answer ends", || async { window.answer_attribute("data-state").await != "streaming" }).await;
    assert_eq!(window.answer_attribute("data-state").await, "complete");
    assert_eq!(window.answer().await, counting(120));
    window.close().await;
}

#[tokio::test]
async fn a_deleted_chat_comes_back_and_a_renamed_one_keeps_its_name() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path()).await;
    window.ask("Hello").await;
    window.wait_until_answer_is("complete").await;
    let item = window.wait_for("chat-item").await;
    assert!(item.text().await.expect("text").contains("Hello"));
    window.run("document.querySelector('[data-testid=delete-chat]').click()", vec![]).await;
    window.wait_until("the chat is gone", || async { window.all("chat-item").await.is_empty() }).await;
    window.picture("undo").await;
    window.click("toast-undo").await;
    window.wait_until("the chat is back", || async { window.all("chat-item").await.len() == 1 }).await;
    window.close().await;
}

#[tokio::test]
async fn a_model_that_vanished_is_an_error_with_words_and_nothing_is_lost() {
    let home = tempfile::tempdir().expect("a folder");
    let created = ponder_json_chat(home.path());
    let window = Window::open(home.path()).await;
    window.click("chat-item").await;
    window.wait_for("error-box").await;
    assert_eq!(window.answer_attribute("data-state").await, "failed");
    assert!(window.newest("message-user").await.contains(&created));
    window.picture("error").await;
    window.close().await;
}

/// Asks a folder that is no model through the terminal chat, which leaves a failed answer in the history.
fn ponder_json_chat(home: &Path) -> String {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let model = home.join("broken-model");
    std::fs::create_dir_all(&model).expect("a folder");
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::write(model.join(name), "{ this is not JSON").expect("written");
    }
    let mut chat = Command::new(crate::support::ponder_program())
        .args(["chat", "--model", model.to_str().expect("text")])
        .env("PONDER_HOME", home)
        .env("HF_HOME", home.join("hub"))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    chat.stdin.take().expect("a pipe").write_all(b"Is anybody there?\n").expect("it reads");
    chat.wait().expect("it ends");
    "Is anybody there?".into()
}

#[tokio::test]
async fn the_models_window_lists_what_is_here() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path()).await;
    window.click("open-models").await;
    window.switch_to("Models").await;
    let row = window.wait_for("model-row").await;
    assert!(row.text().await.expect("text").contains("Pebble"));
    window.picture("models").await;
    window.close().await;
}

#[tokio::test]
async fn the_dark_window_is_drawn_dark() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_with(home.path(), &[("GTK_THEME", "Adwaita:dark")]).await;
    window.ask("Make a table of the squares from 1 to 4").await;
    window.wait_until_answer_is("complete").await;
    let paper = window.run("return getComputedStyle(document.body).backgroundColor", vec![]).await;
    assert_eq!(paper.as_str(), Some("rgb(28, 28, 30)"));
    window.picture("dark").await;
    window.close().await;
}

/// The time from the start of the process to the first painted frame, and the memory of all its processes: printed for the
/// report, not judged, because the machine may be busy.
#[tokio::test]
async fn the_first_paint_is_reported() {
    let home = tempfile::tempdir().expect("a folder");
    let started = Instant::now();
    let window = Window::open(home.path()).await;
    let opened = started.elapsed();
    let mut paint = None;
    window
        .wait_until("the first paint is in the log", || {
            paint = paint.or_else(|| first_paint(home.path()));
            async move { paint.is_some() }
        })
        .await;
    let paint = paint.expect("waited for");
    println!("report: first paint {paint} ms after the start, session ready after {} ms, {} MB of memory", opened.as_millis(), memory_mb(window.process()));
    assert!(paint > 0);
    window.close().await;
}

fn first_paint(home: &Path) -> Option<u64> {
    let log = std::fs::read_dir(home.join("logs")).ok()?.flatten().next()?;
    let text = std::fs::read_to_string(log.path()).ok()?;
    let line = text.lines().find(|line| line.contains("first paint"))?;
    line.split("milliseconds=").nth(1)?.split_whitespace().next()?.parse().ok()
}

/// Proportional memory of a process and those it started, in MB.
fn memory_mb(process: u32) -> u64 {
    let mut family = vec![process];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        family.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        next += 1;
    }
    let kilobytes = |pid: &u32| {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        rollup.lines().find(|line| line.starts_with("Pss:"))?.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    family.iter().filter_map(kilobytes).sum::<u64>() / 1024
}
