//! Accessibility for users without a mouse or without sight: axe checks every window and state, and a day's work is
//! done with the keyboard alone.

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

use crate::support::driver::Window;
use crate::support::put_chat;
use crate::window::{ponder_json_chat, set_thinking};

pub const CONTROL: &str = "\u{e009}";
pub const SHIFT: &str = "\u{e008}";
pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const DELETE: &str = "\u{e017}";
pub const F2: &str = "\u{e032}";
const UP: &str = "\u{e013}";
pub const DOWN: &str = "\u{e015}";
const LEFT: &str = "\u{e012}";

const RICH: &str =
    "A [link](https://example.org), **words** and `code`.\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n\n\
    ```mermaid\ngraph TD\n  A --> B\n```\n\n- [x] done\n- [ ] open\n\nA note[^1] and $x^2$.\n\n[^1]: Below.\n";

/// The serious violations that axe reports, as `rule: element`.
fn issues(window: &Window) -> Vec<String> {
    let axe = Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/node_modules/axe-core/axe.min.js");
    if window.run("return typeof axe", json!([])) == "undefined" {
        let axe = fs::read_to_string(axe).expect("axe is installed with the packages of the window");
        window.run(&format!("{axe}; window.axe = axe"), json!([]));
    }
    let script = "const done = arguments[0];
        axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => done(violations
          .filter(({ impact }) => impact === 'serious' || impact === 'critical')
          .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')} (${failureSummary.split('\\n')[1]?.trim()})`))),
          (error) => done([`axe failed: ${error}`]))";
    let found = window.run_async(script, json!([]));
    serde_json::from_value(found).expect("a list of texts")
}

/// The violations in all states so far.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn look(&mut self, window: &Window, state: &str) {
        // Fades end before colors are compared.
        std::thread::sleep(std::time::Duration::from_millis(350));
        let found = issues(window).into_iter().map(|issue| format!("{state}: {issue}"));
        self.0.extend(found);
    }
}

fn by_script(window: &Window, test_id: &str) {
    window.wait_for(test_id);
    window.run(
        "const all = document.querySelectorAll(`[data-testid='${arguments[0]}']`); all[all.length - 1].click()",
        json!([test_id]),
    );
}

fn open_chat(window: &Window, title: &str) {
    let script =
        "const item = [...document.querySelectorAll('[data-testid=chat-item]')].find((item) => item.textContent.trim() === arguments[0]);
        item?.click(); return item !== undefined";
    window.wait_until(&format!("{title} is listed"), || {
        window.run(script, json!([title])) == Value::Bool(true)
    });
    window.wait_until("it is open", || window.newest("chat-title") == title);
}

fn look_at_the_chat_window(window: &Window, findings: &mut Findings) {
    findings.look(window, "empty chat");
    open_chat(window, "Rich");
    window.wait_until("it is drawn", || window.answer().contains("Below."));
    by_script(window, "thought-toggle");
    by_script(window, "draw-diagram");
    window.wait_for("diagram");
    findings.look(window, "chat");
    for (state, keys, shown) in [
        ("palette", format!("{CONTROL}k"), "palette-words"),
        ("find in chat", format!("{CONTROL}f"), "find-words"),
        ("search", format!("{CONTROL}{SHIFT}f"), "search"),
    ] {
        window.press_chord(&keys);
        window.wait_for(shown);
        window.type_into(shown, "words");
        findings.look(window, state);
        window.press_key(ESCAPE);
        window.press_key(ESCAPE);
    }
    for (state, opens, shown) in [
        ("archive and trash", "open-kept", "kept"),
        ("picker of models", "model-picker", "model-picker"),
        ("menu of the composer", "composer-add", "two-answers"),
        ("menu of the title", "title-menu", "title-settings"),
        ("menu of the app", "app-menu", "menu-quit"),
        ("edit of a question", "edit-question", "message-editor"),
    ] {
        by_script(window, opens);
        window.wait_for(shown);
        findings.look(window, state);
        window.press_key(ESCAPE);
    }
    for (state, command) in [("move to a project", "move-chat-to-project"), ("export", "export-chat")] {
        by_script(window, "chat-menu");
        window.wait_for(command);
        findings.look(window, &format!("menu before {state}"));
        by_script(window, command);
        findings.look(window, state);
        window.press_key(ESCAPE);
    }
    open_chat(window, "Is anybody there?");
    window.wait_for("error-box");
    findings.look(window, "error");
    by_script(window, "new-chat");
    set_thinking(window, false);
    window.ask("Count from 1 to 120");
    window.wait_until("words come", || window.answer().len() > 10);
    findings.look(window, "streaming");
    window.wait_until_answer_is("complete");
}

fn tabs(window: &Window) -> Vec<String> {
    let script = "return [...document.querySelectorAll('[role=tab]')].map((tab) => tab.dataset.testid)";
    serde_json::from_value(window.run(script, json!([]))).expect("a list of texts")
}

#[test]
fn axe_finds_nothing_serious_in_any_window() {
    for (scheme, environment) in [("light", &[][..]), ("dark", &[("GTK_THEME", "Adwaita:dark")][..])] {
        let home = tempfile::tempdir().expect("a folder");
        put_chat(home.path(), "Rich", &[["A *question*", "A thought with `code`.", RICH]]);
        ponder_json_chat(home.path());
        let mut findings = Findings::default();
        let window = Window::open_with(home.path(), environment);
        look_at_the_chat_window(&window, &mut findings);
        for (opens, title) in [("open-models", "Models"), ("open-settings", "Settings")] {
            by_script(&window, opens);
            window.switch_to(title);
            window.wait_until("it is there", || !tabs(&window).is_empty());
            for tab in tabs(&window) {
                by_script(&window, &tab);
                findings.look(&window, &format!("{title}, {tab}"));
            }
            window.switch_to("Ponder");
        }
        window.close();
        assert!(findings.0.is_empty(), "{scheme}:\n{}", findings.0.join("\n"));
    }
}

