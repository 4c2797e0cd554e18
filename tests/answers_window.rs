//! Answers while they are written, in the real window: watched, stopped, reloaded, killed, beside another chat and
//! other processes.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::driver::{Window, SLOW};
use crate::support::{ponder, ponder_json, ponder_program};
use crate::window::{set_thinking, stored, text_of};

/// More than 300 tokens of answer, all of them predictable.
const LONG: &str = "Count from 1 to 120";

fn counting(to: u32) -> String {
    (1..=to).map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

fn wait_for_some_answer(window: &Window, characters: usize) -> String {
    window.wait_until("some of the answer is there", || window.answer().len() >= characters);
    window.answer()
}

#[test]
fn tokens_arrive_one_after_another_and_stop_keeps_what_came() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    set_thinking(&window, false);
    window.ask(LONG);
    let mut seen = vec![wait_for_some_answer(&window, 3)];
    while seen.len() < 12 {
        let now = window.answer();
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    window.image("streaming");
    window.click("stop");
    window.wait_until_answer_is("stopped");
    let kept = window.answer();
    let whole = counting(120);
    for text in &seen {
        assert!(
            whole.starts_with(text.trim_end()),
            "{text:?} is not how the answer begins"
        );
        assert!(
            kept.starts_with(text.trim_end()),
            "{text:?} was shown and is gone from {kept:?}"
        );
    }
    assert!(kept.len() < whole.len(), "it was stopped in the middle");
    assert_eq!(text_of(&stored(home.path())[1]).trim(), kept);

    // A new answer is a sibling, and both can be shown.
    window.click("regenerate");
    window.wait_until("the new answer is there", || window.answer_state() == "complete");
    assert_eq!(window.answer(), whole);
    window.wait_for("pager");
    assert!(window.newest("pager").contains("2 / 2"));
    window.close();
}

#[test]
fn a_reload_in_the_middle_loses_and_repeats_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    set_thinking(&window, false);
    window.ask(LONG);
    let before = wait_for_some_answer(&window, 60);
    window.reload();
    // The page finds the running answer by itself.
    let after = wait_for_some_answer(&window, before.len());
    let still_running = window.answer_state();
    let whole = counting(120);
    assert!(whole.starts_with(after.trim_end()), "a gap or a repeat: {after:?}");
    assert_eq!(still_running, "streaming", "the reload came too late to prove anything");
    while window.answer_state() == "streaming" {
        let now = window.answer();
        assert!(whole.starts_with(now.trim_end()), "a gap or a repeat: {now:?}");
    }
    assert_eq!(window.answer(), whole);
    window.close();
}

#[test]
fn a_killed_app_finds_its_answer_again() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    set_thinking(&window, false);
    window.ask(LONG);
    wait_for_some_answer(&window, 60);
    let seen = window.answer();
    std::thread::sleep(Duration::from_millis(250));
    window.kill();

    let window = Window::open_slow(home.path());
    window.click("chat-item");
    window.wait_until_answer_is("interrupted");
    let kept = window.answer();
    assert!(
        kept.starts_with(seen.trim_end()),
        "{seen:?} was on the screen 250 ms before the kill and only {kept:?} is left"
    );
    assert!(counting(120).starts_with(kept.trim_end()));
    window.image("interrupted");
    window.close();
}

#[test]
fn the_command_line_runs_beside_a_busy_window() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    set_thinking(&window, false);
    window.ask(LONG);
    wait_for_some_answer(&window, 20);
    let events = ponder_json(home.path(), &["ask", "--json", "--temperature", "0", "What is 2 + 3?"]);
    assert_eq!(events.last().expect("events")["stop"], "stop");
    let listed = ponder(home.path(), &["history"]);
    assert!(listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains(LONG));
    window.wait_until("the answer ends", || window.answer_state() != "streaming");
    assert_eq!(window.answer_state(), "complete");
    assert_eq!(window.answer(), counting(120));
    window.close();
}

#[test]
fn the_open_chat_shows_live_what_another_process_writes_into_it() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    set_thinking(&window, false);
    window.ask("Hello");
    window.wait_until_answer_is("complete");
    let chats = ponder_json(home.path(), &["history", "--json"]);
    let id = chats[0]["chats"][0]["id"].as_str().expect("one chat");

    let mut other = Command::new(ponder_program())
        .args(["chat", "--chat", id])
        .env("PONDER_HOME", home.path())
        .env("HF_HOME", home.path().join("hub"))
        .envs(SLOW)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    writeln!(other.stdin.take().expect("a pipe"), "{LONG}").expect("it reads");
    window.wait_until("the question is shown", || window.newest("message-user") == LONG);
    let (mut lengths, mut stoppable) = (BTreeSet::new(), false);
    window.wait_until("its answer ends", || {
        let streams = window.answer_state() == "streaming";
        if streams {
            lengths.insert(window.answer().len());
            stoppable |= window.count("stop") == 1;
        }
        !streams
    });
    assert!(lengths.len() > 3, "it was not seen growing: {lengths:?}");
    assert!(stoppable, "the window offers to stop it");
    assert_eq!(
        (window.answer_state(), window.answer()),
        ("complete".into(), counting(120))
    );
    assert!(other.wait().expect("it ends").success());
    window.image("another-process");

    window.ask("What is 2 + 3?");
    window.wait_until("the window asks on", || {
        window.count("message-user") == 3 && window.answer_state() == "complete"
    });
    window.close();
}

/// The stored last answers of all chats, in the order of their creation.
fn last_answers(home: &Path) -> Vec<Value> {
    let listed = ponder_json(home, &["history", "--json"]);
    let mut chats = listed[0]["chats"].as_array().expect("chats").clone();
    chats.sort_by_key(|chat| chat["created_at"].as_i64().expect("a time"));
    let ids = chats.iter();
    ids.map(|chat| {
        let id = chat["id"].as_str().expect("an id");
        let exported = ponder_json(home, &["history", "export", "--format", "json", id]);
        exported[0]["messages"]
            .as_array()
            .and_then(|all| all.last())
            .expect("an answer")
            .clone()
    })
    .collect()
}

#[test]
fn two_chats_answer_at_the_same_time() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    set_thinking(&window, false);
    window.ask(LONG);
    wait_for_some_answer(&window, 3);
    window.click("new-chat");
    set_thinking(&window, false);
    window.ask("Count from 1 to 100");
    wait_for_some_answer(&window, 3);
    let states: Vec<_> = last_answers(home.path())
        .iter()
        .map(|answer| answer["state"].clone())
        .collect();
    assert_eq!(states, ["streaming", "streaming"], "neither waits for the other");
    window.image("two-chats");
    window.wait_until_answer_is("complete");
    assert_eq!(window.answer(), counting(100));
    window.wait_until("the other one ends too", || {
        last_answers(home.path())[0]["state"] == "complete"
    });
    assert_eq!(text_of(&last_answers(home.path())[0]), counting(120));
    window.close();
}
