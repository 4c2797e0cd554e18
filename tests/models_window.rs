//! The real Models window with a hub on loopback: from an empty computer to a model that answers, with verification,
//! updates and removal.

use std::fs;
use std::path::{Path, PathBuf};

use hub_imitation::{Dice, Fault, Imitation, Request, Times};
use serde_json::{json, Value};

use crate::support::driver::Window;

/// The hub's repository of Pebble.
pub const PEBBLE: &str = "ponder/pebble-from-the-hub";
const LARGE: &str = "model.safetensors";

/// The variables of an app whose hub has this address.
pub fn asking(endpoint: &str) -> [(&str, &str); 3] {
    [("HF_ENDPOINT", endpoint), ("NO_PROXY", "127.0.0.1"), ("HF_TOKEN", "")]
}

/// Opens the app with this hub, and switches to its Models window.
pub fn open_models(home: &Path, hub: &Imitation) -> Window {
    open_with(home, hub, &[])
}

fn open_with(home: &Path, hub: &Imitation, more: &[(&str, &str)]) -> Window {
    let endpoint = hub.endpoint();
    let mut environment = asking(&endpoint).to_vec();
    environment.extend_from_slice(more);
    let window = Window::open_with(home, &environment);
    window.click("open-models");
    window.switch_to("Models");
    window.wait_for("model-search");
    window
}

/// Slows the hub down, so that a test can act during a download.
pub fn slowly(hub: &Imitation) {
    let fault = Fault::Drip {
        bytes: 16 << 10,
        pause: std::time::Duration::from_millis(60),
    };
    hub.fault(LARGE, fault, Times::Always);
}

/// Searches the hub, and waits for the result.
pub fn search(window: &Window, text: &str) {
    window.type_into("model-search", text);
    window.wait_until("the search has answered", || {
        window.attribute("discover", "data-shown") == "models"
    });
}

/// Presses a button in the row of a model.
pub fn press(window: &Window, row: &str, reference: &str, button: &str) {
    let css = format!(
        "[data-testid={row}]:is([data-id={reference:?}], [data-reference={reference:?}]) [data-testid={button}]"
    );
    window.wait_until(&format!("{button} is in the row of {reference}"), || {
        window
            .run(
                "const found = document.querySelector(arguments[0]); if (found) found.click(); return found !== null",
                json!([css]),
            )
            .as_bool()
            == Some(true)
    });
}

/// Chooses an item in the menu of a local model.
fn from_menu(window: &Window, reference: &str, item: &str) {
    press(window, "model-row", reference, "model-menu");
    window.click(item);
}

fn download_state(window: &Window) -> String {
    window.attribute("download", "data-state")
}

fn wait_for_download(window: &Window, state: &str) {
    window.wait_until(&format!("the download is {state}"), || download_state(window) == state);
}

/// Bytes sent of the large file, and the first byte of each request.
fn ranges(requests: &[Request]) -> (u64, Vec<u64>) {
    let of_large = requests
        .iter()
        .filter(|request| request.sent > 0 && request.header("range").is_some() && request.sent > 1000);
    let sent = of_large.clone().map(|request| request.sent).sum();
    let from = of_large
        .filter_map(|request| {
            request
                .header("range")?
                .strip_prefix("bytes=")?
                .split('-')
                .next()?
                .parse()
                .ok()
        })
        .collect();
    (sent, from)
}

fn snapshot(home: &Path, id: &str, commit: &str) -> PathBuf {
    let name = format!("models--{}", id.replace('/', "--"));
    home.join("hub/hub").join(name).join("snapshots").join(commit)
}

#[test]
fn a_model_is_found_fetched_and_answers() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = Imitation::start();
    let repository = hub.repository(PEBBLE).pebble();
    slowly(&hub);
    let window = open_models(home.path(), &hub);
    window.wait_for("first-note");
    assert!(hub.requests().is_empty(), "nothing is asked before somebody searches");
    window.image("models-first");

    search(&window, "pebble");
    window.wait_until("the row says whether it fits", || window.count("fit") >= 1);
    window.image("models-found");
    window.click("fit");
    window.wait_for("fit-sum");
    window.image("models-fit");
    window.click("fit");
    press(&window, "hub-row", PEBBLE, "open-card");
    window.wait_for("card");
    window.image("models-card");
    window.click("card-close");

    press(&window, "hub-row", PEBBLE, "get");
    window.click("tab-downloads");
    wait_for_download(&window, "running");
    window.wait_until("some of it has come", || window.newest("download-about").contains("MB"));
    window.image("models-downloading");

    // Pause keeps the bytes so far, and resume continues after them.
    window.click("pause");
    wait_for_download(&window, "paused");
    let sent = hub.sent();
    window.image("models-paused");
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert!(hub.sent() - sent < 1 << 20, "a paused download stands still");
    hub.clear_faults();
    window.click("resume");
    wait_for_download(&window, "done");
    window.image("models-done");
    let whole = repository.bytes(LARGE).expect("it has weights");
    assert_eq!(
        fs::read(snapshot(home.path(), PEBBLE, &repository.commit()).join(LARGE)).expect("it is here"),
        whole
    );

    // It is ready in both windows at once.
    window.click("tab-local");
    window.wait_until("it is listed", || window.count("model-row") == 2);
    window.image("models-local");
    press(&window, "model-row", PEBBLE, "chat-with");
    window.switch_to("Ponder");
    window.wait_until("the chat has the model", || {
        window.newest("model-picker").contains("pebble from the hub")
    });
    window.ask("What is 347 + 589?");
    window.wait_until_answer_is("complete");
    assert_eq!(window.answer(), "347 + 589 = 936");
    window.image("models-answered");
    window.close();
}

