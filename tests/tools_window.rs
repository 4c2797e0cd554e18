//! Calls of tools in the real window: Pebble's own loop, with consent in a window of its own, and what a script in a
//! page and a killed app cannot do. A server of tools as its makers publish it asks the person for a form.

use std::time::Duration;

use serde_json::{json, Value};

use crate::images_window::{choose_model, invoke_in_settings};
use crate::support::driver::Window;
use crate::support::python::ToldModel;

/// A question to which Pebble calls its calculator.
const SUM: &str = "What is 347 * 89? Use the tool.";

/// Switches Ponder's own tools on in the new chat of an app that was just opened.
fn with_tools(window: &Window) {
    window.wait_for("composer");
    if window.attribute("thinking-switch", "aria-checked") == "true" {
        window.click("thinking-switch");
    }
    choose_server(window, "Ponder");
}

/// Switches the tools of a server on in the open chat.
pub fn choose_server(window: &Window, name: &str) {
    window.click("composer-add");
    window.click("tools");
    let switch = "const [name] = arguments;
        const servers = [...document.querySelectorAll('[data-testid=tool-server]')];
        const one = servers.find((server) => server.querySelector('h4')?.textContent.trim() === name)?.querySelector('[data-testid=server-switch]');
        if (one?.getAttribute('aria-checked') === 'false' && !one.disabled) one.click();
        return one?.getAttribute('aria-checked') ?? ''";
    window.wait_until(&format!("the tools of {name} are on"), || {
        window.run(switch, json!([name])) == json!("true")
    });
    window.image("tools-panel");
    window.type_into("tools-panel", "\u{e00c}");
    window.wait_for("tools-chip");
}

/// Asks until a call waits, and goes to the window in which it does: without a fixed seed Pebble may answer by itself.
fn ask_until_a_call_waits(window: &Window) {
    for _ in 0..6 {
        let calls = window.count("tool-call");
        window.ask(SUM);
        window.wait_within(Duration::from_secs(60), "an answer or a call", || {
            let answered = || window.answer_state() == "complete" && window.count("tool-call") == calls;
            window.open_windows() > 1 || (window.count("send") == 1 && answered())
        });
        if window.open_windows() > 1 {
            window.switch_to_window("consent");
            window.wait_for("waiting-call");
            return;
        }
    }
    panic!("Pebble called no tool");
}

fn states(window: &Window) -> Vec<String> {
    let script = "return [...document.querySelectorAll('[data-testid=tool-call]')].map((call) => call.dataset.state)";
    serde_json::from_value(window.run(script, json!([]))).expect("texts")
}

/// The state of the last call in the open chat.
pub fn state(window: &Window) -> String {
    states(window).pop().unwrap_or_default()
}

/// Calls a command of the host from the page, as a planted script would: its outcome.
fn planted(window: &Window, command: &str, arguments: &Value) -> String {
    let script = "const [command, given, end] = arguments;
        window.__TAURI_INTERNALS__.invoke(command, given).then((value) => end(`done: ${JSON.stringify(value)}`), (error) => end(`refused: ${JSON.stringify(error)}`))";
    let outcome = window.run_async(script, json!([command, arguments]));
    outcome.as_str().unwrap_or_default().to_owned()
}

#[test]
fn pebble_computes_after_a_person_allowed_the_call() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    with_tools(&window);
    ask_until_a_call_waits(&window);
    window.image("consent");
    assert_eq!(window.newest("call-tool"), "Ponder/calculate");
    let shown = window.newest("waiting-call");
    assert!(shown.contains("347 * 89") || window.run("return [...document.querySelectorAll('textarea, input')].some((field) => field.value.includes('347 * 89'))", json!([])) == true, "{shown}");

    // The chat page can neither read nor approve what waits.
    window.switch_to_window("chat");
    window.wait_until("the call waits", || state(&window) == "asked");
    window.image("call-asked");
    let approval = json!({"approval": {"answer": "", "call": "", "hash": "", "extent": "always", "arguments": null}});
    for (command, given) in [
        ("waiting_calls", json!({})),
        ("approve_call", approval),
        ("refuse_call", json!({"answer": "", "call": "", "hash": "", "word": ""})),
        ("switch_tool_server", json!({"id": "ponder", "on": true})),
        (
            "revoke_tool_grant",
            json!({"tool": {"server": "ponder", "tool": "calculate"}}),
        ),
    ] {
        let outcome = planted(&window, command, &given);
        assert!(
            outcome.starts_with("refused") && outcome.contains("not allowed"),
            "{command}: {outcome}"
        );
    }
    assert_eq!(state(&window), "asked");

    window.switch_to_window("consent");
    // A person has read it by now; a click in the first half second would not count.
    std::thread::sleep(Duration::from_millis(800));
    window.click_and_leave("allow-once");
    window.switch_to_window("chat");
    window.wait_until("the call ran", || state(&window) == "done");
    window.wait_until_answer_is("complete");
    window.wait_until("the window of calls goes", || window.open_windows() == 1);
    window.click_last("tool-call");
    window.image("call-done");

    window.close();
}

