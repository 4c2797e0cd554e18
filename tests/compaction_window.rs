//! A chat with a full context in the real window: its model summarizes the oldest turns, the user edits the summary,
//! and nothing is lost.

use serde_json::{json, Value};

use crate::support::driver::Window;
use crate::window::{set_thinking, stored, text_of};

const QUESTION: &str = "Count from 1 to 40";

/// Types into a field of the chat's sheet, or into the editor of a summary.
fn write(window: &Window, field: &str, text: &str) {
    window.wait_for(field);
    let script = "const area = document.querySelector(`[data-testid=${arguments[0]}]`); area.value = arguments[1];
        for (const kind of ['input', 'change']) area.dispatchEvent(new Event(kind, { bubbles: true }))";
    window.run(script, json!([field, text]));
}

/// Sends a question, and waits for the end of its answer.
fn answered(window: &Window, question: &str) {
    let before = window.attribute("message-assistant", "data-message-id");
    window.ask(question);
    window.wait_until("it is answered", || {
        window.attribute("message-assistant", "data-message-id") != before && window.answer_state() == "complete"
    });
}

/// Scrolls to the compaction mark; messages far from the view are not rendered.
fn wait_for_mark(window: &Window, contains: &str) {
    let script = "const mark = document.querySelector('[data-testid=compaction-mark]'); const box = document.querySelector('[data-testid=messages]');
        if (mark) mark.scrollIntoView({ block: 'center' }); else box.scrollTop = box.scrollTop > 300 ? box.scrollTop - 300 : box.scrollHeight;
        return mark !== null";
    window.wait_until(&format!("the memory begins with {contains}"), || {
        window.run(script, json!([])) == true && window.newest("compaction-summary").contains(contains)
    });
}

fn words(messages: &[Value]) -> Vec<String> {
    messages.iter().map(text_of).collect()
}

/// The summary of the chat's only compaction mark, as it is stored.
fn summary(messages: &[Value]) -> String {
    let cuts: Vec<&Value> = messages
        .iter()
        .map(|message| &message["compaction_mark"])
        .filter(|cut| cut.is_object())
        .collect();
    assert_eq!(cuts.len(), 1, "{cuts:?}");
    cuts[0]["summary"].as_str().expect("a summary").to_owned()
}

#[test]
fn a_full_context_is_summarised_and_the_summary_can_be_written_over() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);
    answered(&window, "My name is Yara.");
    window.click("open-chat-settings");
    write(&window, "setting-context", "512");
    window.click("chat-settings-done");
    window.wait_until("the context is set", || window.newest("context-share").contains("512"));
    // The warning appears at four fifths of the context.
    let share = || {
        let shown = window.newest("context-share").replace(',', "");
        shown
            .split_whitespace()
            .next()
            .and_then(|used| used.parse::<u32>().ok())
            .unwrap_or(0)
    };
    for asked in 0.. {
        assert!(asked < 10, "the context is never nearly full");
        let before = share();
        answered(&window, QUESTION);
        window.wait_until("its tokens are counted", || share() > before);
        if share() >= 512 * 4 / 5 {
            break;
        }
    }
    window.wait_for("summarize-oldest-turns");
    let before = stored(home.path());
    window.click("summarize-oldest-turns");
    wait_for_mark(&window, "");
    window.wait_until("the summary is stored", || {
        stored(home.path())
            .iter()
            .any(|message| message["compaction_mark"].is_object())
    });
    window.image("summarised");
    let after = stored(home.path());
    assert_eq!(words(&after), words(&before), "nothing is deleted");
    assert!(!summary(&after).trim().is_empty());
    wait_for_mark(&window, summary(&after).lines().next().unwrap_or_default());

    let written = "The person is called Yara.";
    window.click("edit-summary");
    write(&window, "message-editor", written);
    window.click("keep-edit");
    wait_for_mark(&window, written);
    answered(&window, QUESTION);
    let messages = stored(home.path());
    assert_eq!(
        (summary(&messages).as_str(), messages.len()),
        (written, before.len() + 2)
    );
    assert_eq!(words(&messages)[..before.len()], words(&before)[..]);
    let read = |messages: &[Value]| {
        messages
            .last()
            .and_then(|answer| answer["usage"]["prompt_tokens"].as_u64())
    };
    assert!(
        read(&messages) < read(&before),
        "{:?} {:?}",
        read(&messages),
        read(&before)
    );

    window.reload();
    wait_for_mark(&window, written);
    window.close();
}
