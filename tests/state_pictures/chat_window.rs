//! Running answers and their ends: thinking, streaming, waiting, failing; a full context; two answers; a temporary chat;
//! chat settings.

use std::fs;

use serde_json::json;

use super::Stage;

const LONG: &str = "Count from 1 to 400";
const LONG_THOUGHT: &str = "Sort these numbers: 84, 12, 57, 33, 98, 5, 71, 46, 20, 65";

/// Sets the Thinking switch.
fn think(stage: &Stage, on: bool) {
    let set = "const control = document.querySelector('[data-testid=thinking-switch]'); if (!control) return false;
        if (control.getAttribute('aria-checked') !== String(arguments[0])) control.click();
        return control.getAttribute('aria-checked') === String(arguments[0])";
    stage.page(set, json!([on]));
}

/// Starts a long answer, and waits until some of it is shown.
pub fn begin_long_answer(stage: &Stage) {
    think(stage, false);
    stage.ask(LONG);
    stage
        .window
        .wait_until("words come", || stage.window.answer().len() > 20);
}

fn set_context(stage: &Stage, tokens: &str) {
    stage.press_for("open-chat-settings", "setting-context");
    stage.write("setting-context", tokens);
    stage.press("chat-settings-done");
    stage
        .window
        .wait_until("it is set", || stage.window.newest("context-share").contains(tokens));
}

/// Scrolls to the compaction mark; messages far from the view are not rendered.
fn show_mark(stage: &Stage) {
    let scroll = "const mark = document.querySelector('[data-testid=compaction-mark]'); const box = document.querySelector('[data-testid=messages]');
        if (mark) mark.scrollIntoView({ block: 'center' }); else box.scrollTop = box.scrollTop + 600 < box.scrollHeight - box.clientHeight ? box.scrollTop + 600 : 0;
        return mark !== null";
    stage.page(scroll, json!([]));
}

fn answers(stage: &Stage) {
    stage.state("chat", "thinking", |stage| {
        think(stage, true);
        stage.ask(LONG_THOUGHT);
        stage
            .window
            .wait_until("it thinks", || stage.window.newest("thought-text").chars().count() > 60);
    });
    stage.state("chat", "thinking-unfolded", |stage| {
        think(stage, true);
        stage.ask(LONG_THOUGHT);
        stage
            .window
            .wait_until("it thinks", || stage.window.newest("thought-text").chars().count() > 60);
        stage.press("thought-toggle");
    });
    stage.state("chat", "thought-ended", |stage| {
        think(stage, true);
        stage.ask(LONG_THOUGHT);
        stage.window.wait_for("answer-now");
        stage.press("answer-now");
        stage.window.wait_until_answer_is("complete");
    });
    stage.state("chat", "thought-folded", |stage| {
        think(stage, true);
        stage.ask_to_the_end("What is 347 + 589?");
    });
    stage.state("chat", "thought-while-off", |stage| {
        think(stage, false);
        stage.ask_to_the_end("What is 347 * 58?");
    });
    stage.state("chat", "streaming", begin_long_answer);
    stage.state("chat", "queued", |stage| {
        begin_long_answer(stage);
        stage.write(
            "composer",
            "And what is 2 + 3, if a question is so long that it does not fit into one line of a window of any usual width?",
        );
        stage.press_for("queue", "queued-question");
    });
    stage.state("chat", "stopped", |stage| {
        begin_long_answer(stage);
        stage.press("stop");
        stage.window.wait_until_answer_is("stopped");
    });
    stage.state("chat", "quit", |stage| {
        begin_long_answer(stage);
        stage.window.press_with_control("q");
        stage.window.wait_for("quit");
    });
    stage.state("chat", "error", |stage| {
        stage.open_chat("Is anybody there?");
        stage.window.wait_for("error-box");
    });
    // The engine lets go of the broken files once their folder is gone.
    stage.state("chat", "model-gone", |stage| {
        let folder = stage.home.join("broken-model");
        if folder.is_dir() {
            fs::remove_dir_all(folder).expect("removed");
        }
        stage.window.reload();
        stage.open_chat("Is anybody there?");
        stage.window.wait_for("model-gone");
    });
}

