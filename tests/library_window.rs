//! Search and library in the real window: search, find, the palette, archive, trash and projects.

use serde_json::{json, Value};

use crate::support::driver::Window;
use crate::support::ponder_json;
use crate::window::set_thinking;

/// Presses a key with Control, independent of the focus.
fn shortcut(window: &Window, key: &str) {
    window.run(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], ctrlKey: true, bubbles: true, cancelable: true }))",
        json!([key]),
    );
}

/// A file to import with a chat of 60 turns and nine others.
pub fn many_chats(home: &std::path::Path) -> std::path::PathBuf {
    let chat = |number: usize, turns: usize| {
        let messages: Vec<Value> = (0..turns)
            .flat_map(|turn| {
                [
                    json!({"uuid": format!("{turn} q"), "sender": "human", "text": format!("Question {turn} of chat {number}"), "created_at": "2026-01-02T10:00:00Z"}),
                    json!({"uuid": format!("{turn} a"), "sender": "assistant", "text": format!("The **café** in Besançon, {turn}. 私は東京都に住んでいます。"), "created_at": "2026-01-02T10:00:01Z"}),
                ]
            })
            .collect();
        json!({"uuid": format!("chat-{number}"), "name": format!("Imported {number}"), "created_at": "2026-01-02T10:00:00Z", "chat_messages": messages})
    };
    let chats: Vec<Value> = (0..10)
        .map(|number| chat(number, if number == 0 { 60 } else { 1 }))
        .collect();
    let file = home.join("conversations.json");
    std::fs::write(&file, json!(chats).to_string()).expect("written");
    file
}

#[test]
fn chats_are_imported_found_put_away_and_brought_back() {
    let home = tempfile::tempdir().expect("a folder");
    let file = many_chats(home.path());
    let done = ponder_json(
        home.path(),
        &["history", "import", "--json", file.to_str().expect("a path")],
    );
    assert_eq!((&done[0]["chats"], &done[0]["already_here"]), (&json!(10), &json!(0)));

    let window = Window::open(home.path());
    window.wait_until("the chats are listed", || window.count("chat-item") == 10);
    // Search ignores accents, and finds a part of a Chinese sentence.
    window.show_search();
    window.type_into("search", "besancon 京都");
    window.wait_until("places are found", || window.count("found-place") > 5);
    window.image("found");
    window.click("found-place");
    window.wait_for("message-assistant");
    let marked = "return typeof CSS.highlights === 'undefined' ? -1 : (CSS.highlights.get('found')?.size ?? 0)";
    window.wait_until("the words are shown", || {
        window.run(marked, json!([])).as_i64() != Some(0)
    });
    window.image("found-place");

    // All hits in the long chat count, also in messages that are not rendered.
    window.run("document.querySelector('[data-testid=search]').value = ''; document.querySelector('[data-testid=search]').dispatchEvent(new InputEvent('input', { bubbles: true }))", json!([]));
    window.wait_until("all chats again", || window.count("chat-item") == 10);
    window.run(
        "[...document.querySelectorAll('[data-testid=chat-item]')].find((item) => item.textContent.trim() === 'Imported 0').click()",
        json!([]),
    );
    window.wait_until("the long chat", || window.newest("chat-title") == "Imported 0");
    shortcut(&window, "f");
    window.type_into("find-words", "cafe in");
    window.wait_until("they are counted", || window.newest("find-count").trim() == "1 of 60");
    window.click("find-next");
    window.wait_until("the next", || window.newest("find-count").trim() == "2 of 60");
    window.image("find");
    window.click("find-close");

    // Archives a chat and undoes it by the key.
    shortcut(&window, "k");
    window.type_into("palette-words", "imported 3");
    window.wait_until("the palette offers it", || window.count("palette-entry") > 0);
    window.image("palette");
    window.run(
        "document.querySelector('[data-testid=palette]').dispatchEvent(new Event('cancel', { cancelable: true }))",
        json!([]),
    );
    window.run("document.querySelector('[data-testid=chat-item]').dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true }))", json!([]));
    window.click("archive-chat");
    window.wait_until("it is put away", || window.count("chat-item") == 9);
    // The list is renewed before the undo is offered.
    window.wait_for("toast");
    shortcut(&window, "z");
    window.wait_until("it is back", || window.count("chat-item") == 10);
    window.run("document.querySelector('[data-testid=chat-item]').dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true }))", json!([]));
    window.click("delete-chat");
    window.wait_until("it is deleted", || window.count("chat-item") == 9);
    window.click("open-kept");
    window.wait_for("trashed-chat");
    window.image("kept");
    window.click("restore");
    window.wait_until("it is restored", || window.count("chat-item") == 10);
    window.close();
}

/// The chats in the archive format of another program.
fn archive_of(file: &std::path::Path) -> std::path::PathBuf {
    let archive = file.with_extension("zip");
    let pack = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED) as z: z.write(sys.argv[2], 'conversations.json')";
    let packed = std::process::Command::new("python3")
        .args(["-c", pack])
        .args([&archive, file])
        .status()
        .expect("python3 runs");
    assert!(packed.success());
    archive
}

#[test]
fn a_project_takes_files_along_and_what_is_taken_out_comes_back() {
    let home = tempfile::tempdir().expect("a folder");
    let file = archive_of(&many_chats(home.path()));
    let done = ponder_json(
        home.path(),
        &["history", "import", "--json", file.to_str().expect("a path")],
    );
    assert_eq!(done[0]["chats"], json!(10));

    let window = Window::open(home.path());
    window.wait_until("the chats are listed", || window.count("chat-item") == 10);
    // A window that is ready focuses its composer, and a menu closes when it loses the focus.
    window.wait_until("the window is ready", || {
        window.run("return document.activeElement?.dataset.testid", json!([])) == "composer"
    });
    let menu = "document.querySelector('[data-testid=chat-item]').dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true }))";
    window.wait_until("the menu of a chat stays open", || {
        window.run(menu, json!([]));
        window.count("move-chat-to-project") == 1
    });
    window.click("move-chat-to-project");
    window.type_into("new-project", "Thesis");
    window.click("make-project");
    window.wait_for("project");
    window.click("project-menu");
    window.click("open-project");
    window.wait_for("add-project-files");
    window.image("project-empty");
    let drop = "const data = new DataTransfer();
        data.items.add(new File([arguments[1]], arguments[0], { type: 'text/plain' }));
        document.querySelector('[data-testid=project-settings]').dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: data }))";
    for (name, text) in [
        ("notes.md", "# Notes\n\nTea is green.\n".repeat(5)),
        ("table.csv", "a,b\n1,2\n".into()),
    ] {
        let before = window.count("attachment");
        window.run(drop, json!([name, text]));
        window.wait_until("it is in the project", || window.count("attachment") == before + 1);
    }
    window.wait_for("file-bar");
    window.run(drop, json!(["program.exe", "MZ\u{0}\u{0}"]));
    window.wait_for("broken-file");
    window.image("project-files");
    window.click("remove-attachment");
    window.wait_for("file-removed");
    window.wait_until("it is taken out", || window.count("attachment") == 1);
    window.image("project-file-removed");
    window.click("put-file-back");
    window.wait_until("it is back", || window.count("attachment") == 2);
    // The next question includes them, and the model reads them.
    window.click("save-project");
    window.click("new-in-project");
    set_thinking(&window, false);
    window.ask("What is 2 + 3?");
    window.wait_until("it is answered", || window.answer_state() == "complete");
    window.close();
}
