//! Finished chats: every kind of block, thoughts, branches, menus of messages.

use serde_json::json;

use super::Stage;

/// Waits until the open chat is rendered.
fn drawn(stage: &Stage) {
    let ready = "return document.querySelectorAll('[data-testid=answer-text]').length > 0 && document.querySelectorAll('[aria-busy=true]').length === 0";
    stage.page(ready, json!([]));
}

/// Opens the context menu of the first element of this selector.
fn context_menu(stage: &Stage, css: &str) {
    let open = "const over = document.querySelector(arguments[0]); if (!over) return false;
        over.scrollIntoView({ block: 'center' }); const box = over.getBoundingClientRect();
        over.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true, clientX: box.left + box.width / 2, clientY: box.top + 8 })); return true";
    stage.page(open, json!([css]));
    stage.window.wait_for("context-menu");
}

/// The preview of a page, its code, a drawing, a diagram, and a page that was stopped.
fn previews(stage: &Stage) {
    let open = |stage: &Stage, place: u64| {
        stage.open_chat("Tides");
        drawn(stage);
        let press = "const button = document.querySelectorAll('[data-testid=open-preview]')[arguments[0]]; button?.click(); return button !== undefined";
        stage.page(press, json!([place]));
        stage.window.wait_for("preview");
    };
    stage.images("chat", "preview-page", |stage| {
        open(stage, 0);
        stage.window.wait_for("preview-frame");
        stage.image("preview-page");
        stage.press_for("preview-code", "preview-source");
        stage.image("preview-code");
        stage.press_for("preview-code", "preview-frame");
        stage.press_for("preview-stop", "preview-stopped");
        stage.image("preview-stopped");
    });
    stage.state("chat", "preview-drawing", |stage| {
        open(stage, 1);
        stage.window.wait_for("preview-frame");
    });
    stage.state("chat", "preview-diagram", |stage| {
        open(stage, 2);
        stage.window.wait_for("diagram");
    });
}

