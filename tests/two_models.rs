//! Two models of which only one fits into memory, in the real window: the second answer names the model it waits for,
//! and can be canceled.

use std::path::Path;

use serde_json::{json, Value};

use crate::server_window::copy_pebble;
use crate::support::driver::{Window, SLOW};

/// Memory for one Pebble with its whole context, and not for two, in bytes.
const ROOM_FOR_ONE: &str = "200000000";

/// Starts another chat with this model.
fn new_chat(window: &Window, model: &str) {
    window.click("new-chat");
    window.click("model-picker");
    let choose = "const option = [...document.querySelectorAll('[role=option]')].find((option) => option.querySelector('.label').textContent === arguments[0]);
        if (option) option.click(); return Boolean(option)";
    window.wait_until("the model is offered", || {
        window.run(choose, json!([model])) == Value::Bool(true)
    });
}

/// True if the sidebar marks a chat as running.
fn running(window: &Window) -> bool {
    window.run(
        "return document.querySelector('[data-testid=chat-item] [aria-label=\"Response in progress\"]') !== null",
        json!([]),
    ) == Value::Bool(true)
}

/// Asks Pebble for a long answer and, while it is being written, the model in this folder.
fn ask_two_models(window: &Window, folder: &Path) {
    window.type_into("composer", "\u{e009},");
    window.switch_to("Settings");
    window.click("tab-models");
    window.wait_for("shared-folder");
    window.click("add-folder");
    window.type_into("folder-path", &format!("{}\u{e007}", folder.display()));
    window.wait_for("own-folder");
    window.switch_to("Ponder");
    new_chat(window, "Pebble");
    window.ask("Count from 1 to 400");
    window.wait_until("it is being written", || !window.answer().is_empty());
    new_chat(window, "twin");
    window.ask("What is 2 + 3?");
}

#[test]
fn an_answer_that_waits_for_another_model_says_so() {
    for (theme, image) in [
        ("Adwaita", "waits-for-a-model"),
        ("Adwaita:dark", "waits-for-a-model-dark"),
    ] {
        let home = tempfile::tempdir().expect("a folder");
        let own = home.path().join("my-models");
        copy_pebble(&own.join("twin"));
        let window = Window::open_with(
            home.path(),
            &[
                &SLOW[..],
                &[("PONDER_MEMORY_LIMIT", ROOM_FOR_ONE), ("GTK_THEME", theme)],
            ]
            .concat(),
        );
        ask_two_models(&window, &own);
        let said = "Waiting for Pebble. Both models don’t fit in memory at once.";
        window.wait_until("it says for whom it waits", || window.newest("answer-progress") == said);
        window.image(image);
        window.click("stop-waiting");
        window.wait_until_answer_is("stopped");
        window.close();
    }
}

#[test]
fn two_models_that_fit_answer_at_the_same_time() {
    let home = tempfile::tempdir().expect("a folder");
    let own = home.path().join("my-models");
    copy_pebble(&own.join("twin"));
    let window = Window::open_slow(home.path());
    ask_two_models(&window, &own);
    window.wait_until_answer_is("complete");
    assert!(window.answer().contains('5'));
    assert!(running(&window), "the first answer goes on meanwhile");
    window.close();
}
