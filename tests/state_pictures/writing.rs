//! Drafts: text, documents, long pastes, images, snippets.

use serde_json::json;

use crate::images_window::{choose_model, in_page, invoke};

use super::Stage;

/// Drops a text as a file.
fn drop_file(stage: &Stage, name: &str, media_type: &str, text: &str) {
    let body = "bring('drop', [new File([args[2]], args[0], { type: args[1] })])";
    in_page(&stage.window, body, json!([name, media_type, text]));
}

fn drop_images(stage: &Stage, images: u64) {
    let body = "const files = []; for (let n = 0; n < args[0]; n++) files.push(await imageOf(n ? `An image with a long name ${n}.png` : 'harbour.png', 300 + 340 * (n % 2), 360, 200 + 70 * n)); bring('drop', files)";
    in_page(&stage.window, body, json!([images]));
    let all = "return [...document.querySelectorAll('[data-testid=attachment] img')].filter((image) => image.naturalWidth > 0).length === arguments[0]";
    stage.page(all, json!([images]));
}

fn documents(stage: &Stage) {
    stage.images("chat", "files", |stage| {
        drop_file(stage, "notes.md", "text/markdown", "# Notes\n\nThe meeting is on Friday.\n");
        drop_file(
            stage,
            "A table of all that was counted last summer.csv",
            "text/csv",
            "name,age\nAda,36\n",
        );
        let pasted = "const data = new DataTransfer(); data.setData('text/plain', arguments[0]);
            const area = document.querySelector('[data-testid=composer]'); area.focus();
            area.dispatchEvent(new ClipboardEvent('paste', { bubbles: true, cancelable: true, clipboardData: data })); return true";
        let text: String = (0..400).map(|line| format!("line {line} of what was pasted\n")).collect();
        stage.page(pasted, json!([text]));
        stage.window.wait_until("three documents", || stage.window.count("attachment") == 3);
        stage.write("composer", "What do these say?");
        stage.image("files-draft");
        stage.page(
            "[...document.querySelectorAll('[data-testid=read-file]')].at(-1).click(); return true",
            json!([]),
        );
        stage.window.wait_for("file-text");
        stage.image("file-reader");
        stage.window.press_key("\u{e00c}");
        stage.press("remove-attachment");
        stage.window.wait_until("two documents", || stage.window.count("attachment") == 2);
        stage.write("composer", "What is 2 + 3?");
        stage.press("send");
        stage.window.wait_until_answer_is("complete");
        stage.image("files-sent");
    });
    stage.state("chat", "file-too-long", |stage| {
        let long: String = (0..6000).map(|line| format!("{line} words and words\n")).collect();
        drop_file(stage, "long.txt", "text/plain", &long);
        stage.window.wait_for("files-too-long");
    });
    stage.state("chat", "file-refused", |stage| {
        drop_file(stage, "broken.pdf", "application/pdf", "%PDF-1.7 and then nothing");
        stage.window.wait_for("broken-image");
    });
    stage.state("chat", "snippets", |stage| {
        let snippets = json!([
            {"name": "sum", "text": "What is 347 + 589?"},
            {"name": "summary", "text": "Say in three sentences what this text is about, and what follows from it, without a word of praise."},
        ]);
        invoke(&stage.window, "change_settings", json!({"change": {"snippets": snippets}}));
        stage.window.type_into("composer", "/su");
        stage.window.wait_for("snippets");
    });
    stage.state("chat", "a-long-draft", |stage| {
        let long: String = (0..500)
            .map(|line| format!("Line {line} of a long question\n"))
            .collect();
        stage.write("composer", &long);
        stage.window.wait_for("draft-tokens");
    });
}

fn images(stage: &Stage) {
    stage.state("chat", "images-draft", |stage| {
        drop_images(stage, 4);
        stage.write("composer", "What do you see?");
    });
    stage.state("chat", "image-broken", |stage| {
        in_page(
            &stage.window,
            "bring('drop', [new File([new Uint8Array([77, 90, 0, 0, 3, 0, 255, 254])], 'program.exe')])",
            json!([]),
        );
        stage.window.wait_for("broken-image");
    });
    stage.state("chat", "drop-target", |stage| {
        in_page(
            &stage.window,
            "bring('dragenter', [await imageOf('hill.png', 300, 500, 20)])",
            json!([]),
        );
        stage.window.wait_for("drop-target");
    });
    stage.state("chat", "images-not-seen", |stage| {
        choose_model(&stage.window, "blind");
        drop_images(stage, 1);
        stage.window.wait_for("cannot-see");
    });
    stage.images("chat", "images-sent", |stage| {
        choose_model(&stage.window, "seer");
        drop_images(stage, 3);
        stage.write("composer", "What do you see?");
        stage.press("send");
        stage.window.wait_until_answer_is("complete");
        stage.image("images-sent");
        stage.page(
            "document.querySelectorAll('[data-testid=message-image]')[1].click(); return true",
            json!([]),
        );
        stage.window.wait_for("lightbox-image");
        // A screenshot lacks images that are still being decoded.
        in_page(
            &stage.window,
            "const image = document.querySelector('[data-testid=lightbox-image]'); image.decoding = 'sync'; await image.decode()",
            json!([]),
        );
        stage.image("lightbox");
    });
}

pub fn states(stage: &Stage) {
    documents(stage);
    images(stage);
}
