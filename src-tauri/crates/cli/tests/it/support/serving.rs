//! `ponder serve` as a process, and the scripts that ask it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{command, run};

/// A server on a free port; it ends with this.
pub struct Serving {
    pub process: Child,
    pub port: u16,
    /// Its data.
    pub home: TempDir,
}

impl Serving {
    /// With Pebble alone.
    pub fn start(args: &[&str]) -> Self {
        Self::at(tempfile::tempdir().expect("a folder"), args)
    }

    /// With its data in this folder.
    pub fn at(home: TempDir, args: &[&str]) -> Self {
        let (process, port) = serve(home.path(), args);
        Self { process, port, home }
    }

    /// Another one with the same data, in a process of its own.
    pub fn beside(&self, args: &[&str]) -> Self {
        let (process, port) = serve(self.home.path(), args);
        let home = tempfile::tempdir().expect("a folder");
        Self { process, port, home }
    }

    /// [`Serving::start`] on a slow computer, whose answers are not over before anything else happens.
    pub fn start_slow() -> Self {
        Self::slow(tempfile::tempdir().expect("a folder"), None)
    }

    /// [`Serving::beside`] on a slow computer.
    pub fn beside_slow(&self) -> Self {
        Self::slow(tempfile::tempdir().expect("a folder"), Some(self.home.path()))
    }

    fn slow(home: TempDir, data: Option<&Path>) -> Self {
        let mut command = serve_command(data.unwrap_or(home.path()), &["--no-key"]);
        command.env("PONDER_CPU", "plain").env("PONDER_THREADS", "1");
        let (process, listening) = start(command);
        let port = port(&listening);
        Self { process, port, home }
    }

    /// The address that it listens at.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The value that the server tells Prometheus.
    pub fn gauge(&self, name: &str) -> usize {
        let (status, text) = self.ask("/metrics", &Value::Null);
        assert_eq!(status, 200);
        let mut values = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        values.next().expect("the gauge")
    }

    /// Posts a body without any client, or gets if it is null: the status and the body of the answer.
    pub fn ask(&self, path: &str, body: &Value) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let host = format!("host: 127.0.0.1:{}\r\nconnection: close\r\n", self.port);
        let request = match body {
            Value::Null => format!("GET {path} HTTP/1.1\r\n{host}\r\n"),
            body => {
                let body = body.to_string();
                let length = body.len();
                format!("POST {path} HTTP/1.1\r\n{host}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
            }
        };
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), body.to_owned())
    }
}

/// The process without a key, once it listens, and its port.
fn serve(home: &Path, args: &[&str]) -> (Child, u16) {
    let (process, listening) = listening(home, &[&["--no-key"], args].concat());
    (process, port(&listening))
}

/// The process, once it listens, and what it printed then.
pub fn listening(home: &Path, args: &[&str]) -> (Child, Value) {
    start(serve_command(home, args))
}

fn serve_command(home: &Path, args: &[&str]) -> Command {
    let mut command = command(home, &["serve", "--port", "0", "--json"]);
    command.args(args);
    command
}

fn start(mut command: Command) -> (Child, Value) {
    let mut process = command.stdout(Stdio::piped()).spawn().expect("ponder starts");
    let mut line = String::new();
    let output = process.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    (process, serde_json::from_str(&line).expect("JSON"))
}

fn port(listening: &Value) -> u16 {
    let port = listening["port"].as_u64().and_then(|port| port.try_into().ok());
    port.expect("a port")
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Puts a tiny random embedding model among the models of a data folder and returns its name for clients; `None`
/// without a Python to write it with.
pub fn import_embedder(home: &Path) -> Option<&'static str> {
    let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
        println!("without embeddings: PONDER_ORACLE_PYTHON names no Python with MLX; `./dev test` provides one");
        return None;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = Command::new(python);
    writer
        .env_remove("LD_LIBRARY_PATH")
        .arg(scripts().join("../oracle/embeddings.py"));
    let written = writer
        .arg("--out")
        .arg(folder.path())
        .args(["--only", "minilm"])
        .output()
        .expect("it starts");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let imported = run(home, &["import", folder.path().join("minilm").to_str().expect("text")]);
    assert!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    let listed = run(home, &["models"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("embeddings"));
    Some("minilm")
}

/// The folder of the scripts that ask.
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/clients")
}

/// Runs a script of that folder and returns its cells. It must end well: cells that are not right are no error of the
/// script.
pub fn cells(program: &Path, script: &str, args: &[&str]) -> Vec<Value> {
    let mut asking = Command::new(program);
    // Compiled scripts would lie in the checkout.
    asking.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("LD_LIBRARY_PATH");
    let output = asking
        .arg(scripts().join(script))
        .args(args)
        .output()
        .expect("the script starts");
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).expect("text");
    // Some clients print warnings of their own.
    let cells = printed.lines().filter(|line| line.starts_with("{\"client\""));
    cells
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
        .collect()
}

/// Asserts that all cells are right, and counts them.
pub fn assert_right(cells: &[Value], expected: usize) {
    let wrong: Vec<&Value> = cells.iter().filter(|cell| cell["ok"] != true).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(cells.len(), expected);
}
