//! The server of the real app: switched on in its window, used over HTTP, shown in its list of clients, and switched
//! off.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{json, Value};

use crate::support::driver::{Window, SLOW};

/// Opens the app on the server's page of Settings.
fn open_server(home: &Path, environment: &[(&str, &str)]) -> Window {
    let window = Window::open_with(home, environment);
    window.type_into("composer", "\u{e009},");
    window.switch_to("Settings");
    window.click("tab-server");
    window.wait_for("server-state");
    window
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    listener.local_addr().expect("an address").port()
}

fn set_port(window: &Window, port: u16) {
    // Typing appends to the text of a field.
    let clear = "const field = document.querySelector('[data-testid=server-port]'); field.value = '';
        field.dispatchEvent(new InputEvent('input', { bubbles: true }))";
    window.run(clear, json!([]));
    window.type_into("server-port", &format!("{port}\u{e007}"));
    let wanted = format!("{port}");
    let shown = "return document.querySelector('[data-testid=set-server-port]').disabled && document.querySelector('[data-testid=server-port]').value";
    window.wait_until("the port is set", || window.run(shown, json!([])) == wanted.as_str());
    wait_for_change(window);
}

/// Switches the server on, at this port: the port is shown once it runs, or once another program has the usual one.
fn switch_on(window: &Window, port: u16) {
    window.click("server-switch");
    window.wait_for("server-port");
    wait_for_change(window);
    set_port(window, port);
    wait_for_state(window, "on");
}

/// Waits until a change of the server's settings is done; until then its switches are disabled.
fn wait_for_change(window: &Window) {
    let free = "return !document.querySelector('[data-testid=server-switch]').disabled";
    window.wait_until("the change is made", || window.run(free, json!([])) == true);
}

fn wait_for_state(window: &Window, state: &str) {
    window.wait_until(&format!("the server is {state}"), || {
        window.attribute("server-state", "data-state") == state
    });
}

fn scroll_to(window: &Window, test_id: &str) {
    let script = "document.querySelector(`[data-testid=${arguments[0]}]`).scrollIntoView({ block: 'center' })";
    window.run(script, json!([test_id]));
}

fn answers(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// A client of the server.
fn client() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .user_agent("aider/0.86.2")
        .build()
        .into()
}

fn question(text: &str, stream: bool) -> Value {
    json!({"model": "pebble", "temperature": 0, "stream": stream, "messages": [{"role": "user", "content": text}],
        "chat_template_kwargs": {"enable_thinking": false}})
}

fn models(port: u16) -> usize {
    let mut response = client()
        .get(format!("http://127.0.0.1:{port}/v1/models"))
        .call()
        .expect("it answers");
    let list: Value = response.body_mut().read_json().expect("JSON");
    list["data"].as_array().expect("a list").len()
}

