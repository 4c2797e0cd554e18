//! Previews of what a response wrote, in the real web view: they show it, and nothing that it does leads out of its
//! frame.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{json, Value};

use crate::support::driver::Window;
use crate::support::keyboard::Keyboard;
use crate::support::outside::{Outside, CONTROL};
use crate::support::{log, put_chat};
use crate::web_process::first_paints;

/// Artifacts that mean harm. `reach` is a function that nothing may call, and `OUTSIDE` the host of a server that must
/// get no connection.
const HOSTILE: &str = include_str!("../ui/src/testing/hostileArtifacts.md");
/// Before the code of each page: what it got to, and that it ran at all.
const WATCH: &str = "<script>window.reached = []; window.reach = (what) => window.reached.push(String(what));
    window.began = true</script>";
/// Artifacts in a chat: all of its answers are drawn at once.
const IN_A_CHAT: usize = 12;
/// The one that never ends, which has a test of its own.
const ENDLESS: &str = "a script without end";

/// An artifact of the list: its name, the label of its block, its code.
struct Artifact {
    name: &'static str,
    label: &'static str,
    code: String,
}

impl Artifact {
    /// A response that wrote it.
    fn answer(&self) -> String {
        let Self { name, label, code } = self;
        match *label {
            "html" => format!("```html\n<title>{name}</title>{WATCH}\n{code}\n```"),
            label => format!("```{label}\n{code}\n```"),
        }
    }
}

fn artifacts(outside: &str) -> Vec<Artifact> {
    let parts = HOSTILE.split("\n## ").skip(1);
    let artifact = |part: &'static str| {
        let (name, rest) = part.split_once("\n\n```").expect("a block after each heading");
        let (label, rest) = rest.split_once('\n').expect("a label");
        let (code, _) = rest.split_once("\n```").expect("an end");
        let code = code.replace("OUTSIDE", outside);
        Artifact { name, label, code }
    };
    parts.map(artifact).collect()
}

/// Opens the chat of this title.
fn open_chat(window: &Window, title: &str) {
    let script = "const item = [...document.querySelectorAll('[data-testid=chat-item]')].find((item) => item.textContent.trim() === arguments[0]);
        item?.click(); return item !== undefined";
    window.wait_until("the chat is listed", || window.run(script, json!([title])) == true);
    window.wait_until("it is open", || window.newest("chat-title") == title);
    window.wait_for("open-preview");
}

/// Opens the preview of the block at this place in the open chat.
fn open_preview(window: &Window, place: usize) {
    let script = "const button = document.querySelectorAll('[data-testid=open-preview]')[arguments[0]];
        button?.scrollIntoView({ block: 'center' }); button?.click(); return button !== undefined";
    window.wait_until("the block has a preview", || window.run(script, json!([place])) == true);
    window.wait_for("preview");
}

/// A value of the preview's page; null while another page takes its place.
fn in_preview(window: &Window, script: &str) -> Value {
    let outcome = window.try_run_in_frame("preview-frame", script, json!([]));
    outcome.unwrap_or_default()
}

/// Everything of the window that an artifact might change.
fn outer_state(window: &Window) -> Value {
    let script = "return [location.href, document.title, window.calls, document.querySelectorAll('iframe').length,
        document.querySelector('[data-testid=composer]').value, Object.keys(localStorage).length,
        document.fullscreenElement === null, document.pointerLockElement === null]";
    window.run(script, json!([]))
}

#[test]
fn no_hostile_artifact_leads_out_of_its_frame() {
    let (home, outside) = (tempfile::tempdir().expect("a folder"), Outside::open());
    let all: Vec<Artifact> = artifacts(&outside.address)
        .into_iter()
        .filter(|artifact| artifact.name != ENDLESS)
        .collect();
    assert!(all.len() >= 60, "{}", all.len());
    let chats: Vec<&[Artifact]> = all.chunks(IN_A_CHAT).collect();
    for (number, chat) in chats.iter().enumerate() {
        let answers: Vec<String> = chat.iter().map(Artifact::answer).collect();
        let turns: Vec<[&str; 3]> = chat
            .iter()
            .zip(&answers)
            .map(|(artifact, answer)| [artifact.name, "", answer.as_str()])
            .collect();
        put_chat(home.path(), &format!("Artifacts {number}"), &turns);
    }
    let window = Window::open(home.path());
    window.run(
        "window.calls = 0; window.reach = window.alert = window.confirm = window.prompt = window.print = () => { window.calls += 1 }",
        json!([]),
    );
    window.type_into("composer", "a draft");
    let mut ran = 0;
    for (number, chat) in chats.iter().enumerate() {
        open_chat(&window, &format!("Artifacts {number}"));
        window.wait_until("every block has a preview", || {
            window.count("open-preview") == chat.len() as u64
        });
        for (place, artifact) in chat.iter().enumerate() {
            let name = artifact.name;
            open_preview(&window, place);
            if artifact.label == "mermaid" {
                window.wait_until(&format!("{name} is drawn or refused"), || {
                    window.count("diagram") + window.count("diagram-failed") > 0
                });
            } else {
                window.wait_for("preview-frame");
            }
            if artifact.label == "html" {
                window.wait_until(&format!("{name} runs"), || {
                    in_preview(&window, "return window.began === true") == true
                });
                ran += 1;
            }
            let before = outer_state(&window);
            sleep(Duration::from_millis(1200));
            assert_eq!(outer_state(&window), before, "{name} changed the window");
            if artifact.label == "html" {
                let script =
                    "return [location.protocol, self.origin, typeof window.__TAURI_INTERNALS__, window.reached]";
                let state = in_preview(&window, script);
                assert_eq!(state, json!(["ponder-preview:", "null", "undefined", []]), "{name}");
            }
            assert_eq!(window.open_windows(), 1, "{name} opened a window");
            assert_eq!(outside.came(), [CONTROL], "{name} asked the network");
            assert!(window.is_running(), "{name}");
            if place == 0 {
                window.image(&format!("hostile-artifact-{number}"));
            }
        }
    }
    println!("report: {} hostile artifacts, scripts of {ran} ran", all.len());
    // A page that will not go has gone as well.
    window.click("preview-close");
    sleep(Duration::from_secs(1));
    assert_eq!(outside.came(), [CONTROL]);
    let place = window.run("return [location.origin, window.calls]", json!([]));
    assert_eq!(place, json!(["tauri://localhost", 0]));
    window.press_with_control("n");
    window.ask("What is 2 + 3?");
    window.wait_until_answer_is("complete");
    window.close();
}

