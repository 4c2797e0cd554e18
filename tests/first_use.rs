//! The first use of the app, from its start in a fresh home to its end, with every click and key counted: a question,
//! a larger model, its answer, a chat renamed and found, a temporary chat. Once with the mouse, once by keys alone.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use hub_imitation::Imitation;
use serde_json::{json, Value};

use crate::accessible_window::{focused, CONTROL, DOWN, ENTER, F2, SHIFT, TAB};
use crate::models_window::asking;
use crate::support::driver::Window;
use crate::support::keyboard::Keyboard;
use crate::support::ponder_json;
use crate::temporary_chat_window::{listed, wait_until_gone};

/// The pause between two tries to quit by a key.
const PRESS_AGAIN: Duration = Duration::from_secs(3);

/// The question of the built-in model, and its answer.
const FIRST: (&str, &str) = ("What is 347 + 589?", "347 + 589 = 936");
/// The question of the downloaded model, and its answer.
const SECOND: (&str, &str) = ("What is 2 + 3?", "2 + 3 = 5");
/// The new name of the second chat.
const NAME: &str = "Small sums";
/// The first chat is found by this part of its answer.
const FOUND: &str = "936";
/// The question of the temporary chat, and the word of it that must be nowhere afterwards.
const PASSING: (&str, &str) = ("Hello zyxkumquat", "zyxkumquat");

/// The most clicks and keys of a first use, which may only become fewer. A letter is a key, and so is a chord.
///
/// With the mouse: Send three times, New chat twice, Models, Download, Chat, the menu of the title and its Rename,
/// Search, Temporary chat. The keys are 61 letters, two Enters and the end.
const WITH_MOUSE: (u32, u32) = (12, 64);
/// By keys alone: 70 letters and 31 others, 12 of which are tabs to two buttons of the Models window.
const BY_KEYS: (u32, u32) = (0, 101);

/// A person at the window, whose clicks and keys are counted.
struct User {
    window: Window,
    clicks: Cell<u32>,
    keys: Cell<u32>,
}

impl User {
    /// Starts the app for the first time.
    fn start(home: &Path, hub: &Imitation) -> Self {
        let window = Window::open_with(home, &asking(&hub.endpoint())).with_patience(Duration::from_secs(240));
        window.wait_for("empty-state");
        let user = Self {
            window,
            clicks: Cell::new(0),
            keys: Cell::new(0),
        };
        user.wait_for_focus("composer");
        user
    }

    fn click(&self, test_id: &str) {
        self.window.click(test_id);
        self.clicks.set(self.clicks.get() + 1);
    }

    /// Presses keys together.
    fn press(&self, keys: &str) {
        self.window.press_chord(keys);
        self.keys.set(self.keys.get() + 1);
    }

    /// Types into the element with the focus.
    fn write(&self, text: &str) {
        for letter in text.chars() {
            self.press(&letter.to_string());
        }
    }

    /// Presses the tab key until this element has the focus.
    fn go_to(&self, test_id: &str) {
        let mut passed = Vec::new();
        while passed.len() < 60 {
            let now = focused(&self.window);
            if now == test_id {
                return;
            }
            passed.push(now);
            self.press(TAB);
        }
        panic!("the keys never come to {test_id}, but to {passed:?}");
    }

    fn wait_for_focus(&self, test_id: &str) {
        self.window
            .wait_until(&format!("{test_id} has the focus"), || focused(&self.window) == test_id);
    }

    /// Waits until the open chat has this question alone, and its whole answer, which it returns.
    fn wait_for_answer(&self, question: &str) -> String {
        let window = &self.window;
        window.wait_until(&format!("{question} is answered"), || {
            window.count("message-user") == 1
                && window.newest("message-user").contains(question)
                && window.answer_state() == "complete"
                && !window.answer().is_empty()
        });
        window.answer()
    }

    /// Waits for a chat without messages that has the focus.
    fn wait_for_new_chat(&self) {
        self.window.wait_until("a new chat waits for a question", || {
            self.window.count("message-user") == 0 && focused(&self.window) == "composer"
        });
    }

