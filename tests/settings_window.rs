//! The real Settings window: its settings hold in the other windows, in the command line, and after the next start.

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

use crate::support::driver::Window;
use crate::support::ponder_json;

/// Opens the app and its Settings window, by the shortcut.
fn open_settings(home: &Path, environment: &[(&str, &str)]) -> Window {
    let window = Window::open_with(home, environment);
    window.type_into("composer", "\u{e009},");
    window.switch_to("Settings");
    window.wait_for("login-switch");
    window
}

/// Chooses an entry of a picker by its label. The picker is opened again if the page closed it meanwhile, as one does
/// that is drawn anew in another language.
pub fn choose_in(window: &Window, picker: &str, label: &str) {
    let choose = "const button = document.querySelector(`[data-testid=${arguments[0]}]`);
        if (button?.getAttribute('aria-expanded') === 'false') button.click();
        const option = [...document.querySelectorAll('[role=option]')].find((option) => option.querySelector('.label')?.textContent === arguments[1]);
        if (option) option.click(); return Boolean(option)";
    window.click(picker);
    window.wait_until("it is offered", || {
        window.run(choose, json!([picker, label])) == Value::Bool(true)
    });
}

/// Unfolds what a page keeps under *Advanced*, if it is folded.
pub fn unfold(window: &Window) {
    window.wait_for("advanced");
    let script = "document.querySelector('[data-testid=advanced]').closest('details').open = true";
    window.run(script, json!([]));
}

fn checked(window: &Window, test_id: &str) -> bool {
    let script = "return document.querySelector(`[data-testid=${arguments[0]}]`).checked";
    window.run(script, json!([test_id])) == Value::Bool(true)
}

/// Chooses a radio button, whose input is invisible below its label.
fn choose(window: &Window, test_id: &str) {
    window.wait_for(test_id);
    window.run(
        "document.querySelector(`[data-testid=${arguments[0]}]`).click()",
        json!([test_id]),
    );
    window.wait_until(&format!("{test_id} holds"), || checked(window, test_id));
}

#[test]
fn what_is_set_holds_everywhere_and_stays() {
    let home = tempfile::tempdir().expect("a folder");
    let models = home.path().join("my-models");
    fs::create_dir(&models).expect("a folder");
    for (file, from) in pebble() {
        fs::copy(from, models.join(file)).expect("copied");
    }
    let window = open_settings(home.path(), &[]);
    window.image("settings-general");
    window.click("tab-privacy");
    window.wait_for("no-requests");
    window.image("settings-privacy");

    window.click("tab-chats");
    choose(&window, "default-thinking-off");
    unfold(&window);
    choose(&window, "default-budget-1024");
    window.image("settings-chats");
    window.type_into("default-budget-field", "many\u{e007}");
    window.wait_until("it is refused", || {
        window.run(
            "return document.body.textContent.includes('Enter a whole number')",
            json!([]),
        ) == true
    });
    window.image("settings-chats-refused");

    window.click("tab-models");
    window.wait_for("shared-folder");
    window.click("add-folder");
    window.type_into("folder-path", &format!("{}\u{e007}", models.display()));
    window.wait_for("own-folder");
    window.image("settings-models");

    // The chat window follows: an untouched new chat does not think now.
    window.switch_to("Ponder");
    window.wait_until("new chats do not think", || {
        window.attribute("thinking-switch", "aria-checked") == "false"
    });
    window.ask("What is 2 + 3?");
    window.wait_until_answer_is("complete");
    assert_eq!(window.count("thought"), 0);
    window.close();

    // The command line uses the same folders, and the next start finds all settings.
    let listed = ponder_json(home.path(), &["models", "--json"]);
    let found = listed[0]["models"].as_array().expect("models");
    assert!(
        found
            .iter()
            .any(|model| model["path"] == models.to_str().expect("text")),
        "{found:?}"
    );
    let window = open_settings(home.path(), &[]);
    window.click("tab-chats");
    window.wait_until("it is as it was set", || {
        window.count("default-thinking-off") == 1
            && checked(&window, "default-thinking-off")
            && checked(&window, "default-budget-1024")
    });
    window.click("tab-models");
    window.wait_for("own-folder");
    // The page restores its state after a reload, as after a crash of its process.
    window.run("window.before = true; location.reload()", json!([]));
    window.wait_until("the page is another one", || {
        window.run("return window.before === undefined", json!([])) == true
    });
    window.wait_for("own-folder");
    window.click("forget-folder");
    window.wait_until("it is forgotten", || window.count("own-folder") == 0);
    window.close();
    assert!(models.join("config.json").is_file(), "its files stay");
}

