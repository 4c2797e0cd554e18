//! Drafts in the real window: documents, long pastes, the queue, earlier questions, snippets, token counts.

use serde_json::json;

use crate::support::driver::Window;
use crate::window::set_thinking;

/// Inserts a file like the clipboard or another window.
fn bring(window: &Window, how: &str, name: &str, media_type: &str, text: &str) {
    let script = "const data = new DataTransfer();
        data.items.add(new File([arguments[3]], arguments[1], { type: arguments[2] }));
        const paste = arguments[0] === 'paste';
        const target = paste ? document.querySelector('[data-testid=composer]') : document.body;
        const options = { bubbles: true, cancelable: true };
        target.dispatchEvent(paste ? new ClipboardEvent('paste', { ...options, clipboardData: data }) : new DragEvent(arguments[0], { ...options, dataTransfer: data }))";
    window.run(script, json!([how, name, media_type, text]));
}

fn paste(window: &Window, text: &str) {
    let script = "const data = new DataTransfer(); data.setData('text/plain', arguments[0]);
        const area = document.querySelector('[data-testid=composer]'); area.focus();
        return area.dispatchEvent(new ClipboardEvent('paste', { bubbles: true, cancelable: true, clipboardData: data }))";
    window.run(script, json!([text]));
}

fn draft(window: &Window) -> String {
    let script = "return document.querySelector('[data-testid=composer]').value";
    window.run(script, json!([])).as_str().expect("text").to_owned()
}

fn key(window: &Window, name: &str) {
    let script = "document.querySelector('[data-testid=composer]').dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true, cancelable: true }))";
    window.run(script, json!([name]));
}

fn answered(window: &Window, contains: &str) {
    window.wait_until(&format!("it answers {contains}"), || {
        window.answer_state() == "complete" && window.answer().contains(contains)
    });
}

#[test]
fn documents_are_told_of_read_sent_and_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    set_thinking(&window, false);

    bring(
        &window,
        "drop",
        "notes.md",
        "text/markdown",
        "# Notes\n\nThe meeting is on Friday.\n",
    );
    window.wait_for("file-bar");
    bring(&window, "paste", "table.csv", "text/csv", "name,age\nAda,36\n");
    window.wait_until("two documents", || window.count("attachment") == 2);
    // A long paste becomes a document, which can be opened and turned back into text.
    let pasted: String = (0..400)
        .map(|line| format!("line {line} of what was pasted\n"))
        .collect();
    paste(&window, &pasted);
    window.wait_until("three documents", || window.count("attachment") == 3);
    assert_eq!(draft(&window), "");
    window.image("documents-draft");
    window.run(
        "[...document.querySelectorAll('[data-testid=read-file]')].at(-1).click()",
        json!([]),
    );
    window.wait_until("its text is shown", || {
        window.newest("file-text").starts_with("line 0 of what was pasted")
    });
    window.image("document-reader");
    window.press_key("\u{e00c}");
    window.wait_until("it is closed", || window.count("file-text") == 0);
    // A draft that does not fit is reported before it is sent, with the possible remedies.
    let long: String = (0..6000).map(|line| format!("{line} words and words\n")).collect();
    bring(&window, "drop", "long.txt", "text/plain", &long);
    window.wait_for("files-too-long");
    window.image("document-too-long");
    window.run(
        "[...document.querySelectorAll('[data-testid=remove-attachment]')].at(-1).click()",
        json!([]),
    );
    window.wait_until("it is gone", || window.count("attachment") == 3);
    window.run(
        "[...document.querySelectorAll('[data-testid=remove-attachment]')].at(-1).click()",
        json!([]),
    );
    window.wait_until("two documents that fit", || {
        window.count("attachment") == 2 && window.count("files-too-long") == 0
    });

    // Broken and hostile files are refused by name, and the draft stays.
    bring(
        &window,
        "drop",
        "broken.pdf",
        "application/pdf",
        "%PDF-1.7 and then nothing",
    );
    window.wait_until("it is said", || window.count("broken-image") > 0);
    window.image("document-broken");
    assert_eq!(window.count("attachment"), 2);
    window.run(
        "document.querySelector('[data-testid=broken-image] [data-testid=remove-attachment]').click()",
        json!([]),
    );
    window.wait_until("it is gone, and its neighbour has the focus", || {
        window.count("broken-image") == 0
            && window.run("return !!document.activeElement?.closest('li')", json!([])) == true
    });

    window.type_into("composer", "What is 2 + 3?");
    window.click("send");
    window.wait_until("it answers", || window.answer_state() == "complete");
    window.wait_until("both stand in the question", || {
        window.run(
            "return document.querySelectorAll('[data-testid=message-user] [data-testid=read-file]').length",
            json!([]),
        ) == json!(2)
    });
    window.image("documents-sent");
    window.reload();
    window.wait_until("they are still there", || {
        window.run(
            "return document.querySelectorAll('[data-testid=message-user] [data-testid=read-file]').length",
            json!([]),
        ) == json!(2)
    });
    window.run(
        "document.querySelector('[data-testid=message-user] [data-testid=read-file]').click()",
        json!([]),
    );
    window.wait_until("and can be read", || {
        window.newest("file-text").contains("The meeting is on Friday.")
    });
    window.close();
}