    /// Waits for the Models window, and returns the first model that it recommends, which fits this computer. From now
    /// on the hub has it: with Pebble's files, because those answer.
    fn see_models(&self, hub: &Imitation) -> String {
        let window = &self.window;
        window.switch_to("Models");
        // Every recommended model is too large for a computer with less than 12 GB of free memory.
        window.wait_for("get");
        let script = "const row = document.querySelector('[data-testid=get]').closest('[data-testid=hub-row]');
            return [row.dataset.id, row.querySelector('[data-testid=fit]').dataset.word]";
        let first = window.run(script, json!([]));
        assert_ne!(first[1], "will_not_fit");
        assert!(hub.requests().is_empty(), "nothing is asked before a model is chosen");
        let id = first[0].as_str().expect("a model").to_owned();
        hub.repository(&id).pebble();
        id
    }

    /// Waits until a chat can be begun with the downloaded model.
    fn wait_for_model(&self) {
        self.window
            .wait_until("the model is here", || self.window.count("chat-with") == 1);
    }

    /// Comes back to the chat window, in which a chat with this model is open.
    fn come_back_with(&self, model: &str) {
        let name = model.rsplit('/').next().expect("a name").replace(['-', '_'], " ");
        self.window.switch_to("Ponder");
        self.window.wait_until("the chat has the model", || {
            self.window.newest("model-picker").contains(&name)
        });
        self.wait_for_new_chat();
    }

    /// Waits until the open chat has its new name.
    fn wait_for_name(&self) {
        self.window.wait_until("it is called otherwise", || {
            self.window.newest("chat-title") == NAME && self.titles() == [NAME, FIRST.0]
        });
    }

    /// Types into the palette, and takes its first entry once that has these words.
    fn take_from_palette(&self, words: &str) {
        let first = "const entry = document.querySelector('[data-testid=palette-entry]');
            return entry !== null && entry.textContent.toLowerCase().includes(arguments[0])";
        self.wait_for_focus("palette-words");
        self.write(words);
        self.window
            .wait_until("it is found", || self.window.run(first, json!([words])) == true);
        self.press(ENTER);
        self.window
            .wait_until("the palette is gone", || self.window.count("palette") == 0);
    }

    fn wait_for_first_chat(&self) {
        self.window.wait_until("the first chat is open", || {
            self.window.newest("chat-title") == FIRST.0 && self.window.answer() == FIRST.1
        });
    }

    /// Waits for a temporary chat without messages.
    fn wait_for_temporary_chat(&self) {
        self.window.wait_for("temporary-note");
        self.wait_for_new_chat();
    }

    /// Checks that nothing is left of the temporary chat, and that the others are.
    fn check_what_is_left(&self, home: &Path) {
        self.window.wait_until("the temporary chat is left", || {
            self.window.count("temporary-note") == 0 && self.window.count("message-user") == 0
        });
        self.window
            .wait_until("the list has the other chats", || self.titles() == [NAME, FIRST.0]);
        assert_eq!(listed(home), [NAME, FIRST.0]);
        wait_until_gone(&self.window, home, &[PASSING.1]);
    }

    /// The chats of the sidebar, sorted by their titles.
    fn titles(&self) -> Vec<String> {
        let script =
            "return [...document.querySelectorAll('[data-testid=chat-item] .title')].map((title) => title.textContent)";
        let titles = self.window.run(script, json!([]));
        let mut titles: Vec<String> = serde_json::from_value(titles).expect("a list of texts");
        titles.sort();
        titles
    }

    /// Quits the app by a key of its display, because the driver would wait for the page; returns the clicks and keys.
    fn quit(self) -> (u32, u32) {
        let keyboard = Keyboard::of(&self.window);
        self.window.wait_until("the window has the keyboard", || {
            keyboard.bring_forward("Ponder");
            self.window.run("return document.hasFocus()", json!([])) == true
        });
        // A key that comes while the display hands the keyboard over is lost, so it is pressed until it is heard.
        let mut pressed: Option<Instant> = None;
        self.window.wait_until("the app ends", || {
            if pressed.is_none_or(|at| at.elapsed() > PRESS_AGAIN) {
                keyboard.bring_forward("Ponder");
                keyboard.press("ctrl+q");
                pressed = Some(Instant::now());
            }
            !self.window.is_running()
        });
        drop(keyboard);
        let counted = (self.clicks.get(), self.keys.get() + 1);
        self.window.wait_for_end();
        counted
    }
}

