//! A day with a small trained model in the real window, by a real keyboard where words are typed: from the first start
//! to a history that a disk damaged. `PONDER_SMOLLM2` is the model's folder; without it the day does not take place.

mod answers;
mod library;
mod projects;
mod windows;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::images_window::HANDS;
use crate::support::driver::Window;
use crate::support::keyboard::Keyboard;

/// The model's name in the window, of that of its folder.
const MODEL: &str = "SmolLM2 135M Instruct";

/// The app in one of its runs of the day, with the keyboard of its display.
struct Day<'a> {
    home: &'a Path,
    window: Window,
    keys: Keyboard,
    steps: &'a Cell<u32>,
}

impl<'a> Day<'a> {
    fn start(home: &'a Path, steps: &'a Cell<u32>) -> Self {
        // Its answers have no limit but its own on a computer that is busy with other tests.
        let window = Window::open(home).with_patience(Duration::from_secs(240));
        window.wait_for("composer");
        let keys = Keyboard::of(&window);
        let day = Self {
            home,
            window,
            keys,
            steps,
        };
        day.at("Ponder");
        day
    }

    /// Goes to the window whose title ends so; it gets the keys.
    fn at(&self, title: &str) {
        self.window.switch_to(title);
        self.window.wait_until("it has the keyboard", || {
            self.keys.bring_forward(title);
            self.window.run("return document.hasFocus()", json!([])) == true
        });
    }

    /// Numbers a step, and keeps what the window looks like before it.
    fn step(&self, what: &str) {
        let number = self.steps.get() + 1;
        self.steps.set(number);
        println!("report: step {number}: {what}");
        self.window.image(&format!("day-{number:02}"));
    }

    /// Types into a field, and waits until the page has taken the last letter.
    fn type_into(&self, field: &str, text: &str) {
        self.window.click(field);
        self.keys.type_text(text);
        let value = "return document.querySelector(`[data-testid=${arguments[0]}]`).value";
        self.window
            .wait_until("the words are there", || self.window.run(value, json!([field])) == text);
    }

    /// Types into the composer and presses Enter.
    fn ask(&self, question: &str) {
        self.type_into("composer", question);
        self.keys.press("Return");
    }

    /// Asks, and waits for the whole answer, which it returns.
    fn answer_to(&self, question: &str) -> String {
        let before = self.window.count("message-assistant");
        self.ask(question);
        self.window
            .wait_until("the answer begins", || self.window.count("message-assistant") > before);
        self.end_of_answer()
    }

    fn end_of_answer(&self) -> String {
        self.window
            .wait_until("the answer has ended", || self.window.answer_state() != "streaming");
        assert_eq!(self.window.answer_state(), "complete", "{}", self.window.answer());
        self.window.answer()
    }

    /// Sets a field of the chat's sheet.
    fn set(&self, field: &str, value: &str) {
        self.window.click("open-chat-settings");
        write(&self.window, field, value);
        self.window.click("chat-settings-done");
    }

    /// Opens the menu of the chat with this title and chooses an item of it.
    fn in_menu_of(&self, title: &str, item: &str) {
        let open = "const item = [...document.querySelectorAll('[data-testid=chat-item]')].find((item) => item.textContent.includes(arguments[0]));
            item?.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true })); return item !== undefined";
        self.window.wait_until(&format!("the menu of {title} has {item}"), || {
            self.window.run(open, json!([title])) == true && self.window.count(item) == 1
        });
        self.window.click(item);
    }

    fn open_chat(&self, title: &str) {
        let open = "const item = [...document.querySelectorAll('[data-testid=chat-item]')].find((item) => item.textContent.includes(arguments[0]));
            item?.click(); return item !== undefined";
        self.window.wait_until(&format!("{title} is listed"), || {
            self.window.run(open, json!([title])) == true && self.window.newest("chat-title").contains(title)
        });
    }

    fn chats(&self) -> Vec<String> {
        let script =
            "return [...document.querySelectorAll('[data-testid=chat-item] .title')].map((title) => title.textContent)";
        let titles = self.window.run(script, json!([]));
        titles
            .as_array()
            .expect("a list")
            .iter()
            .map(|title| title.as_str().expect("text").to_owned())
            .collect()
    }
}

/// Writes over a field's text.
fn write(window: &Window, field: &str, text: &str) {
    window.wait_for(field);
    let script = "const area = document.querySelector(`[data-testid=${arguments[0]}]`); area.value = arguments[1];
        for (const kind of ['input', 'change']) area.dispatchEvent(new Event(kind, { bubbles: true }))";
    window.run(script, json!([field, text]));
}

/// Looks for words anywhere in the page.
fn says(window: &Window, words: &str) -> bool {
    window.run("return document.body.innerText.includes(arguments[0])", json!([words])) == true
}

#[test]
fn a_day_with_a_trained_model() {
    let Some(model) = std::env::var_os("PONDER_SMOLLM2").map(PathBuf::from) else {
        println!("report: no trained model is here; ./dev test fetches it");
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    let steps = Cell::new(0);
    let day = Day::start(home.path(), &steps);
    day.window.run(HANDS, json!([]));
    answers::morning(&day, &model);
    answers::answers(&day);
    projects::projects(&day);
    library::library(&day);
    windows::other_windows(&day);
    day.window.close();
    windows::evening(home.path(), &steps);
    assert_eq!(steps.get(), 40);
}

/// The letters of the newest answer, if it is being written.
fn written(window: &Window) -> u64 {
    let script = "const last = [...document.querySelectorAll('[data-testid=message-assistant]')].at(-1);
        return last?.dataset.state === 'streaming' ? (last.querySelector('[data-testid=answer-text]')?.textContent.length ?? 0) : 0";
    window.run(script, json!([])).as_u64().expect("a number")
}
