//! The windows other than chat: models, settings, quick entry, and the failure window.

use std::fs;
use std::path::Path;
use std::time::Duration;

use hub_imitation::{Fault, Imitation, Origin, Times};
use serde_json::json;

use crate::images_window::invoke;
use crate::quantize_window::{float_model, open_sheet, wait_for_status};
use crate::settings_window::unfold;
use crate::support::driver::Window;

use super::{wanted, Stage, Variant, NARROW};

const PEBBLE: &str = "ponder/pebble-from-the-hub";
const GATED: &str = "somebody/gated-pebble-4bit";
/// Never loaded: its weights are random.
const NOISE: &str = "pebble-lovers/Pebble-60M-4bit";
const LARGE: &str = "model.safetensors";

/// A model of a known family with random weights.
const CONFIG: &str = r#"{"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,
"num_key_value_heads":8,"head_dim":64,"intermediate_size":8192,"vocab_size":128256,"rms_norm_eps":1e-5,"rope_theta":500000.0,
"max_position_embeddings":131072,"tie_word_embeddings":true,"quantization":{"group_size":64,"bits":4}}"#;

/// Fills the hub.
pub fn fill(hub: &Imitation) {
    hub.repository(PEBBLE).pebble().field("downloads", json!(1_904_211)).file(
        "README.md",
        "# Pebble\n\nA *small* model that answers at once.\n\n| | |\n|---|--:|\n| size | 15 MB |\n\n```sh\nponder pull pebble\n```\n",
    );
    hub.repository(GATED).pebble().gated();
    let giant = "pebble-lovers/Pebble-Coder-480B-A35B-Instruct-with-a-very-long-name-that-goes-on-4bit";
    for id in [giant, NOISE] {
        let repository = hub
            .repository(id)
            .field("tags", json!(["mlx", "safetensors", "text-generation"]))
            .field("downloads", json!(80_311))
            .generated(LARGE, 60_000_000, 7);
        for (name, text) in [
            ("config.json", CONFIG),
            ("tokenizer.json", "{}"),
            (
                "tokenizer_config.json",
                r#"{"chat_template": "{{ messages[0].content }}<think>"}"#,
            ),
        ] {
            repository.clone().file(name, text);
        }
        if id == giant {
            // Its size is announced, and its bytes are never sent.
            let told = json!({"oid": "1".repeat(64), "size": 412_000_000_000_u64, "pointerSize": 140});
            repository.listed(LARGE, "lfs", told);
        }
    }
}

/// Slows the hub down, so that a download can be seen.
fn slowly(hub: &Imitation) {
    let fault = Fault::Drip {
        bytes: 16 << 10,
        pause: Duration::from_millis(60),
    };
    hub.fault(LARGE, fault, Times::Always);
}

fn search(stage: &Stage, words: &str) {
    stage.press("tab-discover");
    stage.write("model-search", words);
    stage.window.wait_until("the search has answered", || {
        stage.window.attribute("discover", "data-shown") == "models"
    });
}

/// Presses a button in the row of a model, if both exist.
fn press_in(stage: &Stage, row: &str, reference: &str, button: &str) {
    let css = format!(
        "[data-testid={row}]:is([data-id={reference:?}], [data-reference={reference:?}]) [data-testid={button}]"
    );
    stage.page(
        "const found = document.querySelector(arguments[0]); found?.click(); return found !== null",
        json!([css]),
    );
}

fn discovering(stage: &Stage) {
    stage.state("models", "models-first", |stage| stage.window.wait_for("first-note"));
    stage.images("models", "models-found", |stage| {
        search(stage, "pebble");
        stage
            .window
            .wait_until("what fits is said", || stage.window.count("fit") >= 2);
        stage.image_all("models-found");
        stage.press_for("fit", "fit-sum");
        stage.image("models-fit");
        stage.press("fit");
        press_in(stage, "hub-row", PEBBLE, "open-card");
        stage.window.wait_for("card");
        stage.image("models-card");
        stage.press("card-close");
        press_in(stage, "hub-row", GATED, "how");
        stage.window.wait_for("gated");
        stage.image("models-gated");
    });
    stage.state("models", "models-sort", |stage| {
        search(stage, "pebble");
        stage.press("sort");
    });
    stage.state("models", "models-nothing", |stage| {
        stage.write("model-search", "xylophone");
        stage.window.wait_for("no-results");
    });
    stage.images("models", "models-unreachable", |stage| {
        stage.hub.disappear(Origin::Hub);
        stage.write("model-search", "something else");
        stage.window.wait_for("search-failed");
        stage.image("models-unreachable");
        stage.hub.reappear(Origin::Hub);
    });
    // Runs also if the screenshot failed.
    stage.hub.reappear(Origin::Hub);
}

