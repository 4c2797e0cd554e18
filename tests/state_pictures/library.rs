//! Search and library: search, find, palette, chat menus, archive and trash, projects, import and export, undo.

use std::fs;

use serde_json::json;

use crate::images_window::in_page;
use crate::support::ponder;

use super::Stage;

/// Searches for words that occur in several chats.
fn find(stage: &Stage, words: &str) {
    stage.window.show_search();
    stage.write("search", words);
    stage
        .window
        .wait_until("places are found", || stage.window.count("found-place") > 3);
}

fn search(stage: &Stage) {
    stage.state("chat", "search", |stage| {
        stage.show_sidebar();
        find(stage, "besancon");
    });
    stage.state("chat", "search-filter", |stage| {
        stage.show_sidebar();
        stage.window.show_search();
        stage.write("search", "besancon");
        stage.window.wait_for("search-time");
        stage.press("search-time");
    });
    stage.state("chat", "search-nothing", |stage| {
        stage.show_sidebar();
        stage.window.show_search();
        stage.write("search", "xylophone");
        stage.window.wait_for("search-time");
    });
    stage.state("chat", "found-place", |stage| {
        find(stage, "besancon");
        stage.press("found-place");
        stage.window.wait_for("message-assistant");
    });
    stage.state("chat", "find", |stage| {
        stage.open_chat("A walk along");
        stage.shortcut("f", false);
        stage.write("find-words", "cafe");
        stage
            .window
            .wait_until("they are counted", || stage.window.newest("find-count").contains("30"));
        stage.press("find-next");
    });
    stage.state("chat", "find-nothing", |stage| {
        stage.open_chat("A walk along");
        stage.shortcut("f", false);
        stage.write("find-words", "xylophone");
        stage
            .window
            .wait_until("it is said", || !stage.window.newest("find-count").is_empty());
    });
    stage.state("chat", "palette", |stage| {
        stage.shortcut("k", false);
        stage.window.wait_for("palette-entry");
    });
    stage.state("chat", "palette-words", |stage| {
        stage.shortcut("k", false);
        stage.write("palette-words", "a");
        stage.window.wait_for("palette-entry");
    });
    stage.state("chat", "palette-nothing", |stage| {
        stage.shortcut("k", false);
        stage.write("palette-words", "xylophone");
        stage
            .window
            .wait_until("there is nothing", || stage.window.count("palette-entry") == 0);
    });
}

fn chats(stage: &Stage) {
    stage.state("chat", "chat-menu", |stage| {
        stage.show_sidebar();
        stage.chat_menu("Code");
        stage.window.wait_for("rename-chat");
    });
    stage.state("chat", "renaming", |stage| {
        stage.show_sidebar();
        stage.chat_menu("Code");
        stage.press_for("rename-chat", "rename-field");
    });
    stage.state("chat", "export", |stage| {
        stage.chat_menu("A title that");
        stage.press_for("export-chat", "export");
    });
    stage.state("chat", "title-menu", |stage| {
        stage.open_chat("Code");
        stage.press_for("title-menu", "title-settings");
    });
    stage.state("chat", "app-menu", |stage| {
        stage.show_sidebar();
        stage.press_for("app-menu", "menu-chat");
        stage.press_for("menu-chat", "menu-composer");
    });
    stage.images("chat", "projects", |stage| {
        stage.chat_menu("Code");
        stage.press_for("move-chat-to-project", "new-project");
        stage.write("new-project", "Holidays by the sea");
        stage.image("project-choice");
        stage.press_for("make-project", "project");
        stage.show_sidebar();
        stage.image("project");
        stage.press_for("project-menu", "open-project");
        stage.image("project-menu");
        stage.press_for("open-project", "project-settings");
        stage.write("project-prompt", "Answer briefly, in whole sentences.");
        stage.image("project-settings");
        stage.press("save-project");
        stage.press("project");
        stage.image("project-folded");
        stage.press("project");
        stage.press_for("add-project", "project-name-field");
        stage.image("project-named");
    });
    stage.images("chat", "kept", |stage| {
        stage.press_for("open-kept", "kept");
        stage.image_all("kept-empty");
        stage.press("kept-close");
        let pressed: [(&str, &[&str]); 2] = [
            ("archive-chat", &["A title that", "Letter"]),
            ("delete-chat", &["OneWord", "Sourdough"]),
        ];
        for (command, titles) in pressed {
            for title in titles {
                stage.chat_menu(title);
                stage.press_for(command, "toast-undo");
            }
        }
        stage.image("toasts-undo");
        stage.press_for("open-kept", "trashed-chat");
        stage.press_for("purge-all", "purge-now");
        stage.image_all("kept");
        stage.press("purge-keep");
        stage.page(
            "const buttons = document.querySelectorAll('[data-testid=restore], [data-testid=unarchive]'); buttons.forEach((button) => button.click()); return buttons.length === 0",
            json!([]),
        );
    });
    stage.state("chat", "import-file", |stage| {
        stage.shortcut("k", false);
        stage.write("palette-words", stage.words("import chats", "استيراد المحادثات"));
        stage.press_for("palette-entry", "import-file");
    });
    stage.state("chat", "several-chosen", |stage| {
        stage.show_sidebar();
        let choose = "const items = [...document.querySelectorAll('[data-testid=chat-item]')].slice(0, 3);
            items.forEach((item) => item.dispatchEvent(new MouseEvent('click', { ctrlKey: true, bubbles: true, cancelable: true })));
            return items.length === 3";
        stage.page(choose, json!([]));
    });
}

fn files(stage: &Stage) {
    stage.state("chat", "import", |stage| {
        let written = ponder(stage.home, &["history", "export", "--format", "json", "--all"]);
        let file = stage.home.join("Chats of last summer.ponderchat");
        fs::write(&file, &written.stdout).expect("written");
        assert!(stage
            .window
            .start_again(&[file.to_str().expect("text")])
            .status
            .success());
        stage.window.wait_for("opened-chats");
    });
    stage.state("chat", "errors", |stage| {
        fs::write(stage.home.join("broken.ponderchat"), "{").expect("written");
        for wrong in ["broken.ponderchat", "gone.ponderchat"] {
            let path = stage.home.join(wrong);
            assert!(stage
                .window
                .start_again(&[path.to_str().expect("text")])
                .status
                .success());
        }
        stage
            .window
            .wait_until("each is refused", || stage.window.count("toast") == 2);
    });
    stage.state("chat", "link-arrived", |stage| {
        let link = "ponder:new?text=What%20is%202%20%2B%203%3F";
        assert!(stage.window.start_again(&[link]).status.success());
        stage.window.wait_for("toast");
    });
    stage.state("chat", "deleted", |stage| {
        stage.open_chat("Tables");
        in_page(
            &stage.window,
            "document.querySelector('[data-testid=answer-menu]').click()",
            json!([]),
        );
        stage.press_for("delete-answer", "delete-branch");
        stage.press_for("delete-branch-confirm", "toast-undo");
    });
}

pub fn states(stage: &Stage) {
    search(stage);
    chats(stage);
    files(stage);
}
