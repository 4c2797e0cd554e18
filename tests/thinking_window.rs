//! Control of thinking in the real window: switched, ended, limited by a budget, continued after a stop and a kill.

use std::path::Path;

use serde_json::{json, Value};

use crate::support::driver::{Window, SLOW};
use crate::support::ponder_json;
use crate::window::{set_thinking, stored, text_of};

/// Some 200 tokens of thought of which Pebble is sure: 22 of 24 samples at a temperature of 1.3 were the same. A prompt
/// that was prefilled in other chunks, and so was rounded differently, leads to the same thought.
const LONG_THOUGHT: &str = "Sort 315, 291, 503, 974, 716, 757, 690.";

/// The model's undisturbed answer to a question.
struct Unbroken {
    /// The thought, in pieces of about a token.
    pieces: Vec<String>,
    text: String,
}

impl Unbroken {
    fn run(home: &Path, question: &str) -> Self {
        let events = ponder_json(
            home,
            &[
                "ask",
                "--json",
                "--model",
                "pebble",
                "--thinking",
                "on",
                "--temperature",
                "0",
                question,
            ],
        );
        let of = |kind: &str| -> Vec<String> {
            events
                .iter()
                .filter(|event| event["type"] == kind)
                .filter_map(|event| event["text"].as_str().map(str::to_owned))
                .collect()
        };
        Self {
            pieces: of("thinking"),
            text: of("text").concat(),
        }
    }

    fn thought(&self) -> String {
        self.pieces.concat()
    }

    /// The number of pieces that begin within this many characters.
    fn pieces_within(&self, characters: usize) -> usize {
        let mut seen = 0;
        self.pieces
            .iter()
            .take_while(|piece| {
                seen += piece.chars().count();
                seen <= characters
            })
            .count()
    }
}

fn thought_of(message: &Value) -> String {
    message["parts"]
        .as_array()
        .expect("parts")
        .iter()
        .filter(|part| part["kind"] == "thinking")
        .filter_map(|part| part["text"].as_str())
        .collect()
}

fn last_answer(home: &Path) -> Value {
    stored(home).pop().expect("an answer")
}

fn wait_for_some_thought(window: &Window, characters: usize) -> String {
    window.wait_until("some of the thought is there", || {
        window.attribute("thought", "data-live") == "true"
            && window.newest("thought-text").chars().count() >= characters
    });
    window.newest("thought-text")
}

fn wait_for_answers(window: &Window, count: u64) {
    window.wait_until("the answer is complete", || {
        window.count("message-assistant") == count && window.answer_state() == "complete"
    });
}

/// Shows the thinking budget: beside the switch once one applies, before in the menu of the composer.
fn show_budget(window: &Window) {
    if window.count("thinking-menu") == 1 {
        window.click("thinking-menu");
    } else {
        window.click("composer-add");
        window.click("thinking-budget");
    }
    window.wait_for("budget-field");
}

fn set_budget(window: &Window, tokens: &str) {
    show_budget(window);
    window.type_into("budget-field", tokens);
    window.click("set-budget");
    window.wait_until("the budget is shown", || {
        window.newest("thinking-menu").contains(&format!("Up to {tokens}"))
    });
}

#[test]
fn thinking_is_switched_in_the_middle_of_a_chat() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    for (number, on) in [true, false, true, false].into_iter().enumerate() {
        set_thinking(&window, on);
        window.click("composer-add");
        window.wait_for("two-answers");
        assert_eq!(
            window.count("thinking-budget"),
            u64::from(on),
            "a budget is offered where the model thinks"
        );
        window.click("composer-add");
        window.ask("What is 2 + 3?");
        wait_for_answers(&window, number as u64 + 1);
        assert_eq!(window.answer(), "2 + 3 = 5");
        let answer = last_answer(home.path());
        assert_eq!(!thought_of(&answer).is_empty(), on, "{answer}");
        // Before the first change the switch shows the default of the model's template.
        if number > 0 {
            assert_eq!(answer["settings"]["thinking"], if on { "on" } else { "off" });
        }
    }
    assert_eq!(window.count("thought"), 2);
    window.image("thinking-switched");
    window.close();
}

#[test]
fn a_model_that_thinks_although_it_was_switched_off_is_kept_out_of_the_answer() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);
    window.ask("What is 347 * 58?");
    wait_for_answers(&window, 1);
    assert_eq!(window.answer(), "347 x 58 = 20126");
    assert_eq!((window.count("thought"), window.count("notice")), (0, 1));
    assert!(
        window.newest("notice").contains("Thinking is off"),
        "{}",
        window.newest("notice")
    );
    let answer = last_answer(home.path());
    assert_eq!(thought_of(&answer), "");
    assert_eq!(text_of(&answer).trim(), "347 x 58 = **20126**");
    assert_eq!(answer["notices"][0]["code"], "thought_while_off");
    assert!(
        answer["usage"]["thinking_tokens"].as_u64() > Some(20),
        "it did think: {}",
        answer["usage"]
    );
    window.image("thought-while-off");
    window.close();
}