fn having(stage: &Stage) {
    stage.images("models", "models-downloads", |stage| {
        stage.press("tab-downloads");
        stage.image("models-no-downloads");
        slowly(stage.hub);
        search(stage, "pebble");
        press_in(stage, "hub-row", PEBBLE, "get");
        press_in(stage, "hub-row", NOISE, "get");
        stage.image("models-getting");
        stage.press("tab-downloads");
        stage.window.wait_until("some has come", || {
            stage.window.count("download") == 2 && stage.hub.sent() > 300_000
        });
        stage.image("models-downloading");
        stage.window.switch_to_window("chat");
        stage.show_sidebar();
        stage.image("download-glance");
        stage.window.switch_to_window("models");
        stage.press("pause");
        stage.image("models-paused");
        stage.hub.clear_faults();
        stage.hub.fault(
            LARGE,
            Fault::Status {
                code: 404,
                retry_after: None,
            },
            Times::Always,
        );
        stage.press("resume");
        stage.window.wait_for("download-error");
        stage.image("models-download-failed");
        stage.hub.clear_faults();
    });
    stage.hub.clear_faults();
    stage.images("models", "models-local", |stage| {
        stage.press("tab-downloads");
        stage.image("models-downloads-after");
        // Slow connections stay slow; new ones are not.
        for button in ["pause", "resume"] {
            let press = "const all = document.querySelectorAll(`[data-testid='${arguments[0]}']`); all.forEach((button) => button.click()); return all.length === 0";
            stage.page(press, json!([button]));
        }
        let done = "return [...document.querySelectorAll('[data-testid=download]')].every((row) => row.dataset.state === 'done')";
        stage.page(done, json!([]));
        stage.press("tab-local");
        stage.window.wait_until("it is listed", || stage.window.count("model-row") >= 3);
        stage.image("models-local");
        press_in(stage, "model-row", PEBBLE, "model-menu");
        stage.window.wait_for("remove");
        stage.image("models-menu");
        stage.press("verify");
        stage.window
            .wait_until("it is checked", || stage.window.attribute("check", "data-kind") == "correct");
        stage.image("models-checked");
        press_in(stage, "model-row", PEBBLE, "model-menu");
        stage.press_for("show-fit", "fit-sum");
        stage.image("models-fit-local");
        press_in(stage, "model-row", PEBBLE, "model-menu");
        press_in(stage, "model-row", PEBBLE, "model-menu");
        stage.press_for("remove", "frees");
        stage.image("models-remove");
        stage.press_for("confirm-remove", "toast-undo");
        stage.image("models-removed");
    });
}

fn tabs(stage: &Stage) -> Vec<String> {
    let script = "return [...document.querySelectorAll('[role=tab]')].map((tab) => tab.dataset.testid)";
    serde_json::from_value(stage.window.run(script, json!([]))).expect("a list of texts")
}

fn quantizing(stage: &Stage) {
    stage.images("models", "quantize", |stage| {
        let Some(folder) = float_model(&stage.home.join("my-models")) else {
            return;
        };
        let reference = folder.to_string_lossy().into_owned();
        stage.window.refresh();
        stage.press("tab-local");
        open_sheet(&stage.window, &reference);
        stage.image("quantize-sheet");
        stage.press_for("start-quantize", "stop-quantize");
        stage.image("quantize-running");
        wait_for_status(&stage.window, "comparing");
        stage.image("quantize-comparing");
        wait_for_status(&stage.window, "done");
        stage.image("quantize-done");
        open_sheet(&stage.window, &reference);
        stage.image("quantize-exists");
        fs::remove_file(folder.join(LARGE)).expect("it is removed");
        stage.press("quantize-eight_bits");
        stage.press("start-quantize");
        wait_for_status(&stage.window, "failed");
        stage.image("quantize-failed");
    });
}

