//! The app and the desktop while its windows are closed: global shortcuts, the start at login, the number on its icon.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use hub_imitation::Imitation;
use serde_json::json;

use crate::models_window::{open_models, press, search, slowly, PEBBLE};
use crate::support::desktop::{Desktop, IconNumber};
use crate::support::driver::Window;
use crate::support::keyboard::Keyboard;
use crate::support::log;

/// Control, Alt and the space bar, as the driver presses them in a page, as the page calls them, and as the keyboard
/// has them.
const KEYS: (&str, &str, &str) = ("\u{e009}\u{e00a} ", "Ctrl+Alt+Space", "ctrl+alt+space");

/// Opens the app's page of Settings.
fn open_app_page(window: &Window) {
    window.press_with_control(",");
    window.switch_to("Settings");
    window.click("tab-general");
    window.wait_for("login-switch");
}

fn close_settings(window: &Window) {
    let before = window.open_windows();
    window.press_with_control("w");
    window.wait_until("Settings is closed", || window.open_windows() < before);
    window.switch_to("Ponder");
}

fn is_visible(window: &Window) -> bool {
    window.run("return document.visibilityState", json!([])) == "visible"
}

fn wait_for_focus(window: &Window) {
    window.wait_until("the page has the focus", || {
        window.run("return document.hasFocus()", json!([])) == true
    });
}

/// An app with other data on the same display, which ends with the test.
struct OtherApp(Child);

