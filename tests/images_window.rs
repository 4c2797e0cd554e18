//! Images in the real window: pasted, dropped, reordered, refused for a model without vision, sent, viewed, restored.

use std::fs;
use std::path::Path;

use serde_json::{json, Value};

use crate::settings_window::choose_in;
use crate::support::driver::Window;
use crate::support::ponder_json;
use crate::support::vision_endpoint::VisionEndpoint;

/// Functions of the page that create images and insert them like the clipboard or another window.
pub const HANDS: &str = r"
window.imageOf = async (name, width, height, hue) => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext('2d');
  const sky = context.createLinearGradient(0, 0, 0, height);
  sky.addColorStop(0, `hsl(${hue} 60% 62%)`);
  sky.addColorStop(1, `hsl(${hue + 40} 70% 86%)`);
  context.fillStyle = sky;
  context.fillRect(0, 0, width, height);
  context.fillStyle = `hsl(${hue} 35% 35%)`;
  context.beginPath();
  context.moveTo(0, height);
  context.lineTo(width * 0.4, height * 0.35);
  context.lineTo(width, height);
  context.fill();
  return new File([await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'))], name, { type: 'image/png' });
};
window.bring = (type, files) => {
  const data = new DataTransfer();
  for (const file of files) data.items.add(file);
  const target = type === 'paste' ? document.querySelector('[data-testid=composer]') : document.body;
  const options = { bubbles: true, cancelable: true };
  const event = type === 'paste' ? new ClipboardEvent(type, { ...options, clipboardData: data }) : new DragEvent(type, { ...options, dataTransfer: data });
  target.dispatchEvent(event);
  return event.defaultPrevented;
};
";

/// Runs the body of an asynchronous function in the page and returns its result.
pub fn in_page(window: &Window, body: &str, args: Value) -> Value {
    let script = format!(
        "const done = arguments[arguments.length - 1]; const args = [...arguments].slice(0, -1);
         (async () => {{ {body} }})().then((value) => done({{ value }}), (error) => done({{ error: error.message ?? JSON.stringify(error) }}));"
    );
    let outcome = window.run_async(&script, args);
    assert!(outcome["error"].is_null(), "{body}: {outcome}");
    outcome["value"].clone()
}

pub fn invoke(window: &Window, command: &str, arguments: Value) {
    in_page(
        window,
        "await window.__TAURI_INTERNALS__.invoke(args[0], args[1])",
        json!([command, arguments]),
    );
}

/// Calls commands that only the page of the Settings window may call, and closes that window.
pub fn invoke_in_settings(window: &Window, commands: &[(&str, Value)]) {
    invoke(window, "open_window", json!({"name": "settings"}));
    window.switch_to_window("settings");
    for (command, arguments) in commands {
        invoke(window, command, arguments.clone());
    }
    let open = window.open_windows();
    // Afterwards, because a script whose window is gone has no result.
    let close = "setTimeout(() => window.__TAURI_INTERNALS__.invoke('run_command', { command: 'close-window' }), 50)";
    window.run(close, json!([]));
    window.switch_to_window("chat");
    // One that is opened while it closes would go with it.
    window.wait_until("Settings are closed", || window.open_windows() < open);
}

pub fn choose_model(window: &Window, name: &str) {
    choose_in(window, "model-picker", name);
}

/// The names of the draft's images, in order, with a flag for each that is loaded.
fn draft(window: &Window) -> Value {
    let script = "return [...document.querySelectorAll('[data-testid=attachment]')].map((tile) => [tile.title.split(',')[0], (tile.querySelector('img')?.naturalWidth ?? 0) > 0])";
    window.run(script, json!([]))
}

fn wait_for_draft(window: &Window, names: &[&str]) {
    let wanted = json!(names.iter().map(|name| json!([name, true])).collect::<Vec<_>>());
    window.wait_until(&format!("the draft has {names:?}"), || draft(window) == wanted);
}

/// Pebble without its vision encoder, in a folder of its own.
pub fn model_without_vision(folder: &Path) {
    let pebble = Path::new(env!("CARGO_MANIFEST_DIR")).join("src-tauri/pebble/model");
    fs::create_dir_all(folder).expect("a folder");
    for entry in fs::read_dir(pebble)
        .expect("Pebble is here")
        .flatten()
        // Without the index, which lists the omitted files.
        .filter(|entry| entry.path().is_file() && !entry.file_name().to_string_lossy().contains("index"))
    {
        fs::copy(entry.path(), folder.join(entry.file_name())).expect("copied");
    }
    let weights = folder.join("model.safetensors");
    let bytes = fs::read(&weights).expect("Pebble's weights are one file");
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let header: serde_json::Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).expect("a header");
    let (mut kept, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, mut tensor) in header {
        if name.contains("vision") {
            continue;
        }
        if let Some([from, to]) = tensor["data_offsets"]
            .as_array()
            .map(|at| [0, 1].map(|end: usize| at[end].as_u64().expect("a number") as usize))
        {
            tensor["data_offsets"] = json!([data.len(), data.len() + to - from]);
            data.extend(&bytes[8 + length + from..8 + length + to]);
        }
        kept.insert(name, tensor);
    }
    let header = Value::from(kept).to_string();
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat();
    fs::write(&weights, file).expect("written");
}

