//! The looks that only the real window has: distances, narrow windows with large text, and the places of windows.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::images_window::invoke;
use crate::support::driver::Window;
use crate::support::put_chat;

/// The numbers that a function body in the page returns.
fn numbers(window: &Window, script: &str) -> Vec<f64> {
    serde_json::from_value(window.run(script, json!([]))).expect("numbers")
}

fn open_only_chat(window: &Window) {
    window.click("chat-item");
    window.wait_for("answer-text");
}

#[test]
fn an_answer_begins_a_row_of_buttons_below_its_question() {
    let home = tempfile::tempdir().expect("a folder");
    put_chat(
        home.path(),
        "Tea",
        &[["Where does it grow?", "", "In Uji."], ["And now?", "", "In Uji, too."]],
    );
    let window = Window::open(home.path());
    open_only_chat(&window);
    let gaps = numbers(
        &window,
        "return [...document.querySelectorAll('[data-testid=message-user]')].map((question) => {
           const answers = [...document.querySelectorAll('[data-testid=answer-text]')];
           const bottom = question.querySelector('.words').getBoundingClientRect().bottom;
           const gaps = answers.map((answer) => answer.getBoundingClientRect().top - bottom);
           return Math.min(...gaps.filter((gap) => gap > 0));
         })",
    );
    assert_eq!(gaps.len(), 2);
    for gap in gaps {
        assert!((20.0..=32.0).contains(&gap), "{gap} pixels");
    }
    window.close();
}

#[test]
fn the_figures_of_a_response_are_shown_under_the_pointer_alone() {
    let home = tempfile::tempdir().expect("a folder");
    put_chat(home.path(), "Tea", &[["Where does it grow?", "", "In Uji."]]);
    let window = Window::open(home.path());
    open_only_chat(&window);
    let opacity = |window: &Window| {
        let of =
            "return [Number(getComputedStyle(document.querySelector('[data-testid=origin]').parentElement).opacity)]";
        numbers(window, of)[0]
    };
    window.point_at("composer");
    window.wait_until("they are hidden", || opacity(&window) < 0.01);
    window.point_at("answer-text");
    window.wait_until("they are shown", || opacity(&window) > 0.99);
    // A press leaves the focus on its button.
    window.click("copy-answer");
    window.point_at("composer");
    window.wait_until("they are hidden again", || opacity(&window) < 0.01);
    window.close();
}

/// Lists the parts of the chat window that are cut or out of reach: controls outside of the window, texts that are wider
/// than their box.
const CUT: &str = "const cut = [];
    const name = (element) => element.dataset.testid ?? element.className;
    if (document.documentElement.scrollWidth > innerWidth) cut.push('the page');
    for (const control of document.querySelectorAll('main header button, main header h1, .dock button, .dock textarea')) {
      if (control.closest('[hidden]')) continue;
      control.scrollIntoView({ block: 'nearest' });
      const box = control.getBoundingClientRect();
      if (box.width === 0) continue;
      // A page that only a script can scroll is out of reach.
      if (document.body.scrollTop + document.documentElement.scrollTop > 0) cut.push(`${name(control)} is below the window`);
      if (box.left < -0.5 || box.right > innerWidth + 0.5 || box.top < -0.5 || box.bottom > innerHeight + 0.5)
        cut.push(`${name(control)} is at ${box.left} to ${box.right}, ${box.top} to ${box.bottom}`);
    }
    for (const text of document.querySelectorAll('main header h1, main header span, .dock b, .dock span, .dock p')) {
      const hides = getComputedStyle(text).overflowX !== 'visible';
      if (hides && text.scrollWidth > text.clientWidth + 1) cut.push(`${name(text)}: ${text.textContent.trim()}`);
    }
    const area = document.querySelector('[data-testid=composer]');
    if (area.scrollHeight > area.clientHeight + 1 && area.value.length < 200) cut.push('the question');
    return cut";

/// The field of the question and the count of its tokens follow the window a frame or two later, on a busy computer more.
fn assert_nothing_cut(window: &Window, when: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let cut = window.run(CUT, json!([]));
        if cut == json!([]) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{when}: {cut}; {}",
            window.image("cut").display()
        );
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_narrowest_window_with_text_of_200_percent_cuts_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    put_chat(
        home.path(),
        "Why the sky is blue in the morning and red in the evening",
        &[["Why?", "Light is scattered.", "It is scattered."]],
    );
    let window = Window::open(home.path());
    for language in ["en", "de", "ar"] {
        invoke(
            &window,
            "change_settings",
            json!({"change": {"language": language, "appearance": {"text_size": 200}}}),
        );
        window.resize(480, 760);
        let narrow = "return innerWidth <= 480 && document.documentElement.lang === arguments[0]";
        window.wait_until("it is narrow", || {
            window.run(narrow, json!([language])) == Value::Bool(true)
        });
        window.run("document.querySelector('[data-chat-id]').click()", json!([]));
        window.wait_for("answer-text");
        window.run("document.querySelector('[data-testid=composer]').focus()", json!([]));
        // From half of the context on, the tokens of a draft stand in the row of the composer.
        window.run(
            "const area = document.activeElement; area.value = arguments[0]; area.dispatchEvent(new InputEvent('input', { bubbles: true }))",
            json!(["word ".repeat(3000)]),
        );
        window.wait_for("draft-tokens");
        assert_nothing_cut(&window, &format!("{language}, a long question"));
        window.run(
            "const area = document.activeElement; area.value = arguments[0]; area.dispatchEvent(new InputEvent('input', { bubbles: true }))",
            json!(["And why is it green before a storm comes over the sea?"]),
        );
        window.wait_for("context-share");
        window.image(&format!("narrow-large-{language}"));
        for height in [760, 400] {
            window.resize(480, height);
            let low = "return innerHeight <= arguments[0]";
            window.wait_until("it is as high", || {
                window.run(low, json!([height])) == Value::Bool(true)
            });
            assert_nothing_cut(&window, &format!("{language}, {height} pixels high"));
        }
    }
    window.close();
}

#[test]
fn a_window_opens_beside_the_chat_and_later_where_it_was() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    let chat = window.frame();
    let open = |window: &Window| {
        window.press_with_control(",");
        window.switch_to("Settings");
        window.wait_for("tab-general");
        window.frame()
    };
    let close = |window: &Window| {
        window.press_with_control("w");
        window.wait_until("Settings is closed", || window.open_windows() == 1);
        window.switch_to("Ponder");
    };
    let [left, _, width, _] = open(&window);
    let covered = (chat[0] + chat[2]).min(left + width) - left.max(chat[0]);
    // The display of the test is narrower than both.
    assert!(covered < width, "{chat:?}, {left} and {width}");
    assert!(
        (left + width - 1280).abs() <= 2 || left <= 2,
        "at an edge: {left} and {width}"
    );

    window.move_to([40, 60, 700, 500]);
    window.wait_until("it has moved", || window.frame()[2] == 700);
    let moved = window.frame();
    close(&window);
    assert_eq!(open(&window), moved);
    close(&window);
    window.press_with_control("q");
    window.wait_for_end();

    let window = Window::open(home.path());
    assert_eq!(open(&window), moved, "after a restart");
    window.close();
}
