//! Screenshots of every state of every window for a review: light, dark, narrow, text of 200 %, right to left. `./dev
//! pictures` writes them. States that cannot be reached are listed at the end, and do not stop the others.

mod chat_window;
mod chats;
mod documents;
mod library;
mod other_windows;
mod reading;
mod readme;
mod tools;
mod writing;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hub_imitation::Imitation;
use serde_json::{json, Value};

use crate::images_window::{invoke, invoke_in_settings, model_without_vision, HANDS};
use crate::support::driver::Window;
use crate::support::vision_endpoint::VisionEndpoint;
use crate::window::ponder_json_chat;

/// One look of all windows.
struct Variant {
    name: &'static str,
    /// The appearance settings.
    appearance: fn() -> Value,
    language: &'static str,
    /// True if windows have their minimum size.
    narrow: bool,
    /// Environment variables, for the window that cannot read settings.
    environment: &'static [(&'static str, &'static str)],
}

const VARIANTS: [Variant; 5] = [
    Variant {
        name: "light",
        appearance: || json!({"theme": "light"}),
        language: "en",
        narrow: false,
        environment: &[],
    },
    Variant {
        name: "dark",
        appearance: || json!({"theme": "dark"}),
        language: "en",
        narrow: false,
        environment: &[("GTK_THEME", "Adwaita:dark")],
    },
    Variant {
        name: "narrow",
        appearance: || json!({"theme": "light"}),
        language: "en",
        narrow: true,
        environment: &[],
    },
    Variant {
        name: "large",
        appearance: || json!({"theme": "light", "text_size": 200}),
        language: "en",
        narrow: false,
        environment: &[],
    },
    Variant {
        name: "right-to-left",
        appearance: || json!({"theme": "light"}),
        language: "ar",
        narrow: false,
        environment: &[("LANGUAGE", "ar"), ("LANG", "ar_EG.UTF-8")],
    },
];

/// The minimum sizes of the windows: as narrow as `src-tauri/src/windows` allows, and high enough for their content.
const NARROW: [(&str, u32, u32); 5] = [
    ("chat", 480, 760),
    ("models", 480, 640),
    ("settings", 440, 620),
    ("quick", 320, 300),
    ("failure", 360, 420),
];

/// The app in one look, taken from state to state.
struct Stage<'a> {
    window: Window,
    home: &'a Path,
    hub: &'a Imitation,
    variant: &'a Variant,
    /// The folder for the screenshots of this look.
    folder: PathBuf,
    /// Filters on `LOOK/STATE`; a state is taken if it contains one of them. Empty: all.
    only: &'a [String],
    /// The current window.
    place: Cell<&'static str>,
    failed: RefCell<Vec<String>>,
}