#[test]
fn questions_wait_come_back_and_use_snippets() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open_slow(home.path());
    set_thinking(&window, false);

    // While an answer is running the next question waits in the queue; it can be taken back.
    window.ask("Count from 1 to 120");
    window.wait_until_answer_is("streaming");
    window.type_into("composer", "What is 2 + 3?");
    window.click("queue");
    window.wait_for("queued-question");
    window.image("queued");
    window.click("edit-queued");
    window.wait_until("it is in the composer again", || {
        draft(&window) == "What is 2 + 3?" && window.count("queued-question") == 0
    });
    window.click("queue");
    window.wait_for("queued-question");
    window.click("stop");
    // The question waits for a complete answer, so a stopped one returns it to the draft; the answer may have been
    // complete before.
    window.wait_until("the question is sent or in the composer", || {
        window.count("queued-question") == 0
            && (window.count("message-user") == 2 || draft(&window) == "What is 2 + 3?")
    });
    if window.count("message-user") == 1 {
        window.click("send");
    }
    answered(&window, "5");

    // Up shows the last question, then the one before; Down returns to the draft.
    key(&window, "ArrowUp");
    window.wait_until("the last", || draft(&window) == "What is 2 + 3?");
    key(&window, "ArrowUp");
    window.wait_until("the one before", || draft(&window) == "Count from 1 to 120");
    key(&window, "ArrowDown");
    key(&window, "ArrowDown");
    window.wait_until("nothing again", || draft(&window).is_empty());

    // From half of the context on, the tokens of a draft are shown.
    let write = "const area = document.querySelector('[data-testid=composer]'); area.value = arguments[0];
        area.dispatchEvent(new InputEvent('input', { bubbles: true }))";
    window.run(write, json!(["word ".repeat(3000)]));
    window.wait_until("its tokens are counted", || {
        window.newest("draft-tokens").contains("tokens")
    });
    window.run(write, json!([""]));
    window.wait_until("they are gone", || window.count("draft-tokens") == 0);

    // A snippet is stored in the settings and inserted by its name.
    let snippets = json!([{"name": "sum", "text": "What is 347 + 589?"}]);
    window.run_async(
        "const done = arguments[1]; window.__TAURI_INTERNALS__.invoke('change_settings', { change: { snippets: arguments[0] } }).then(() => done({}), (error) => done({ error }))",
        json!([snippets]),
    );
    window.type_into("composer", "/su");
    window.wait_for("snippets");
    window.image("snippets");
    key(&window, "Enter");
    window.wait_until("its text is there", || draft(&window).trim() == "What is 347 + 589?");
    assert_eq!(window.count("draft-tokens"), 0, "most of the context is free");
    window.click("send");
    answered(&window, "936");
    window.close();
}

#[test]
fn the_second_mouse_button_cuts_and_pastes_in_the_composer() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    window.wait_for("composer");
    let choose = |item: &str| {
        window.press_button("composer", 2);
        window.wait_for(item);
        window.click(item);
    };
    window.type_into("composer", "two words");
    choose("select-all");
    choose("cut-text");
    window.wait_until("they are cut", || draft(&window).is_empty());
    choose("paste");
    window.wait_until("they are back", || draft(&window) == "two words");
    choose("paste");
    window.wait_until("they are there twice", || draft(&window) == "two wordstwo words");
    window.press_with_control("z");
    window.wait_until("a paste is taken back", || draft(&window) == "two words");
    window.close();
}
