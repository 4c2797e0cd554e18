//! Servers with Pebble, each as a process of its own.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The folder of the model that comes with the app.
pub fn pebble() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../pebble/model")
        .canonicalize()
        .unwrap()
}

/// A server on a free port; it ends with this.
pub struct Server {
    process: Child,
    _home: TempDir,
    /// Its base URL.
    pub url: String,
}

impl Server {
    /// Starts `tests/oracle/serve.py` with these arguments. `None`, and a word about it, if no Python with mlx-lm is
    /// named.
    pub fn start(arguments: &[&str]) -> Option<Self> {
        let Some(python) = std::env::var_os("PONDER_ORACLE_PYTHON") else {
            println!("skipped: PONDER_ORACLE_PYTHON names no Python with mlx-lm; `./dev test` provides one");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/oracle/serve.py");
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("hub")).unwrap();
        let mut command = Command::new(python);
        // The oracle brings an MLX of its own. Asked for a model that it does not have, the server looks for it on the
        // hub.
        command.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
        command.env("HF_HOME", home.path()).env("HF_HUB_OFFLINE", "1");
        command.arg(script).arg("--model").arg(pebble()).args(arguments);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port: serde_json::Value = serde_json::from_str(&line).expect("the server says its port");
        Some(Self {
            process,
            _home: home,
            url: format!("http://127.0.0.1:{}/v1", port["port"]),
        })
    }

    /// Starts vllm-mlx with this key. `None`, and a word about it, unless PONDER_FULL asks for long tests and
    /// PONDER_VLLM_MLX names the program; its older mlx-lm wants an environment of its own
    /// (`tests/oracle/vllm.requirements.txt`).
    pub fn start_vllm_mlx(key: &str) -> Option<Self> {
        let (Some(_), Some(program)) = (std::env::var_os("PONDER_FULL"), std::env::var_os("PONDER_VLLM_MLX")) else {
            println!("skipped: vllm-mlx is asked with PONDER_FULL=1 and PONDER_VLLM_MLX, its program");
            return None;
        };
        // It takes no port 0 and does not say its port, so one that was free a moment ago is taken.
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("hub")).unwrap();
        let mut command = Command::new(program);
        command.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
        command.env("HF_HOME", home.path()).env("HF_HUB_OFFLINE", "1");
        command
            .arg("serve")
            .arg(pebble())
            .args(["--host", "127.0.0.1", "--api-key", key, "--port", &port.to_string()]);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                process.try_wait().unwrap().is_none(),
                "vllm-mlx ended before it listened"
            );
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        Some(Self {
            process,
            _home: home,
            url: format!("http://127.0.0.1:{port}/v1"),
        })
    }

    /// How the server calls Pebble.
    pub fn model(&self) -> String {
        pebble().display().to_string()
    }

    /// Ends the process at once.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