/// Presses the button, and returns the thought at that moment.
fn press_answer_now(window: &Window) -> String {
    let script = "const text = [...document.querySelectorAll('[data-testid=thought-text]')].at(-1).textContent; \
                  [...document.querySelectorAll('[data-testid=answer-now]')].at(-1).click(); return text";
    window.run(script, json!([])).as_str().expect("text").to_owned()
}

#[test]
fn answer_now_ends_the_thought_and_an_answer_follows() {
    let home = tempfile::tempdir().expect("a folder");
    let unbroken = Unbroken::run(home.path(), LONG_THOUGHT);
    let window = Window::open_with(home.path(), &SLOW);
    let mut late = Vec::new();
    for attempt in 1..=4 {
        // Each in a chat of its own, so that the conversation equals the undisturbed one.
        window.click("new-chat");
        window.wait_until("a new chat", || window.count("message-assistant") == 0);
        set_thinking(&window, true);
        window.ask(LONG_THOUGHT);
        wait_for_some_thought(&window, 40 * attempt);
        if attempt == 1 {
            window.image("thought-live");
        }
        // The whole thought is shown, not its last lines.
        window.click("thought-toggle");
        let shown = press_answer_now(&window);
        wait_for_answers(&window, 1);
        let answer = last_answer_of_newest_chat(home.path());
        let thought = thought_of(&answer);
        let same = unbroken.thought().starts_with(&thought) && thought.len() < unbroken.thought().len();
        assert!(same, "no strict prefix: {thought:?}");
        assert!(
            letters(&thought).starts_with(&letters(&shown)),
            "{shown:?} was shown and is not in {thought:?}"
        );
        assert!(
            !window.answer().is_empty() && text_of(&answer).trim() != "",
            "an answer follows"
        );
        assert!(
            !text_of(&answer).contains("Smallest"),
            "the thought did not move into the answer: {answer}"
        );
        assert_eq!(answer["notices"][0]["code"], "thinking_ended");
        assert_eq!(
            (window.count("thought-ending"), window.count("notice")),
            (1, 0),
            "said once, at the thought"
        );
        assert_eq!(window.count("answer-now"), 0);
        late.push(
            unbroken.pieces_within(thought.chars().count()) - unbroken.pieces_within(shown.trim_end().chars().count()),
        );
        if attempt == 1 {
            window.image("thought-ended");
        }
    }
    println!("report: thought tokens after the press of Answer now, after what the window showed: {late:?}");
    // The count includes tokens that the model had generated and the window had not drawn yet: two frames' worth, in
    // the best case.
    assert!(late.iter().min() <= Some(&4), "{late:?}");
    window.close();
}

/// The last answer of the chat with the newest message.
fn last_answer_of_newest_chat(home: &Path) -> Value {
    let chats = ponder_json(home, &["history", "--json"]);
    let id = chats[0]["chats"][0]["id"].as_str().expect("a chat").to_owned();
    let chat = ponder_json(home, &["history", "export", "--format", "json", &id]);
    chat[0]["messages"]
        .as_array()
        .and_then(|all| all.last())
        .expect("an answer")
        .clone()
}

#[test]
fn the_key_ends_the_thought_too() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_with(home.path(), &[&SLOW[..], &[("GTK_THEME", "Adwaita:dark")]].concat());
    set_thinking(&window, true);
    window.ask(LONG_THOUGHT);
    wait_for_some_thought(&window, 60);
    window.image("thought-live-dark");
    // Control, Shift, A; the last character releases the keys.
    window.type_into("composer", "\u{e009}\u{e008}a\u{e000}");
    wait_for_answers(&window, 1);
    assert_eq!(window.count("thought-ending"), 1);
    window.image("thought-ended-dark");
    window.close();
}

#[test]
fn a_budget_holds_to_the_token() {
    let home = tempfile::tempdir().expect("a folder");
    let unbroken = Unbroken::run(home.path(), LONG_THOUGHT);
    let window = Window::open(home.path());
    set_thinking(&window, true);
    show_budget(&window);
    window.image("thinking-budget");
    window.click("thinking-menu");
    set_budget(&window, "20");
    window.ask(LONG_THOUGHT);
    wait_for_answers(&window, 1);
    let answer = last_answer(home.path());
    assert_eq!(answer["usage"]["thinking_tokens"], 20);
    assert_eq!(
        (&answer["settings"]["thinking_budget"], &answer["thinking_tokens"]),
        (&json!(20), &json!(20))
    );
    let thought = thought_of(&answer);
    assert!(
        unbroken.thought().starts_with(&thought) && !thought.is_empty(),
        "no prefix of the unbroken thought: {thought:?}"
    );
    assert!(!text_of(&answer).trim().is_empty());
    assert!(
        window.newest("thought-toggle").contains("20 tokens"),
        "{}",
        window.newest("thought-toggle")
    );
    assert!(
        window.newest("thought-ending").contains("20 tokens"),
        "{}",
        window.newest("thought-ending")
    );
    window.image("thought-on-a-budget");

    // The chat stores it.
    window.reload();
    window.wait_until("the budget is back", || {
        window.newest("thinking-menu").contains("Up to 20")
    });
    window.close();
}

