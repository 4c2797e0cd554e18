//! The app around its window: closed and reopened, quit while it works, opened with links and files, notifications,
//! quick entry.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::settings_window::choose_in;
use crate::support::desktop::Desktop;
use crate::support::driver::{Window, SLOW};
use crate::support::{log, ponder, ponder_json};
use crate::window::{set_thinking, stored, text_of};

/// More than 300 tokens of answer.
const LONG: &str = "Count from 1 to 120";

fn composer(window: &Window) -> String {
    let script = "return document.querySelector('[data-testid=composer]').value";
    window.run(script, json!([])).as_str().expect("text").to_owned()
}

/// Starts a long answer and waits until some of it is shown.
fn begin_long_answer(window: &Window) {
    set_thinking(window, false);
    window.ask(LONG);
    window.wait_until("some of the answer is there", || window.answer().len() > 20);
}

/// Toggles a switch in the Settings window, closes it, and comes back.
fn switch(window: &Window, test_id: &str, chat_title: &str) {
    window.press_with_control(",");
    window.switch_to("Settings");
    window.click("tab-general");
    window.click(test_id);
    window.wait_until("it is on", || window.attribute(test_id, "aria-checked") == "true");
    window.image(&format!("settings-general-{test_id}"));
    // A user who looks at the answer gets no notification.
    window.press_with_control("w");
    window.switch_to(chat_title);
    window.wait_until("Settings is closed", || window.open_windows() == 1);
}

fn is_visible(window: &Window) -> bool {
    window.run("return document.visibilityState", json!([])) == "visible"
}

#[test]
fn without_an_icon_closing_the_window_ends_the_app() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    window.press_with_control("w");
    window.wait_for_end();
}

#[test]
fn with_an_icon_the_app_stays_and_is_opened_again_by_another_start_and_by_the_icon() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    let desktop = Desktop::of(&window);
    switch(&window, "tray-switch", "Ponder");
    window.wait_until("there is an icon", || desktop.has_icon());

    let process = window.process();
    window.press_with_control("w");
    window.wait_until("the window is hidden", || !is_visible(&window));
    let again = window.start_again(&[]);
    assert!(again.status.success(), "{again:?}");
    window.wait_until("the window is back", || is_visible(&window));
    assert_eq!(window.process(), process);

    window.press_with_control("w");
    window.wait_until("the window is hidden", || !is_visible(&window));
    desktop.choose("Show Ponder");
    window.wait_until("the window is back", || is_visible(&window));

    // The app never runs without any window or icon.
    window.press_with_control("w");
    window.wait_until("the window is hidden", || !is_visible(&window));
    desktop.end();
    window.wait_until("the window is back", || is_visible(&window));
    window.press_with_control("w");
    window.wait_for_end();
}

#[test]
fn what_the_desktop_shows_of_the_app_speaks_the_language_that_is_set() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_with(home.path(), &[("LC_ALL", "C.UTF-8")]);
    let desktop = Desktop::of(&window);
    switch(&window, "tray-switch", "Ponder");
    window.wait_until("there is an icon", || desktop.has_icon());
    assert_eq!(
        desktop.entries(),
        ["Show Ponder", "New Chat", "Quick Entry", "Quit Ponder"]
    );

    window.press_with_control(",");
    window.switch_to("Settings");
    window.wait_until("the title is there", || window.titles().contains("\"Settings\""));
    window.click("tab-general");
    for (language, title, entries) in [
        (
            "Deutsch",
            "\"Einstellungen\"",
            ["Ponder zeigen", "Neuer Chat", "Schnelleingabe", "Ponder beenden"],
        ),
        (
            "العربية",
            "\"الإعدادات\"",
            ["إظهار Ponder", "محادثة جديدة", "إدخال سريع", "إنهاء Ponder"],
        ),
    ] {
        choose_in(&window, "language", language);
        window.wait_until("the icon's menu speaks it", || desktop.entries() == entries);
        window.wait_until("the title speaks it", || window.titles().contains(title));
    }
    // The system language is English again.
    choose_in(&window, "language", "لغة النظام");
    window.wait_until("both speak the system's", || {
        desktop.entries()[0] == "Show Ponder" && window.titles().contains("\"Settings\"")
    });
    window.close();
}

