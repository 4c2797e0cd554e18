//! The server as the window switches it on and off.

use std::future::ready;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use api::{KeySource, PortHolder, ServerSettings, ServerState};
use protocol::fake::FakeEngine;
use protocol::{Content, Error, ErrorCode, FinishReason};
use serde_json::{json, Value};
use server::ServerSwitch;

use crate::client::{ask, get, post, request, Connection};
use crate::file_search::NoDocuments;
use crate::harness::{delta, done, Harness, Shelf};

type Key = protocol::Result<Option<String>>;

fn switch() -> (ServerSwitch, FakeEngine) {
    let engine = FakeEngine::new();
    (
        ServerSwitch::new(Arc::new(engine.clone()), Arc::new(Shelf), None, Arc::new(NoDocuments)),
        engine,
    )
}

/// A port that nobody listens on at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn on(port: u16) -> ServerSettings {
    ServerSettings {
        on: true,
        port,
        ..ServerSettings::default()
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn refuses(port: u16) -> bool {
    TcpStream::connect_timeout(&local(port), Duration::from_secs(2)).is_err()
}

async fn set(switch: &ServerSwitch, settings: &ServerSettings, key: Key) -> ServerState {
    switch.set(settings, ready(key)).await;
    switch.status(KeySource::None).state
}

#[tokio::test]
async fn documents_are_allowed_and_closed_while_it_runs() {
    let (switch, _engine) = switch();
    let port = free_port();
    assert_eq!(set(&switch, &on(port), Ok(None)).await, ServerState::On);
    let mut client = Connection::open(local(port)).await;
    let mut listed = Vec::new();
    for collections in [vec!["broken".to_owned()], Vec::new()] {
        let settings = ServerSettings {
            collections,
            ..on(port)
        };
        assert_eq!(set(&switch, &settings, Ok(None)).await, ServerState::On);
        assert_eq!(switch.status(KeySource::None).settings, settings);
        let asked = request("GET", local(port), "/v1/vector_stores", &[], b"");
        client.send(&asked).await.unwrap();
        // The connection goes on, so the server was not started again.
        let head = client.head().await.unwrap();
        let stores: Value = serde_json::from_str(&client.body(&head).await).unwrap();
        listed.push(stores["data"].as_array().unwrap().len());
    }
    assert_eq!(listed, [1, 0]);
    switch.stop().await;
}

#[tokio::test]
async fn it_goes_on_and_off_and_moves_to_another_port() {
    let (switch, _engine) = switch();
    let (port, other) = (free_port(), free_port());
    assert_eq!(switch.status(KeySource::None).state, ServerState::Off);
    assert_eq!(set(&switch, &on(port), Ok(None)).await, ServerState::On);
    assert_eq!(get(local(port), "/v1/models").await.head.status, 200);
    let status = switch.status(KeySource::None);
    assert_eq!(status.address, format!("http://127.0.0.1:{port}"));
    assert_eq!(
        (status.figures.requests, status.clients[0].name.as_str()),
        (1, "unknown")
    );

    // The same again changes nothing: who has asked is still known.
    assert_eq!(set(&switch, &on(port), Ok(None)).await, ServerState::On);
    assert_eq!(switch.status(KeySource::None).clients.len(), 1);

    assert_eq!(set(&switch, &on(other), Ok(None)).await, ServerState::On);
    assert!(refuses(port));
    assert_eq!(get(local(other), "/health").await.head.status, 200);
    let off = ServerSettings { on: false, ..on(other) };
    assert_eq!(set(&switch, &off, Ok(None)).await, ServerState::Off);
    assert!(refuses(other));
    assert!(switch.status(KeySource::None).clients.is_empty());
}

#[tokio::test]
async fn switching_off_ends_what_runs_with_the_error_of_its_surface() {
    for (path, stream, told) in [
        (
            "/v1/chat/completions",
            true,
            r#"data: {"error":{"message":"the server was switched off"#,
        ),
        ("/v1/responses", true, "response.failed"),
        (
            "/v1/messages",
            true,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"",
        ),
        ("/v1/chat/completions", false, r#""type":"overloaded_error""#),
        ("/v1/messages", false, r#""type":"overloaded_error""#),
    ] {
        let harness = Harness::open().await;
        let address = harness.address;
        let body = match path {
            "/v1/responses" => json!({"model": "pebble", "input": "hi", "stream": stream}),
            _ => {
                json!({"model": "pebble", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, "stream": stream})
            }
        };
        let mut connection = Connection::open(address).await;
        let json = [("content-type", "application/json")];
        let bytes = request("POST", address, path, &json, body.to_string().as_bytes());
        connection.send(&bytes).await.unwrap();
        let job = harness.job().await;
        job.events.send(delta(Content::text("Hel")));
        let head = if stream {
            let head = connection.head().await.unwrap();
            connection.chunk().await.unwrap();
            harness.server.stop().await;
            head
        } else {
            harness.server.stop().await;
            connection.head().await.unwrap()
        };
        let rest = connection.body(&head).await;
        assert!(rest.contains(told), "{path} {stream}: {rest}");
        assert_eq!(
            head.status,
            if stream {
                200
            } else {
                [503, 529][usize::from(path == "/v1/messages")]
            },
            "{path}"
        );
        assert!(job.cancel.is_cancelled());
        assert!(connection.is_closed().await && refuses(address.port()));
    }
}

#[tokio::test]
async fn a_taken_port_names_who_has_it_and_is_tried_again() {
    let (switch, _engine) = switch();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let state = set(&switch, &on(port), Ok(None)).await;
    let ServerState::PortTaken { by } = state else {
        panic!("{state:?}")
    };
    if cfg!(target_os = "linux") {
        assert!(
            matches!(by, Some(PortHolder { process, .. }) if process == std::process::id()),
            "{by:?}"
        );
    }
    drop(taken);
    assert_eq!(set(&switch, &on(port), Ok(None)).await, ServerState::On);
}

#[tokio::test]
async fn other_computers_need_a_key_and_a_lost_key_is_no_open_door() {
    let (switch, _engine) = switch();
    let port = free_port();
    let network = ServerSettings {
        network: true,
        ..on(port)
    };
    assert_eq!(set(&switch, &network, Ok(None)).await, ServerState::KeyNeeded);
    assert!(refuses(port));
    let with_key = ServerSettings {
        key_made_at: Some(1),
        ..on(port)
    };
    assert_eq!(set(&switch, &with_key, Ok(None)).await, ServerState::KeyNeeded);
    let locked = Error::new(ErrorCode::Storage, "the keychain is locked");
    let state = set(&switch, &with_key, Err(locked.clone())).await;
    assert_eq!(state, ServerState::Failed { error: locked });
    assert!(refuses(port));

    assert_eq!(set(&switch, &with_key, Ok(Some("old".into()))).await, ServerState::On);
    assert_eq!(status_with(port, "old").await, 200);
    // Another key is another setting.
    let renewed = ServerSettings {
        key_made_at: Some(2),
        ..on(port)
    };
    assert_eq!(set(&switch, &renewed, Ok(Some("new".into()))).await, ServerState::On);
    assert_eq!(
        (status_with(port, "old").await, status_with(port, "new").await),
        (401, 200)
    );

    let network = ServerSettings {
        network: true,
        ..renewed
    };
    assert_eq!(set(&switch, &network, Ok(Some("new".into()))).await, ServerState::On);
    assert_eq!(status_with(port, "new").await, 200);
}

async fn status_with(port: u16, key: &str) -> u16 {
    let bearer = format!("Bearer {key}");
    let response = ask("GET", local(port), "/v1/models", &[("authorization", &bearer)], b"").await;
    response.head.status
}

#[tokio::test]
async fn clients_are_listed_with_what_they_took() {
    let (switch, engine) = switch();
    let port = free_port();
    set(&switch, &on(port), Ok(None)).await;
    let body = json!({"model": "pebble", "messages": [{"role": "user", "content": "hi"}]});
    let asked = async { post(local(port), "/v1/chat/completions", &body).await };
    let answered = async {
        let job = loop {
            if let Some(job) = engine.take_job() {
                break job;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert_eq!(switch.status(KeySource::None).figures.in_flight, 1);
        job.events.send(delta(Content::text("Hello")));
        job.events.send(done(FinishReason::Stop));
    };
    let (response, ()) = tokio::join!(asked, answered);
    assert_eq!(response.head.status, 200);
    let status = switch.status(KeySource::None);
    let client = &status.clients[0];
    assert_eq!(
        (client.requests, client.prompt_tokens, client.completion_tokens),
        (1, 20, 5)
    );
    assert_eq!(status.figures.in_flight, 0);
    switch.stop().await;
    assert!(refuses(port));
}
