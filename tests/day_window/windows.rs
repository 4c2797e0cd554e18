//! The other windows, and the evening: an end, a kill, a damaged disk.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::{says, written, Day, MODEL};
use crate::images_window::choose_model;
use crate::settings_window::choose_in;
use crate::support::driver::Window;
use crate::support::ponder_json;
use crate::window::set_thinking;

/// Quick entry, the Models window, Settings.
pub fn other_windows(day: &Day) {
    let window = &day.window;
    day.step("a question in passing");
    assert!(window.start_again(&["--quick-entry"]).status.success());
    day.at("Quick entry");
    day.keys.type_text("What is 40 + 2?");
    day.keys.press("Return");
    window.wait_until("it is answered", || {
        window.attribute("quick-answer", "data-state") == "complete"
    });
    day.keys.press("Escape");
    day.at("Ponder");

    day.step("the Models window knows both models");
    window.click("open-models");
    day.at("Models");
    window.click("tab-local");
    window.wait_until("both are listed", || says(window, MODEL) && says(window, "Pebble"));
    day.keys.press("ctrl+w");
    day.at("Ponder");

    day.step("Settings: the engine holds models, and lets them go");
    window.click("open-settings");
    day.at("Settings");
    window.click("tab-models");
    window.wait_for("loaded-model");
    window.click("unload");

    day.step("Settings: dark, and German");
    window.click("tab-appearance");
    window.run("document.querySelector('[data-testid=theme-dark]').click()", json!([]));
    window.click("tab-general");
    choose_in(window, "language", "Deutsch");
    window.wait_until("it speaks German", || says(window, "Erscheinungsbild"));
    choose_in(window, "language", "English");
    window.wait_until("it speaks English", || says(window, "Appearance"));

    day.step("a backup is made");
    window.click("tab-privacy");
    window.click("back-up");
    window.wait_for("backup");
    day.keys.press("ctrl+w");
    day.at("Ponder");

    day.step("a context that is full goes on without its oldest turns");
    day.keys.press("ctrl+n");
    window.wait_for("empty-state");
    choose_model(window, "Pebble");
    set_thinking(window, false);
    day.set("setting-context", "512");
    for _ in 0..10 {
        if window.count("summarize-oldest-turns") == 1 {
            break;
        }
        day.answer_to("Count from 1 to 20");
    }
    window.click("context-more");
    window.click("drop-oldest-turns");
    window.wait_until("there is room", || window.count("summarize-oldest-turns") == 0);
    assert!(day.answer_to("What is 1 + 1?").contains('2'));
}

/// The end of the app, a kill in an answer, and a disk that damages the history.
pub fn evening(home: &Path, steps: &Cell<u32>) {
    let day = Day::start(home, steps);
    day.step("another start shows the same chats");
    let chats = day.chats();
    assert!(chats.len() > 12 && chats[0] == "The first sum", "{chats:?}");

    day.step("the app is killed in an answer, which is continued");
    day.keys.press("ctrl+n");
    day.window.wait_for("empty-state");
    choose_model(&day.window, "Pebble");
    set_thinking(&day.window, false);
    day.ask("Count from 1 to 120");
    day.window
        .wait_until("some of it is there", || written(&day.window) > 60);
    sleep(Duration::from_millis(400));
    drop(day.keys);
    day.window.kill();
    let day = Day::start(home, steps);
    day.open_chat("Count from 1 to 120");
    day.window.wait_until_answer_is("interrupted");
    day.window.click_last("continue");
    day.window.wait_until_answer_is("complete");
    assert!(day.window.answer().trim_end().ends_with("120"));
    let chats = day.chats();
    // An app that is quit leaves no log beside its history.
    day.keys.press("ctrl+q");
    drop(day.keys);
    day.window.wait_for_end();

    let history = home.join("history.sqlite");
    let mut bytes = fs::read(&history).expect("the history");
    bytes[..100].fill(0);
    fs::write(&history, &bytes).expect("written");
    assert!(!home.join("history.sqlite-wal").exists());
    steps.set(steps.get() + 1);
    println!(
        "report: step {}: a damaged disk; the repair is asked about, and keeps all",
        steps.get()
    );
    let window = Window::start(home, &[]);
    window.wait_for("damage-left");
    assert!(window.newest("damage-left").contains(&format!("{} chats", chats.len())));
    window.click("damage-repair");
    window.wait_for("damage-done");
    window.kill();

    let day = Day::start(home, steps);
    day.step("all of it is there, also for the command line");
    assert_eq!(day.chats(), chats);
    let listed = ponder_json(home, &["history", "--json"]);
    assert_eq!(listed[0]["chats"].as_array().map(Vec::len), Some(chats.len()));
    drop(day.keys);
    day.window.close();
}