fn settings(stage: &Stage) {
    let pages = [
        "general",
        "appearance",
        "chats",
        "models",
        "connections",
        "server",
        "privacy",
        "about",
    ];
    for page in pages {
        let name = format!("settings-{page}");
        stage.images("settings", &name, |stage| {
            stage
                .window
                .wait_until("its pages are there", || !tabs(stage).is_empty());
            stage.press(&format!("tab-{page}"));
            if page == "privacy" {
                stage.press_for("back-up", "backup");
            }
            if stage.window.count("advanced") > 0 {
                stage.press("advanced");
            }
            stage.image_all(&name);
        });
    }
    stage.images("settings", "settings-refusals", |stage| {
        stage.press_for("tab-chats", "default-budget-field");
        unfold(&stage.window);
        stage.window.type_into("default-budget-field", "many\u{e007}");
        stage.image_all("settings-chats-refused");
        stage.press_for("tab-connections", "open-add-endpoint");
        stage.press_for("open-add-endpoint", "endpoint-url");
        stage.write("endpoint-name", "lab");
        stage.write("endpoint-url", "https://models.example.org/v1");
        stage.window.wait_for("endpoint-warning");
        stage.press_for("add-endpoint", "endpoint-problem");
        stage.image("settings-endpoint-refused");
        stage.press("cancel-endpoint");
        stage.press("change-key");
        stage.press("test-endpoint");
        stage.image_all("settings-connections-refused");
        stage.press_for("tab-models", "add-folder");
        stage.press_for("add-folder", "folder-path");
        stage.image_all("settings-folder-typed");
    });
    stage.images("settings", "settings-server-on", |stage| {
        stage.press_for("tab-server", "server-switch");
        stage.press("server-switch");
        stage.window.wait_until("it is on, or says why not", || {
            stage.window.attribute("server-state", "data-state") != "off"
        });
        stage.image_all("settings-server-on");
        stage.press("server-switch");
        stage.window.wait_until("it is off", || {
            stage.window.attribute("server-state", "data-state") == "off"
        });
    });
    stage.state("settings", "settings-search", |stage| {
        stage.write("settings-search", stage.words("model", "نموذج"));
        stage.window.wait_for("settings-result");
    });
    stage.state("settings", "settings-presets", |stage| {
        stage.press_for("tab-chats", "manage-presets");
        stage.press_for("manage-presets", "presets-sheet");
    });
    stage.state("settings", "settings-snippets", |stage| {
        stage.press_for("tab-chats", "manage-snippets");
        stage.press_for("manage-snippets", "new-snippet-name");
    });
    stage.state("settings", "settings-licence", |stage| {
        stage.press_for("tab-about", "open-licences");
        stage.press_for("open-licences", "licence");
        stage.page(
            "document.querySelector('[data-testid=licence]').click(); return true",
            json!([]),
        );
        stage.page(
            "document.querySelector('[data-testid=licence-text]')?.scrollIntoView({ block: 'center' }); return true",
            json!([]),
        );
    });
    stage.images("settings", "offline", |stage| {
        invoke(&stage.window, "set_offline", json!({"offline": true}));
        stage.image("settings-offline");
        stage.window.switch_to_window("chat");
        stage.open("models");
        stage.window.wait_for("offline-mark");
        stage.image("models-offline");
        invoke(&stage.window, "set_offline", json!({"offline": false}));
    });
}

fn quick(stage: &Stage) {
    stage.images("chat", "quick-entry", |stage| {
        assert!(stage.window.start_again(&["--quick-entry"]).status.success());
        stage.window.switch_to_window("quick");
        stage.place.set("quick");
        stage.image("quick-empty");
        stage.size();
        stage.window.type_into("quick-question", "What is 347 + 589?\u{e007}");
        stage.window.wait_until("it is answered", || {
            stage.window.attribute("quick-answer", "data-state") == "complete"
                && stage.window.newest("quick-answer").contains("936")
        });
        stage.image("quick-answer");
        stage.window.type_into("quick-question", "\u{e00c}");
        stage.window.switch_to_window("chat");
    });
}

pub fn states(stage: &Stage) {
    discovering(stage);
    having(stage);
    quantizing(stage);
    settings(stage);
    quick(stage);
}

/// The window of an app that could not start.
pub fn failure(variant: &Variant, folder: &Path, only: &[String]) {
    if !wanted(only, variant, "failure") {
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("history.sqlite"), "no database ".repeat(1000)).expect("written");
    let window = Window::start(home.path(), variant.environment).with_patience(Duration::from_secs(25));
    window.wait_for("failure");
    if variant.narrow {
        let (_, width, height) = NARROW[4];
        window.resize(width, height);
    }
    window.image_in(&folder.join(variant.name), "failure");
    window.close();
}