/// A window with a model without vision, `blind`, and a server with one that supports it, `seer`.
fn open(home: &Path, endpoint: &VisionEndpoint, environment: &[(&str, &str)]) -> Window {
    let own = home.join("my-models");
    model_without_vision(&own.join("blind"));
    let window = Window::open_with(home, environment);
    invoke_in_settings(
        &window,
        &[
            ("add_model_folder", json!({"path": own})),
            (
                "add_endpoint",
                json!({"name": "lab", "url": endpoint.url, "key": null, "unencryptedKey": false}),
            ),
        ],
    );
    window.run(HANDS, json!([]));
    window
}

#[test]
fn images_are_pasted_dropped_put_in_order_sent_and_found_again() {
    let home = tempfile::tempdir().expect("a folder");
    let endpoint = VisionEndpoint::start();
    let window = open(home.path(), &endpoint, &[]);
    choose_model(&window, "seer");

    let pasted = in_page(
        &window,
        "return bring('paste', [await imageOf('harbour.png', 640, 360, 200)])",
        json!([]),
    );
    assert_eq!(pasted, true, "nothing else is pasted");
    wait_for_draft(&window, &["harbour.png"]);
    in_page(
        &window,
        "window.two = [await imageOf('hill.png', 300, 500, 20), await imageOf('image.png', 500, 500, 280)]; bring('dragenter', two)",
        json!([]),
    );
    window.wait_for("drop-target");
    window.image("images-drop");
    in_page(&window, "bring('drop', two)", json!([]));
    wait_for_draft(&window, &["harbour.png", "hill.png", "Image"]);
    assert_eq!(window.count("drop-target"), 0);

    // A broken image is refused by its name, and removed.
    in_page(
        &window,
        "bring('drop', [new File([new Uint8Array([77, 90, 0, 0, 3, 0, 255, 254])], 'program.exe')])",
        json!([]),
    );
    window.wait_for("broken-image");
    assert!(window.newest("broken-image").contains("program.exe can’t be read"));
    window.image("images-broken");
    window.run(
        "document.querySelector('[data-testid=broken-image] [data-testid=remove-attachment]').click()",
        json!([]),
    );
    window.wait_until("it is gone", || window.count("broken-image") == 0);

    // The last image is dragged to the front, then the middle one removed by the keyboard.
    let middle = |index: usize| {
        let script = "const box = document.querySelectorAll('[data-testid=attachment]')[arguments[0]].getBoundingClientRect(); return [Math.round(box.left + 8), Math.round(box.top + 30)]";
        let at = window.run(script, json!([index]));
        (at[0].as_i64().expect("a number"), at[1].as_i64().expect("a number"))
    };
    window.drag(middle(2), middle(0));
    wait_for_draft(&window, &["Image", "harbour.png", "hill.png"]);
    let focused = "return [...document.querySelectorAll('[data-testid=attachment]')].indexOf(document.activeElement)";
    window.wait_until("what was moved has the focus", || {
        window.run(focused, json!([])) == json!(0)
    });
    window.press_key("\u{e014}");
    window.wait_until("the middle one has the focus", || {
        window.run(focused, json!([])) == json!(1)
    });
    window.press_key("\u{e017}");
    wait_for_draft(&window, &["Image", "hill.png"]);

    // The draft of a chat without messages is restored after a restart, in its order.
    window.type_into("composer", "What do you see?");
    window.image("images-draft");
    std::thread::sleep(std::time::Duration::from_millis(600));
    window.close();
    let window = Window::open(home.path());
    wait_for_draft(&window, &["Image", "hill.png"]);
    choose_model(&window, "seer");

    window.click("send");
    window.wait_until_answer_is("complete");
    assert_eq!(window.answer(), "I see 2 images.");
    let sent = endpoint.images();
    assert!(
        sent.len() == 2 && sent.iter().all(|url| url.starts_with("data:image/png;base64,")),
        "{} images",
        sent.len()
    );
    let sizes = "const images = await Promise.all(args.map(async (url) => { const image = new Image(); image.src = url; await image.decode(); return [image.naturalWidth, image.naturalHeight] })); return images";
    assert_eq!(
        in_page(&window, sizes, json!(sent)),
        json!([[500, 500], [300, 500]]),
        "in the order of the draft"
    );
    assert_eq!(window.count("draft-images"), 0);
    window.image("images-sent");

    // An image opens in full, and then its neighbor, by the keyboard.
    window.click("message-image");
    window.wait_for("lightbox-image");
    let natural = "const image = document.querySelector('[data-testid=lightbox-image]'); return image.complete ? [image.naturalWidth, image.naturalHeight] : null";
    window.wait_until("it is whole", || window.run(natural, json!([])) == json!([500, 500]));
    window.press_key("\u{e014}");
    window.wait_until("its neighbour is shown", || {
        window.run(natural, json!([])) == json!([300, 500])
    });
    window.image("images-lightbox");
    window.click("lightbox-copy");
    window.wait_until("it is copied", || {
        window.attribute("lightbox-copy", "title") == "Copied"
    });
    window.press_key("\u{e00c}");
    window.wait_until("it is closed", || window.count("lightbox") == 0);

    // A copied image is in the system's clipboard, and is pasted as if from another program.
    window.type_into("composer", "\u{e009}v");
    wait_for_draft(&window, &["Image"]);
    let pasted = "return document.querySelector('[data-testid=attachment]').title";
    assert_eq!(window.run(pasted, json!([])), "Image, 300 × 500");
    window.close();

    let window = Window::open(home.path());
    let drawn =
        "return [...document.querySelectorAll('[data-testid=message-image] img')].filter((image) => image.naturalWidth > 0).length";
    window.wait_until("the images of the question are back", || {
        window.run(drawn, json!([])) == 2
    });

    // No other page can load an image, and no path leads out of the store.
    let load = "return Promise.all(args.map((url) => { const image = new Image(); image.src = url; return image.decode().then(() => true, () => false) }))";
    let known = window.run(
        "return document.querySelector('[data-testid=message-image] img').src",
        json!([]),
    );
    let known = known.as_str().expect("an address");
    let strange = [
        known,
        &known.replace("?size=preview", ""),
        &known.replace("preview", "512"),
        "attachment://localhost/../history.sqlite?size=whole",
    ];
    assert_eq!(
        in_page(&window, load, json!(strange)),
        json!([true, false, false, false])
    );

    window.click("open-settings");
    window.switch_to("Settings");
    window.click("tab-privacy");
    window.wait_until("it tells what images take", || {
        window.newest("attachments-size").ends_with("kB")
    });
    window.image("settings-storage");
    let load_there = in_page(&window, load, json!([known]));
    assert_eq!(load_there, json!([false]), "the settings window shows no images");
    window.close();
}