fn pebble() -> Vec<(String, std::path::PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src-tauri/pebble/model");
    let entries = fs::read_dir(folder).expect("Pebble is here").flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect()
}

#[test]
fn an_endpoint_is_added_tried_and_removed() {
    let home = tempfile::tempdir().expect("a folder");
    let window = open_settings(home.path(), &[("GTK_THEME", "Adwaita:dark")]);
    window.image("settings-general-dark");
    window.click("tab-connections");
    window.wait_for("no-endpoints");
    window.image("settings-connections-empty-dark");
    window.click("open-add-endpoint");
    window.type_into("endpoint-name", "lab");
    window.type_into("endpoint-url", "https://models.example.org/v1");
    window.wait_for("endpoint-warning");
    window.image("settings-endpoint-typed-dark");
    // The person declines in the dialog of the system, and the sheet keeps what was typed.
    window.click("add-endpoint");
    let waits = "return document.querySelector('[data-testid=add-endpoint]').disabled";
    window.wait_until("it was declined", || window.run(waits, json!([])) == false);
    assert_eq!((window.count("endpoint-row"), window.count("endpoint-problem")), (0, 0));
    window.answer_dialogs("yes");
    window.click("add-endpoint");
    window.wait_for("endpoint-row");
    window.answer_dialogs("no");
    assert!(window.newest("endpoint-mark").contains("Remote"));
    window.click("remove-endpoint");
    window.wait_for("no-endpoints");

    // Nothing listens on port 1 of this computer.
    window.click("open-add-endpoint");
    window.type_into("endpoint-name", "here");
    window.type_into("endpoint-url", "http://127.0.0.1:1/v1");
    window.click("add-endpoint");
    window.wait_for("endpoint-row");
    assert!(window.newest("endpoint-mark").contains("On this computer"));
    window.click("test-endpoint");
    window.wait_until("it says that nobody answers", || {
        !window.newest("endpoint-answer").is_empty() && !window.newest("endpoint-answer").contains("Connecting")
    });
    window.image("settings-endpoint-silent-dark");

    window.click("change-key");
    window.type_into("key-field", "sk-secret");
    window.click("keep-key");
    // A session without a keychain reports that; with one, the key is stored and can be removed.
    window.wait_until("the key is stored, or it says why not", || {
        window.count("key-problem") + window.count("endpoint-key-source") == 1
    });
    window.image("settings-endpoint-key-dark");
    if window.count("endpoint-key-source") == 1 {
        window.click("change-key");
        window.click("remove-key");
        window.wait_until("the key is gone", || window.count("endpoint-key-source") == 0);
    }
    window.click("open-add-endpoint");
    window.type_into("endpoint-name", "here");
    window.type_into("endpoint-url", "http://127.0.0.1:2/v1");
    window.click("add-endpoint");
    window.wait_for("endpoint-problem");
    window.image("settings-endpoint-refused-dark");
    window.click("cancel-endpoint");
    for page in ["chats", "models"] {
        window.click(&format!("tab-{page}"));
        window.image(&format!("settings-{page}-dark"));
    }
    window.close();
}

#[test]
fn what_the_web_view_kept_moves_into_the_history_once() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    window.run("localStorage.setItem('ponder.new-draft', 'half a quest')", json!([]));
    window.reload();
    let draft = |window: &Window| {
        window.run(
            "return document.querySelector('[data-testid=composer]').value",
            json!([]),
        )
    };
    window.wait_until("the draft is back", || draft(&window) == "half a quest");
    assert_eq!(window.run("return localStorage.length", json!([])), 0);
    window.close();
    let window = Window::open(home.path());
    window.wait_until("it was kept", || draft(&window) == "half a quest");
    window.close();
}