pub fn states(stage: &Stage) {
    for (name, title) in [
        ("markdown", "Markdown"),
        ("code", "Code"),
        ("mathematics", "Mathematics"),
        ("tables", "Tables"),
        ("arabic", "رحلة"),
    ] {
        stage.images("chat", name, |stage| {
            stage.open_chat(title);
            drawn(stage);
            stage.image_all(name);
        });
    }
    stage.images("chat", "diagrams", |stage| {
        stage.open_chat("Diagrams");
        drawn(stage);
        stage.image_all("diagrams-asked");
        let draw = "const buttons = [...document.querySelectorAll('[data-testid=draw-diagram]')]; buttons.forEach((button) => { if (!button.dataset.pressed) button.click(); button.dataset.pressed = true });
            return document.querySelectorAll('[data-testid=diagram]').length === 2 && document.querySelectorAll('[data-testid=diagram-failed]').length === 1";
        stage.page(draw, json!([]));
        stage.image_all("diagrams-drawn");
    });
    previews(stage);
    stage.images("chat", "code-wrapped", |stage| {
        stage.open_chat("Code");
        drawn(stage);
        stage.page(
            "const buttons = document.querySelectorAll('[data-testid=wrap-code]'); buttons.forEach((button) => button.click()); return buttons.length > 0",
            json!([]),
        );
        stage.image_all("code-wrapped");
    });
    for (name, title, shown) in [
        ("long-table", "Three hundred squares", "show-all-rows"),
        ("shown-plain", "Too many words", "format-anyway"),
        ("code-not-colored", "Too much code", "shown-plain"),
    ] {
        stage.state("chat", name, |stage| {
            stage.open_chat(title);
            stage.window.wait_for(shown);
        });
    }
    stage.state("chat", "thought-open", |stage| {
        stage.open_chat("Markdown");
        stage.press_for("thought-toggle", "thought-text");
        stage.page(
            "document.querySelector('[data-testid=messages]').scrollTop = 0; return true",
            json!([]),
        );
    });
    stage.state("chat", "pointed-at", |stage| {
        stage.open_chat("Sourdough");
        stage.window.point_at("answer-text");
    });
    stage.state("chat", "link-hint", |stage| {
        stage.open_chat("Markdown");
        stage.page(
            "const link = document.querySelector('[data-testid=answer-text] a[href]'); link?.scrollIntoView({ block: 'center' }); link?.focus(); return link !== null",
            json!([]),
        );
    });
    stage.state("chat", "link-question", |stage| {
        stage.open_chat("Markdown");
        stage.page(
            "const link = document.querySelector('[data-testid=answer-text] a[href*=\"elsewhere\"]'); link?.click(); return link !== null",
            json!([]),
        );
        stage.window.wait_for("link-question");
    });
    stage.state("chat", "menu-of-a-link", |stage| {
        stage.open_chat("Markdown");
        context_menu(stage, "[data-testid=answer-text] a[href]");
    });
    stage.state("chat", "menu-of-an-answer", |stage| {
        stage.open_chat("Tables");
        context_menu(stage, "[data-testid=answer-text] table td");
    });
    stage.state("chat", "menu-of-selected-words", |stage| {
        stage.open_chat("Sourdough");
        let select =
            "const words = document.querySelector('[data-testid=answer-text] p'); if (words) getSelection().selectAllChildren(words); return words !== null";
        stage.page(select, json!([]));
        context_menu(stage, "[data-testid=answer-text] p");
    });
    for (state, pressed, opened) in [
        ("question-menu", "question-menu", "delete-question"),
        ("answer-menu", "answer-menu", "delete-answer"),
        ("editing-a-question", "edit-question", "message-editor"),
        ("editing-an-answer", "edit-answer", "message-editor"),
    ] {
        stage.state("chat", state, |stage| {
            stage.open_chat("Sourdough");
            stage.press_for(pressed, opened);
        });
    }
    stage.state("chat", "regenerate-with", |stage| {
        stage.open_chat("Sourdough");
        stage.press_for("answer-menu", "regenerate-with");
        stage.press_for("regenerate-with", "answer-again-with");
    });
    stage.state("chat", "delete-from-here", |stage| {
        stage.open_chat("Sourdough");
        stage.press_for("answer-menu", "delete-answer");
        stage.press_for("delete-answer", "delete-branch");
    });
    stage.state("chat", "branches", |stage| {
        stage.ask_to_the_end("What is 2 + 3?");
        for answers in 2..=3 {
            stage.press("regenerate");
            stage.window.wait_until("another answer", || {
                stage.window.newest("pager").contains(&answers.to_string()) && stage.window.answer_state() == "complete"
            });
        }
        stage.press("edit-question");
        stage.write("message-editor", "What is 4 + 4?");
        stage.press("keep-edit");
        stage.window.wait_for("question-pager");
        stage.window.wait_until_answer_is("complete");
        stage.press("regenerate");
        stage.window.wait_until("another answer", || {
            stage.window.count("pager") == 1 && stage.window.answer_state() == "complete"
        });
        stage.press("edit-answer");
        stage.write("message-editor", "It is **8**, I think.");
        stage.press("keep-edit");
        stage.window.wait_for("edited");
    });
    stage.state("chat", "forked", |stage| {
        stage.open_chat("Sourdough");
        stage.press_for("answer-menu", "fork-answer");
        stage.press("fork-answer");
        stage
            .window
            .wait_until("a new chat", || stage.window.newest("chat-title") != "Sourdough");
    });
    stage.state("chat", "a-long-title", |stage| {
        stage.open_chat("A title that is");
        stage.show_sidebar();
    });
    stage.state("chat", "scrolled-up", |stage| {
        stage.open_chat("A walk along");
        stage.page(
            "document.querySelector('[data-testid=messages]').scrollTop = 400; return true",
            json!([]),
        );
        stage.window.wait_for("to-end");
    });
}
