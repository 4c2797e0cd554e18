//! The reference server behind an address, as its makers publish it.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use protocol::CallProgress;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tools::configuration::Transport;
use tools::import;
use tools::session::{CallError, Limits, Session};

use super::connection;

/// The server's process, killed at the end.
struct Everything {
    process: Child,
    port: u16,
}

impl Everything {
    /// `None` where servers of npm are not installed.
    async fn start(port: Option<u16>) -> Option<Self> {
        let path = std::env::var_os("PONDER_TOOL_SERVERS")?;
        let imported = import::read(&std::fs::read_to_string(path).unwrap()).unwrap();
        let server = imported
            .servers
            .into_iter()
            .find(|server| server.name == "everything")?;
        let Transport::Stdio { command, .. } = server.transport else {
            panic!("it is no program")
        };
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = port.unwrap_or_else(free);
        let process = Command::new(command)
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(Instant::now() < deadline, "it does not listen");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Some(Self { process, port })
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_server_is_listed_called_killed_and_found_again() {
    let Some(server) = Everything::start(None).await else {
        println!("report: servers of npm are not here, so none was asked by HTTP");
        return;
    };
    let begun = Instant::now();
    let session = Session::connect(connection(&server.address()), Limits::default())
        .await
        .unwrap();
    let ready = begun.elapsed();
    let listing = session.tools().await.unwrap();
    assert!(listing.problems.is_empty() && listing.tools.len() > 5, "{listing:?}");
    let echoed = |session| async move {
        let session: &Session = session;
        let (_stop, stopped) = watch::channel(false);
        let arguments = json!({ "message": "hello" });
        let called = session
            .call("echo", &arguments, watch::Sender::default(), stopped)
            .await;
        called.map(|outcome| outcome.for_model(100))
    };
    assert!(echoed(&session).await.unwrap().contains("hello"));
    println!(
        "report: everything by HTTP: ready after {:.2} s, {} tools",
        ready.as_secs_f64(),
        listing.tools.len()
    );
    // It reports how far it is, and is killed on the way.
    let long = listing
        .tools
        .iter()
        .find(|tool| tool.name.contains("ong"))
        .expect("a long call");
    let (progress, mut heard) = watch::channel(CallProgress::default());
    let (_stop, stopped) = watch::channel(false);
    let arguments = json!({ "duration": 20, "steps": 40 });
    let called = session.call(&long.name, &arguments, progress, stopped);
    let port = server.port;
    let killing = async {
        heard.wait_for(|progress| progress.done >= Some(1.0)).await.unwrap();
        drop(server);
        Instant::now()
    };
    let (lost, killed) = tokio::join!(called, killing);
    let lost = lost.unwrap_err();
    assert!(matches!(lost, CallError::Lost(_)), "{lost}");
    assert!(killed.elapsed() < Duration::from_secs(30), "{:?}", killed.elapsed());
    println!(
        "report: everything by HTTP, killed in a call: {lost} after {:.1} s",
        killed.elapsed().as_secs_f64()
    );
    let nobody = echoed(&session).await.unwrap_err();
    assert!(matches!(nobody, CallError::NotDone(_)), "{nobody}");
    // Another process at the same address does not know the session.
    let again = Everything::start(Some(port)).await.unwrap();
    assert!(echoed(&session).await.unwrap().contains("hello"));
    session.close().await;
    drop(again);
}
