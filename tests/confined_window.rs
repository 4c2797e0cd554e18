//! The windows show Ponder's own pages and nothing else: other navigation by a link, a script or a menu of the web view
//! is refused, and sends no request.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::support::driver::Window;
use crate::support::log;

/// An address on loopback that must get no connection.
struct Outside(TcpListener);

impl Outside {
    fn open() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
        socket.set_nonblocking(true).expect("it can be asked");
        Self(socket)
    }

    fn address(&self) -> String {
        format!("http://{}/page", self.0.local_addr().expect("it is bound"))
    }

    fn nobody_came(&self) -> bool {
        self.0
            .accept()
            .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

/// A `PATH` on which the program that opens links records them instead; returns the record's path.
fn browser(home: &Path) -> (String, PathBuf) {
    let list = home.join("opened");
    let record = format!("#!/bin/sh\necho \"$1\" >> '{}'\n", list.display());
    (programs(home, &["xdg-open"], &record), list)
}

/// A `PATH` on which these programs are this script.
fn programs(home: &Path, names: &[&str], script: &str) -> String {
    let folder = home.join("programs");
    fs::create_dir(&folder).expect("a folder");
    for name in names {
        let program = folder.join(name);
        fs::write(&program, script).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it runs");
    }
    let path = std::env::var("PATH").expect("there is one");
    format!("{}:{path}", folder.display())
}

fn opened(list: &Path) -> Vec<String> {
    let text = fs::read_to_string(list).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The number of refusals in the app's log.
fn refusals(home: &Path) -> usize {
    log(home).matches("was refused").count()
}

fn place(window: &Window) -> String {
    window
        .run("return location.href", json!([]))
        .as_str()
        .expect("an address")
        .to_owned()
}

/// Adds a plain link to the page, as in an answer: an anchor without any handler.
fn plant_link(window: &Window, address: &str) {
    let script =
        "const link = Object.assign(document.createElement('a'), { href: arguments[0], textContent: 'a link' });
        link.dataset.testid = 'planted';
        link.style = 'position: fixed; inset: 60px auto auto 50%; z-index: 1';
        document.body.append(link);
        window.menus = [];
        addEventListener('contextmenu', (event) => menus.push(event.defaultPrevented));";
    window.run(script, json!([address]));
}

#[test]
fn nothing_leads_out_of_a_window() {
    let home = tempfile::tempdir().expect("a folder");
    let outside = Outside::open();
    let address = outside.address();
    let window = Window::open(home.path());
    let chat = place(&window);
    window.click("open-models");
    for title in ["Ponder", "Models"] {
        window.switch_to(title);
        let here = place(&window);
        // The web view itself stops some of these before the app is asked.
        for script in [
            "Object.assign(document.createElement('a'), { href: arguments[0], download: 'file.txt' }).click()",
            "Object.assign(document.createElement('a'), { href: arguments[0], target: '_blank' }).click()",
            "window.open(arguments[0])",
            "location.href = 'data:text/html,hello'",
            "const form = Object.assign(document.createElement('form'), { action: arguments[0], method: 'post' });
             const frame = Object.assign(document.createElement('iframe'), { src: arguments[0] });
             document.body.append(form, frame); form.submit()",
        ] {
            window.run(script, json!([address]));
            sleep(Duration::from_millis(700));
            assert!(outside.nobody_came(), "the network was asked by {script} in {title}");
        }
        for (what, script) in [
            ("a script that goes elsewhere", "location.href = arguments[0]"),
            ("a script that replaces the page", "location.replace(arguments[0])"),
            (
                "a link outside the page, which no listener hears of",
                "Object.assign(document.createElement('a'), { href: arguments[0] }).click()",
            ),
            (
                "a page that says where to go on",
                "document.head.append(Object.assign(document.createElement('meta'), { httpEquiv: 'refresh', content: `0;url=${arguments[0]}` }))",
            ),
        ] {
            let before = refusals(home.path());
            window.run(script, json!([address]));
            window.wait_until(&format!("{what} is refused in {title}"), || refusals(home.path()) > before);
            assert_eq!(place(&window), here, "{what}");
        }
    }
    window.switch_to("Ponder");
    assert_eq!(place(&window), chat);
    window.wait_for("composer");
    assert!(outside.nobody_came(), "something was asked of the network");
    window.close();
}

#[test]
fn a_link_has_a_menu_of_our_own() {
    let home = tempfile::tempdir().expect("a folder");
    let outside = Outside::open();
    let address = outside.address();
    let (path, list) = browser(home.path());
    let window = Window::open_with(home.path(), &[("PATH", &path)]);
    let here = place(&window);
    plant_link(&window, &address);

    window.press_button("planted", 2);
    window.wait_for("context-menu");
    window.image("link-menu");
    window.click("copy-link");
    window.wait_until("the menu is gone", || window.count("context-menu") == 0);
    window.type_into("composer", "\u{e009}v");
    window.wait_until("the address was copied", || {
        window.run(
            "return document.querySelector('[data-testid=composer]').value",
            json!([]),
        ) == address.as_str()
    });
    assert_eq!(
        opened(&list),
        Vec::<String>::new(),
        "the second button opens nothing by itself"
    );

    window.press_button("planted", 2);
    window.click("open-link");
    window.wait_until("the browser is asked", || opened(&list).len() == 1);
    window.press_button("planted", 1);
    window.wait_until("the browser is asked again", || opened(&list).len() == 2);
    window.press_button("planted", 0);
    window.wait_until("and again", || opened(&list).len() == 3);
    assert!(opened(&list).iter().all(|opened| *opened == address));

    // Without anything to offer no menu opens, not even the web view's.
    window.press_button("send", 2);
    window.press_button("new-chat", 2);
    assert_eq!(window.count("context-menu"), 0);
    window.wait_until("all four were heard of", || {
        window.run("return menus.length", json!([])) == 4
    });
    assert_eq!(
        window.run("return menus.every((prevented) => prevented)", json!([])),
        true
    );
    assert_eq!(place(&window), here);
    assert!(outside.nobody_came(), "the window itself asked the network");
    window.close();
}

#[test]
fn every_way_of_clicking_a_misleading_link_asks() {
    let home = tempfile::tempdir().expect("a folder");
    let (path, list) = browser(home.path());
    let window = Window::open_with(home.path(), &[("PATH", &path)]);
    let here = place(&window);
    plant_link(&window, "https://evil.example/x");
    let name = "document.querySelector('[data-testid=planted]').textContent = 'https://bank.example'";
    window.run(name, json!([]));
    let (control, shift) = ("\u{e009}", "\u{e008}");
    for (button, key) in [
        (0, None),
        (1, None),
        (0, Some(control)),
        (0, Some(shift)),
        (1, Some(control)),
    ] {
        match key {
            Some(key) => window.press_button_with("planted", button, key),
            None => window.press_button("planted", button),
        }
        window.wait_for("link-question");
        sleep(Duration::from_millis(300));
        assert_eq!(opened(&list), Vec::<String>::new(), "button {button} with {key:?}");
        window.click("link-keep");
        window.wait_until("the question is gone", || window.count("link-question") == 0);
    }
    assert_eq!(place(&window), here);
    window.close();
}

#[test]
fn a_link_that_no_program_opens_can_be_copied() {
    let home = tempfile::tempdir().expect("a folder");
    let launchers = ["xdg-open", "gio", "gnome-open", "kde-open6", "kde-open5", "kde-open"];
    let path = programs(home.path(), &launchers, "#!/bin/sh\nexit 3\n");
    let window = Window::open_with(home.path(), &[("PATH", &path)]);
    plant_link(&window, "https://example.org/a");
    window.press_button("planted", 0);
    window.wait_for("toast");
    let said = window.newest("toast");
    assert!(said.contains("No browser is set up"), "{said}");
    assert!(!said.contains("xdg-open") && !said.contains("Exit"), "{said}");
    window.click("toast-undo");
    window.type_into("composer", "\u{e009}v");
    window.wait_until("the address was copied", || {
        window.run(
            "return document.querySelector('[data-testid=composer]').value",
            json!([]),
        ) == "https://example.org/a"
    });
    window.close();
}

#[test]
fn the_window_of_a_failed_start_is_confined_too() {
    let home = tempfile::tempdir().expect("a folder");
    fs::write(home.path().join("history.sqlite"), "this is no database").expect("written");
    let outside = Outside::open();
    let window = Window::start(home.path(), &[]);
    window.wait_for("failure");
    plant_link(&window, &outside.address());
    window.press_button("planted", 2);
    window.wait_until("it was heard of", || window.run("return menus.length", json!([])) == 1);
    assert_eq!(window.run("return menus[0]", json!([])), true);
    let before = refusals(home.path());
    window.run("location.href = arguments[0]", json!([outside.address()]));
    window.wait_until("it is refused", || refusals(home.path()) > before);
    window.wait_for("failure");
    assert!(outside.nobody_came());
    window.close();
}
