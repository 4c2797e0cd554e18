//! Temporary chats in the real window: nothing of one is left once it is left, or the app has ended; one that is kept
//! is a chat like any other.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{json, Value};

use crate::accessible_window::{focused, CONTROL, SHIFT};
use crate::images_window::{in_page, HANDS};
use crate::support::driver::Window;
use crate::support::ponder_json;

/// The words of a temporary chat: of its question, and of the names and contents of its attachments.
const SECRETS: [&str; 5] = ["zyxquestion", "zyxfilename", "zyxinfile", "zyximagename", "zyxinimage"];
/// A word that stays in the composer of a temporary chat.
const UNSENT: &str = "zyxunsent";
/// The question of a normal chat.
const NORMAL: &str = "What is 347 + 589?";

/// The stored chats, sorted by their titles, as another process reads them.
pub fn listed(home: &Path) -> Vec<String> {
    let chats = ponder_json(home, &["history", "--json"]);
    let titles = chats[0]["chats"].as_array().expect("chats").iter();
    let mut titles: Vec<String> = titles
        .map(|chat| chat["title"].as_str().expect("a title").to_owned())
        .collect();
    titles.sort();
    titles
}

/// Waits until no file below the home holds any of these texts. On a failure the output ends with the files that do.
pub fn wait_until_gone(window: &Window, home: &Path, texts: &[&str]) {
    let mut told: Vec<String> = Vec::new();
    window.wait_until("no file holds what was said", || {
        let left = holders(home, texts);
        if left != told {
            println!("still there: {left:?}");
            told.clone_from(&left);
        }
        left.is_empty()
    });
}

/// The texts that files below a folder hold, each with its file: in UTF-8, or in UTF-16 as a web view stores texts.
fn holders(home: &Path, texts: &[&str]) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![home.to_owned()]);
    while let Some(folder) = folders.pop() {
        // A running app removes files and folders meanwhile.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                let held = texts.iter().filter(|text| holds(&bytes, text));
                found.extend(held.map(|text| format!("{text} in {}", entry.path().display())));
            }
        }
    }
    found
}

fn holds(bytes: &[u8], text: &str) -> bool {
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    [text.as_bytes(), wide.as_slice()]
        .iter()
        .any(|wanted| bytes.windows(wanted.len()).any(|place| place == *wanted))
}

