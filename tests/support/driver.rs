//! The real app in a real web view, driven by WebDriver. One window at a time: two would fight for the two cores and the
//! answers under watch would end too late.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use serde_json::{json, Value};
use tokio::sync::{Mutex, MutexGuard};

const APP: &str = env!("CARGO_BIN_EXE_ponder-app");
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A driver process that does not outlive its test.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        // Already ended is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The running app with its window.
pub struct Window {
    client: Client,
    driver: Driver,
    home: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Window {
    /// Starts the app with its data in `home` and waits for its first page.
    pub async fn open(home: &Path) -> Self {
        Self::open_with(home, &[]).await
    }

    /// As [`Window::open`], with more of an environment.
    pub async fn open_with(home: &Path, environment: &[(&str, &str)]) -> Self {
        let turn = ONE_AT_A_TIME.lock().await;
        assert!(std::env::var_os("DISPLAY").is_some(), "the window needs a display; ./dev test brings one");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
        let driver = Driver(
            Command::new("WebKitWebDriver")
                .args([&format!("--port={port}"), "--host=127.0.0.1"])
                // Without this the app takes no driver (the driver hands its environment on).
                .env("TAURI_WEBVIEW_AUTOMATION", "true")
                .env("PONDER_HOME", home)
                .env("HF_HOME", home.join("hub"))
                .envs(environment.iter().copied())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("WebKitWebDriver is installed (webkit2gtk-driver)"),
        );
        let wanted = json!({"webkitgtk:browserOptions": {"binary": APP, "args": []}});
        let capabilities = wanted.as_object().expect("an object").clone();
        let connector = hyper_util::client::legacy::connect::HttpConnector::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        let client = loop {
            let attempt = ClientBuilder::new(connector.clone()).capabilities(capabilities.clone()).connect(&format!("http://127.0.0.1:{port}")).await;
            match attempt {
                Ok(client) => break client,
                Err(error) => assert!(Instant::now() < deadline, "no session with the app: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let window = Self { client, driver, home: home.to_owned(), _turn: turn };
        window.wait_for("composer").await;
        window
    }

    /// The element with this test id, waited for.
    pub async fn wait_for(&self, test_id: &str) -> Element {
        let css = selector(test_id);
        match self.client.wait().at_most(Duration::from_secs(30)).for_element(Locator::Css(&css)).await {
            Ok(element) => element,
            Err(error) => {
                self.picture("failure").await;
                panic!("no {test_id} appeared: {error}\n{}", self.client.source().await.unwrap_or_default().chars().take(4000).collect::<String>());
            }
        }
    }

    /// All elements with this test id.
    pub async fn all(&self, test_id: &str) -> Vec<Element> {
        self.client.find_all(Locator::Css(&selector(test_id))).await.expect("the page answers")
    }

    /// Clicks the element with this test id.
    pub async fn click(&self, test_id: &str) {
        self.wait_for(test_id).await.click().await.unwrap_or_else(|error| panic!("{test_id} cannot be clicked: {error}"));
    }

    /// Types a question and sends it.
    pub async fn ask(&self, question: &str) {
        self.wait_for("composer").await.send_keys(question).await.expect("the composer takes text");
        self.click("send").await;
    }

    /// Runs a function body in the page.
    pub async fn run(&self, script: &str, args: Vec<Value>) -> Value {
        self.client.execute(script, args).await.unwrap_or_else(|error| panic!("{script} failed: {error}"))
    }

    /// The text of the newest answer, without its thought.
    pub async fn answer(&self) -> String {
        self.newest("answer-text").await
    }

    /// The text of the newest element with this test id, also where it is folded away; empty where there is none.
    pub async fn newest(&self, test_id: &str) -> String {
        let value = self.run("const all = document.querySelectorAll(arguments[0]); return all.length ? all[all.length - 1].textContent : ''", vec![json!(selector(test_id))]).await;
        value.as_str().expect("text").trim().to_owned()
    }

    /// An attribute of the newest answer.
    pub async fn answer_attribute(&self, name: &str) -> String {
        let script = "const all = document.querySelectorAll(arguments[0]); return all.length ? all[all.length - 1].getAttribute(arguments[1]) || '' : ''";
        self.run(script, vec![json!(selector("message-assistant")), json!(name)]).await.as_str().expect("text").to_owned()
    }

    /// Waits until the newest answer is in this state.
    pub async fn wait_until_answer_is(&self, state: &str) {
        self.wait_until(&format!("the answer is {state}"), || async { self.answer_attribute("data-state").await == state }).await;
    }

    /// Waits until something holds.
    pub async fn wait_until<F, Fut>(&self, what: &str, mut holds: F)
    where
        F: FnMut() -> Fut,
        Fut: std::future::Future<Output = bool>,
    {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !holds().await {
            if Instant::now() > deadline {
                self.picture("failure").await;
                panic!("it never came to this: {what}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Loads the page again, as a crashed web view would.
    pub async fn reload(&self) {
        self.client.refresh().await.expect("the page loads again");
        self.wait_for("composer").await;
    }

    /// Stores a screenshot beside the build as `pictures/NAME.png`.
    pub async fn picture(&self, name: &str) -> PathBuf {
        let folder = Path::new(APP).parent().expect("a folder").join("pictures");
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(format!("{name}.png"));
        fs::write(&path, self.client.screenshot().await.expect("a picture")).expect("written");
        path
    }

    /// Shows another of the app's windows, by its title.
    pub async fn switch_to(&self, title: &str) {
        self.wait_until(&format!("a window called {title}"), || async {
            for handle in self.client.windows().await.expect("windows") {
                if self.client.switch_to_window(handle).await.is_ok() && self.client.title().await.is_ok_and(|found| found == title) {
                    return true;
                }
            }
            false
        })
        .await;
    }

    /// The process of the app.
    pub fn process(&self) -> u32 {
        processes(&self.home).into_iter().next().expect("the app runs")
    }

    /// Ends the app as a person does, by closing its window.
    pub async fn close(self) {
        self.client.clone().close().await.expect("the window closes");
        let deadline = Instant::now() + Duration::from_secs(10);
        while !processes(&self.home).is_empty() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        drop(self.driver);
    }

    /// Ends the app as a power cut does.
    pub async fn kill(self) {
        let killed = Command::new("kill").args(["-9", &self.process().to_string()]).status().expect("kill runs");
        assert!(killed.success());
        drop(self.driver);
    }
}

/// The processes of the app whose data lies in `home`.
fn processes(home: &Path) -> Vec<u32> {
    let wanted = format!("PONDER_HOME={}", home.display());
    fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == Path::new(APP)))
        .filter(|pid| fs::read(format!("/proc/{pid}/environ")).is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())))
        .collect()
}

fn selector(test_id: &str) -> String {
    format!("[data-testid=\"{test_id}\"]")
}