#[test]
fn the_end_is_asked_about_only_while_an_answer_is_written() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    begin_long_answer(&window);
    window.press_with_control("q");
    window.wait_for("quit");
    window.image("quit-asked");
    window.click("quit-cancel");
    assert!(window.is_running());

    // The window's close button asks the same.
    window.press_with_control("w");
    window.wait_for("quit");
    window.click_and_leave("quit-when-done");
    window.wait_for_end();
    let messages = stored(home.path());
    let answer = messages.last().expect("an answer");
    assert_eq!(answer["state"], "complete");
    assert!(text_of(answer).ends_with("119, 120"), "{answer}");

    let window = Window::open(home.path());
    window.wait_for("message-assistant");
    window.press_with_control("q");
    window.wait_for_end();
}

#[test]
fn what_was_written_is_kept_by_an_end_in_the_middle() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_with(home.path(), &[&SLOW[..], &[("GTK_THEME", "Adwaita:dark")]].concat());
    begin_long_answer(&window);
    let seen = window.answer();
    window.press_with_control("q");
    window.wait_for("quit");
    window.image("quit-asked-dark");
    window.click_and_leave("quit-now");
    window.wait_for_end();
    let messages = stored(home.path());
    let answer = messages.last().expect("an answer");
    assert_ne!(answer["state"], "streaming");
    assert!(
        text_of(answer).starts_with(seen.trim_end_matches(|letter: char| !letter.is_ascii_digit())),
        "{answer}"
    );
}

#[test]
fn links_fill_a_draft_and_do_nothing_else() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    let hostile = [
        "ponder:../../etc/passwd",
        "ponder:quit",
        "ponder:new?text=x&send=1",
        "ponder:chat/../x",
    ];
    for link in hostile {
        let started = window.start_again(&[link]);
        assert!(started.status.success(), "{link}: {started:?}");
        window.wait_until("it says that the link is not opened", || {
            window.newest("toast").contains("open this link")
        });
    }
    assert_eq!(composer(&window), "");
    let link = "ponder:new?text=What%20is%202%20%2B%203%3F%E2%80%AE";
    assert!(window.start_again(&[link]).status.success());
    window.wait_until("the words are in the composer", || {
        composer(&window) == "What is 2 + 3?"
    });
    window.wait_until("it says where they come from", || {
        window.newest("toast").contains("Draft added from a link")
    });
    window.image("link-draft");
    sleep(Duration::from_millis(500));
    assert_eq!(window.count("message-user"), 0);
    assert_eq!(window.count("chat-item"), 0);
    window.click("send");
    window.wait_until_answer_is("complete");

    assert!(window.start_again(&["ponder://models/"]).status.success());
    window.switch_to("Models");
    // A second start only hands over its arguments; it starts nothing that its own end could tear down.
    let log = log(home.path());
    assert_eq!(log.matches("the engine computes").count(), 1, "{log}");
    window.close();
}

#[test]
fn a_first_start_takes_what_it_was_given() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::start_with(home.path(), &[], &["ponder:new?text=Early"]);
    window.wait_for("composer");
    window.wait_until("the words are in the composer", || composer(&window) == "Early");
    window.close();
}

#[test]
fn chats_of_a_file_are_imported_after_a_question_and_other_files_are_attached() {
    let (from, home) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let file = from.path().join("A chat ü.ponderchat");
    fs::write(&file, exported_chat(from.path())).expect("written");
    let notes = home.path().join("notes.md");
    fs::write(&notes, "# Notes\n\nThe tide turns at noon.\n").expect("written");

    let window = Window::open(home.path());
    let address = format!("file://{}", file.display())
        .replace(' ', "%20")
        .replace('ü', "%C3%BC");
    assert!(window.start_again(&[&address]).status.success());
    window.wait_for("opened-chats");
    window.image("import-asked");
    assert!(window
        .newest("opened-chats")
        .contains("contains 1 chat with 2 messages"));
    window.click("opened-no");
    assert!(window.start_again(&[file.to_str().expect("text")]).status.success());
    window.wait_for("opened-chats");
    assert_eq!(window.count("chat-item"), 0, "nothing is imported by itself");
    window.click("opened-import");
    window.wait_until("the chat is there", || window.count("chat-item") == 1);

    assert!(window.start_again(&[notes.to_str().expect("text")]).status.success());
    window.wait_until("the file is attached", || {
        window.run("return document.body.textContent.includes('notes.md')", json!([])) == true
    });
    fs::write(home.path().join("broken.ponderchat"), "{").expect("written");
    for wrong in ["broken.ponderchat", "gone.ponderchat", "."] {
        let path = home.path().join(wrong);
        assert!(window.start_again(&[path.to_str().expect("text")]).status.success());
    }
    window.wait_until("each of them is refused with words", || window.count("toast") == 3);
    window.image("files-refused");
    window.close();
}

