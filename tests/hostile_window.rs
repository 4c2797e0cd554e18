//! Texts that try to run or load something, in the real web view, diagrams, which a third-party library draws, and files
//! that mean harm.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::images_window::{in_page, invoke, HANDS};
use crate::server_window::copy_pebble;
use crate::support::driver::Window;
use crate::support::outside::{Outside, CONTROL};
use crate::support::{ponder_json, put_chat};

/// The payloads. `ran` is a function that must not be called, and `OUTSIDE` the host of a server that must get no
/// request.
const PAYLOADS: &str = include_str!("../ui/src/testing/payloads.json");
/// Counts the calls of functions that hostile texts name.
const COUNT_CALLS: &str = "window.calls = 0; window.ran = window.alert = () => { window.calls += 1 }";
/// Turns of a chat.
const TURNS: usize = 10;
/// Files of tests/hostile by kind and number: streams that unfold, a padded dictionary, nested objects, a DOCX that
/// unfolds, a million open tags; uses of uses, masks of masks, a header of a huge image; images that are bombs within an
/// import, and values by the million.
const FILES: [&str; 10] = [
    "documents/0",
    "documents/3",
    "documents/6",
    "documents/18",
    "documents/25",
    "images/25",
    "images/1",
    "images/13",
    "imports/8",
    "imports/1",
];
/// The seed by which they are what the list says.
const SEED: &str = "20261121";
/// Time for the honest file after one of them: images and documents are read one at a time, and a document has 20 s.
const PATIENCE: Duration = Duration::from_secs(90);

const KINDS: &str = r#"```mermaid
graph TD
  A[Question] -->|is asked| B{Model}
  B -->|thinks| C((Thought))
  B --> D[Answer]
```

```mermaid
sequenceDiagram
  participant P as Person
  P->>Ponder: a question
  Note over Ponder: reads and thinks
  Ponder-->>P: an answer
```

```mermaid
gantt
  title A day
  dateFormat YYYY-MM-DD
  section Morning
  Write :a1, 2026-01-01, 3d
  Read :after a1, 2d
```

```mermaid
mindmap
  root((Ponder))
    Chats
      Branches
    Models
```

```mermaid
C4Context
  Person(a, "Somebody", "asks")
  System(b, "Ponder")
  Rel(a, b, "uses")
```

```mermaid
classDiagram
  class Room {
    +String name
  }
  Room <|-- Kitchen
```

```mermaid
stateDiagram-v2
  [*] --> Streaming
  Streaming --> Complete
```

```mermaid
pie title Shares
  "thought" : 30
  "answer" : 70
```

```mermaid
xychart-beta
  x-axis [a, b, c]
  bar [1, 3, 2]
