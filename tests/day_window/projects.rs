//! A project, documents, a long text, an image, a draft.

use serde_json::json;

use super::{write, Day, MODEL};
use crate::images_window::{choose_model, in_page};
use crate::window::stored;

/// A project with a file and instructions; documents, a long text and an image.
pub fn projects(day: &Day) {
    let window = &day.window;
    day.step("a project with instructions and a file");
    let title = day.chats()[0].clone();
    day.in_menu_of(&title, "move-chat-to-project");
    day.type_into("new-project", "Garden");
    window.click("make-project");
    window.click("project-menu");
    window.click("open-project");
    window.wait_for("project-settings");
    write(window, "project-prompt", "You know the garden.");
    let drop = "const data = new DataTransfer();
        data.items.add(new File(['The gate code is 4711.'], 'garden.md', { type: 'text/markdown' }));
        document.querySelector('[data-testid=project-settings]').dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: data }))";
    window.run(drop, json!([]));
    window.wait_for("attachment");
    window.click("save-project");

    day.step("a chat of the project says what it takes along, and answers from it");
    window.click("new-in-project");
    window.wait_for("project-along");
    choose_model(window, MODEL);
    day.answer_to("What is the gate code?");
    // The question alone has half as many tokens.
    let read = stored(day.home).pop().expect("an answer")["usage"]["prompt_tokens"].clone();
    assert!(read.as_u64() > Some(40), "{read}");

    day.step("a PDF is dropped, shown and asked about");
    day.keys.press("ctrl+n");
    window.wait_for("empty-state");
    let drop = "bring('drop', [new File([Uint8Array.from(args[0])], 'letter.pdf', { type: 'application/pdf' })])";
    in_page(window, drop, json!([pdf("The harbor opens at seven in the morning.")]));
    window.wait_for("file-bar");
    window.click("read-file");
    window.wait_until("its text is shown", || {
        window.newest("file-text").contains("The harbor opens at seven")
    });
    day.keys.press("Escape");
    window.wait_until("it is closed", || window.count("file-text") == 0);
    day.answer_to("When does the harbor open?");

    day.step("a text that is too long is offered in part");
    day.keys.press("ctrl+n");
    window.wait_for("empty-state");
    let long: String = (0..9000).map(|line| format!("line {line} of the log\n")).collect();
    in_page(
        window,
        "bring('drop', [new File([args[0]], 'log.txt', { type: 'text/plain' })])",
        json!([long]),
    );
    window.wait_for("files-too-long");
    window.click("take-fitting");
    window.wait_until("a part fits", || window.count("files-too-long") == 0);

    day.step("an image, which this model does not see");
    in_page(
        window,
        "bring('paste', [await imageOf('hill.png', 300, 200, 20)])",
        json!([]),
    );
    window.wait_for("cannot-see");
    window.run(
        "for (const remove of [...document.querySelectorAll('[data-testid=remove-attachment]')].reverse()) remove.click()",
        json!([]),
    );
    window.wait_until("both are removed", || window.count("attachment") == 0);

    day.step("half a question stays in its chat, and the list says so");
    day.open_chat("gate code");
    day.type_into("composer", "Half a question");
    day.open_chat(&title);
    window.wait_for("draft-mark");
    day.open_chat("gate code");
    window.wait_until("it waits there", || {
        window.run(
            "return document.querySelector('[data-testid=composer]').value",
            json!([]),
        ) == "Half a question"
    });
    day.keys.press("ctrl+a");
    day.keys.press("BackSpace");
}

/// A PDF of one page with this line.
fn pdf(line: &str) -> Vec<u8> {
    let draws = format!("BT /F1 18 Tf 60 780 Td ({line}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{draws}\nendstream", draws.len()),
    ];
    let mut file = "%PDF-1.7\n".to_owned();
    let mut places = String::new();
    for (index, object) in objects.iter().enumerate() {
        places += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", index + 1);
    }
    let start = file.len();
    file += &format!(
        "xref\n0 6\n0000000000 65535 f \n{places}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    );
    file.into_bytes()
}