impl Stage<'_> {
    /// The words that a person types in the language of this look.
    fn words(&self, english: &'static str, arabic: &'static str) -> &'static str {
        match self.variant.language {
            "ar" => arabic,
            _ => english,
        }
    }

    /// Takes a window from its initial state to another one, and takes its screenshot.
    fn state(&self, place: &'static str, name: &str, bring: impl FnOnce(&Self)) {
        self.images(place, name, |stage| {
            bring(stage);
            stage.image(name);
        });
    }

    /// The same for consecutive states; `bring` takes the screenshots.
    fn images(&self, place: &'static str, name: &str, bring: impl FnOnce(&Self)) {
        if !wanted(self.only, self.variant, name) {
            return;
        }
        let brought = catch_unwind(AssertUnwindSafe(|| {
            self.begin(place);
            bring(self);
        }));
        if let Err(reason) = brought {
            self.failed
                .borrow_mut()
                .push(format!("{}/{name}: {}", self.variant.name, told(&*reason)));
        }
    }

    /// The initial state of a window: its page reloaded, nothing running, nothing typed.
    fn begin(&self, place: &'static str) {
        self.window.switch_to_window("chat");
        self.place.set("chat");
        self.window.reload();
        self.window.run(HANDS, json!([]));
        self.window.wait_until("nothing runs", || {
            let stop =
                "const running = document.querySelectorAll('[data-testid=stop], [data-testid=stop-column], [data-testid=edit-queued]');
                running.forEach((button) => button.click()); return running.length";
            self.window.run(stop, json!([])) == 0
        });
        self.press("new-chat");
        self.window.wait_until("nothing is written", || {
            let clear =
                "document.querySelectorAll('[data-testid=remove-attachment]').forEach((button) => button.click());
                const area = document.querySelector('[data-testid=composer]'); area.value = '';
                area.dispatchEvent(new InputEvent('input', { bubbles: true }));
                return document.querySelectorAll('[data-testid=message-user], [data-testid=attachment]').length";
            self.window.run(clear, json!([])) == 0
        });
        if place != "chat" {
            self.open(place);
            self.window.refresh();
            self.window.wait_until("its pages are there", || {
                self.window
                    .run("return document.querySelectorAll('[role=tab]').length", json!([]))
                    != 0
            });
        }
    }

    /// Switches to another window, in its size.
    fn open(&self, place: &'static str) {
        invoke(&self.window, "open_window", json!({"name": place}));
        self.window.switch_to_window(place);
        self.place.set(place);
        self.size();
    }

    /// Gives the current window the size of this look.
    fn size(&self) {
        let narrow = NARROW.into_iter().find(|(name, ..)| *name == self.place.get());
        if let (true, Some((_, width, height))) = (self.variant.narrow, narrow) {
            self.window.resize(width, height);
            self.window.wait_until("it is narrow", || {
                self.window.run("return innerWidth", json!([])) == width
            });
        }
    }

    /// Takes a screenshot.
    fn image(&self, name: &str) {
        self.window.image_in(&self.folder, name);
    }

    /// Takes screenshots of everything that can be scrolled into view, from the top: `NAME`, `NAME-2`, ….
    fn image_all(&self, name: &str) {
        let scroll = "const open = document.querySelector('dialog[open]') ?? document;
            const boxes = [...open.querySelectorAll('*')].filter((box) => box.scrollHeight > box.clientHeight + 8 && /auto|scroll/.test(getComputedStyle(box).overflowY));
            const box = boxes.sort((a, b) => b.clientWidth * b.clientHeight - a.clientWidth * a.clientHeight)[0];
            if (!box) return 0;
            box.scrollTop = arguments[0] * (box.clientHeight - 60);
            return Math.ceil((box.scrollHeight - box.clientHeight) / (box.clientHeight - 60))";
        self.window.run(scroll, json!([0]));
        self.image(name);
        let pages = self.window.run(scroll, json!([0])).as_u64().unwrap_or(0).min(4);
        for page in 1..=pages {
            self.window.run(scroll, json!([page]));
            self.image(&format!("{name}-{}", page + 1));
        }
    }

    /// Presses a button anywhere, also in a closed drawer.
    fn press(&self, test_id: &str) {
        self.window.click_last(test_id);
    }

    /// Presses a button and waits for an element to appear.
    fn press_for(&self, test_id: &str, shown: &str) {
        self.press(test_id);
        self.window.wait_for(shown);
    }

    /// Presses a key with Control, independent of the focus.
    fn shortcut(&self, key: &str, shift: bool) {
        let script = "document.body.dispatchEvent(new KeyboardEvent('keydown',
            { key: arguments[0], ctrlKey: true, shiftKey: arguments[1], bubbles: true, cancelable: true }))";
        self.window.run(script, json!([key, shift]));
    }

    /// Replaces the text of a field.
    fn write(&self, test_id: &str, text: &str) {
        self.window.wait_for(test_id);
        let script = "const field = document.querySelector(`[data-testid='${arguments[0]}']`); field.focus(); field.value = arguments[1];
            field.dispatchEvent(new InputEvent('input', { bubbles: true })); field.dispatchEvent(new Event('change', { bubbles: true }))";
        self.window.run(script, json!([test_id, text]));
    }

    /// Opens the chat of this title.
    fn open_chat(&self, title: &str) {
        let script = "const item = [...document.querySelectorAll('[data-testid=chat-item]')].find((item) => item.textContent.trim().startsWith(arguments[0]));
            item?.click(); return item !== undefined";
        self.window.wait_until(&format!("{title} is listed"), || {
            self.window.run(script, json!([title])) == Value::Bool(true)
        });
        self.window
            .wait_until("it is open", || self.window.newest("chat-title").starts_with(title));
        self.window.wait_for("message-assistant");
    }

    /// Presses the menu of the chat of this title.
    fn chat_menu(&self, title: &str) {
        let script = "const item = [...document.querySelectorAll('[data-testid=chat-item]')].find((item) => item.textContent.trim().startsWith(arguments[0]));
            item?.parentElement.querySelector('[data-testid=chat-menu]').click(); return item !== undefined";
        self.window.wait_until(&format!("{title} is listed"), || {
            self.window.run(script, json!([title])) == Value::Bool(true)
        });
    }

    /// Shows the sidebar if the window is too narrow for it.
    fn show_sidebar(&self) {
        let hidden = "return getComputedStyle(document.querySelector('[data-testid=toggle-sidebar]').parentElement).display !== 'none'";
        if self.window.run(hidden, json!([])) == Value::Bool(true) {
            self.press("toggle-sidebar");
        }
    }

    /// Sends a question and waits for the start of its answer.
    fn ask(&self, question: &str) {
        let before = self.window.count("message-assistant");
        self.write("composer", question);
        self.press("send");
        self.window.wait_until("it is being answered", || {
            self.window.count("message-assistant") > before
        });
    }

    /// Sends a question and waits for the end of its answer.
    fn ask_to_the_end(&self, question: &str) {
        self.ask(question);
        self.window.wait_until_answer_is("complete");
    }

    /// Runs a function body in the page, which returns true if it found its element.
    fn page(&self, script: &str, arguments: Value) {
        self.window.wait_until(script, || {
            self.window.run(script, arguments.clone()) == Value::Bool(true)
        });
    }
}

