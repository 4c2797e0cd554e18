//! The real app in a real web view, driven by WebDriver (the W3C protocol over plain HTTP). One window at a time: two
//! would compete for the cores, and slow the answers that tests wait for.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

/// The app under test: the one just built, or the installed one in `PONDER_APP`.
fn app() -> &'static Path {
    static APP: OnceLock<PathBuf> = OnceLock::new();
    APP.get_or_init(|| {
        std::env::var_os("PONDER_APP").map_or_else(|| env!("CARGO_BIN_EXE_ponder-app").into(), PathBuf::from)
    })
}

/// The key of an element's id, fixed by the protocol.
pub(super) const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A driver process that does not outlive its test.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        // The whole group, because a display and a session bus may belong to it. It may have ended already.
        let _ = Command::new("kill")
            .args(["-9", "--", &format!("-{}", self.0.id())])
            .stderr(Stdio::null())
            .status();
        let _ = self.0.wait();
    }
}

/// The running app with its window.
pub struct Window {
    session: String,
    http: ureq::Agent,
    driver: Driver,
    home: PathBuf,
    /// The default time limit of waits.
    pub(super) patience: Duration,
    _turn: MutexGuard<'static, ()>,
}

/// The time after which the driver counts as stuck: longer than any script that a test waits for.
const LIMIT: Duration = Duration::from_secs(130);

/// A computer on which a person is quicker than a response: one thread, and no instruction set but the plain one.
pub const SLOW: [(&str, &str); 2] = [("PONDER_CPU", "plain"), ("PONDER_THREADS", "1")];

impl Window {
    /// Starts the app with its data in `home` and waits for its first page.
    pub fn open(home: &Path) -> Self {
        Self::open_with(home, &[])
    }

    /// [`Window::open`] on a slow computer, for stories that do something while a response runs.
    pub fn open_slow(home: &Path) -> Self {
        Self::open_with(home, &SLOW)
    }

    /// [`Window::open`] with additional environment variables.
    pub fn open_with(home: &Path, environment: &[(&str, &str)]) -> Self {
        let window = Self::start(home, environment);
        window.wait_for("composer");
        window
    }

    /// Starts the app and does not wait for a particular page.
    pub fn start(home: &Path, environment: &[(&str, &str)]) -> Self {
        Self::start_with(home, environment, &[])
    }

