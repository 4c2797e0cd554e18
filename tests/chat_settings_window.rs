//! The settings of a chat and of the app, in the real window with the real Pebble: each one takes effect.

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

use crate::settings_window::choose_in;
use crate::support::driver::Window;
use crate::window::{set_thinking, stored, text_of};

const STORY: &str = "Tell me a story.";

/// Replaces the text of a field and commits it.
fn set(window: &Window, field: &str, text: &str) {
    window.wait_for(field);
    unfold_around(window, field);
    let select = "const field = document.querySelector(`[data-testid=${arguments[0]}]`); field.focus(); field.select()";
    window.run(select, json!([field]));
    // Typing replaces the selection; without text, Delete removes it.
    let typed = if text.is_empty() { "\u{e017}" } else { text };
    window.type_into(field, &format!("{typed}\u{e007}"));
}

/// Unfolds what is folded around an element.
fn unfold_around(window: &Window, test_id: &str) {
    let script = "const folded = document.querySelector(`[data-testid=${arguments[0]}]`).closest('details');
        if (folded) folded.open = true";
    window.run(script, json!([test_id]));
}

fn open_sheet(window: &Window) {
    window.click("open-chat-settings");
    window.wait_for("setting-temperature");
}

fn close_sheet(window: &Window) {
    window.click("chat-settings-done");
    window.wait_until("the sheet is gone", || window.count("chat-settings") == 0);
}

/// Sends a question and waits for the end; returns the stored answer.
fn answer_to(window: &Window, home: &Path, question: &str) -> Value {
    let before = window.count("message-assistant");
    window.ask(question);
    window.wait_until("it is being answered", || window.count("message-assistant") > before);
    window.wait_until_answer_is("complete");
    stored(home).pop().expect("an answer")
}

/// Regenerates the last answer and waits for the end.
fn answer_again(window: &Window, home: &Path) -> Value {
    let before = window.attribute("message-assistant", "data-message-id");
    window.run(
        "[...document.querySelectorAll('[data-testid=regenerate]')].at(-1).click()",
        json!([]),
    );
    window.wait_until("another answer has ended", || {
        window.attribute("message-assistant", "data-message-id") != before && window.answer_state() == "complete"
    });
    stored(home).pop().expect("an answer")
}

#[test]
fn what_a_chat_is_set_to_holds_for_its_answers() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);

    // The empty fields show Pebble's own defaults.
    open_sheet(&window);
    assert_eq!(window.attribute("setting-temperature", "placeholder"), "0.2");
    assert_eq!(window.attribute("setting-top_k", "placeholder"), "64");
    set(&window, "setting-max_tokens", "0");
    window.wait_until("0 is refused", || {
        window.newest("setting-max_tokens-refused") == "Enter 1 or more."
    });
    set(&window, "setting-top_p", "1.5");
    window.wait_until("1.5 is refused", || {
        window.newest("setting-top_p-refused") == "Enter a number from 0 to 1."
    });
    window.image("chat-settings-refused");
    set(&window, "setting-top_p", "");
    set(&window, "setting-max_tokens", "8");
    window.wait_until("8 is taken", || window.newest("setting-max_tokens-refused").is_empty());
    close_sheet(&window);
    assert_eq!(window.attribute("open-chat-settings", "data-changed"), "1");
    let short = answer_to(&window, home.path(), STORY);
    assert_eq!(
        (&short["finish_reason"], &short["ended_by"]["rule"]),
        (&json!("length"), &json!("token_limit"))
    );
    assert_eq!(short["usage"]["completion_tokens"], 8);

    // With temperature 0 both answers are equal; with a high one they differ.
    open_sheet(&window);
    set(&window, "setting-max_tokens", "60");
    set(&window, "setting-temperature", "0");
    close_sheet(&window);
    // Every token is near certain, so that rounding, which differs between a prefilled prompt and a cached one, changes
    // none.
    let first = text_of(&answer_to(&window, home.path(), "Count from 1 to 20"));
    assert_eq!(text_of(&answer_again(&window, home.path())), first);
    open_sheet(&window);
    set(&window, "setting-temperature", "3");
    close_sheet(&window);
    let story = text_of(&answer_to(&window, home.path(), STORY));
    assert_ne!(text_of(&answer_again(&window, home.path())), story);

    // A stop text ends an answer at its first occurrence, and the KV cache can be quantized.
    open_sheet(&window);
    window.click("reset-chat-settings");
    window.wait_until("all is as at first", || {
        window.attribute("open-chat-settings", "data-changed") == "0"
    });
    unfold_around(&window, "new-stop-text");
    window.type_into("new-stop-text", " 7");
    window.click("add-stop-text");
    window.wait_for("stop-text");
    window.run("document.querySelector('[data-testid=kv-bits-8]').click()", json!([]));
    window.wait_until("both are taken", || {
        window.attribute("open-chat-settings", "data-changed") == "2"
    });
    window.image("chat-settings");
    close_sheet(&window);
    let counted = answer_to(&window, home.path(), "Count from 1 to 120");
    assert_eq!(text_of(&counted), "1, 2, 3, 4, 5, 6,");
    assert_eq!(counted["ended_by"], json!({"rule": "stop_text", "text": " 7"}));
    assert_eq!(counted["settings"]["kv_bits"], 8);

    // A shorter context is the limit that is shown, also after the next start.
    open_sheet(&window);
    set(&window, "setting-context", "100");
    window.wait_until("100 is refused", || {
        window.newest("setting-context-refused") == "Enter 512 or more."
    });
    set(&window, "setting-context", "640");
    close_sheet(&window);
    window.wait_until("the share is of 640", || window.newest("context-share").contains("640"));
    window.close();
    let window = Window::open(home.path());
    window.wait_until("the share is of 640 again", || {
        window.newest("context-share").contains("640")
    });
    assert_eq!(window.attribute("open-chat-settings", "data-changed"), "3");
    window.close();
}