/// The message of a panic.
fn told(reason: &(dyn Any + Send)) -> String {
    let text = reason.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| reason.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given")
        .to_owned()
}

fn wanted(only: &[String], variant: &Variant, state: &str) -> bool {
    let name = format!("{}/{state}", variant.name);
    only.is_empty() || only.iter().any(|word| name.contains(word.as_str()))
}

/// Takes all states of one look; returns those that could not be reached, with the missing element.
fn photograph(variant: &Variant, folder: &Path, only: &[String]) -> Vec<String> {
    let home = tempfile::tempdir().expect("a folder");
    let (hub, endpoint) = (Imitation::start(), VisionEndpoint::start());
    other_windows::fill(&hub);
    let hub_address = hub.endpoint();
    let environment = [
        ("HF_ENDPOINT", hub_address.as_str()),
        ("NO_PROXY", "127.0.0.1"),
        ("HF_TOKEN", ""),
    ];
    let open = || Stage {
        window: Window::open_with(home.path(), &environment).with_patience(Duration::from_secs(25)),
        home: home.path(),
        hub: &hub,
        variant,
        folder: folder.join(variant.name),
        only,
        place: Cell::new("chat"),
        failed: RefCell::default(),
    };
    let stage = open();
    // No state depends on the model that another one used.
    let change = json!({
        "appearance": (variant.appearance)(),
        "language": variant.language,
        "new_chats_use_last_model": false,
    });
    invoke(&stage.window, "change_settings", json!({"change": change}));
    stage.size();
    stage.state("chat", "first-start", |stage| stage.window.wait_for("empty-state"));
    let mut failed = stage.failed.take();
    stage.window.close();

    chats::put(home.path());
    ponder_json_chat(home.path());
    model_without_vision(&home.path().join("my-models/blind"));
    let _told = tools::fill(home.path());
    documents::fill(home.path());
    let stage = open();
    stage.size();
    invoke_in_settings(
        &stage.window,
        &[
            ("add_model_folder", json!({"path": home.path().join("my-models")})),
            (
                "add_endpoint",
                json!({"name": "lab", "url": endpoint.url, "key": null, "unencryptedKey": false}),
            ),
        ],
    );
    reading::states(&stage);
    chat_window::states(&stage);
    writing::states(&stage);
    library::states(&stage);
    tools::states(&stage);
    documents::states(&stage);
    other_windows::states(&stage);
    failed.extend(stage.failed.take());
    stage.window.close();
    failed
}

#[test]
#[ignore = "it writes images for people to look at; ./dev pictures runs it"]
fn every_state_is_photographed() {
    let folder = std::env::var_os("PONDER_PICTURES").map(PathBuf::from);
    let folder = folder.expect("PONDER_PICTURES names a folder; ./dev pictures sets it");
    fs::create_dir_all(&folder).expect("a folder for the images");
    let only = std::env::var("PONDER_PICTURES_OF").unwrap_or_default();
    let only: Vec<String> = only.split_whitespace().map(str::to_owned).collect();
    let mut failed = Vec::new();
    for variant in &VARIANTS {
        let taken = catch_unwind(AssertUnwindSafe(|| photograph(variant, &folder, &only)));
        failed.extend(taken.unwrap_or_else(|reason| vec![format!("{}: {}", variant.name, told(&*reason))]));
        let failure = catch_unwind(AssertUnwindSafe(|| other_windows::failure(variant, &folder, &only)));
        failed.extend(
            failure
                .err()
                .map(|reason| format!("{}/failure: {}", variant.name, told(&*reason))),
        );
    }
    assert!(failed.is_empty(), "not every state was reached:\n{}", failed.join("\n"));
}
