//! A damaged history in the real window: what is left of it is shown, and nothing is replaced before somebody chose.

use std::path::{Path, PathBuf};

use crate::library_window::many_chats;
use crate::support::driver::Window;
use crate::support::ponder;
use crate::window::set_thinking;

const PAGE: usize = 4096;

/// The files that were set aside.
fn set_aside(home: &Path) -> usize {
    let names = std::fs::read_dir(home).expect("a folder").flatten();
    names
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("history-damaged-"))
        .count()
}

fn history_with_chats(home: &Path) -> PathBuf {
    let file = many_chats(home);
    let imported = ponder(home, &["history", "import", file.to_str().expect("a path")]);
    assert!(imported.status.success());
    home.join("history.sqlite")
}

/// Overwrites the page with the most of these words.
fn destroy_page(history: &Path, words: &str) {
    let mut bytes = std::fs::read(history).expect("the history");
    let found = |page: &[u8]| {
        page.windows(words.len())
            .filter(|place| *place == words.as_bytes())
            .count()
    };
    let page = bytes
        .chunks_exact_mut(PAGE)
        .max_by_key(|page| found(page))
        .expect("a page");
    assert!(found(page) > 3, "a page full of {words}");
    page.fill(0xAA);
    std::fs::write(history, bytes).expect("written");
}

/// All chats of [`history_with_chats`] are counted, whatever became of their texts.
fn assert_all_are_known(window: &Window) {
    let left = window.newest("damage-left");
    assert!(left.contains("10 chats"), "{left}");
}

#[test]
fn garbage_in_place_of_a_history_is_set_aside_if_that_is_chosen() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("history.sqlite"), "no database ".repeat(1000)).expect("written");
    let window = Window::start(home.path(), &[]);
    window.wait_for("damage-left");
    assert_eq!(window.count("damage-repair"), 0, "nothing can be read");
    window.image("damaged-nothing-left");
    let process = window.process();
    window.click_and_leave("failure-anew");
    window.wait_until("the file is kept beside", || set_aside(home.path()) == 1);
    window.wait_until("the failed app has ended", || {
        !Path::new(&format!("/proc/{process}")).exists()
    });
    window.kill();
}

#[test]
fn a_history_without_its_header_keeps_every_chat() {
    let home = tempfile::tempdir().expect("a folder");
    let history = history_with_chats(home.path());
    let mut bytes = std::fs::read(&history).expect("the history");
    bytes[..100].fill(0);
    std::fs::write(&history, &bytes).expect("written");
    for _ in 0..2 {
        let window = Window::start(home.path(), &[]);
        window.wait_for("damage-left");
        window.image("damaged-header");
        assert_all_are_known(&window);
        assert_eq!(
            std::fs::read(&history).expect("the history"),
            bytes,
            "replaced before anybody chose"
        );
        window.kill();
    }
    let refused = ponder(home.path(), &["history"]);
    assert_eq!(refused.status.code(), Some(1));
    let window = Window::start(home.path(), &[]);
    window.wait_for("damage-repair");
    window.click("damage-repair");
    window.wait_for("damage-done");
    window.image("damaged-repaired");
    assert_eq!(set_aside(home.path()), 1);
    window.kill();
    let window = Window::open(home.path());
    window.wait_until("all chats are listed", || window.count("chat-item") == 10);
    set_thinking(&window, false);
    window.ask("What is 2 + 3?");
    window.wait_until_answer_is("complete");
    window.close();
}

#[test]
fn damage_that_is_met_while_the_app_runs_is_asked_about_at_once() {
    let home = tempfile::tempdir().expect("a folder");
    let history = history_with_chats(home.path());
    destroy_page(&history, "Besan\u{e7}on");
    let window = Window::open(home.path());
    window.wait_until("chats are listed", || window.count("chat-item") == 10);
    // Some of the texts lie on the destroyed page.
    for place in 0..10 {
        window.run(
            "document.querySelectorAll('[data-testid=chat-item]')[arguments[0]].click()",
            serde_json::json!([place]),
        );
    }
    window.switch_to("Your chat history is damaged");
    window.wait_for("damage-repair");
    assert_all_are_known(&window);
    window.image("damaged-while-running");
    window.click("damage-repair");
    window.wait_for("damage-done");
    assert_eq!(set_aside(home.path()), 1);
    window.kill();
    let window = Window::open(home.path());
    window.wait_until("chats are listed", || window.count("chat-item") >= 10);
    window.close();
}
