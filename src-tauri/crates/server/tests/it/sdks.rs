//! The official SDKs, which put streams together and raise if an event is missing or out of order.

use std::path::Path;

use serde_json::Value;

use crate::harness::Harness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_sdks_accept_every_answer() {
    let Some(python) = std::env::var_os("PONDER_CLIENTS_PYTHON") else {
        println!("skipped: PONDER_CLIENTS_PYTHON names no Python with the SDKs; `./dev test` provides one");
        return;
    };
    let harness = Harness::open().await;
    let answering = harness.answer_all();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/clients/sdks.py");
    let url = format!("http://{}", harness.address);
    let run = tokio::task::spawn_blocking(move || {
        std::process::Command::new(python)
            .arg(script)
            .arg(url)
            .args(["fake", "org/embedder"])
            .output()
            .unwrap()
    });
    let output = run.await.unwrap();
    answering.abort();
    let text = String::from_utf8(output.stdout).unwrap();
    let cells: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let wrong: Vec<&Value> = cells.iter().filter(|cell| cell["ok"] != true).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(cells.len(), 50, "{}", String::from_utf8_lossy(&output.stderr));
    let clients = harness.server.clients();
    let names: Vec<&str> = clients.iter().map(|client| client.name.as_str()).collect();
    assert!(
        names.contains(&"OpenAI SDK for Python") && names.contains(&"Anthropic SDK for Python"),
        "{names:?}"
    );
}
