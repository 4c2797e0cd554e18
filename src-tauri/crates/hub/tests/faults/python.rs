//! huggingface_hub as a peer: one Python process that fetches on request.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;

use serde_json::{json, Value};

use crate::table::{Fetches, MODEL};

/// Longer than all its retries take.
const PATIENCE: Duration = Duration::from_secs(120);

type Waiting = Arc<Mutex<HashMap<u64, mpsc::Sender<Option<String>>>>>;

pub struct Python {
    process: Mutex<Child>,
    input: Mutex<ChildStdin>,
    waiting: Waiting,
    next: AtomicU64,
}

/// A Python command with huggingface_hub's environment; `None`, with a message, if no Python has it.
pub fn command() -> Option<Command> {
    let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
        println!("skipped: PONDER_ORACLE_PYTHON names no Python with huggingface_hub; `./dev test` provides one");
        return None;
    };
    let mut command = Command::new(python);
    command
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../tests/oracle/hub_fetch.py"
        ))
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("HF_HUB_OFFLINE")
        .env_remove("HF_TOKEN")
        .env("HF_HOME", std::env::temp_dir().join("ponder-no-hf-home"))
        .env("HF_HUB_DISABLE_XET", "1")
        .env("HF_HUB_DISABLE_TELEMETRY", "1")
        .env("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        .env("HF_HUB_DOWNLOAD_TIMEOUT", "1")
        .env("HF_HUB_ETAG_TIMEOUT", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    Some(command)
}

/// One fetch in a process of its own.
pub fn alone(endpoint: &str, cache: &Path) -> Option<Command> {
    let mut command = command()?;
    let request = json!({"endpoint": endpoint, "repository": MODEL, "cache": cache});
    command
        .arg(request.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    Some(command)
}

impl Python {
    pub fn start() -> Option<Self> {
        let mut process = command()?.spawn().expect("Python starts");
        let input = process.stdin.take().expect("it has an input");
        let mut lines = BufReader::new(process.stdout.take().expect("it has an output")).lines();
        assert!(lines.next().is_some(), "Python has huggingface_hub");
        let waiting = Waiting::default();
        let answered = waiting.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let said: Value = serde_json::from_str(&line).expect("it prints JSON");
                let id = said["id"].as_u64().expect("an answer has an id");
                if let Some(sender) = answered.lock().expect("nobody panics with it").remove(&id) {
                    let _ = sender.send(said["error"].as_str().map(str::to_owned));
                }
            }
        });
        Some(Self {
            process: Mutex::new(process),
            input: Mutex::new(input),
            waiting,
            next: AtomicU64::new(0),
        })
    }

    /// Requests a fetch; the answer comes when it is done, and never if it is killed.
    pub fn ask(&self, endpoint: &str, cache: &Path) -> mpsc::Receiver<Option<String>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = mpsc::channel();
        self.waiting.lock().expect("nobody panics with it").insert(id, sender);
        let request = json!({"id": id, "endpoint": endpoint, "repository": MODEL, "cache": cache});
        let mut input = self.input.lock().expect("nobody panics with it");
        writeln!(input, "{request}").expect("Python listens");
        receiver
    }

    pub fn kill(&self) {
        let mut process = self.process.lock().expect("nobody panics with it");
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Fetches for Python {
    fn fetch(&self, endpoint: &str, cache: &Path) -> Result<(), String> {
        match self.ask(endpoint, cache).recv_timeout(PATIENCE) {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(error),
            Err(_) => Err("it did not end".to_owned()),
        }
    }
}