```

```mermaid
graph TD
  A[
```
"#;

fn hostile_diagrams(outside: &str) -> String {
    let many: String = (0..148)
        .map(|number| format!("  n{number} --> n{}\n", number * 7 % 60))
        .collect();
    let long: String = (0..400).map(|number| format!("  A->>B{number}: x\n")).collect();
    let diagrams = [
        format!("graph TD\n  A[\"<img src=http://{outside}/image onerror=ran(1)>\"] --> B\n  click A call ran(1)\n  click B href \"javascript:ran(1)\""),
        format!("%%{{init: {{\"securityLevel\": \"loose\", \"htmlLabels\": true, \"themeCSS\": \"@import url(http://{outside}/import); * {{ background: url(http://{outside}/style) }}\"}}}}%%\ngraph TD\n  A[\"<iframe src=http://{outside}/frame>\"] --> B"),
        format!("graph TD\n  A@{{ img: \"http://{outside}/node.png\", label: \"x\", h: 60 }} --> B\n  classDef bad fill:url(http://{outside}/fill)\n  class B bad"),
        format!("sequenceDiagram\n  participant A as <img src=http://{outside}/actor onerror=ran(1)>\n  A->>B: <svg onload=ran(1)>\n  link A: Out @ http://{outside}/link"),
        format!("graph TD\n{many}"),
        format!("sequenceDiagram\n{long}"),
        "gantt\n  dateFormat YYYY-MM-DD\n  tickInterval 1millisecond\n  axisFormat %L\n  section S\n  A :a1, 0001-01-01, 9999-12-31".to_owned(),
    ];
    diagrams
        .iter()
        .map(|diagram| format!("```mermaid\n{diagram}\n```\n\n"))
        .collect()
}

/// Draws the diagrams of the open chat one after the other; for each, if it is a visible image, and its time.
fn draw(window: &Window) -> Vec<(bool, Duration)> {
    let count = window.count("draw-diagram");
    let press = "const button = document.querySelectorAll('[data-testid=draw-diagram]')[arguments[0]]; button.scrollIntoView({ block: 'center' }); button.click()";
    let outcome =
        "const block = document.querySelectorAll('[data-testid=draw-diagram]')[arguments[0]].closest('.code');
        const image = block.querySelector('[data-testid=diagram]');
        if (block.querySelector('[data-testid=diagram-failed]')) return 'failed';
        return image?.complete && image.naturalWidth > 0 ? 'drawn' : ''";
    let drawn = |number| {
        let begun = Instant::now();
        window.run(press, json!([number]));
        let mut ended = Value::Null;
        window.wait_until("the diagram is drawn or refused", || {
            ended = window.run(outcome, json!([number]));
            ended != ""
        });
        (ended == "drawn", begun.elapsed())
    };
    (0..count).map(drawn).collect()
}

/// Tries every way to the app's commands from the frame in which diagrams are drawn, where a script of a hostile diagram
/// would be. Returns the frame's origin and what is there of Tauri.
fn reach_out_of_the_frame(window: &Window, outside: &str) -> Value {
    let script = "const command = { cmd: 'open_window', callback: 1, error: 2, payload: { name: 'models' }, options: {} };
        for (const key of [undefined, '', 'guessed'])
          window.webkit?.messageHandlers?.ipc?.postMessage(JSON.stringify({ ...command, __TAURI_INVOKE_KEY__: key }));
        const headers = { 'Tauri-Callback': '1', 'Tauri-Error': '2', 'Tauri-Invoke-Key': 'guessed', 'Content-Type': 'application/json' };
        fetch('ipc://localhost/open_window', { method: 'POST', headers, body: JSON.stringify(command.payload) }).catch(() => {});
        fetch(`http://${arguments[0]}/fetched`, { mode: 'no-cors' }).catch(() => {});
        let parent_read = true;
        try { void parent.document.title } catch { parent_read = false }
        return [self.origin, typeof window.__TAURI_INTERNALS__, typeof window.ipc, parent_read]";
    window.run_in_frame("diagram-frame", script, json!([outside]))
}

