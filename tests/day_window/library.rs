//! Search, the palette, names, the archive, the trash, files of chats.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{says, Day};
use crate::library_window::many_chats;

/// Search, the palette, names, the archive, the trash, files.
pub fn library(day: &Day) {
    let window = &day.window;
    day.step("a word is searched in all chats");
    day.keys.press("ctrl+shift+f");
    day.type_into("search", "harbor");
    window.wait_for("found-place");
    window.click("found-place");
    window.wait_until("the place is shown", || says(window, "When does the harbor open?"));
    window.click("search");
    day.keys.press("ctrl+a");
    day.keys.press("BackSpace");
    window.wait_until("all chats are listed", || window.count("chat-item") >= 4);

    day.step("a word is found in the chat");
    day.keys.press("ctrl+f");
    day.type_into("find-words", "harbor");
    window.wait_until("its places are counted", || {
        window.newest("find-count").contains("1 of")
    });
    day.keys.press("Escape");

    day.step("the palette leads to a chat");
    day.keys.press("ctrl+k");
    day.type_into("palette-words", "gate code");
    window.wait_for("palette-entry");
    day.keys.press("Return");
    window.wait_until("the chat is shown", || says(window, "What is the gate code?"));

    day.step("the palette runs a command");
    day.keys.press("ctrl+k");
    day.type_into("palette-words", "New chat");
    window.wait_for("palette-entry");
    day.keys.press("Return");
    window.wait_for("empty-state");

    day.step("a chat is renamed");
    let last = day.chats().last().expect("a chat").clone();
    day.in_menu_of(&last, "rename-chat");
    window.wait_for("rename-field");
    day.keys.press("ctrl+a");
    day.keys.type_text("The first sum");
    day.keys.press("Return");
    window.wait_until("it is called so", || day.chats().contains(&"The first sum".to_owned()));

    day.step("it is pinned");
    day.in_menu_of("The first sum", "pin-chat");
    window.wait_until("it is on top", || day.chats()[0] == "The first sum");

    day.step("it is archived, and that is undone by the key");
    let count = day.chats().len();
    day.in_menu_of("The first sum", "archive-chat");
    window.wait_until("it is gone from the list", || day.chats().len() == count - 1);
    window.wait_for("toast-undo");
    window.run("document.activeElement?.blur()", json!([]));
    day.keys.press("ctrl+z");
    window.wait_until("it is back", || day.chats().len() == count);

    day.step("it is deleted, and comes back from the trash");
    day.in_menu_of("The first sum", "delete-chat");
    window.wait_until("it is gone from the list", || day.chats().len() == count - 1);
    window.click("open-kept");
    window.click("restore");
    window.wait_until("it is back", || day.chats().len() == count);
    day.keys.press("Escape");
    window.wait_until("the sheet is closed", || window.count("kept") == 0);

    day.step("it is exported to a file");
    let before = markdown_files(day.home);
    day.in_menu_of("The first sum", "export-chat");
    window.click("export-markdown");
    window.wait_until("there is a file", || markdown_files(day.home).len() == before.len() + 1);
    let text = markdown_files(day.home).concat();
    assert!(text.contains("936"), "{text}");

    day.step("chats of another program are imported");
    let file = fs::read_to_string(many_chats(day.home)).expect("text");
    day.keys.press("ctrl+k");
    day.type_into("palette-words", "Import chats");
    window.wait_for("palette-entry");
    day.keys.press("Return");
    window.wait_for("import-file");
    let choose = "const chosen = new DataTransfer(); chosen.items.add(new File([arguments[0]], 'conversations.json', { type: 'application/json' }));
        const field = document.querySelector('[data-testid=import-file]'); field.files = chosen.files; field.dispatchEvent(new Event('change', { bubbles: true }))";
    window.run(choose, json!([file]));
    window.wait_until("they are listed", || says(window, "Imported 9"));
    window.wait_until("the sheet is closed", || window.count("import-file") == 0);
}

/// The Markdown files in a folder.
fn markdown_files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let files = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    files.map(|path| fs::read_to_string(path).expect("text")).collect()
}
