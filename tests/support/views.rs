//! The look of a window: screenshots, its size, the mouse pointer.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use super::driver::{Window, ELEMENT};

/// Changes something invisible during a screenshot: for a page without a compositor, the driver waits for a change.
const TICK: &str = "clearInterval(window.ticking);
    window.tick ??= Object.assign(document.createElement('i'), { style: 'position: fixed; inset: 0 auto auto 0; width: 1px; height: 1px' });
    if (!arguments[0]) return window.tick.remove();
    document.documentElement.append(window.tick);
    window.ticking = setInterval(() => { window.tick.style.background = window.tick.style.background ? '' : '#00000001'; }, 50)";

fn image_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_ponder-app")).parent().expect("a folder");
    folder.join("images")
}

impl Window {
    /// Limits every wait to this time, for conditions that may never hold.
    pub fn with_patience(mut self, limit: Duration) -> Self {
        self.patience = limit;
        self
    }

    /// Stores a screenshot beside the build as `pictures/NAME.png`.
    pub fn image(&self, name: &str) -> PathBuf {
        self.image_in(&image_folder(), name)
    }

    /// Stores a screenshot as `FOLDER/NAME.png`.
    pub fn image_in(&self, folder: &Path, name: &str) -> PathBuf {
        self.try_image_in(folder, name, Duration::from_secs(60))
            .expect("a screenshot")
    }

    /// A sentence about the look of the window, for a test that fails. A hidden window has no look, and the driver
    /// waits for it; the reason of the failure must be printed all the same.
    pub(super) fn look(&self) -> String {
        match self.try_image_in(&image_folder(), "failure", Duration::from_secs(10)) {
            Ok(path) => format!("the window looks like {}", path.display()),
            Err(error) => format!("the window has no look ({error})"),
        }
    }

    fn try_image_in(&self, folder: &Path, name: &str, limit: Duration) -> Result<PathBuf, String> {
        // New content is painted a frame later; fonts and fades take longer.
        sleep(Duration::from_millis(400));
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let path = folder.join(format!("{name}.png"));
        self.try_run(TICK, json!([true]))?;
        let image = self.get_within("screenshot", limit)?;
        self.try_run(TICK, json!([false]))?;
        let bytes = decode(image.as_str().unwrap_or_default()).ok_or("no base64")?;
        fs::write(&path, bytes).map_err(|error| error.to_string())?;
        Ok(path)
    }

    /// Shows the app's window of this name, whatever its title is.
    pub fn switch_to_window(&self, name: &str) {
        let label = "return window.__TAURI_INTERNALS__.metadata.currentWindow.label";
        self.wait_until(&format!("a window named {name}"), || {
            let handles = self.get("window/handles").expect("windows");
            let mut handles = handles.as_array().expect("a list").iter();
            handles.any(|handle| {
                self.post("window", json!({"handle": handle})).is_ok()
                    && self.try_run(label, json!([])).is_ok_and(|found| found == name)
            })
        });
    }

    /// Reloads the page of the current window.
    pub fn refresh(&self) {
        self.post("refresh", json!({})).expect("the page loads again");
    }

    /// Gives the window this size, in pixels.
    pub fn resize(&self, width: u32, height: u32) {
        self.post("window/rect", json!({"width": width, "height": height}))
            .expect("it takes a size");
    }

    /// The place of the window and its size, in pixels: left, top, width, height.
    pub fn frame(&self) -> [i64; 4] {
        let frame = self.get("window/rect").expect("a place");
        ["x", "y", "width", "height"].map(|key| frame[key].as_f64().expect("a number") as i64)
    }

    /// Gives the window a place and a size.
    pub fn move_to(&self, [x, y, width, height]: [i64; 4]) {
        self.post("window/rect", json!({"x": x, "y": y, "width": width, "height": height}))
            .expect("it takes a place");
    }

    /// Moves the mouse over the element with this test id.
    pub fn point_at(&self, test_id: &str) {
        let over = json!({ELEMENT: self.element(test_id)});
        let moves = [json!({"type": "pointerMove", "duration": 0, "origin": over, "x": 0, "y": 0})];
        let mouse = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves});
        self.post("actions", json!({"actions": [mouse]})).expect("it moves");
    }
}

/// The bytes of a base64 text.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    Some(bytes)
}