/// Puts one of the list into a chat of its own and opens the window.
fn window_with(home: &Path, name: &str) -> Window {
    let all = artifacts("127.0.0.1:9");
    let artifact = all.iter().find(|artifact| artifact.name == name).expect("it is listed");
    put_chat(home, "An artifact", &[["Write it", "", &artifact.answer()]]);
    let window = Window::open(home);
    open_chat(&window, "An artifact");
    window
}

#[test]
fn a_script_without_end_costs_the_page_and_no_word() {
    let home = tempfile::tempdir().expect("a folder");
    let window = window_with(home.path(), ENDLESS);
    let keyboard = Keyboard::of(&window);
    keyboard.bring_forward("Ponder");
    window.type_into("composer", "a draft that nobody sent");
    // Drafts are stored after a pause in typing.
    sleep(Duration::from_millis(700));
    let painted = first_paints(home.path());
    open_preview(&window, 0);
    sleep(Duration::from_millis(1500));
    // The web view notices it when a person does something.
    keyboard.press("a");
    window.wait_within(Duration::from_secs(40), "the page is loaded again", || {
        first_paints(home.path()) > painted
    });
    assert!(log(home.path()).contains("a page with a preview does not react"));
    // The driver ends its session with the page's process.
    drop(keyboard);
    window.kill();
    let window = Window::open(home.path());
    window.wait_for("open-preview");
    assert_eq!(window.count("preview"), 0, "nothing opens by itself");
    let draft = "return document.querySelector('[data-testid=composer]').value";
    assert_eq!(window.run(draft, json!([])), "a draft that nobody sent");
    window.close();
}

/// A page whose script counts, in two versions, and a drawing.
const COUNTER: [&str; 3] = [
    "```html\n<!doctype html>\n<title>Counter</title>\n<style>body { font: 20px system-ui; padding: 2rem }</style>\n<h1>Counter</h1>\n<button id=\"more\">One more</button> <output>0</output>\n<script>\nlet count = 0;\ndocument.querySelector('#more').onclick = () => { document.querySelector('output').textContent = String(++count) };\n</script>\n```",
    "```html\n<!doctype html>\n<title>Counter</title>\n<h1>Counter, two</h1>\n<output></output>\n<script>document.querySelector('output').textContent = 1 + 1;</script>\n```",
    "```svg\n<svg viewBox=\"0 0 100 60\"><title>A wave</title><path d=\"M0 40 Q25 10 50 40 T100 40\" fill=\"none\" stroke=\"teal\" stroke-width=\"4\"/></svg>\n```",
];

#[test]
fn a_preview_shows_what_was_written_with_its_versions() {
    let home = tempfile::tempdir().expect("a folder");
    let turns = COUNTER.map(|answer| ["Write it", "", answer]);
    put_chat(home.path(), "Counter", &turns);
    let window = Window::open(home.path());
    open_chat(&window, "Counter");
    assert_eq!(window.count("preview"), 0);
    open_preview(&window, 0);
    window.wait_for("preview-frame");
    assert_eq!(window.newest("preview-version"), "1 of 2");
    let press = "document.querySelector('#more').click(); return document.querySelector('output').textContent";
    window.wait_until("its script runs", || {
        in_preview(&window, press).as_str().is_some_and(|text| text != "0")
    });
    window.image("preview");
    let read = "return document.querySelector('h1')?.textContent + document.querySelector('output')?.textContent";
    window.click_last("preview-newer");
    window.wait_until("the newer version is shown", || {
        window.newest("preview-version") == "2 of 2" && in_preview(&window, read) == "Counter, two2"
    });
    window.click_last("preview-code");
    window.wait_for("preview-source");
    window.image("preview-code");
    window.click_last("preview-code");
    window.wait_for("preview-frame");
    window.click_last("preview-stop");
    window.wait_for("preview-stopped");
    window.click_last("preview-reload");
    window.wait_for("preview-frame");
    window.press_key("\u{e00c}");
    window.wait_until("Escape closes it", || window.count("preview") == 0);
    open_preview(&window, 2);
    window.wait_for("preview-frame");
    assert_eq!(window.newest("preview-title"), "A wave");
    window.resize(640, 760);
    window.image("preview-narrow");
    window.click_last("preview-close");
    window.wait_until("it is closed", || window.count("preview") == 0);
    window.wait_for("composer");
    window.close();
}