fn full_context(stage: &Stage) {
    stage.state("chat", "context-nearly-full", |stage| {
        stage.open_chat("A walk along");
        set_context(stage, "512");
        stage.window.wait_for("context-notice");
    });
    stage.images("chat", "context-full", |stage| {
        stage.open_chat("A walk along");
        stage.write("composer", "And at the end?");
        stage.press("send");
        stage.window.wait_for("summarize-oldest-turns");
        stage.image("context-full");
        stage.press_for("context-more", "drop-oldest-turns");
        stage.image("context-full-menu");
        stage.press("drop-oldest-turns");
        show_mark(stage);
        stage.image("compaction-begins");
        stage.press_for("edit-summary", "message-editor");
        stage.write(
            "message-editor",
            "They walked thirty miles, and there was a café at each of them.",
        );
        stage.press("keep-edit");
        stage.window.wait_for("compaction-summary");
        show_mark(stage);
        stage.image("compaction-summary");
    });
}

fn two_answers(stage: &Stage) {
    stage.state("chat", "composer-menu", |stage| {
        think(stage, true);
        stage.press_for("composer-add", "thinking-budget");
    });
    stage.state("chat", "two-answers-ways", |stage| {
        think(stage, false);
        stage.press_for("composer-add", "two-answers");
        stage.press_for("two-answers", "second-answer");
    });
    stage.images("chat", "two-answers", |stage| {
        think(stage, false);
        stage.press_for("composer-add", "two-answers");
        stage.press_for("two-answers", "second-answer");
        stage.page(
            "document.querySelector('[data-testid=second-answer]').click(); return true",
            json!([]),
        );
        stage.window.wait_for("second-chip");
        stage.image("two-answers-chosen");
        stage.write("composer", "Count from 1 to 100");
        stage.press("send");
        stage
            .window
            .wait_until("both are being written", || stage.window.count("stop-column") == 2);
        stage.image("two-answers");
        stage.window.wait_until("both have ended", || {
            stage.window.count("stop-column") == 0 && stage.window.count("keep-answer") == 2
        });
        stage.image("two-answers-ended");
    });
}

fn temporary_chat(stage: &Stage) {
    stage.images("chat", "temporary", |stage| {
        stage.press_for("temporary-chat", "temporary-empty");
        stage.image("temporary-empty");
        begin_long_answer(stage);
        stage.image("temporary-streaming");
        stage.press("stop");
        stage.window.wait_until_answer_is("stopped");
        stage.write("composer", "A message that goes with the chat.");
        stage.window.wait_for("keep-chat");
        stage.image("temporary-answered");
        stage.press("keep-chat");
        stage
            .window
            .wait_until("it is kept", || stage.window.count("temporary-note") == 0);
        stage.window.wait_for("toast");
        stage.image("temporary-kept");
    });
}

fn settings_of_the_chat(stage: &Stage) {
    stage.images("chat", "chat-settings", |stage| {
        stage.open_chat("Sourdough");
        stage.press_for("open-chat-settings", "setting-temperature");
        stage.image_all("chat-settings");
        stage.press("chat-advanced");
        stage.image_all("chat-settings-advanced");
        stage.write("setting-max_tokens", "0");
        stage.write("setting-top_p", "1.5");
        stage.write("new-stop-text", "END");
        stage.press("add-stop-text");
        stage.press_for("save-preset-as", "preset-name");
        stage.write("preset-name", "Short");
        stage.press("save-preset");
        stage.image_all("chat-settings-refused");
    });
    stage.state("chat", "model-picker", |stage| {
        stage.press("model-picker");
        stage.page(
            "return document.querySelectorAll('[role=option]').length > 2",
            json!([]),
        );
    });
    stage.state("chat", "thinking-menu", |stage| {
        think(stage, true);
        stage.press_for("composer-add", "thinking-budget");
        stage.press_for("thinking-budget", "budget-field");
    });
    stage.state("chat", "shortcuts", |stage| {
        stage.shortcut("/", false);
        stage.page(
            "return document.querySelectorAll('[data-testid=shortcut]').length > 5",
            json!([]),
        );
    });
    stage.state("chat", "shortcuts-end", |stage| {
        stage.shortcut("/", false);
        stage.page(
            "const last = [...document.querySelectorAll('[data-testid=shortcut]')].at(-1); last?.scrollIntoView(); return last !== undefined",
            json!([]),
        );
    });
    stage.state("chat", "sidebar", Stage::show_sidebar);
}

pub fn states(stage: &Stage) {
    answers(stage);
    two_answers(stage);
    temporary_chat(stage);
    settings_of_the_chat(stage);
    full_context(stage);
}