fn exported_chat(home: &Path) -> Vec<u8> {
    let mut chat = Command::new(crate::support::ponder_program())
        .arg("chat")
        .env("PONDER_HOME", home)
        .env("HF_HOME", home.join("hub"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    let mut input = chat.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"What is 2 + 3?\n").expect("it reads");
    drop(input);
    chat.wait().expect("it ends");
    let chats = ponder_json(home, &["history", "--json"]);
    let id = chats[0]["chats"][0]["id"].as_str().expect("one chat").to_owned();
    ponder(home, &["history", "export", "--format", "json", &id]).stdout
}

#[test]
fn a_long_answer_is_told_of_and_a_click_leads_to_it() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    let desktop = Desktop::of(&window);
    switch(&window, "tray-switch", "Ponder");
    window.wait_until("there is an icon", || desktop.has_icon());
    window.ask("What is 2 + 3?");
    window.wait_until_answer_is("complete");
    window.press_with_control("n");
    window.wait_until("a new chat is open", || window.count("message-user") == 0);
    begin_long_answer(&window);
    // The computer is busy with something else.
    let signal = |name: &str| {
        let sent = Command::new("kill")
            .args([name, &window.process().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    };
    signal("-STOP");
    sleep(Duration::from_secs(11));
    signal("-CONT");
    // The window is hidden, and another chat is open in it.
    window.press_with_control("n");
    window.press_with_control("w");
    window.wait_until("the window is hidden", || !is_visible(&window));
    window.wait_until("it is told of", || !desktop.shown().is_empty());
    let shown = desktop.shown();
    assert_eq!(shown.len(), 1, "the short answer is not told of: {shown:?}");
    assert!(shown[0].summary.contains("Count"), "{shown:?}");
    assert_eq!(shown[0].body, "Response ready");
    assert!(shown[0].actions.contains(&"default".to_owned()));
    assert_eq!(window.count("message-assistant"), 0, "a new chat is open");
    desktop.click(shown[0].id);
    window.wait_until("the chat is shown", || window.answer().ends_with("119, 120"));
    window.close();
}

#[test]
fn quick_entry_answers_in_passing_and_becomes_a_chat() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    assert!(window.start_again(&["--quick-entry"]).status.success());
    window.switch_to("Quick entry");
    window.image("quick-empty");
    window.type_into("quick-question", "What is 347 + 589?\u{e007}");
    window.wait_until("it is answered", || {
        window.attribute("quick-answer", "data-state") == "complete" && window.newest("quick-answer").contains("936")
    });
    window.image("quick-answer");
    let height = window.run("return innerHeight", json!([])).as_f64().expect("a height");
    assert!(height > 100.0, "the window grew with the answer: {height}");
    window.type_into("quick-question", "\u{e00c}");
    window.wait_until("Escape hides it", || !is_visible(&window));
    assert!(window.start_again(&["--quick-entry"]).status.success());
    window.wait_until("it is back, with its answer", || {
        is_visible(&window) && window.count("quick-answer") == 1
    });
    window.click_and_leave("quick-open");
    window.wait_until("it is hidden", || !is_visible(&window));
    window.switch_to("What is 347 + 589? – Ponder");
    window.wait_until("the chat is shown", || window.answer().contains("936"));
    assert_eq!(window.count("chat-item"), 1);
    window.press_with_control("q");
    window.wait_for_end();
}
