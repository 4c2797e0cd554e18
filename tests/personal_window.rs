//! Chats as documents and notes about the user in the real window, with an endpoint that is allowed to know of them only
//! after the user said so.

use serde_json::json;

use crate::images_window::choose_model;
use crate::support::driver::Window;
use crate::support::ponder;
use crate::support::python::ToldModel;

fn tell(window: &Window, answer: &str) {
    window.ask(&json!([answer]).to_string());
    window.wait_until_answer_is("complete");
}

fn open_settings(window: &Window, tab: &str) {
    window.press_with_control(",");
    window.switch_to("Settings");
    window.click(tab);
}

fn close_settings(window: &Window) {
    window.press_with_control("w");
    window.switch_to_window("chat");
    window.wait_until("Settings is closed", || window.open_windows() == 1);
}

#[test]
fn chats_are_quoted_and_notes_are_kept_and_an_endpoint_is_told_only_if_it_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = ToldModel::start(folder.path());
    let home = folder.path().join("home");
    let added = ponder(&home, &["endpoints", "add", "told", &model.url]);
    assert!(added.status.success(), "{added:?}");
    let window = Window::open(&home);
    choose_model(&window, "told");
    tell(&window, "The code of the boathouse is 4711.");

    // A chat of documents: the first one, and nothing of itself.
    window.press_with_control("n");
    window.wait_until("a new chat is open", || window.count("message-user") == 0);
    window.click("composer-add");
    window.wait_for("documents");
    window.click("documents");
    window.wait_for("documents-panel");
    window.click("add-own-chats");
    window.wait_until("the chat is read", || {
        window.newest("documents-panel").contains("1 chat read")
    });
    window.image("own-chats-panel");
    window.type_into("documents-panel", "\u{e00c}");
    tell(&window, "I do not know the boathouse.");
    assert_eq!(window.count("question-passages"), 0, "it is not allowed to know");

    open_settings(&window, "tab-connections");
    window.wait_for("endpoint-personal");
    window.click("endpoint-personal");
    window.wait_until("it is allowed", || {
        window.run(
            "return document.querySelector('[data-testid=endpoint-personal]').checked",
            json!([]),
        ) == json!(true)
    });
    window.image("endpoint-personal");
    window.click("tab-chats");
    window.click("use-notes");
    window.click("manage-notes");
    window.type_into("new-note", "I prefer metric units.");
    window.click("add-note");
    window.wait_until("the note is listed", || window.count("note") == 1);
    window.image("personal-notes");
    window.click("notes-sheet-close");
    close_settings(&window);

    tell(&window, "The code of the boathouse is 4711 [1].");
    window.wait_until("the other chat is quoted", || window.count("question-passages") == 1);
    window.run("document.querySelector('[data-cite][role=button]').click()", json!([]));
    window.wait_until("the chat opens at the passage", || {
        window.newest("passage-text").contains("4711")
    });
    window.image("own-chats-citation");
    window.close();

    // Both are there after another start.
    let window = Window::open(&home);
    window.wait_until("the chat has its passage", || window.count("question-passages") == 1);
    open_settings(&window, "tab-chats");
    window.click("manage-notes");
    window.wait_until("the note is listed", || window.count("note") == 1);
    window.click("remove-note");
    window.wait_until("the note is gone", || window.count("note") == 0);
    window.close();
}
