//! Tools: the choice of a chat, calls in every state, the window in which calls wait, and the page of servers.

use std::time::Duration;

use serde_json::json;

use crate::images_window::{choose_model, in_page};
use crate::support::ponder;
use crate::support::python::{tool_server, ToldModel};
use crate::tools_window::{choose_server, state};

use super::Stage;

/// Sets servers up that run, fail and are off, and starts a model that says what it is told.
pub fn fill(home: &std::path::Path) -> ToldModel {
    let model = ToldModel::start(home);
    let server = tool_server(home);
    let server = server.to_str().expect("text");
    for arguments in [
        &["tools", "add", "weather", "--", "python3", server][..],
        &["tools", "enable", "--yes", "weather"],
        &[
            "tools",
            "add",
            "files",
            "--",
            "npx",
            "-y",
            "@modelcontextprotocol/server-filesystem",
            "/tmp",
        ],
        &[
            "tools",
            "add",
            "broken",
            "--",
            "sh",
            "-c",
            "echo API_KEY is not set >&2; exit 3",
        ],
        &["tools", "enable", "--yes", "broken"],
        &["tools", "rule", "weather/write_note", "ask"],
        &["endpoints", "add", "told", &model.url],
    ] {
        let done = ponder(home, arguments);
        assert!(done.status.success(), "{arguments:?}: {done:?}");
    }
    model
}

/// Asks for a call, and goes to the window in which it waits.
fn ask_for(stage: &Stage, tool: &str, arguments: &serde_json::Value) {
    choose_model(&stage.window, "told");
    choose_server(&stage.window, "weather");
    let script = json!([[[format!("weather__{tool}"), arguments]], "It is done: RESULTS"]);
    stage.ask(&script.to_string());
    stage.window.switch_to_window("consent");
    stage.place.set("consent");
    stage.size();
    stage.window.wait_for("waiting-call");
}

/// Decides, and goes back to the chat.
fn decide(stage: &Stage, button: &str, then: &str) {
    // A click in the first half second would not count.
    std::thread::sleep(Duration::from_millis(800));
    stage.window.click_and_leave(button);
    stage.window.switch_to_window("chat");
    stage.place.set("chat");
    stage
        .window
        .wait_until(&format!("the call is {then}"), || state(&stage.window) == then);
}

fn calls(stage: &Stage) {
    stage.images("chat", "tools", |stage| {
        stage.press_for("composer-add", "tools");
        stage.press_for("tools", "tools-panel");
        stage.window.wait_for("tool-server");
        stage.image("tools");
        stage.window.type_into("tools-panel", "\u{e00c}");
    });
    stage.images("chat", "call-asked", |stage| {
        ask_for(stage, "get_weather", &json!({"city": "Oslo"}));
        stage.image("consent");
        stage.press("arguments-json");
        stage.image("consent-json");
        stage.window.switch_to_window("chat");
        stage.image("call-asked");
        stage.window.switch_to_window("consent");
        decide(stage, "allow-once", "done");
        stage.window.wait_until_answer_is("complete");
        stage.press("tool-call-toggle");
        stage.image("call-done");
    });
    stage.images("chat", "call-refused", |stage| {
        ask_for(stage, "write_note", &json!({"text": "Hello\u{202e}gnihton"}));
        stage.image("consent-writes");
        decide(stage, "deny", "refused");
        stage.window.wait_until_answer_is("complete");
        stage.image("call-refused");
    });
    stage.images("chat", "call-started", |stage| {
        ask_for(stage, "sleep", &json!({}));
        decide(stage, "allow-once", "started");
        std::thread::sleep(Duration::from_secs(2));
        stage.image("call-started");
        stage.press("stop-call");
        stage
            .window
            .wait_until("it is stopped", || state(&stage.window) == "stopped");
        stage.image("call-stopped");
    });
}

fn servers(stage: &Stage) {
    // From the chat page: Settings have no *Restart* for a server that never ran.
    let start = "const invoke = window.__TAURI_INTERNALS__.invoke;
        for (const { id } of (await invoke('chat_tools')).servers) await invoke('start_tool_server', { id }).catch(() => {});";
    in_page(&stage.window, start, json!([]));
    stage.images("settings", "settings-tools", |stage| {
        stage.press_for("tab-tools", "tool-server");
        stage
            .window
            .wait_until("one has failed", || stage.window.count("tool-server-reason") > 0);
        stage.image_all("settings-tools");
        stage.press_for("open-tool-log", "tool-log");
        stage.image("settings-tools-log");
        stage.press("close-tool-log");
        stage.press_for("open-add-tools", "tool-server-name");
        stage.image("settings-tools-add");
        stage.press("cancel-tool-server");
        stage.press_for("open-paste-tools", "tool-configuration");
        stage.image("settings-tools-paste");
    });
}

pub fn states(stage: &Stage) {
    calls(stage);
    servers(stage);
}
