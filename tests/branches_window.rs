//! The branches of a chat in the real window: messages are edited, browsed, deleted, restored and continued in a new
//! chat.

use serde_json::json;

use crate::support::driver::Window;
use crate::support::ponder_json;
use crate::window::set_thinking;

/// The questions and answers on screen, in order.
fn shown(window: &Window) -> Vec<String> {
    let script = "return [...document.querySelectorAll('[data-testid=message-user], [data-testid=message-assistant]')]
        .map((message) => (message.querySelector('[data-testid=answer-text]') ?? message.querySelector('.words') ?? message).innerText.trim())";
    let texts = window.run(script, json!([]));
    let texts = texts.as_array().expect("a list").iter();
    texts.map(|text| text.as_str().expect("text").to_owned()).collect()
}

/// Replaces the text of the message that is being edited.
fn write_over(window: &Window, text: &str) {
    window.wait_for("message-editor");
    let script = "const area = document.querySelector('[data-testid=message-editor]'); area.value = arguments[0];
        area.dispatchEvent(new InputEvent('input', { bubbles: true }))";
    window.run(script, json!([text]));
    window.click("keep-edit");
}

/// Presses an arrow of the newest pager of this kind.
fn turn(window: &Window, pager: &str, forwards: bool) {
    let script = "const pagers = [...document.querySelectorAll(`[data-testid=${arguments[0]}]`)];
        pagers.at(-1).querySelectorAll('button')[arguments[1] ? 1 : 0].click()";
    window.run(script, json!([pager, forwards]));
}

fn place(window: &Window, pager: &str) -> String {
    let script =
        "return [...document.querySelectorAll(`[data-testid=${arguments[0]}] span`)].at(-1)?.textContent ?? ''";
    window
        .run(script, json!([pager]))
        .as_str()
        .expect("text")
        .trim()
        .to_owned()
}

fn answered(window: &Window, contains: &str) {
    window.wait_until(&format!("it answers {contains}"), || {
        window.answer_state() == "complete" && window.answer().contains(contains)
    });
}

#[test]
fn every_version_of_a_message_stays_and_can_be_looked_at() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);
    window.ask("What is 2 + 3?");
    answered(&window, "5");
    window.ask("What is 4 + 4?");
    answered(&window, "8");

    // The second question is edited; the first version keeps its answer.
    window.click_last("edit-question");
    window.image("editing-question");
    write_over(&window, "What is 347 + 589?");
    answered(&window, "936");
    window.wait_until("two versions", || place(&window, "question-pager") == "2 / 2");
    window.image("branches");
    turn(&window, "question-pager", false);
    answered(&window, "8");
    window.wait_until("the first version", || place(&window, "question-pager") == "1 / 2");
    turn(&window, "question-pager", true);
    answered(&window, "936");

    // Another answer next to the first, and one edited by hand.
    window.click_last("regenerate");
    window.wait_until("two answers", || place(&window, "pager") == "2 / 2");
    answered(&window, "936");
    window.click_last("edit-answer");
    write_over(&window, "It is **936**, I think.");
    window.wait_until("three answers", || place(&window, "pager") == "3 / 3");
    window.wait_until("it says by whom", || window.count("edited") == 1);
    assert_eq!(window.answer(), "It is 936, I think.");
    window.image("edited-answer");

    // All of it is there after a reload, and another process sees it.
    let before = shown(&window);
    window.reload();
    window.wait_until("the same branch", || shown(&window) == before);
    assert_eq!(place(&window, "pager"), "3 / 3");
    let listed = ponder_json(home.path(), &["history", "search", "--json", "I think"]);
    assert_eq!(listed[0]["found"].as_array().map(Vec::len), Some(1), "{listed:?}");
    window.close();
}

#[test]
fn what_is_deleted_comes_back_and_a_chat_goes_on_in_a_new_one() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);
    for (question, answer) in [
        ("What is 2 + 3?", "5"),
        ("What is 4 + 4?", "8"),
        ("What is 347 + 589?", "936"),
    ] {
        window.ask(question);
        answered(&window, answer);
    }
    let all = shown(&window);
    assert_eq!(all.len(), 6);

    // A turn in the middle is deleted and its neighbors stay; Undo restores it.
    let menu = "[...document.querySelectorAll('[data-testid=question-menu]')][1].click()";
    window.run(menu, json!([]));
    window.image("question-menu");
    window.click("delete-turn");
    window.wait_until("the turn is gone", || shown(&window).len() == 4);
    assert!(!shown(&window).join(" ").contains("4 + 4"));
    window.click("toast-undo");
    window.wait_until("it is back", || shown(&window) == all);

    // Deletes from the middle on, and undoes it by the key.
    window.run(menu, json!([]));
    window.click("delete-question");
    window.click("delete-branch-confirm");
    window.wait_until("what followed is gone", || shown(&window).len() == 2);
    window.wait_for("toast-undo");
    window.run(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'z', ctrlKey: true, bubbles: true, cancelable: true }))",
        json!([]),
    );
    window.wait_until("all is back", || shown(&window) == all);

    // A new chat with the messages up to here; the original stays complete.
    window.run(menu, json!([]));
    window.click("fork-question");
    window.wait_until("a second chat", || window.count("chat-item") == 2);
    window.wait_until("its beginning", || shown(&window).len() == 3);
    assert!(
        window.newest("chat-title").ends_with("(branch)"),
        "{}",
        window.newest("chat-title")
    );
    window.click("answer-question");
    answered(&window, "8");
    window.image("forked");
    let chats = ponder_json(home.path(), &["history", "--json"]);
    assert_eq!(chats[0]["chats"].as_array().map(Vec::len), Some(2), "{chats:?}");
    window.run(
        "[...document.querySelectorAll('[data-testid=chat-item]')].find((item) => !item.textContent.includes('(branch)')).click()",
        json!([]),
    );
    window.wait_until("the old chat is whole", || shown(&window) == all);
    window.close();
}

#[test]
fn an_answer_is_asked_for_again_in_another_way() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);
    window.ask("What is 347 + 589?");
    answered(&window, "936");
    assert_eq!(window.count("thought"), 0);
    window.click_last("answer-menu");
    window.click("regenerate-with");
    let ways =
        "return [...document.querySelectorAll('[data-testid=answer-again-with]')].map((way) => way.textContent.trim())";
    window.wait_until("it is offered", || {
        window.run(ways, json!([]))[0].as_str() == Some("Thinking")
    });
    window.image("answer-menu");
    window.run(
        "document.querySelector('[data-testid=answer-again-with]').click()",
        json!([]),
    );
    window.wait_until("it thought this time", || {
        window.answer_state() == "complete" && window.count("thought") == 1
    });
    assert_eq!(place(&window, "pager"), "2 / 2");
    turn(&window, "pager", false);
    window.wait_until("the first had none", || {
        window.count("thought") == 0 && place(&window, "pager") == "1 / 2"
    });
    window.close();
}