/// The letters of a thought that is rendered as Markdown, where line ends are elements.
fn letters(text: &str) -> String {
    text.split_whitespace().collect()
}

fn assert_as_unbroken(window: &Window, home: &Path, unbroken: &Unbroken) {
    let answer = last_answer_of_newest_chat(home);
    assert_eq!(thought_of(&answer), unbroken.thought());
    assert_eq!(text_of(&answer), unbroken.text);
    assert_eq!(
        (window.count("message-assistant"), window.count("thought")),
        (1, 1),
        "in its own place"
    );
    assert_eq!(window.count("continue"), 0);
    window.click("thought-toggle");
    window.wait_until("all of the thought is shown", || {
        letters(&window.newest("thought-text")) == letters(&unbroken.thought())
    });
}

/// Stops the thought of the newest chat after this many characters. Returns false if a busy machine was too late and
/// the thought had ended.
fn stop_in_thought(window: &Window, home: &Path, unbroken: &Unbroken, characters: usize) -> bool {
    if !window.click_at_length("stop", "thought-text", characters) {
        return false;
    }
    window.wait_until("it has ended", || {
        ["stopped", "complete"].contains(&window.answer_state().as_str())
    });
    let kept = thought_of(&last_answer_of_newest_chat(home));
    let whole = unbroken.thought();
    assert!(whole.starts_with(kept.trim_end()), "another thought: {kept:?}");
    window.answer_state() == "stopped" && kept.len() < whole.len()
}

#[test]
fn a_thought_that_was_stopped_goes_on_to_the_same_end() {
    let home = tempfile::tempdir().expect("a folder");
    let unbroken = Unbroken::run(home.path(), LONG_THOUGHT);
    let window = Window::open(home.path());
    let stopped_twice = (0..4).any(|attempt| {
        if attempt > 0 {
            window.click("new-chat");
        }
        set_thinking(&window, true);
        window.ask(LONG_THOUGHT);
        // Twice: a continued thought can be stopped again.
        [60, 200].into_iter().all(|characters| {
            let in_time = stop_in_thought(&window, home.path(), &unbroken, characters);
            if in_time {
                window.image(&format!("stopped-in-thought-{characters}"));
                window.click("continue");
                window.wait_until("it goes on", || window.answer_state() != "stopped");
            }
            in_time
        })
    });
    assert!(stopped_twice, "never stopped in the middle of the thought");
    wait_for_answers(&window, 1);
    assert_as_unbroken(&window, home.path(), &unbroken);
    window.close();
}

/// Kills the app once this many characters of its thought are on disk. Returns false if a busy machine was too late and
/// the answer was over.
fn kill_in_thought(home: &Path, unbroken: &Unbroken, characters: usize) -> bool {
    let window = Window::open_with(home, &SLOW);
    set_thinking(&window, true);
    window.ask(LONG_THOUGHT);
    wait_for_some_thought(&window, 20);
    // Read from disk, because what the window shows is there up to a quarter of a second later.
    window.wait_until("some of the thought is on disk", || {
        thought_of(&last_answer_of_newest_chat(home)).chars().count() >= characters
    });
    window.kill();
    let cut = thought_of(&last_answer_of_newest_chat(home));
    assert!(unbroken.thought().starts_with(&cut), "another thought: {cut:?}");
    cut.len() < unbroken.thought().len()
}

#[test]
fn a_thought_that_a_kill_cut_off_goes_on_to_the_same_end() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let unbroken = Unbroken::run(elsewhere.path(), LONG_THOUGHT);
    let home = (0..4)
        .map(|_| tempfile::tempdir().expect("a folder"))
        .find(|home| kill_in_thought(home.path(), &unbroken, 100))
        .expect("never killed in the middle of the thought");

    let window = Window::open(home.path());
    window.click("chat-item");
    window.wait_until_answer_is("interrupted");
    let cut = last_answer(home.path());
    assert!(
        cut["thinking_tokens"].as_u64() > Some(20),
        "counted while it thought: {cut}"
    );
    window.image("interrupted-in-thought");
    window.click("continue");
    wait_for_answers(&window, 1);
    assert_as_unbroken(&window, home.path(), &unbroken);
    window.close();
}

#[test]
fn an_answer_that_was_stopped_goes_on_to_the_same_end() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);
    window.ask("Count from 1 to 120");
    window.wait_until("some of the answer is there", || window.answer().len() >= 60);
    window.click("stop");
    window.wait_until_answer_is("stopped");
    window.click("continue");
    wait_for_answers(&window, 1);
    let whole: Vec<String> = (1..=120).map(|number| number.to_string()).collect();
    assert_eq!(window.answer(), whole.join(", "));
    window.close();
}