impl OtherApp {
    fn start(window: &Window, home: &Path) -> Self {
        let app = fs::read_link(format!("/proc/{}/exe", window.process())).expect("the app's program");
        let child = Command::new(app)
            .env_clear()
            .envs(window.environment())
            .env_remove("TAURI_WEBVIEW_AUTOMATION")
            .env("PONDER_HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.expect("it starts"))
    }
}

impl Drop for OtherApp {
    fn drop(&mut self) {
        // It may have ended with its display.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn keys_that_are_set_show_quick_entry_while_another_program_is_in_front() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    open_app_page(&window);
    window.click("choose-quick-keys");
    window.press_chord(KEYS.0);
    window.wait_until("the keys are set", || window.newest("quick-keys") == KEYS.1);
    sleep(Duration::from_millis(500));
    assert_eq!(window.newest("quick-keys-problem"), "");
    window.image("settings-quick-keys");
    close_settings(&window);

    let keyboard = Keyboard::of(&window);
    let other = keyboard.other_program();
    let before = other.presses();
    keyboard.press(KEYS.2);
    window.switch_to("Quick entry");
    window.wait_until("the window is there", || is_visible(&window));
    assert!(
        other.presses() <= before + 2,
        "the space bar is Ponder's, the modifiers are everybody's"
    );

    // Quick entry has the focus: a question is typed and sent with the same keyboard.
    wait_for_focus(&window);
    keyboard.type_text("What is 347 + 589?");
    keyboard.press("Return");
    window.wait_until("it is answered", || {
        window.attribute("quick-answer", "data-state") == "complete" && window.newest("quick-answer").contains("936")
    });
    window.image("quick-by-keys");
    keyboard.press(KEYS.2);
    window.wait_until("the same keys hide it", || !is_visible(&window));
    other.focus();
    keyboard.press(KEYS.2);
    window.wait_until("it is back, with its answer", || {
        is_visible(&window) && window.newest("quick-answer").contains("936")
    });
    wait_for_focus(&window);
    keyboard.press("Escape");
    window.wait_until("Escape hides it", || !is_visible(&window));

    // A shortcut that was switched off belongs to the other program again.
    window.switch_to("Ponder");
    open_app_page(&window);
    window.click("remove-quick-keys");
    window.wait_until("there are none", || window.newest("quick-keys") == "None");
    close_settings(&window);
    other.focus();
    sleep(Duration::from_millis(500));
    let before = other.presses();
    keyboard.press(KEYS.2);
    window.wait_until("the other program hears them", || other.presses() >= before + 3);
    window.switch_to("Quick entry");
    assert!(!is_visible(&window));
    drop(other);
    window.switch_to("Ponder");
    window.press_with_control("q");
    window.wait_for_end();
}

#[test]
fn keys_are_heard_from_the_start_on_and_another_program_that_wants_them_is_refused() {
    let (home, second) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let window = Window::open(home.path());
    open_app_page(&window);
    window.click("choose-quick-keys");
    window.press_chord(KEYS.0);
    window.wait_until("the keys are set", || window.newest("quick-keys") == KEYS.1);
    close_settings(&window);
    window.press_with_control("q");
    window.wait_for_end();
    // Another app claims the same shortcut.
    for file in fs::read_dir(home.path()).expect("files").flatten() {
        if file.file_name().to_string_lossy().starts_with("history.sqlite") {
            fs::copy(file.path(), second.path().join(file.file_name())).expect("copied");
        }
    }

    let window = Window::open(home.path());
    let keyboard = Keyboard::of(&window);
    let other = keyboard.other_program();
    keyboard.press(KEYS.2);
    window.switch_to("Quick entry");
    window.wait_until("the window is there", || is_visible(&window));
    wait_for_focus(&window);
    keyboard.press("Escape");
    window.wait_until("Escape hides it", || !is_visible(&window));
    assert!(!log(home.path()).contains("are not heard"), "{}", log(home.path()));

    let refused = OtherApp::start(&window, second.path());
    window.wait_until("the second app says that it does not hear them", || {
        log(second.path()).contains("the keys of quick entry are not heard")
    });
    drop(refused);
    drop(other);
    window.switch_to("Ponder");
    window.press_with_control("q");
    window.wait_for_end();
}

/// The entry of the autostart folder.
fn entry(settings: &Path) -> PathBuf {
    settings.join("autostart/Ponder.desktop")
}

/// The value of a key in an entry.
fn said(entry: &Path, key: &str) -> String {
    let text = fs::read_to_string(entry).expect("an entry");
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
}

#[test]
fn opening_at_login_is_an_entry_that_the_desktop_reads_and_that_follows_the_app() {
    let (home, settings) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let environment = [("XDG_CONFIG_HOME", settings.path().to_str().expect("text"))];
    let window = Window::open_with(home.path(), &environment);
    let program = fs::read_link(format!("/proc/{}/exe", window.process())).expect("the app's program");
    let program = program.to_str().expect("text");
    let entry = entry(settings.path());

    open_app_page(&window);
    let is_on = || window.attribute("login-switch", "aria-checked") == "true";
    assert!(!is_on() && !entry.exists());
    window.click("login-switch");
    window.wait_until("it is on", is_on);
    assert_eq!(said(&entry, "TryExec"), program);
    assert_eq!(said(&entry, "Exec"), format!("{program} --at-login"));
    let checked = Command::new("desktop-file-validate").arg(&entry).output();
    let checked = checked.expect("desktop-file-utils is installed; ./dev test does it");
    assert!(checked.status.success() && checked.stdout.is_empty(), "{checked:?}");

    window.click("login-switch");
    window.wait_until("it is off", || !is_on());
    assert!(!entry.exists());
    window.click("login-switch");
    window.wait_until("it is on", is_on);

    // Desktop settings switch an entry off in this way.
    let on = fs::read_to_string(&entry).expect("an entry");
    fs::write(&entry, format!("{on}Hidden=true\n")).expect("written");
    close_settings(&window);
    open_app_page(&window);
    window.wait_until("it is off", || !is_on());
    window.click("login-switch");
    window.wait_until("it is on", is_on);
    assert_eq!(fs::read_to_string(&entry).expect("an entry"), on);
    close_settings(&window);
    window.press_with_control("q");
    window.wait_for_end();

    // A program that does not exist: the app was moved.
    fs::write(&entry, on.replace(program, "/opt/gone/ponder-app")).expect("written");
    let window = Window::open_with(home.path(), &environment);
    window.wait_until("the entry names the app that runs", || {
        fs::read_to_string(&entry).is_ok_and(|text| text == on)
    });
    // An entry with this line opens a window, because a hidden app would have no icon here.
    window.press_with_control("q");
    window.wait_for_end();
    let words = said(&entry, "Exec");
    let words: Vec<&str> = words.split(' ').collect();
    assert_eq!(words[0], program);
    let window = Window::start_with(home.path(), &environment, &words[1..]);
    window.wait_for("composer");
    window.wait_until("the window is shown", || is_visible(&window));
    window.close();
}

#[test]
fn the_number_of_downloads_is_on_the_apps_icon_while_they_run() {
    let home = tempfile::tempdir().expect("a folder");
    let hub = Imitation::start();
    hub.repository(PEBBLE).pebble();
    slowly(&hub);
    let window = open_models(home.path(), &hub);
    let desktop = Desktop::of(&window);
    search(&window, "pebble");
    press(&window, "hub-row", PEBBLE, "get");
    window.click("tab-downloads");
    let one = IconNumber {
        entry: "application://Ponder.desktop".into(),
        count: 1,
        is_visible: true,
    };
    window.wait_until("the icon has a number", || desktop.numbers().last() == Some(&one));
    assert!(
        desktop.knows_who_numbered(),
        "a panel would take it away with who has set it"
    );
    let none = IconNumber {
        count: 0,
        is_visible: false,
        ..one.clone()
    };
    window.click("pause");
    window.wait_until("it has none", || desktop.numbers().last() == Some(&none));
    hub.clear_faults();
    window.click("resume");
    window.wait_until("the download has ended", || {
        window.attribute("download", "data-state") == "done"
    });
    window.wait_until("it has none again", || desktop.numbers().last() == Some(&none));
    assert!(desktop.numbers().iter().all(|number| *number == one || *number == none));
    window.close();
}

#[test]
fn a_header_lets_its_window_fill_the_screen_and_quick_entry_keeps_its_size() {
    let home = tempfile::tempdir().expect("a folder");
    let window = Window::open(home.path());
    // Only a window manager can maximize windows.
    let _keyboard = Keyboard::of(&window);
    // The reply of the host to the command that a double click on a header sends.
    let asked = || {
        let script = "const said = arguments[0]; \
                      window.__TAURI_INTERNALS__.invoke('plugin:window|internal_toggle_maximize').then(() => said('done'), (no) => said(String(no)))";
        window
            .run_async(script, json!([]))
            .as_str()
            .expect("an answer")
            .to_owned()
    };
    let width = || window.run("return innerWidth", json!([])).as_f64().expect("a width");
    let before = width();
    assert_eq!(asked(), "done");
    window.wait_until("it fills the screen", || width() > before + 50.0);
    assert_eq!(asked(), "done");
    window.wait_until("it is as it was", || (width() - before).abs() < 2.0);
    assert!(window.start_again(&["--quick-entry"]).status.success());
    window.switch_to("Quick entry");
    assert!(asked().contains("not allowed"), "{}", asked());
    window.switch_to("Ponder");
    window.press_with_control("q");
    window.wait_for_end();
}