#[test]
fn it_is_switched_on_asked_and_switched_off() {
    let home = tempfile::tempdir().expect("a folder");
    let port = free_port();
    let window = open_server(home.path(), &SLOW);
    assert_eq!(window.attribute("server-switch", "aria-checked"), "false");
    window.image("server-off");
    assert!(!answers(port), "nobody listens before it is switched on");
    switch_on(&window, port);
    window.wait_for("no-clients");
    window.image("server-on");

    // An answer, and its client in the list.
    let url = format!("http://127.0.0.1:{port}/v1/chat/completions");
    let asked = client().post(&url).send_json(question("What is 2 + 3?", false));
    let answer: Value = asked.expect("it answers").body_mut().read_json().expect("JSON");
    let text = answer["choices"][0]["message"]["content"].as_str().expect("an answer");
    assert!(text.contains('5'), "{answer}");
    window.wait_until("the client is listed", || window.newest("client").contains("aider"));
    // The tokens are counted a moment after the end of the answer.
    let counts = [&answer["usage"]["prompt_tokens"], &answer["usage"]["completion_tokens"]].map(Value::to_string);
    window.wait_until("its tokens are counted", || {
        let row = window.newest("client");
        counts.iter().all(|count| row.contains(count))
    });

    // The models are the current ones of the window.
    assert_eq!(models(port), 1);
    let own = home.path().join("my-models");
    copy_pebble(&own.join("twin"));
    window.click("tab-models");
    window.click("add-folder");
    window.type_into("folder-path", &format!("{}\u{e007}", own.display()));
    window.wait_for("own-folder");
    assert_eq!(models(port), 2);
    window.click("tab-server");
    window.wait_for("server-state");

    // Switched off during an answer: the answer ends with an error, and the port is closed.
    let (begun, wait) = mpsc::channel();
    let asking = thread::spawn(move || {
        let asked = client().post(&url).send_json(question("Count from 1 to 400", true));
        let mut body = asked.expect("it answers").into_body().into_reader();
        let (mut told, mut piece) = (Vec::new(), [0; 1024]);
        while let Ok(count @ 1..) = body.read(&mut piece) {
            told.extend_from_slice(&piece[..count]);
            // Fails only if the receiver is gone.
            let _ = begun.send(());
        }
        String::from_utf8_lossy(&told).into_owned()
    });
    wait.recv().expect("it begins");
    window.wait_until("it is in flight", || {
        window.newest("server-figures").starts_with("1 active request")
    });
    scroll_to(&window, "clients");
    window.image("server-clients");
    window.click("server-switch");
    wait_for_state(&window, "off");
    let told = asking.join().expect("it ends");
    assert!(
        told.contains("the server was switched off before the answer was complete"),
        "{told}"
    );
    assert!(!answers(port));

    // Another program takes the port meanwhile, and is named.
    let taken = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    window.click("server-switch");
    wait_for_state(&window, "port_taken");
    let said = window.newest("server-state");
    assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
    scroll_to(&window, "server-state");
    window.image("server-port-taken");
    drop(taken);
    window.click("server-again");
    wait_for_state(&window, "on");
    window.close();
    // The driver returns while the app is still quitting.
    let ended = (0..50).any(|_| {
        thread::sleep(Duration::from_millis(100));
        !answers(port)
    });
    assert!(ended, "it ends with the app");

    // The server is on again after the next start.
    let window = open_server(home.path(), &[]);
    wait_for_state(&window, "on");
    assert_eq!(models(port), 2);
    window.close();
}

#[test]
fn other_computers_need_a_key_and_a_key_is_not_shown() {
    let home = tempfile::tempdir().expect("a folder");
    let dark = ("GTK_THEME", "Adwaita:dark");
    let window = open_server(home.path(), &[dark]);
    window.image("server-off-dark");
    let port = free_port();
    switch_on(&window, port);
    // The person declines in the dialog of the system, and the server goes on for this computer.
    window.click("server-network");
    wait_for_change(&window);
    assert_eq!(window.attribute("server-network", "aria-checked"), "false");
    wait_for_state(&window, "on");
    window.answer_dialogs("yes");
    window.click("server-network");
    wait_for_change(&window);
    wait_for_state(&window, "key_needed");
    // Nobody is asked again once other computers may ask.
    window.answer_dialogs("no");
    assert!(!answers(port));
    window.image("server-key-needed-dark");
    window.click("new-server-key");
    // A session without a keychain reports that; with one, the server starts.
    window.wait_until("the key is stored, or it says why not", || {
        window.count("server-key-problem") == 1 || window.attribute("server-state", "data-state") == "on"
    });
    window.image("server-key-problem-dark");
    window.close();

    let window = open_server(home.path(), &[dark, ("PONDER_API_KEY", "a-secret")]);
    wait_for_state(&window, "on");
    assert!(window.newest("server-key").starts_with('•'));
    let page = "return document.documentElement.outerHTML";
    assert!(!window.run(page, json!([])).as_str().expect("text").contains("a-secret"));
    let url = format!("http://127.0.0.1:{port}/v1/models");
    let status = |key: &str| {
        let asked = client()
            .get(&url)
            .header("authorization", format!("Bearer {key}"))
            .call();
        asked.expect("it answers").status().as_u16()
    };
    assert_eq!((status("another"), status("a-secret")), (401, 200));
    window.click("show-server-key");
    window.wait_until("the key is shown", || window.newest("server-key") == "a-secret");
    window.image("server-key-dark");
    window.click("show-server-key");
    window.click("setup-program");
    scroll_to(&window, "setup-text");
    window.image("server-setup-programs-dark");
    window.close();
}

/// A second model: Pebble's files in another folder.
pub fn copy_pebble(to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    let pebble = Path::new(env!("CARGO_MANIFEST_DIR")).join("src-tauri/pebble/model");
    for file in fs::read_dir(pebble).expect("Pebble is here").flatten() {
        fs::copy(file.path(), to.join(file.file_name())).expect("copied");
    }
}