#[test]
fn a_preset_is_kept_and_new_chats_begin_with_it() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);
    open_sheet(&window);
    set(&window, "setting-max_tokens", "5");
    window.wait_until("it is taken", || {
        window.attribute("open-chat-settings", "data-changed") == "1"
    });
    window.click("save-preset-as");
    window.type_into("preset-name", "Five\u{e007}");
    window.wait_until("it is chosen", || window.newest("preset").contains("Five"));
    window.image("chat-presets");
    close_sheet(&window);
    window.type_into("composer", "\u{e009},");
    window.switch_to("Settings");
    window.click("tab-chats");
    window.click("manage-presets");
    window.wait_for("preset-row");
    set(&window, "rename-preset", "Five words");
    window.click("presets-sheet-close");
    choose_in(&window, "default-preset", "Five words");
    window.wait_until("it holds", || window.newest("default-preset").contains("Five words"));
    window.image("settings-chats-preset");
    window.close();

    let window = Window::open(home.path());
    window.wait_until("a new chat begins with it", || {
        window.attribute("open-chat-settings", "data-changed") == "1"
    });
    let answer = answer_to(&window, home.path(), STORY);
    assert_eq!(answer["usage"]["completion_tokens"], 5);
    window.close();
}

fn inner_width(window: &Window) -> f64 {
    window
        .run("return window.innerWidth", json!([]))
        .as_f64()
        .expect("a number")
}

fn theme(window: &Window) -> Value {
    window.run("return document.documentElement.dataset.theme", json!([]))
}

#[test]
fn theme_text_and_zoom_apply_everywhere_at_once_and_stay() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    let plain = inner_width(&window);
    assert_eq!(theme(&window), "light");
    let longer = window.run("return document.scrollingElement.scrollHeight - innerHeight", json!([]));
    assert_eq!(
        longer,
        json!(0),
        "the page is no longer than the window, so that it is not scrolled as a whole"
    );
    window.type_into("composer", "\u{e009},");
    window.switch_to("Settings");
    window.click("tab-appearance");
    for choice in ["theme-dark", "text-size-130", "code-theme-vivid", "density-compact"] {
        window.wait_for(choice);
        window.run(
            "document.querySelector(`[data-testid=${arguments[0]}]`).click()",
            json!([choice]),
        );
    }
    window.wait_until("this window is dark", || theme(&window) == "dark");
    window.image("settings-appearance-dark");

    window.switch_to("Ponder");
    window.wait_until("the chat window is dark, too", || theme(&window) == "dark");
    // Zooms in twice, to 110 and to 125 %.
    window.type_into("composer", "\u{e009}=");
    window.wait_until("everything is a tenth larger", || {
        (inner_width(&window) - plain / 1.1).abs() < 3.0
    });
    window.type_into("composer", "\u{e009}=");
    window.wait_until("everything is a quarter larger", || {
        (inner_width(&window) - plain / 1.25).abs() < 3.0
    });
    window.image("zoomed-dark");
    window.close();

    let window = Window::open(home.path());
    assert_eq!(theme(&window), "dark", "from the first page on");
    let large = window.run("return document.documentElement.style.fontSize", json!([]));
    assert_eq!(large, "130%");
    window.wait_until("it is as large as it was", || {
        (inner_width(&window) - plain / 1.25).abs() < 3.0
    });
    window.type_into("composer", "\u{e009}0");
    window.wait_until("it is as at first", || (inner_width(&window) - plain).abs() < 3.0);
    window.close();
}