/// The model that wrote the last answer of the chat with this title.
fn author(home: &Path, title: &str) -> Value {
    let chats = ponder_json(home, &["history", "--json"]);
    let mut chats = chats[0]["chats"].as_array().expect("chats").iter();
    let chat = chats.find(|chat| chat["title"] == title).expect("it is listed");
    let id = chat["id"].as_str().expect("an id");
    let chat = ponder_json(home, &["history", "export", "--format", "json", id]);
    let messages = chat[0]["messages"].as_array().expect("messages");
    messages.last().expect("an answer")["model"].clone()
}

fn report(how: &str, (clicks, keys): (u32, u32), most: (u32, u32)) {
    println!("report: first use {how} takes {clicks} clicks and {keys} keys");
    assert!(
        clicks <= most.0 && keys <= most.1,
        "{clicks} clicks and {keys} keys, and {most:?} were enough"
    );
}

#[test]
fn a_first_use_with_the_mouse_takes_few_clicks() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = Imitation::start();
    let user = User::start(home.path(), &hub);
    user.write(FIRST.0);
    user.click("send");
    assert_eq!(user.wait_for_answer(FIRST.0), FIRST.1);

    user.click("open-models");
    let model = user.see_models(&hub);
    user.click("get");
    user.wait_for_model();
    user.click("chat-with");
    user.come_back_with(&model);
    user.write(SECOND.0);
    user.click("send");
    assert_eq!(user.wait_for_answer(SECOND.0), SECOND.1);
    assert_eq!(author(home.path(), SECOND.0), model.as_str());

    user.click("title-menu");
    user.click("rename-chat");
    user.wait_for_focus("title-field");
    user.write(NAME);
    user.press(ENTER);
    user.wait_for_name();
    user.click("open-palette");
    user.take_from_palette(FOUND);
    user.wait_for_first_chat();

    user.click("new-chat");
    user.click("temporary-chat");
    user.wait_for_temporary_chat();
    user.write(PASSING.0);
    user.click("send");
    user.wait_for_answer(PASSING.0);
    user.click("new-chat");
    user.check_what_is_left(home.path());
    report("with the mouse", user.quit(), WITH_MOUSE);
}

#[test]
fn a_first_use_by_keys_alone_takes_no_click() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = Imitation::start();
    let user = User::start(home.path(), &hub);
    user.write(FIRST.0);
    user.press(ENTER);
    assert_eq!(user.wait_for_answer(FIRST.0), FIRST.1);

    user.press(&format!("{CONTROL}{SHIFT}m"));
    let model = user.see_models(&hub);
    // The buttons of the first model are near the search field.
    user.press(&format!("{CONTROL}f"));
    user.wait_for_focus("model-search");
    user.go_to("get");
    user.press(ENTER);
    user.wait_for_model();
    user.press(&format!("{CONTROL}f"));
    user.wait_for_focus("model-search");
    user.go_to("chat-with");
    user.press(ENTER);
    user.come_back_with(&model);
    user.write(SECOND.0);
    user.press(ENTER);
    assert_eq!(user.wait_for_answer(SECOND.0), SECOND.1);
    assert_eq!(author(home.path(), SECOND.0), model.as_str());

    // The arrows lead from the search field into the list, whose first chat is the newest one.
    user.press(&format!("{CONTROL}{SHIFT}f"));
    user.wait_for_focus("search");
    user.press(DOWN);
    user.wait_for_focus("add-project");
    user.press(DOWN);
    user.wait_for_focus("chat-item");
    let entry = user
        .window
        .run("return document.activeElement.textContent.trim()", json!([]));
    assert_eq!(entry, SECOND.0);
    user.press(F2);
    user.wait_for_focus("rename-field");
    user.write(NAME);
    user.press(ENTER);
    user.wait_for_name();
    user.press(&format!("{CONTROL}k"));
    user.take_from_palette(FOUND);
    user.wait_for_first_chat();

    user.press(&format!("{CONTROL}k"));
    user.take_from_palette("temporary");
    user.wait_for_temporary_chat();
    user.write(PASSING.0);
    user.press(ENTER);
    user.wait_for_answer(PASSING.0);
    user.press(&format!("{CONTROL}n"));
    user.check_what_is_left(home.path());
    report("by keys alone", user.quit(), BY_KEYS);
}