    /// The same with arguments.
    pub fn start_with(home: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|socket| socket.local_addr())
            .expect("a free port")
            .port();
        let driver = Driver(
            // A virtual display and a session bus of its own, so that tests meet no window of the desktop.
            Command::new("xvfb-run")
                .args([
                    "-a",
                    "-s",
                    "-screen 0 1280x860x24 -nolisten tcp",
                    "dbus-run-session",
                    "--",
                    "WebKitWebDriver",
                ])
                .args([&format!("--port={port}"), "--host=127.0.0.1"])
                .process_group(0)
                // Without this variable the app refuses a driver (the driver passes its environment on).
                .env("TAURI_WEBVIEW_AUTOMATION", "true")
                .env("PONDER_HOME", home)
                .env("HF_HOME", home.join("hub"))
                // Its debug build reads the answers to questions of the system's dialogs there.
                .env("PONDER_TEST_ANSWER", answer_file(home))
                .envs(environment.iter().copied())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("xvfb-run and WebKitWebDriver are installed; ./dev test does it"),
        );
        let http: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(LIMIT))
            .build()
            .into();
        let base = format!("http://127.0.0.1:{port}");
        let wanted = json!({"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": {"binary": app(), "args": arguments}}}});
        let deadline = Instant::now() + Duration::from_secs(60);
        let id = loop {
            let reply = http.post(format!("{base}/session")).send_json(&wanted);
            let value: Option<Value> = reply.ok().and_then(|mut reply| reply.body_mut().read_json().ok());
            if let Some(id) = value.as_ref().and_then(|value| value["value"]["sessionId"].as_str()) {
                break id.to_owned();
            }
            assert!(Instant::now() < deadline, "no session with the app: {value:?}");
            sleep(Duration::from_millis(100));
        };
        Self {
            session: format!("{base}/session/{id}"),
            http,
            driver,
            home: home.to_owned(),
            patience: Duration::from_secs(60),
            _turn: turn,
        }
    }

    pub(super) fn post(&self, path: &str, body: Value) -> Result<Value, String> {
        let mut reply = self
            .http
            .post(format!("{}/{path}", self.session))
            .send_json(&body)
            .map_err(|error| error.to_string())?;
        read(&mut reply)
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, String> {
        self.get_within(path, LIMIT)
    }

    pub(super) fn get_within(&self, path: &str, limit: Duration) -> Result<Value, String> {
        let mut reply = self
            .http
            .get(format!("{}/{path}", self.session))
            .config()
            .timeout_global(Some(limit))
            .build()
            .call()
            .map_err(|error| error.to_string())?;
        read(&mut reply)
    }

    fn find(&self, test_id: &str) -> Option<String> {
        let found = self
            .post("element", json!({"using": "css selector", "value": selector(test_id)}))
            .ok()?;
        found[ELEMENT].as_str().map(str::to_owned)
    }

    /// Waits for the element with this test id.
    pub fn wait_for(&self, test_id: &str) {
        self.element(test_id);
    }

    pub(super) fn element(&self, test_id: &str) -> String {
        let mut found = None;
        self.wait_until(&format!("{test_id} is on the page"), || {
            found = self.find(test_id);
            found.is_some()
        });
        found.expect("waited for")
    }

    /// Clicks the element with this test id as a mouse does.
    pub fn click(&self, test_id: &str) {
        let mut last = String::new();
        let deadline = Instant::now() + Duration::from_secs(20);
        // An element may be rendered again between the search and the click.
        while Instant::now() < deadline {
            match self.post(&format!("element/{}/click", self.element(test_id)), json!({})) {
                Ok(_) => return,
                Err(error) => last = error,
            }
            sleep(Duration::from_millis(50));
        }
        panic!("{test_id} cannot be clicked: {last}; {}", self.look());
    }

    /// Clicks the element with this test id a moment later, for elements that hide or end the window: the driver would
    /// wait for it.
    pub fn click_and_leave(&self, test_id: &str) {
        self.wait_for(test_id);
        let script = "const element = document.querySelector(arguments[0]); setTimeout(() => element.click(), 100)";
        self.run(script, json!([selector(test_id)]));
    }

    /// Presses a key with Control a moment later, for the same reason.
    pub fn press_with_control(&self, key: &str) {
        let script = "setTimeout(() => (document.activeElement ?? document.body).dispatchEvent(\
                      new KeyboardEvent('keydown', { key: arguments[0], ctrlKey: true, bubbles: true, cancelable: true })), 100)"
            .replace("arguments[0]", &json!(key).to_string());
        self.run(&script, json!([]));
    }

    /// Shows the field that searches all chats in their list.
    pub fn show_search(&self) {
        let script = "document.body.dispatchEvent(new KeyboardEvent('keydown', \
                      { key: 'f', ctrlKey: true, shiftKey: true, bubbles: true, cancelable: true }))";
        self.run(script, json!([]));
        self.wait_for("search");
    }

    /// Clicks the newest element with this test id.
    pub fn click_last(&self, test_id: &str) {
        self.wait_for(test_id);
        let script = "[...document.querySelectorAll(arguments[0])].at(-1).click()";
        self.run(script, json!([selector(test_id)]));
    }

    /// Types into the element with this test id.
    pub fn type_into(&self, test_id: &str, text: &str) {
        self.post(
            &format!("element/{}/value", self.element(test_id)),
            json!({"text": text}),
        )
        .expect("it takes text");
    }

    /// Types a question and sends it.
    pub fn ask(&self, question: &str) {
        self.type_into("composer", question);
        self.click("send");
    }

    /// Runs a function body in the page.
    pub fn run(&self, script: &str, args: Value) -> Value {
        self.try_run(script, args)
            .unwrap_or_else(|error| panic!("{script} failed: {error}"))
    }

    /// The same for a page that may not be there.
    pub fn try_run(&self, script: &str, args: Value) -> Result<Value, String> {
        self.post("execute/sync", json!({"script": script, "args": args}))
    }

    /// Runs a function body in the page, which calls its last argument when it is done, within two minutes.
    pub fn run_async(&self, script: &str, args: Value) -> Value {
        self.post("timeouts", json!({"script": 120_000}))
            .expect("it takes a limit");
        self.post("execute/async", json!({"script": script, "args": args}))
            .unwrap_or_else(|error| panic!("a script failed: {error}"))
    }

    /// Runs a function body in the page of the frame with this test id.
    pub fn run_in_frame(&self, test_id: &str, script: &str, args: Value) -> Value {
        let outcome = self.try_run_in_frame(test_id, script, args);
        outcome.unwrap_or_else(|error| panic!("{script} failed in a frame: {error}"))
    }

    /// The same for a frame whose page may just be replaced by another one.
    pub fn try_run_in_frame(&self, test_id: &str, script: &str, args: Value) -> Result<Value, String> {
        let frame = json!({ELEMENT: self.element(test_id)});
        self.post("frame", json!({"id": frame}))?;
        let outcome = self.try_run(script, args);
        self.post("frame", json!({"id": null})).expect("the window has a page");
        outcome
    }

    /// The number of elements with this test id.
    pub fn count(&self, test_id: &str) -> u64 {
        self.run(
            "return document.querySelectorAll(arguments[0]).length",
            json!([selector(test_id)]),
        )
        .as_u64()
        .expect("a number")
    }

    /// The text of the newest answer, without its thought.
    pub fn answer(&self) -> String {
        self.newest("answer-text")
    }

    /// The text of the newest element with this test id; empty if there is none.
    pub fn newest(&self, test_id: &str) -> String {
        let script = "const all = document.querySelectorAll(arguments[0]); return all.length ? all[all.length - 1].textContent : ''";
        self.run(script, json!([selector(test_id)]))
            .as_str()
            .expect("text")
            .trim()
            .to_owned()
    }

    /// An attribute of the newest element with this test id; empty if there is none.
    pub fn attribute(&self, test_id: &str, name: &str) -> String {
        let script =
            "const all = document.querySelectorAll(arguments[0]); return all.length ? all[all.length - 1].getAttribute(arguments[1]) || '' : ''";
        self.run(script, json!([selector(test_id), name]))
            .as_str()
            .expect("text")
            .to_owned()
    }

    /// The state of the newest answer.
    pub fn answer_state(&self) -> String {
        self.attribute("message-assistant", "data-state")
    }

    /// Waits until the newest answer is in this state.
    pub fn wait_until_answer_is(&self, state: &str) {
        self.wait_until(&format!("the answer is {state}"), || self.answer_state() == state);
    }

    /// Waits until a condition holds, a minute at most unless [`Window::with_patience`] sets another limit.
    pub fn wait_until(&self, what: &str, holds: impl FnMut() -> bool) {
        self.wait_within(self.patience, what, holds);
    }

    /// Waits until a condition holds.
    pub fn wait_within(&self, limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + limit;
        while !holds() {
            if Instant::now() > deadline {
                panic!("it never came to this: {what}; {}", self.look());
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Reloads the page, as after a crash of the web view.
    pub fn reload(&self) {
        self.refresh();
        self.wait_for("composer");
    }

    /// The number of the app's windows with a page.
    pub fn open_windows(&self) -> usize {
        self.get("window/handles")
            .expect("windows")
            .as_array()
            .expect("a list")
            .len()
    }

    /// Switches to another of the app's windows, by the end of its title; the chat window's begins with the chat's.
    pub fn switch_to(&self, title: &str) {
        self.wait_until(&format!("a window called {title}"), || {
            let handles = self.get("window/handles").expect("windows");
            handles.as_array().expect("a list").iter().any(|handle| {
                self.post("window", json!({"handle": handle})).is_ok()
                    && self
                        .get("title")
                        .is_ok_and(|found| found.as_str().is_some_and(|found| found.ends_with(title)))
            })
        });
    }

    /// The process of the app.
    pub fn process(&self) -> u32 {
        processes(&self.home).into_iter().next().expect("the app runs")
    }

    /// The environment of the app's process: its display, its session bus, its data.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = fs::read(format!("/proc/{}/environ", self.process())).expect("the app's environment");
        let entries = text
            .split(|byte| *byte == 0)
            .filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='));
        entries
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// The titles of the app's windows on the display.
    pub fn titles(&self) -> String {
        let listed = Command::new("xwininfo")
            .args(["-root", "-tree"])
            .envs(self.environment())
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("x11-utils is installed; ./dev test does it");
        String::from_utf8_lossy(&listed.stdout).into_owned()
    }

    /// Starts the app a second time, as a desktop does to open something.
    pub fn start_again(&self, arguments: &[&str]) -> Output {
        Command::new(app())
            .args(arguments)
            .env_clear()
            .envs(self.environment())
            .stdin(Stdio::null())
            .output()
            .expect("it starts")
    }

    /// True if the app is running.
    pub fn is_running(&self) -> bool {
        !processes(&self.home).is_empty()
    }

    /// Waits until the app has ended by itself.
    pub fn wait_for_end(self) {
        self.wait_until("the app ends", || !self.is_running());
    }

    /// Gives this answer to every question of the system's dialogs from now on: `yes`, `more` or `no`, which it is at
    /// first. WebDriver reaches pages alone.
    pub fn answer_dialogs(&self, answer: &str) {
        fs::write(answer_file(&self.home), answer).expect("written");
    }

    /// Quits the app by closing its windows.
    pub fn close(self) {
        // The session ends with the app; a response is not guaranteed.
        let _ = self.http.delete(&self.session).call();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !processes(&self.home).is_empty() && Instant::now() < deadline {
            sleep(Duration::from_millis(50));
        }
        drop(self.driver);
    }

    /// Kills the app, as a power cut would.
    pub fn kill(self) {
        let killed = Command::new("kill")
            .args(["-9", &self.process().to_string()])
            .status()
            .expect("kill runs");
        assert!(killed.success());
        drop(self.driver);
    }
}

fn read(reply: &mut ureq::http::Response<ureq::Body>) -> Result<Value, String> {
    let status = reply.status();
    let mut body: Value = reply
        .body_mut()
        .with_config()
        .limit(64 << 20)
        .read_json()
        .map_err(|error| error.to_string())?;
    let value = body["value"].take();
    if status.is_success() {
        Ok(value)
    } else {
        Err(value["message"].as_str().unwrap_or("no reason given").to_owned())
    }
}

/// The file with the answer to questions of the system's dialogs.
fn answer_file(home: &Path) -> PathBuf {
    home.join("answer-to-dialogs")
}

/// The processes of the app whose data lies in `home`.
fn processes(home: &Path) -> Vec<u32> {
    let wanted = format!("PONDER_HOME={}", home.display());
    fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == app()))
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
        })
        .collect()
}

pub(super) fn selector(test_id: &str) -> String {
    format!("[data-testid=\"{test_id}\"]")
}