#[test]
fn two_answers_are_written_at_once_and_become_branches() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    set_thinking(&window, false);
    window.click("composer-add");
    window.click("two-answers");
    window.wait_for("second-answer");
    window.image("two-answers-ways");
    // The first variant: the same model with thinking.
    window.run(
        "document.querySelector('[data-testid=second-answer]').click()",
        json!([]),
    );
    window.wait_for("second-chip");
    window.ask("Count from 1 to 400");
    window.wait_until("both are being written", || window.count("stop-column") == 2);
    let grown = "return [...document.querySelectorAll('[data-testid=answer-column]')].map((column) => (column.querySelector('[data-testid=answer-text], [data-testid=thought-text]')?.textContent ?? '').length)";
    window.wait_until("both have grown while the other is being written", || {
        let lengths = window.run(grown, json!([]));
        let both = lengths
            .as_array()
            .is_some_and(|lengths| lengths.len() == 2 && lengths.iter().all(|length| length.as_u64() > Some(2)));
        both && window.count("stop-column") == 2
    });
    window.image("two-answers");
    window.reload();
    window.wait_until("both are there again", || window.count("stop-column") == 2);
    // One of the two is stopped.
    window.run(
        "document.querySelectorAll('[data-testid=stop-column]')[1].click()",
        json!([]),
    );
    window.wait_until("the other goes on", || window.count("stop-column") == 1);
    window.wait_until("the first ends by itself", || window.count("stop-column") == 0);
    window.image("two-answers-ended");
    window.run(
        "document.querySelectorAll('[data-testid=keep-answer]')[1].click()",
        json!([]),
    );
    window.wait_until("the second is a branch", || window.newest("pager").contains('2'));
    let kept = stored(home.path()).pop().expect("an answer");
    assert_eq!(
        (&kept["state"], &kept["settings"]["thinking"]),
        (&json!("stopped"), &json!("on"))
    );
    assert_eq!(kept["siblings"].as_array().map(Vec::len), Some(2));
    window.close();
}

#[test]
fn a_model_is_unloaded_a_backup_made_and_all_chats_deleted() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);
    window.ask("What is 2 + 3?");
    window.wait_until_answer_is("complete");
    window.type_into("composer", "\u{e009},");
    window.switch_to("Settings");
    window.click("tab-models");
    window.wait_for("loaded-model");
    window.image("settings-models-loaded");
    window.click("unload");
    window.wait_for("none-loaded");

    window.click("tab-privacy");
    window.wait_for("no-backups");
    assert!(window.newest("history-size").starts_with("1 chat"));
    window.click("back-up");
    window.wait_for("backup");
    window.image("settings-privacy-backup");
    let free = "return !document.querySelector('[data-testid=delete-all]').disabled";
    window.click("delete-all");
    window.wait_until("it was declined", || window.run(free, json!([])) == true);
    assert!(window.newest("history-size").starts_with("1 chat"));
    window.answer_dialogs("yes");
    window.click("delete-all");
    window.wait_until("nothing is left", || {
        window.newest("history-size").starts_with("0 chats")
    });
    assert_eq!(window.count("backup"), 1, "the backup stays, as was said");
    window.switch_to("Ponder");
    window.wait_for("empty-state");

    let said = "What is 2 + 3?";
    let holds = |path: &Path| {
        fs::read(path).is_ok_and(|bytes| bytes.windows(said.len()).any(|window| window == said.as_bytes()))
    };
    assert!(
        !holds(&home.path().join("history.sqlite")),
        "the words are gone from the file"
    );
    let backups: Vec<_> = fs::read_dir(home.path().join("backups"))
        .expect("a folder")
        .flatten()
        .collect();
    assert!(
        backups.iter().any(|backup| holds(&backup.path())),
        "the backup still has them"
    );

    // The unloaded model is loaded again for the next answer.
    window.ask("What is 3 + 4?");
    window.wait_until_answer_is("complete");
    assert!(window.answer().contains('7'));
    window.close();
}