/// The test id of the focused element.
pub fn focused(window: &Window) -> String {
    let script = "return document.activeElement?.closest('[data-testid]')?.dataset.testid ?? ''";
    window.run(script, json!([])).as_str().expect("text").to_owned()
}

/// Presses a key until this element has the focus.
fn go_to(window: &Window, key: &str, test_id: &str) {
    let mut passed = Vec::new();
    for _ in 0..60 {
        let now = focused(window);
        if now == test_id {
            return;
        }
        passed.push(now);
        window.press_chord(key);
    }
    panic!("the keys never come to {test_id}, but to {passed:?}");
}

/// Types into the focused element.
fn write(window: &Window, text: &str) {
    for letter in text.chars() {
        window.press_key(&letter.to_string());
    }
}

#[test]
fn a_days_work_is_done_by_keys_alone() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    window.wait_until("the composer has the focus", || focused(&window) == "composer");

    // Ask, stop, ask again.
    go_to(&window, TAB, "thinking-switch");
    let before = window.attribute("thinking-switch", "aria-checked");
    window.press_key(" ");
    window.wait_until("it is switched", || {
        window.attribute("thinking-switch", "aria-checked") != before
    });
    if before == "false" {
        window.press_key(" ");
    }
    window.wait_until("it does not think", || {
        window.attribute("thinking-switch", "aria-checked") == "false"
    });
    window.press_chord(&format!("{CONTROL}l"));
    write(&window, "Count from 1 to 120");
    window.press_key(ENTER);
    window.wait_until("words come", || window.answer().len() > 20);
    window.press_key(ESCAPE);
    window.wait_until_answer_is("stopped");
    window.press_chord(&format!("{CONTROL}{SHIFT}r"));
    window.wait_until("another answer comes", || window.count("pager") == 1);
    window.wait_until_answer_is("complete");

    // Switches between the two answers.
    go_to(&window, &format!("{SHIFT}{TAB}"), "pager");
    let shown = window.answer();
    window.press_key(ENTER);
    window.wait_until("the first answer is shown", || window.answer() != shown);

    // Edits the question.
    go_to(&window, &format!("{SHIFT}{TAB}"), "edit-question");
    window.press_key(ENTER);
    window.wait_for("message-editor");
    window.press_chord(&format!("{CONTROL}a"));
    write(&window, "What is 2 + 3?");
    window.press_chord(&format!("{CONTROL}{ENTER}"));
    window.wait_until("it is asked in its place", || {
        window.newest("message-user").contains("2 + 3") && window.answer_state() == "complete"
    });
    assert_eq!(window.count("question-pager"), 1);

    // A second chat: searched, renamed, pinned, deleted and restored.
    window.press_chord(&format!("{CONTROL}n"));
    window.wait_until("a new chat", || {
        window.count("message-user") == 0 && focused(&window) == "composer"
    });
    write(&window, "What is the capital of France?");
    window.press_key(ENTER);
    window.wait_until("it is answered", || {
        window.count("message-user") == 1 && window.answer_state() == "complete"
    });
    window.press_chord(&format!("{CONTROL}{SHIFT}f"));
    window.wait_until("the search has the focus", || focused(&window) == "search");
    write(&window, "capital");
    window.wait_until("one chat is left", || window.count("chat-item") == 1);
    window.press_key(ESCAPE);
    go_to(&window, TAB, "chat-item");
    window.press_key(F2);
    window.wait_for("rename-field");
    window.press_chord(&format!("{CONTROL}a"));
    write(&window, "France");
    window.press_key(ENTER);
    let titled = |title: &str| {
        let script =
            "return [...document.querySelectorAll('[data-testid=chat-item]')].some((item) => item.textContent.trim() === arguments[0])";
        window.run(script, json!([title])) == Value::Bool(true)
    };
    window.wait_until("it is called otherwise", || titled("France"));
    window.wait_until("the focus is on it", || focused(&window) == "chat-item");
    window.press_key(DOWN);
    window.press_key(UP);
    window.press_chord(&format!("{SHIFT}\u{e03a}"));
    window.wait_for("pin-chat");
    window.wait_until("its menu has the focus", || {
        window.run("return document.activeElement?.getAttribute('role')", json!([])) == "menuitem"
    });
    go_to(&window, DOWN, "pin-chat");
    window.press_key(ENTER);
    window.wait_until("it is pinned", || {
        window.run(
            "return document.querySelector('[data-testid=chats]').textContent.includes('Pinned')",
            json!([]),
        ) == true
    });
    window.wait_until("the focus is on it", || focused(&window) == "chat-item");
    window.press_key(DELETE);
    window.wait_until("it is gone", || !titled("France"));
    window.press_chord(&format!("{CONTROL}z"));
    window.wait_until("it is back", || titled("France"));

    // The other windows, and back.
    window.press_chord(&format!("{CONTROL}{SHIFT}m"));
    window.switch_to("Models");
    window.wait_until("the tabs are there", || tabs(&window).len() == 3);
    go_to(&window, TAB, "tab-discover");
    window.press_key("\u{e014}");
    window.wait_for("local");
    window.press_chord(&format!("{CONTROL},"));
    window.switch_to("Settings");
    window.wait_for("keep-awake");
    go_to(&window, TAB, "keep-awake");
    window.press_key(" ");
    window.wait_until("it is on", || {
        window.run(
            "return document.querySelector('[data-testid=keep-awake]').matches(':checked, [aria-checked=true]')",
            json!([]),
        ) == true
    });
    window.press_key(LEFT);
    window.close();
}
