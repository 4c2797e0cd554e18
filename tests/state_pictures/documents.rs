//! Documents: the collections of a project in every state, the choice of a chat, the cost of reading all of them,
//! passages with a question, citations that are right and wrong, and the file of a passage.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::images_window::{choose_model, in_page};
use crate::support::pdf::pdf;
use crate::support::ponder;

use super::Stage;

const TIDES: &str = "# The harbour\n\n\
    ## Tides\n\nThe tide turns at noon. High water is at 12:40 and 5.2 m above the chart datum.\n\n\
    ## Ferries\n\nThe last ferry leaves at 18:40. On Sundays it leaves at 17:10.\n\n\
    ## Fees\n\nA night at the guest pier costs 24 euros. Electricity is included.\n";

/// The pages of a PDF.
const RULES: [&[&str]; 2] = [
    &["Harbour rules"],
    &[
        "Dogs are kept on a leash.",
        "Fires are not allowed.",
        "Whoever sees smoke calls 112.",
    ],
];

/// An image, which no model has read.
const CHART: &[u8] = include_bytes!("../../icons/128x128.png");

/// An answer whose second citation is wrong, and whose last one has no passage.
const ANSWER: &str = "The tide turns at noon, and high water is at **12:40** [1]. \
    The last ferry leaves at 18:55 [1]. There is a market on Mondays [99].";

/// The folders of the collections.
const FOLDERS: [&str; 3] = ["Harbour", "Letters", "Backup"];

/// Makes the collections of documents, which the command line reads.
pub fn fill(home: &Path) {
    for name in FOLDERS {
        let folder = home.join("Documents").join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("tides.md"), TIDES).expect("written");
        fs::write(folder.join("rules.pdf"), pdf(&RULES)).expect("written");
        fs::write(folder.join("empty.txt"), "").expect("written");
        fs::write(folder.join("chart.png"), CHART).expect("written");
        fs::write(folder.join(".hidden.md"), "Hidden.").expect("written");
        fs::write(folder.join("broken.pdf"), "%PDF-1.7 and nothing else").expect("written");
        for number in 1..=40 {
            let text = format!("# Log {number}\n\nThe wind was {number} knots.\n");
            fs::write(folder.join(format!("log {number}.md")), text).expect("written");
        }
        let done = ponder(home, &["docs", "add", folder.to_str().expect("text")]);
        assert!(done.status.success(), "{done:?}");
    }
}

/// A project with all collections, of which one is paused and one has lost its folder; and a new chat in it.
fn open_project(stage: &Stage) {
    let backup = stage.home.join("Documents/Backup");
    if backup.is_dir() {
        fs::remove_dir_all(backup).expect("removed");
    }
    let make = "const invoke = window.__TAURI_INTERNALS__.invoke;
        const { collections } = await invoke('collections');
        for (const { id, name } of collections) {
            if (name === 'Letters') await invoke('pause_collection', { id, paused: true });
            if (name === 'Backup') await invoke('update_collection', { id });
        }
        const known = (await invoke('projects')).find(({ name }) => name === 'Sailing');
        const { id } = known ?? (await invoke('create_project', { name: 'Sailing' }));
        await invoke('set_project_collections', { id, collections: collections.map(({ id }) => id) })";
    in_page(&stage.window, make, json!([]));
    stage.window.reload();
    stage.show_sidebar();
    let open = "const lines = [...document.querySelectorAll('[data-testid=project]')];
        const line = lines.find(({ textContent }) => textContent.includes('Sailing'));
        line?.parentElement.querySelector('[data-testid=project-menu]').click(); return line !== undefined";
    stage.page(open, json!([]));
}

/// Scrolls an element into the sight of its sheet.
fn show(stage: &Stage, test_id: &str) {
    stage.window.wait_for(test_id);
    let script = "const element = document.querySelector(`[data-testid=${arguments[0]}]`);
        element?.scrollIntoView({ block: 'start' }); return element !== null";
    stage.page(script, json!([test_id]));
}

fn project(stage: &Stage) {
    stage.images("chat", "project-documents", |stage| {
        open_project(stage);
        stage.press_for("open-project", "project-documents");
        stage.window.wait_until("the folder is missed", || {
            let missed = "return document.querySelector('[data-testid=collection-state][role=alert]') !== null";
            in_page(&stage.window, missed, json!([])) == json!(true)
        });
        show(stage, "project-documents");
        stage.image_all("project-documents");
        stage.page(
            "document.querySelector('[data-testid=collection-files-toggle]').click(); return true",
            json!([]),
        );
        show(stage, "collection-files");
        stage.image("project-documents-files");
        stage.press_for("collection-menu", "remove-collection");
        stage.image("project-documents-menu");
        stage.press_for("remove-collection", "collection-removed");
        show(stage, "collection-removed");
        stage.image("project-documents-removed");
        stage.press_for("collection-menu", "delete-collection-asks");
        stage.press_for("delete-collection-asks", "delete-collection");
        stage.image("project-documents-delete");
        stage.press("delete-collection-cancel");
    });
}

fn citations(stage: &Stage) {
    stage.images("chat", "documents", |stage| {
        choose_model(&stage.window, "told");
        stage.press_for("composer-add", "documents");
        stage.press_for("documents", "documents-panel");
        stage.window.wait_for("collection-switch");
        stage.image("documents-panel");
        stage.page(
            "document.querySelector('[data-testid=collection-switch]').click(); return true",
            json!([]),
        );
        stage.window.wait_for("documents-chip");
        stage.press_for("read-everything", "reading-cost");
        stage.image("read-everything");
        stage.press("reading-cancel");
        stage.ask_to_the_end(&json!([ANSWER]).to_string());
        stage.window.wait_for("answer-coverage");
        stage.page("return document.querySelector('[data-wrong]') !== null", json!([]));
        stage.image("passages");
        stage.page(
            "const wrong = document.querySelector('[data-wrong]'); wrong?.focus(); return wrong !== null",
            json!([]),
        );
        stage.window.wait_for("citation-card");
        stage.image("citation-unsupported");
        stage.page(
            "document.querySelector('[data-cite][role=button]').click(); return true",
            json!([]),
        );
        stage.window.wait_for("passage-text");
        stage.image("citation-viewer");
        stage.press("passage-viewer-close");
        stage.press_for("question-passages", "passage");
        stage.image("passage-list");
        // All passages fit the context, so that the first message has those of the PDF; a long list draws what is in sight.
        stage.page(
            "const area = document.querySelector('[data-testid=passage-area]'); area.scrollTop = area.scrollHeight;
             const passages = [...document.querySelectorAll('[data-testid=passage]')];
             const found = passages.find(({ textContent }) => textContent.includes('smoke'));
             found?.querySelector('[data-testid=open-passage]').click(); return found !== undefined",
            json!([]),
        );
        stage.window.wait_for("page-mark");
        stage.image("citation-page");
        stage.press_for("page-larger", "page-mark");
        stage.image("citation-page-larger");
    });
}

pub fn states(stage: &Stage) {
    project(stage);
    citations(stage);
}