#[test]
fn a_model_that_cannot_see_is_sent_no_image_and_those_that_can_are_offered() {
    let home = tempfile::tempdir().expect("a folder");
    let endpoint = VisionEndpoint::start();
    let window = open(home.path(), &endpoint, &[("GTK_THEME", "Adwaita:dark")]);
    let models = ponder_json(home.path(), &["models", "--json"]);
    let vision_models = models[0]["models"]
        .as_array()
        .expect("models")
        .iter()
        .filter(|model| model["supports_vision"] == true)
        .count() as u64;
    choose_model(&window, "blind");
    in_page(
        &window,
        "bring('paste', [await imageOf('harbour.png', 640, 360, 200)])",
        json!([]),
    );
    wait_for_draft(&window, &["harbour.png"]);
    window.wait_for("cannot-see");
    assert!(window.newest("cannot-see").contains("blind doesn’t support images"));
    assert_eq!(
        window.count("use-vision-model"),
        vision_models.min(3),
        "what this computer has is offered"
    );
    window.type_into("composer", "What is 2 + 3?");
    window.click("send");
    assert_eq!(window.count("message-user"), 0, "nothing was sent");
    window.image("images-blind-dark");

    // Sends the text alone, and Undo restores the images.
    window.click("send-without");
    window.wait_until_answer_is("complete");
    assert_eq!(
        (window.answer().as_str(), window.count("message-image")),
        ("2 + 3 = 5", 0)
    );
    window.click("toast-undo");
    wait_for_draft(&window, &["harbour.png"]);

    // The next model sees the same image, and the window says that it leaves this computer.
    choose_model(&window, "seer");
    window.wait_until("nothing is refused any more", || window.count("cannot-see") == 0);
    window.type_into("composer", "What is this?");
    window.click("send");
    window.wait_until("the second answer is there", || window.answer() == "I see 1 images.");
    window.image("images-sent-dark");

    // Back at the model without vision, the old image is sent as its name, with one notice.
    choose_model(&window, "blind");
    window.ask("What is 347 + 589?");
    window.wait_until("the third answer is there", || {
        window.count("message-assistant") == 3 && window.answer_state() == "complete"
    });
    assert!(
        window.newest("notice").contains("sent to the model"),
        "{}",
        window.newest("notice")
    );
    window.image("images-left-out-dark");
    window.close();
}