/// The number of stored attachments.
fn attachments(home: &Path) -> usize {
    fs::read_dir(home.join("attachments"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().is_file())
        .count()
}

fn open(home: &Path) -> Window {
    let window = Window::open(home).with_patience(Duration::from_secs(240));
    window.run(HANDS, json!([]));
    wait_for_composer(&window);
    window
}

/// Waits until the window is ready, or a new chat is.
fn wait_for_composer(window: &Window) {
    window.wait_until("the composer has the focus", || focused(window) == "composer");
}

/// Begins a temporary chat by its shortcut.
fn begin(window: &Window) {
    window.press_chord(&format!("{CONTROL}{SHIFT}n"));
    window.wait_for("temporary-note");
    window.wait_until("it is empty", || window.count("message-user") == 0);
    wait_for_composer(window);
}

/// Asks, and waits for the whole answer, which it returns.
fn ask(window: &Window, question: &str) -> String {
    window.ask(question);
    window.wait_until("it is answered", || {
        window.newest("message-user").contains(question)
            && window.answer_state() == "complete"
            && !window.answer().is_empty()
    });
    // A finished text is drawn once more, with marks that a growing one hides.
    window.wait_until("all of it is drawn", || {
        window.run(
            "return document.querySelector('[data-testid=answer-text] [data-drawing]')",
            json!([]),
        ) == Value::Null
    });
    window.answer()
}

/// Asks about a text file and an image, so that each of the secrets is said; returns the answer.
fn ask_with_attachments(window: &Window) -> String {
    let [question, file_name, in_file, image_name, in_image] = SECRETS;
    // Bytes after the end of an image belong to its file and are not drawn.
    let drop = "const [fileName, inFile, imageName, inImage] = args;
        const drawn = await imageOf(`${imageName}.png`, 320, 200, 200);
        const image = new File([await drawn.arrayBuffer(), inImage], drawn.name, { type: drawn.type });
        const text = new File([`# Notes\\n\\nThe word is ${inFile}.\\n`], `${fileName}.md`, { type: 'text/markdown' });
        bring('drop', [text, image])";
    in_page(window, drop, json!([file_name, in_file, image_name, in_image]));
    let read = "const draft = document.querySelector('[data-testid=draft-images]');
        return draft !== null && draft.querySelectorAll('[data-testid=attachment]').length === 2
            && !draft.querySelector('[aria-busy=true]') && (draft.querySelector('img')?.naturalWidth ?? 0) > 0";
    window.wait_until("both are read", || window.run(read, json!([])) == true);
    let answer = ask(window, &format!("What is 2 + 3? {question}"));
    wait_for_attachments(window);
    answer
}

/// Waits until the question shows its file and its image.
fn wait_for_attachments(window: &Window) {
    let shown = "const question = document.querySelector('[data-testid=message-user]');
        return question !== null && question.querySelectorAll('[data-testid=read-file]').length === 1
            && (question.querySelector('[data-testid=message-image] img')?.naturalWidth ?? 0) > 0";
    window.wait_until("the question has both", || window.run(shown, json!([])) == true);
}

/// Checks that nothing is left of a temporary chat, and that these chats are.
fn check_what_is_left(window: &Window, home: &Path, chats: &[&str]) {
    window.wait_until("the other chats are listed", || {
        window.count("chat-item") == chats.len() as u64 && window.count("temporary-note") == 0
    });
    assert_eq!(listed(home), chats);
    wait_until_gone(window, home, &SECRETS);
    wait_until_gone(window, home, &[UNSENT]);
    window.wait_until("no attachment is left", || attachments(home) == 0);
}

fn draft(window: &Window) -> String {
    let script = "return document.querySelector('[data-testid=composer]').value";
    window.run(script, json!([])).as_str().expect("text").to_owned()
}

#[test]
fn what_is_said_in_a_temporary_chat_is_nowhere_once_it_is_left() {
    let home = tempfile::tempdir().expect("a folder");
    let window = open(home.path());
    ask(&window, NORMAL);
    window.wait_until("the chat is listed", || window.count("chat-item") == 1);

    // The first is left for another chat, with a half question in its composer.
    begin(&window);
    window.image("temporary-empty");
    ask_with_attachments(&window);
    window.image("temporary-answered");
    window.type_into("composer", UNSENT);
    assert_eq!(window.count("chat-item"), 1, "the list has the other chat alone");
    window.click("chat-item");
    window.wait_until("the other chat is open, and nothing was asked", || {
        window.newest("chat-title") == NORMAL && window.newest("message-user").contains(NORMAL)
    });
    check_what_is_left(&window, home.path(), &[NORMAL]);
    assert_eq!(draft(&window), "");

    // The second is left for a new chat.
    window.click("new-chat");
    window.click("temporary-chat");
    window.wait_for("temporary-note");
    wait_for_composer(&window);
    ask_with_attachments(&window);
    window.press_chord(&format!("{CONTROL}n"));
    window.wait_until("a new chat is open, and nothing was asked", || {
        window.count("message-user") == 0 && focused(&window) == "composer"
    });
    check_what_is_left(&window, home.path(), &[NORMAL]);
    assert_eq!(draft(&window), "");
    window.close();

    let window = open(home.path());
    check_what_is_left(&window, home.path(), &[NORMAL]);
    window.close();
}

#[test]
fn a_temporary_chat_does_not_outlive_the_app() {
    for end in [Window::close as fn(Window), Window::kill] {
        let home = tempfile::tempdir().expect("a folder");
        let window = open(home.path());
        begin(&window);
        ask_with_attachments(&window);
        window.type_into("composer", UNSENT);
        end(window);

        let window = open(home.path());
        assert_eq!(window.count("message-user"), 0);
        assert_eq!(draft(&window), "");
        check_what_is_left(&window, home.path(), &[]);
        window.close();
    }
}

#[test]
fn a_temporary_chat_that_is_kept_is_like_any_other() {
    let home = tempfile::tempdir().expect("a folder");
    let window = open(home.path());
    window.click("temporary-chat");
    window.wait_for("temporary-note");
    wait_for_composer(&window);
    let answer = ask_with_attachments(&window);
    window.click("keep-chat");
    window.wait_until("it is listed", || {
        window.count("temporary-note") == 0
            && window.count("chat-item") == 1
            && window.newest("chat-item").contains(SECRETS[0])
    });
    window.image("temporary-kept");
    assert_eq!(window.answer(), answer);
    let titles = listed(home.path());
    assert!(titles.len() == 1 && titles[0].contains(SECRETS[0]), "{titles:?}");
    // It is left as any other chat is, and nothing of it goes.
    window.press_chord(&format!("{CONTROL}n"));
    window.wait_until("a new chat is open", || window.count("message-user") == 0);
    assert_eq!(window.count("chat-item"), 1);
    // The search that finds nothing of the others finds all of this one.
    let held = holders(home.path(), &SECRETS);
    for secret in SECRETS {
        assert!(held.iter().any(|held| held.starts_with(secret)), "{secret}: {held:?}");
    }
    window.close();

    let window = open(home.path());
    window.click("chat-item");
    window.wait_until("its answer is back", || window.answer() == answer);
    wait_for_attachments(&window);
    window.click("read-file");
    window.wait_until("its file can be read", || {
        window.newest("file-text").contains(SECRETS[2])
    });
    assert_eq!((listed(home.path()), attachments(home.path())), (titles, 2));
    window.close();
}
