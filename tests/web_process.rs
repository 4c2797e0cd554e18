//! The process of a web view is killed, as a system does when memory is short: the page comes back by itself with the
//! running answer, the draft, and the scroll position.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::support::driver::Window;
use crate::support::{log, put_chat};
use crate::window::{set_thinking, stored};

/// The descendants of this process.
fn below(process: u32) -> Vec<u32> {
    let status = |entry: &fs::DirEntry| -> Option<(u32, u32)> {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, parent))
    };
    let all: Vec<(u32, u32)> = fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .filter_map(|entry| status(&entry))
        .collect();
    let mut found = vec![process];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(all.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    found.split_off(1)
}

/// The processes of the app's web views.
fn web_processes(window: &Window) -> Vec<u32> {
    let name = |process: &u32| fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    below(window.process())
        .into_iter()
        .filter(|process| name(process).trim().starts_with("WebKitWebProces"))
        .collect()
}

fn kill(process: u32) {
    let killed = Command::new("kill").args(["-9", &process.to_string()]).status();
    assert!(killed.expect("kill runs").success());
}

/// The number of first frames in the app's log.
pub fn first_paints(home: &Path) -> usize {
    log(home).matches("first paint").count()
}

/// Kills the process of the only page and waits until another one shows it. WebKit's driver ends its session with the
/// process, so the test reopens the app to look at the page.
fn lose_the_page(window: &Window, home: &Path) {
    let painted = first_paints(home);
    let [process] = web_processes(window)[..] else {
        panic!("one page has one process: {:?}", web_processes(window));
    };
    kill(process);
    let deadline = Instant::now() + Duration::from_secs(30);
    while first_paints(home) == painted || web_processes(window).is_empty() {
        assert!(Instant::now() < deadline, "the page does not come back");
        sleep(Duration::from_millis(50));
    }
    assert_ne!(web_processes(window), [process]);
}

fn draft(window: &Window) -> Value {
    window.run(
        "return document.querySelector('[data-testid=composer]').value",
        json!([]),
    )
}

#[test]
fn a_page_whose_process_is_killed_comes_back_with_all_it_showed() {
    let home = tempfile::tempdir().expect("a folder");
    let counting: Vec<String> = (1..=120).map(|number| number.to_string()).collect();
    let counting = counting.join(", ");
    // Long enough to scroll.
    let long = "A line of an answer.\n\n".repeat(60);
    put_chat(home.path(), "Long", &[["Say much", "", &long]]);
    let window = Window::open_slow(home.path());
    window.click("chat-item");
    set_thinking(&window, false);
    window.ask("Count from 1 to 120");
    window.wait_until("words come", || window.answer().len() > 20);
    window.type_into("composer", "a draft that nobody sent");
    // Drafts are stored after a pause in typing.
    sleep(Duration::from_millis(700));
    assert_eq!(
        window.answer_state(),
        "streaming",
        "the page would be lost too late to prove anything"
    );
    lose_the_page(&window, home.path());
    let deadline = Instant::now() + Duration::from_secs(60);
    while stored(home.path())
        .last()
        .is_none_or(|answer| answer["state"] != "complete")
    {
        assert!(Instant::now() < deadline, "the answer goes on without the page");
        sleep(Duration::from_millis(200));
    }
    window.kill();

    // Once more without an answer, at a scroll position.
    let window = Window::open_slow(home.path());
    window.wait_until("the chat is there", || window.answer() == counting);
    assert_eq!(draft(&window), "a draft that nobody sent");
    let place = "return document.querySelector('[data-testid=messages]').scrollTop";
    window.run(
        "const area = document.querySelector('[data-testid=messages]'); area.dispatchEvent(new WheelEvent('wheel')); area.scrollTop = 30",
        json!([]),
    );
    sleep(Duration::from_millis(1500));
    let stood = window.run(place, json!([])).as_f64().expect("a number");
    lose_the_page(&window, home.path());
    sleep(Duration::from_secs(2));
    window.kill();
    let window = Window::open_slow(home.path());
    window.wait_until("the chat is there", || window.answer() == counting);
    assert_eq!(draft(&window), "a draft that nobody sent");
    window.wait_until("it stands where it stood", || {
        window
            .run(place, json!([]))
            .as_f64()
            .is_some_and(|now| (now - stood).abs() < 4.0)
    });
    window.close();
}
