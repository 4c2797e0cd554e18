//! Any bytes to the engine's socket: it answers or hangs up, and serves the next one. tests/fuzz has the same for
//! cargo-fuzz.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use engine_socket::EngineSocket;
use protocol::fake::FakeEngine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

#[path = "../../../../../tests/fuzz/words.rs"]
mod words;

const WORDS: &[&str] = &[
    concat!("{\"version\":\"", env!("CARGO_PKG_VERSION"), "\",\"call\":"),
    "{\"version\":\"0\",\"call\":",
    "\"hello\"",
    "}\n",
    "\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"loaded\"",
    "\"memory\"",
    "\"unload_all\"",
    "\"free_caches\"",
    "{\"unload\":\"a\"}",
    "{\"unload_idle\":1}",
    "{\"generate\":",
    "{\"count\":",
    "{\"embed\":",
    "{\"load\":",
    "{\"capabilities\":",
    "{\"prefetch\":",
    "\"model\":",
    "{\"local\":",
    "\"messages\":[",
    "\"reference\":\"a\",",
    "\"path\":\"/\",",
    "\"cancel\"\n",
    "\"end_thinking\"\n",
    "null",
    "1",
    "-1",
    "1e999",
    "\"\"",
    "\"a\"",
    "[[[[[[[[[[[[[[[[",
    "{\"a\":{\"a\":",
    " ",
];
/// Time for an answer, far more than one takes.
const TIME: Duration = Duration::from_secs(10);

/// A shared engine that does nothing.
struct Shared {
    runtime: Runtime,
    path: PathBuf,
    _socket: EngineSocket,
    _home: tempfile::TempDir,
}

static SHARED: LazyLock<Shared> = LazyLock::new(|| {
    let runtime = Runtime::new().unwrap();
    let home = tempfile::tempdir().unwrap();
    let entered = runtime.enter();
    let socket = EngineSocket::listen(home.path(), Arc::new(FakeEngine::new()))
        .unwrap()
        .unwrap();
    let path = home.path().join("run/engine.sock");
    drop(entered);
    Shared {
        runtime,
        path,
        _socket: socket,
        _home: home,
    }
});

/// The bytes as they are and as a call of this version, then an honest connection.
pub fn run(data: &[u8]) {
    let sent = words::spelled(data, WORDS);
    let call = [WORDS[0].as_bytes(), &sent, b"}\n"].concat();
    SHARED.runtime.block_on(async {
        // An answer that would go on is cut off by the end of what is sent.
        timeout(TIME, asked(&sent)).await.unwrap();
        timeout(TIME, asked(&call)).await.unwrap();
        let hello = format!("{{\"version\":\"{}\",\"call\":\"hello\"}}\n", env!("CARGO_PKG_VERSION"));
        let said = timeout(TIME, asked(hello.as_bytes())).await.unwrap();
        assert!(said.starts_with(b"{\"version\":"), "{said:?}");
    });
}

/// The answer until the other side hangs up, or has nothing to say for a while.
async fn asked(sent: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(&SHARED.path).await.unwrap();
    // It may have hung up in the middle.
    let _ = stream.write_all(sent).await;
    let _ = stream.shutdown().await;
    let mut said = Vec::new();
    let _ = timeout(Duration::from_millis(300), stream.read_to_end(&mut said)).await;
    said
}
