//! Mouse and keys through WebDriver: presses, drags, chords, and clicks whose moment the page itself waits for.

use serde_json::json;

use super::driver::{selector, Window, ELEMENT};

impl Window {
    /// Presses a mouse button over the element with this test id: 0 is the primary one, 1 the middle one, 2 the
    /// secondary one.
    pub fn press_button(&self, test_id: &str, button: u8) {
        let over = json!({ELEMENT: self.element(test_id)});
        let mut actions = vec![
            json!({"type": "pointerMove", "duration": 0, "origin": over, "x": 0, "y": 0}),
            json!({"type": "pointerDown", "button": button}),
        ];
        if button == 2 {
            // WebKitWebDriver reports every release as the primary button's, which would be a click over the element.
            actions.push(json!({"type": "pointerMove", "duration": 0, "origin": "viewport", "x": 4, "y": 4}));
        }
        actions.push(json!({"type": "pointerUp", "button": button}));
        let mouse =
            json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions});
        self.post("actions", json!({"actions": [mouse]}))
            .unwrap_or_else(|error| panic!("{test_id} cannot be pressed: {error}"));
    }

    /// Presses a mouse button over the element with this test id while a key is held.
    pub fn press_button_with(&self, test_id: &str, button: u8, key: &str) {
        let over = json!({ELEMENT: self.element(test_id)});
        let pause = json!({"type": "pause", "duration": 0});
        let hand = [
            pause.clone(),
            json!({"type": "pointerMove", "duration": 0, "origin": over, "x": 0, "y": 0}),
            json!({"type": "pointerDown", "button": button}),
            json!({"type": "pointerUp", "button": button}),
        ];
        let mouse = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": hand});
        let down = json!({"type": "keyDown", "value": key});
        let up = json!({"type": "keyUp", "value": key});
        let keys = json!({"type": "key", "id": "keys", "actions": [down, pause, pause, pause, up]});
        self.post("actions", json!({"actions": [keys, mouse]}))
            .unwrap_or_else(|error| panic!("{test_id} cannot be pressed: {error}"));
    }

    /// Drags the mouse from one place to another, in pixels from the window's top left corner.
    pub fn drag(&self, from: (i64, i64), to: (i64, i64)) {
        let there = |(x, y): (i64, i64), duration: u64| json!({"type": "pointerMove", "duration": duration, "origin": "viewport", "x": x, "y": y});
        let actions = [
            there(from, 0),
            json!({"type": "pointerDown", "button": 0}),
            there(((from.0 + to.0) / 2, from.1), 100),
            there(to, 100),
            json!({"type": "pointerUp", "button": 0}),
        ];
        let mouse =
            json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions});
        self.post("actions", json!({"actions": [mouse]})).expect("it drags");
    }

    /// Presses a key in the focused element.
    pub fn press_key(&self, key: &str) {
        let actions = [
            json!({"type": "keyDown", "value": key}),
            json!({"type": "keyUp", "value": key}),
        ];
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": actions});
        self.post("actions", json!({"actions": [keyboard]}))
            .expect("it is pressed");
    }

    /// Presses keys together in the focused element: all but the last are held.
    pub fn press_chord(&self, keys: &str) {
        let keys: Vec<String> = keys.chars().map(String::from).collect();
        let down = keys.iter().map(|key| json!({"type": "keyDown", "value": key}));
        let up = keys.iter().rev().map(|key| json!({"type": "keyUp", "value": key}));
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": down.chain(up).collect::<Vec<_>>()});
        self.post("actions", json!({"actions": [keyboard]}))
            .expect("they are pressed");
    }

    /// Clicks an element at the first frame on which the newest element of another test id has this many characters of
    /// text. The page itself waits, because a question asked by WebDriver comes many tokens later on a busy machine.
    /// Returns false if the answer was complete before.
    pub fn click_at_length(&self, test_id: &str, text_id: &str, characters: usize) -> bool {
        let script = "const [button, text, characters, done] = arguments;
            const newest = (selector) => [...document.querySelectorAll(selector)].pop();
            const look = () => {
              if (newest('[data-testid=message-assistant]')?.dataset.state === 'complete') return done(false);
              const found = newest(button);
              if (found && (newest(text)?.textContent.length ?? 0) >= characters) return done((found.click(), true));
              requestAnimationFrame(look);
            };
            look();";
        self.run_async(script, json!([selector(test_id), selector(text_id), characters]))
            .as_bool()
            .expect("whether it clicked")
    }
}