#[test]
fn a_download_goes_on_after_the_app_was_closed_and_after_it_was_killed() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = Imitation::start();
    let repository = hub.repository(PEBBLE).pebble();
    let size = repository.bytes(LARGE).expect("it has weights").len() as u64;
    slowly(&hub);
    let window = open_models(home.path(), &hub);
    search(&window, PEBBLE);
    press(&window, "hub-row", PEBBLE, "get");
    window.wait_until("a third has come", || hub.sent() > size / 3);
    window.close();

    let before = hub.requests().len();
    let window = open_models(home.path(), &hub);
    window.wait_until("it goes on", || ranges(&hub.requests()[before..]).0 > 256 << 10);
    window.switch_to("Ponder");
    window.wait_for("download-glance");
    window.image("models-glance");
    let (_, from) = ranges(&hub.requests()[before..]);
    assert!(from.iter().all(|first| *first > 0), "it began anew: {from:?}");
    window.kill();

    let before = hub.requests().len();
    hub.clear_faults();
    let window = open_models(home.path(), &hub);
    window.click("tab-downloads");
    wait_for_download(&window, "done");
    let (sent, from) = ranges(&hub.requests()[before..]);
    assert!(
        sent < size && from.iter().all(|first| *first > 0),
        "it began anew: {sent} bytes from {from:?}"
    );
    println!("report: after a close and a kill {sent} of {size} bytes were still to fetch");
    assert_eq!(
        fs::read(snapshot(home.path(), PEBBLE, &repository.commit()).join(LARGE)).expect("it is here"),
        repository.bytes(LARGE).expect("it has weights")
    );
    window.close();
}

#[test]
fn a_damaged_file_is_found_repaired_and_the_model_removed() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = Imitation::start();
    let repository = hub.repository(PEBBLE).pebble();
    let window = open_models(home.path(), &hub);
    search(&window, PEBBLE);
    press(&window, "hub-row", PEBBLE, "get");
    window.wait_until("it is here", || window.count("chat-with") == 1);
    window.click("tab-local");
    window.wait_until("it is listed", || window.count("model-row") == 2);

    let file = snapshot(home.path(), PEBBLE, &repository.commit()).join(LARGE);
    let blob = file.canonicalize().expect("a link to a blob");
    let mut bytes = fs::read(&blob).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&blob, &bytes).expect("damaged");

    from_menu(&window, PEBBLE, "verify");
    window.wait_until("the check has ended", || {
        window.attribute("check", "data-kind") == "wrong"
    });
    assert!(window.newest("check").contains(LARGE));
    window.image("models-damaged");
    let before = hub.sent();
    window.click("repair");
    window.wait_until("it is right again", || {
        window.attribute("check", "data-kind") == "correct"
    });
    window.image("models-repaired");
    assert_eq!(
        fs::read(&file).expect("read"),
        repository.bytes(LARGE).expect("it has weights")
    );
    let fetched = hub.sent() - before;
    assert!(
        fetched >= bytes.len() as u64 && fetched < bytes.len() as u64 + 100_000,
        "{fetched} bytes for one file"
    );

    from_menu(&window, PEBBLE, "remove");
    window.wait_for("frees");
    assert!(window.newest("frees").contains("MB"));
    window.image("models-remove");
    window.click("confirm-remove");
    window.wait_until("it is gone", || window.count("model-row") == 1);
    assert!(!file.exists() && !blob.exists());
    window.close();
}