#[test]
fn hostile_texts_run_nothing_and_ask_nobody() {
    let (home, outside) = (tempfile::tempdir().expect("a folder"), Outside::open());
    let payloads: Vec<String> = serde_json::from_str(PAYLOADS).expect("a list of texts");
    let payloads: Vec<String> = payloads
        .iter()
        .map(|text| text.replace("OUTSIDE", &outside.address))
        .collect();
    let chats = payloads.chunks(TURNS);
    let count = chats.len();
    for texts in chats {
        let turns: Vec<[&str; 3]> = texts.iter().map(|text| [text.as_str(); 3]).collect();
        put_chat(home.path(), &texts[0], &turns);
    }
    let window = Window::open(home.path());
    window.run(COUNT_CALLS, json!([]));
    // The list draws the rows in view alone.
    let open = "const list = document.querySelector('[data-testid=chats]');
        const item = document.querySelector(`[data-chat-id='${arguments[0]}']`);
        if (item) { item.click(); return true }
        list.scrollTop = list.scrollTop + list.clientHeight >= list.scrollHeight - 2 ? 0 : list.scrollTop + 300;
        return false";
    let chats = ponder_json(home.path(), &["history", "--json"]);
    let ids: Vec<String> = chats[0]["chats"]
        .as_array()
        .expect("chats")
        .iter()
        .map(|chat| chat["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(ids.len(), count);
    let shown = "const messages = document.querySelector('[data-testid=messages]');
        for (const toggle of document.querySelectorAll('[data-testid=thought-toggle][aria-expanded=false]')) toggle.click();
        for (const link of document.querySelectorAll('.markdown a, .markdown summary')) link.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
        const end = messages.scrollTop + messages.clientHeight >= messages.scrollHeight - 2;
        messages.scrollTop += messages.clientHeight * 0.8;
        return end";
    for (number, id) in ids.iter().enumerate() {
        window.wait_until("the chat is in the list", || {
            window.run(open, json!([id])) == Value::Bool(true)
        });
        sleep(Duration::from_millis(300));
        window.run(
            "document.querySelector('[data-testid=messages]').scrollTop = 0",
            json!([]),
        );
        window.wait_until("the end of the chat is seen", || {
            sleep(Duration::from_millis(80));
            window.run(shown, json!([])) == Value::Bool(true)
        });
        if number == 0 {
            window.image("hostile-texts");
        }
        assert_eq!(
            window.run("return window.calls", json!([])),
            0,
            "something ran in chat {number}"
        );
    }
    sleep(Duration::from_secs(1));
    assert_eq!(outside.came(), [CONTROL]);
    assert_eq!(window.run("return location.origin", json!([])), "tauri://localhost");
    window.close();
}

/// Calls the commands that would do the most harm, each with arguments that are right, and returns what came of each.
/// The first argument is a folder.
const WORST: &str = "const { invoke } = window.__TAURI_INTERNALS__;
    const own = (await invoke('models')).find((model) => !model.built_in);
    const calls = [
      ['set_offline', { offline: false }],
      ['add_endpoint', { name: 'thief', url: 'https://thief.example/v1', key: null, unencryptedKey: false }],
      ['server_key', {}],
      ['new_server_key', {}],
      ['set_server', { on: true, port: 18239, network: true }],
      ['delete_all_chats', {}],
      ['remove_model', { reference: own.reference }],
      ['add_model_folder', { path: args[0] }],
      ['client_setups', { model: 'pebble', withKey: true }],
      ['set_token', { token: '' }],
    ];
    const outcomes = [];
    for (const [command, given] of calls)
      outcomes.push(`${command}: ${await invoke(command, given).then((value) => `done, ${JSON.stringify(value)}`, JSON.stringify)}`);
    return outcomes";

/// Everything that those calls would change or tell, as the page of Settings sees it.
fn state(window: &Window) -> Value {
    let commands = json!([
        "settings",
        "net_settings",
        "server_status",
        "server_key",
        "endpoints",
        "model_folders"
    ]);
    let ask = "return Promise.all(args[0].map((command) => window.__TAURI_INTERNALS__.invoke(command)))";
    in_page(window, ask, json!([commands]))
}

#[test]
fn a_script_in_the_chats_page_reaches_nothing_that_matters() {
    let home = tempfile::tempdir().expect("a folder");
    put_chat(home.path(), "A chat", &[["A question", "", "An answer"]]);
    let models = home.path().join("my-models");
    copy_pebble(&models.join("twin"));
    let window = Window::open(home.path());
    // This person agrees to everything: nothing but the permissions of the page stands in the way.
    window.answer_dialogs("yes");
    invoke(&window, "open_window", json!({"name": "settings"}));
    window.switch_to("Settings");
    invoke(&window, "set_offline", json!({"offline": true}));
    invoke(&window, "add_model_folder", json!({"path": models}));
    let before = state(&window);
    window.switch_to("Ponder");
    let outcomes = in_page(&window, WORST, json!([home.path()]));
    let outcomes = outcomes.as_array().expect("a list");
    assert_eq!(outcomes.len(), 10);
    for outcome in outcomes {
        assert!(outcome.as_str().expect("text").contains("not allowed"), "{outcome}");
    }
    window.switch_to("Settings");
    assert_eq!(state(&window), before);
    window.close();
    let chats = ponder_json(home.path(), &["history", "--json"]);
    assert_eq!(chats[0]["chats"].as_array().map(Vec::len), Some(1));
    assert!(models.join("twin/config.json").is_file(), "the model stays");
}

#[test]
fn diagrams_are_drawn_when_asked_for_and_hostile_ones_do_nothing() {
    let (home, outside) = (tempfile::tempdir().expect("a folder"), Outside::open());
    put_chat(home.path(), "Diagrams", &[["Draw me some", "", KINDS]]);
    put_chat(
        home.path(),
        "Traps",
        &[["Draw me others", "", &hostile_diagrams(&outside.address)]],
    );
    for (dark, environment) in [(false, &[][..]), (true, &[("GTK_THEME", "Adwaita:dark")][..])] {
        let window = Window::open_with(home.path(), environment);
        window.run(COUNT_CALLS, json!([]));
        let open = |title: &str| {
            let script = "const item = [...document.querySelectorAll('[data-testid=chat-item]')].find((item) => item.textContent.trim() === arguments[0]);
                item?.click(); return item !== undefined";
            window.wait_until("it is listed", || window.run(script, json!([title])) == true);
            window.wait_until("it is open", || window.newest("chat-title") == title);
            window.wait_for("draw-diagram");
        };
        open("Diagrams");
        let drawn = draw(&window);
        println!("report: diagrams, dark: {dark}: {drawn:?}");
        let expected: Vec<bool> = (0..10).map(|number| number < 9).collect();
        assert_eq!(drawn.iter().map(|(drawn, _)| *drawn).collect::<Vec<_>>(), expected);
        assert!(window.newest("diagram-failed").contains("line 2"));
        for (number, name) in ["top", "middle", "end"].iter().enumerate() {
            let place = "const area = document.querySelector('[data-testid=messages]'); area.scrollTop = (area.scrollHeight - area.clientHeight) * arguments[0] / 2";
            window.run(place, json!([number]));
            window.image(&format!("diagrams-{name}{}", if dark { "-dark" } else { "" }));
        }
        assert_eq!(window.count("diagram-frame"), 1, "one frame draws all of them");
        if !dark {
            let reached = reach_out_of_the_frame(&window, &outside.address);
            assert_eq!(reached, json!(["null", "undefined", "undefined", false]));
            window.run_in_frame("diagram-frame", COUNT_CALLS, json!([]));
            open("Traps");
            let drawn = draw(&window);
            println!("report: hostile diagrams: {drawn:?}");
            window.image("diagrams-hostile");
            sleep(Duration::from_secs(1));
            assert_eq!(window.open_windows(), 1, "a command was called from the frame");
            let ran = window.run_in_frame("diagram-frame", "return window.calls", json!([]));
            assert_eq!(ran, 0, "something ran where diagrams are drawn");
        }
        assert_eq!(window.run("return window.calls", json!([])), 0);
        window.close();
    }
    assert_eq!(outside.came(), [CONTROL]);
}

/// A file of the corpus, in a folder of its own.
fn written(folder: &Path, name: &str) -> PathBuf {
    let folder = folder.join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/run.py");
    let mut write = Command::new("python3");
    write.arg("-B").arg(script).args(["--write", name]).arg(&folder);
    assert!(write.args(["--seed", SEED]).status().expect("python3 runs").success());
    let mut files = std::fs::read_dir(folder).expect("a folder");
    files.next().expect("a file").expect("readable").path()
}

/// Drops a file on the chat, as from another window.
fn drop_file(window: &Window, name: &str, bytes: &[u8]) {
    let body = "bring('drop', [new File([Uint8Array.from(args[0])], args[1])])";
    in_page(window, body, json!([bytes, name]));
}

fn is_attached(window: &Window, name: &str) -> bool {
    let script = "return [...document.querySelectorAll('[data-testid=attachment]')].some((tile) => tile.getAttribute('aria-busy') !== 'true' && tile.textContent.includes(arguments[0]))";
    window.run(script, json!([name])) == true
}

#[test]
fn hostile_files_leave_the_window_as_it_was() {
    let (home, from) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let window = Window::open(home.path());
    window.run(HANDS, json!([]));
    for (number, name) in FILES.iter().enumerate() {
        let begun = Instant::now();
        let path = written(from.path(), name);
        // Images are dropped; the others are opened with Ponder, and an import asks first.
        if name.starts_with("images") {
            let bytes = std::fs::read(&path).expect("it is there");
            drop_file(&window, &path.file_name().expect("a name").to_string_lossy(), &bytes);
        } else {
            let opened = window.start_again(&[path.to_str().expect("text")]);
            assert!(opened.status.success(), "{name}: {opened:?}");
        }
        if name.starts_with("imports") {
            window.wait_within(PATIENCE, "the import is asked about or refused", || {
                window.count("opened-chats") + window.count("toast") > 0
            });
            if window.count("opened-chats") > 0 {
                window.click("opened-import");
                window.wait_within(PATIENCE, "the chat is there", || window.count("chat-item") > 0);
            }
        } else {
            window.wait_within(PATIENCE, "the file is read or refused", || {
                window.count("remove-attachment") + window.count("toast") > 0
                    && window.run(
                        "return document.querySelector('[data-testid=attachment][aria-busy=true]') === null",
                        json!([]),
                    ) == true
            });
        }
        assert!(window.is_running(), "{name}");

        // The next honest one is read.
        let honest = format!("honest-{number}.md");
        drop_file(&window, &honest, b"# Notes\n\nThe tide turns at noon.\n");
        window.wait_within(PATIENCE, &format!("{honest} after {name}"), || {
            is_attached(&window, &honest)
        });
        println!("report: hostile file {name}: {:.1} s", begun.elapsed().as_secs_f32());
        let remove = "for (const remove of [...document.querySelectorAll('[data-testid=remove-attachment]')].reverse()) remove.click()";
        window.wait_until("the draft is empty", || {
            window.run(remove, json!([]));
            window.count("attachment") + window.count("broken-image") == 0
        });
    }
    window.image("hostile-files");
    window.press_with_control("n");
    window.ask("What is 2 + 3?");
    window.wait_until_answer_is("complete");
    assert!(window.answer().contains('5'), "{}", window.answer());
    assert!(window.is_running());
    window.close();
}