#[test]
fn a_call_that_is_denied_does_not_run_and_the_answer_goes_on() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    with_tools(&window);
    ask_until_a_call_waits(&window);
    std::thread::sleep(Duration::from_millis(800));
    window.type_into("deny-word", "Not now.");
    window.click_and_leave("deny");
    window.switch_to_window("chat");
    window.wait_until("it is refused", || state(&window) == "refused");
    window.wait_until_answer_is("complete");
    window.image("call-refused");
    window.close();
}

#[test]
fn a_call_that_waited_when_the_app_was_killed_is_asked_for_again() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    with_tools(&window);
    ask_until_a_call_waits(&window);
    window.kill();
    let window = Window::open(home.path());
    window.wait_until("the call did not run", || state(&window) == "not_run");
    assert_eq!(window.open_windows(), 1, "nothing asks by itself");
    window.image("call-not-run");
    window.click_last("run-again");
    window.switch_to_window("consent");
    window.wait_for("waiting-call");
    window.image("consent-again");
    std::thread::sleep(Duration::from_millis(800));
    window.click_and_leave("allow-once");
    window.switch_to_window("chat");
    window.wait_until("the call ran", || state(&window) == "done");
    window.wait_until_answer_is("complete");
    window.close();
}

/// The command line of the reference server, which asks the person in one of its tools; `None` if it is not installed.
fn reference_server() -> Option<String> {
    let configuration =
        std::fs::read_to_string(std::env::var_os("PONDER_TOOL_SERVERS")?).expect("the servers of tools");
    // It has comments and commas that JSON has not, and is written by us.
    let command = configuration
        .lines()
        .find(|line| line.contains("mcp-server-everything"));
    let command = command?.split('"').find(|word| word.ends_with("mcp-server-everything"));
    Some(format!("'{}'", command?))
}

#[test]
fn a_server_that_asks_gets_what_the_person_sends() {
    let Some(command) = reference_server() else {
        println!("report: the reference server is not here, so nobody was asked");
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    let model = ToldModel::start(home.path());
    let window = Window::open(home.path()).with_patience(Duration::from_secs(60));
    window.answer_dialogs("yes");
    let lab = json!({"name": "lab", "url": model.url, "key": null, "unencryptedKey": false});
    let server = json!({"setup": {"name": "everything", "command": command, "parts": []}});
    invoke_in_settings(&window, &[("add_endpoint", lab), ("add_tool_server", server)]);
    // Its id is known to the list alone.
    let tools = planted(&window, "chat_tools", &json!({}));
    let listed: Value = serde_json::from_str(tools.strip_prefix("done: ").expect("the servers")).expect("JSON");
    let id = listed["servers"][1]["id"].as_str().expect("a server").to_owned();
    invoke_in_settings(&window, &[("switch_tool_server", json!({"id": id, "on": true}))]);
    choose_model(&window, "told");
    window.click("composer-add");
    window.click("tools");
    window.wait_until("its tools are listed", || {
        window.run(
            "return document.querySelectorAll('[data-testid=server-switch]:not(:disabled)').length",
            json!([]),
        ) == 2
    });
    window.click_last("server-switch");
    window.type_into("tools-panel", "\u{e00c}");
    window.wait_for("tools-chip");
    let script = json!([[["everything__trigger-elicitation-request", {}]], "RESULTS"]);
    window.ask(&script.to_string());

    window.switch_to_window("consent");
    window.wait_for("waiting-call");
    std::thread::sleep(Duration::from_millis(800));
    window.click("allow-once");
    window.wait_for("elicitation");
    window.image("elicitation");
    assert_eq!(window.newest("elicitation-server"), "everything");
    let name = "const field = document.querySelector('[data-testid=elicited-field][data-name=name]');
        field.value = 'Ada Lovelace'; field.dispatchEvent(new InputEvent('input', { bubbles: true }))";
    // Nothing is sent without what must be there.
    std::thread::sleep(Duration::from_millis(800));
    window.click("elicitation-send");
    window.wait_until("the name is missing", || {
        window.run("return [...document.querySelectorAll('[data-testid=elicited-problem]')].some((said) => said.textContent !== '')", json!([])) == true
    });
    window.image("elicitation-problem");

    // The chat page can neither read nor answer what is asked, and shows where it is.
    window.switch_to_window("chat");
    window.wait_until("it asks", || window.newest("call-state").contains("Asks you"));
    window.image("call-asks");
    for (command, given) in [
        ("waiting_elicitations", json!({})),
        ("send_form", json!({"id": "", "values": "{}"})),
        ("open_elicited_address", json!({"id": ""})),
        ("decline_elicitation", json!({"id": ""})),
    ] {
        let outcome = planted(&window, command, &given);
        assert!(
            outcome.starts_with("refused") && outcome.contains("not allowed"),
            "{command}: {outcome}"
        );
    }

    window.switch_to_window("consent");
    window.run(name, json!([]));
    std::thread::sleep(Duration::from_millis(800));
    window.click_and_leave("elicitation-send");
    window.switch_to_window("chat");
    window.wait_until_answer_is("complete");
    window.wait_until("the answer tells the name", || window.answer().contains("Ada Lovelace"));
    window.wait_until("the window goes", || window.open_windows() == 1);
    window.close();
}
