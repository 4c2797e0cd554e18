//! The morning: the first questions, the model from a folder, and its answers.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{write, written, Day, MODEL};
use crate::images_window::choose_model;
use crate::support::driver::Window;
use crate::window::set_thinking;

/// The first questions, and the model from a folder.
pub fn morning(day: &Day, model: &Path) {
    let window = &day.window;
    day.step("a first start: the composer is ready, the built-in model is named");
    window.wait_for("empty-state");
    assert_eq!(window.newest("model-picker").trim(), "Pebble");
    assert_eq!(day.chats(), Vec::<String>::new());

    day.step("a sum, typed at once");
    set_thinking(window, false);
    assert!(day.answer_to("What is 347 + 589?").contains("936"));

    day.step("Settings by the key, and a folder of models");
    let models = day.home.join("my-models");
    fs::create_dir_all(&models).expect("a folder");
    std::os::unix::fs::symlink(model, models.join("SmolLM2-135M-Instruct")).expect("a link");
    window.click("composer");
    day.keys.press("ctrl+comma");
    day.at("Settings");
    window.click("tab-models");
    window.click("add-folder");
    day.type_into("folder-path", &models.display().to_string());
    day.keys.press("Return");
    window.wait_for("own-folder");
    day.keys.press("ctrl+w");
    day.at("Ponder");

    day.step("the model is offered without a restart");
    day.keys.press("ctrl+n");
    window.wait_for("empty-state");
    choose_model(window, MODEL);
    window.wait_until("it is chosen", || window.newest("model-picker").contains(MODEL));
}

/// Answers of the model: again, beside each other, stopped, continued, edited.
pub fn answers(day: &Day) {
    let window = &day.window;
    day.step("a question to the trained model");
    day.set("setting-max_tokens", "64");
    day.set("setting-temperature", "0");
    assert!(day.answer_to("What is the capital of France?").contains("Paris"));

    day.step("the chat has a title of its own");
    window.wait_until("it is titled", || {
        let title = window.newest("chat-title");
        !title.trim().is_empty() && !title.contains("New chat")
    });

    day.step("answered again, in other words");
    day.set("setting-temperature", "");
    let first = day.answer_to("Write two sentences about the sea.");
    let mut texts = vec![first];
    for _ in 0..2 {
        window.click_last("regenerate");
        window.wait_until("another answer begins", || {
            place(window) == format!("{0} / {0}", texts.len() + 1)
        });
        texts.push(day.end_of_answer());
    }
    assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");

    day.step("back to the first answer");
    let back = "[...document.querySelectorAll('[data-testid=pager]')].at(-1).querySelectorAll('button')[0].click()";
    for (number, text) in [(2, &texts[1]), (1, &texts[0])] {
        window.run(back, json!([]));
        window.wait_until("an earlier one is shown", || {
            place(window) == format!("{number} / 3") && window.answer() == *text
        });
    }

    day.step("stopped in the middle, and continued");
    day.ask("Count from 1 to 30.");
    window.wait_until("some of it is there", || written(window) > 8);
    window.click("stop");
    window.wait_until_answer_is("stopped");
    let stopped = window.answer();
    window.click_last("continue");
    window.wait_until_answer_is("complete");
    let whole = window.answer();
    assert!(
        whole.starts_with(stopped.trim_end()) && whole.len() > stopped.len(),
        "{stopped:?} {whole:?}"
    );

    day.step("a question is edited, and its first form stays");
    window.click_last("edit-question");
    write(window, "message-editor", "Name three colors.");
    window.click("keep-edit");
    window.wait_until("two forms", || window.newest("question-pager").contains("2 / 2"));
    window.wait_until_answer_is("complete");

    day.step("two models side by side; the one that is kept goes on");
    window.click("composer-add");
    window.click("two-answers");
    let with_pebble = "const way = [...document.querySelectorAll('[data-testid=second-answer]')].find((way) => way.textContent.includes('Pebble'));
        way?.click(); return way !== undefined";
    window.wait_until("Pebble is one of the ways", || {
        window.run(with_pebble, json!([])) == true
    });
    day.ask("What is 2 + 3?");
    window.wait_until("both have ended", || window.count("keep-answer") == 2);
    window.run(
        "document.querySelectorAll('[data-testid=keep-answer]')[1].click()",
        json!([]),
    );
    window.wait_until("Pebble goes on", || window.newest("model-picker").contains("Pebble"));
    assert!(window.answer().contains('5'), "{}", window.answer());
    choose_model(window, MODEL);

    day.step("a model that thinks shows its thought apart");
    choose_model(window, "Pebble");
    set_thinking(window, true);
    day.answer_to("What is 12 + 30?");
    assert!(
        window.count("thought") > 0 && window.answer().contains("42"),
        "{}",
        window.answer()
    );
    choose_model(window, MODEL);

    day.step("instructions of the chat");
    day.set("system-prompt", "Answer with one word.");
    day.answer_to("Which animal barks?");

    day.step("a new chat begins with the model used last");
    day.keys.press("ctrl+n");
    window.wait_for("empty-state");
    assert!(window.newest("model-picker").contains(MODEL));
}

/// The place of the newest answer among its siblings.
fn place(window: &Window) -> String {
    let script = "return [...document.querySelectorAll('[data-testid=pager] span')].at(-1)?.textContent.trim() ?? ''";
    let place = window.run(script, json!([]));
    place.as_str().expect("text").to_owned()
}