#[test]
fn a_gated_model_says_how_to_get_in_and_a_hub_that_is_gone_is_told() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = Imitation::start();
    hub.repository("somebody/gated-pebble-4bit").pebble().gated();
    let window = open_models(home.path(), &hub);
    search(&window, "gated");
    press(&window, "hub-row", "somebody/gated-pebble-4bit", "how");
    window.wait_for("gated");
    assert!(window.newest("gated").contains("Accept the terms"));
    window.image("models-gated");
    window.click("gated-close");

    // Known results are shown while the hub cannot be reached, with their date.
    hub.disappear(hub_imitation::Origin::Hub);
    window.click("clear-search");
    search(&window, "gated");
    window.wait_for("as-of");
    window.image("models-as-of");
    window.click("clear-search");
    window.type_into("model-search", "something else");
    window.wait_for("search-failed");
    window.image("models-unreachable");
    hub.reappear(hub_imitation::Origin::Hub);
    window.click("search-again");
    window.wait_for("no-results");

    // While offline, no request is sent.
    window.click("open-settings");
    window.switch_to("Settings");
    window.click("tab-privacy");
    window.wait_for("request");
    window.click("offline-switch");
    window.image("settings-offline");
    window.switch_to("Models");
    window.wait_for("offline-mark");
    let before = hub.requests().len();
    window.click("clear-search");
    window.type_into("model-search", "never asked");
    window.wait_for("search-failed");
    assert_eq!(hub.requests().len(), before);
    window.image("models-offline");
    window.close();
}

/// The window with 200 models and 30 downloads, scrolled from end to end. The times are reported only, because a
/// machine may be busy.
#[test]
fn two_hundred_models_and_thirty_downloads_move() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = Imitation::start();
    let mut dice = Dice::new(7);
    for number in 0..200 {
        let id = format!("crowd/model-{number}-4bit");
        let repository = hub
            .repository(&id)
            .field("tags", json!(["mlx", "safetensors", "text-generation"]))
            .generated(LARGE, 40_000_000, dice.below(1 << 40));
        for (name, text) in [
            ("config.json", CONFIG),
            ("tokenizer.json", "{}"),
            (
                "tokenizer_config.json",
                r#"{"chat_template": "{{ messages[0].content }}"}"#,
            ),
        ] {
            repository.clone().file(name, text);
        }
    }
    slowly(&hub);
    let window = open_models(home.path(), &hub);
    search(&window, "crowd");
    // Each of them is described before the next page is requested.
    window.wait_within(std::time::Duration::from_secs(300), "all 200 are listed", || {
        window.run(
            "const box = document.querySelector('[data-testid=discover]'); box.scrollTop = box.scrollHeight",
            json!([]),
        );
        window.count("hub-row") == 200
    });
    for number in 0..30 {
        press(&window, "hub-row", &format!("crowd/model-{number}-4bit"), "get");
    }
    window.wait_until("30 downloads are in the line", || {
        window.newest("tab-downloads").contains("30")
    });
    let scrolled = frames(&window, "discover");
    window.click("tab-downloads");
    wait_for_count(&window, 30);
    let listed = frames(&window, "downloads");
    window.image("models-many");
    println!(
        "report: 200 models scroll with a frame every {} ms at the median, {} ms at worst; 30 downloads {} ms and {} ms",
        scrolled.0, scrolled.1, listed.0, listed.1
    );
    assert!(scrolled.0 < 250.0 && listed.0 < 250.0, "the window stands still");
    window.close();
}

fn wait_for_count(window: &Window, downloads: u64) {
    window.wait_until("the downloads are listed", || window.count("download") == downloads);
}

/// Scrolls through a list for 150 frames: the median and the maximum of a frame, in milliseconds.
fn frames(window: &Window, list: &str) -> (f64, f64) {
    let script = "window.ponderFrames = null; const box = document.querySelector(`[data-testid=${arguments[0]}]`); const times = []; let last = performance.now();
        box.scrollTop = 0;
        const step = (now) => { times.push(now - last); last = now; box.scrollTop += box.scrollHeight / 150;
            if (times.length < 150) requestAnimationFrame(step); else window.ponderFrames = times; };
        requestAnimationFrame(step)";
    window.run(script, json!([list]));
    let mut measured = Value::Null;
    window.wait_until("the list was scrolled", || {
        measured = window.run("return window.ponderFrames", json!([]));
        !measured.is_null()
    });
    let mut times: Vec<f64> = measured
        .as_array()
        .expect("times")
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    times.sort_by(f64::total_cmp);
    let rounded = |time: f64| (time * 10.0).round() / 10.0;
    (rounded(times[times.len() / 2]), rounded(times[times.len() - 1]))
}

/// A small model of a known family with random weights.
const CONFIG: &str = r#"{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,
"num_key_value_heads":8,"head_dim":64,"intermediate_size":8192,"vocab_size":128256,"rms_norm_eps":1e-5,"rope_theta":500000.0,
"max_position_embeddings":131072,"tie_word_embeddings":true,"quantization":{"group_size":64,"bits":4}}"#;
