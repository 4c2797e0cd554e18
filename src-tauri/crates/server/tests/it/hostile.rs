//! Strangers and hostile input: an error each time, never an answer, a crash or a hang.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use protocol::fake::FakeEngine;
use serde_json::json;
use server::{Error, Limits, Server, ServerConfig};

use crate::client::{ask, get, post, request, Connection, LONG};
use crate::harness::{short_limits, Harness, Shelf};

const CHAT: &str = "/v1/chat/completions";
const JSON: (&str, &str) = ("content-type", "application/json");

fn question() -> Vec<u8> {
    json!({"model": "pebble", "messages": [{"role": "user", "content": "hi"}]})
        .to_string()
        .into_bytes()
}

async fn limited() -> Harness {
    Harness::with(ServerConfig {
        limits: short_limits(),
        ..ServerConfig::default()
    })
    .await
}

/// The server lives and answers.
async fn assert_well(harness: &Harness) {
    assert_eq!(get(harness.address, "/health").await.head.status, 200);
    assert!(harness.engine.take_job().is_none(), "a stranger reached the engine");
}

#[tokio::test]
async fn a_page_of_another_name_or_origin_gets_nothing() {
    let harness = Harness::open().await;
    let port = harness.address.port();
    let evil = format!("evil.test:{port}");
    let zero = format!("0.0.0.0:{port}");
    for path in [
        CHAT,
        "/v1/models",
        "/health",
        "/",
        "/metrics",
        "/v1/nothing",
        "/v1/messages",
    ] {
        for (method, body) in [("GET", Vec::new()), ("POST", question()), ("OPTIONS", Vec::new())] {
            for headers in [
                vec![JSON, ("host", &evil)],
                vec![JSON, ("host", &zero)],
                vec![JSON, ("origin", "http://evil.test")],
                vec![JSON, ("origin", "null")],
            ] {
                let response = ask(method, harness.address, path, &headers, &body).await;
                assert_eq!(response.head.status, 403, "{method} {path} {headers:?}");
                assert!(response.head.header("access-control-allow-origin").is_none());
            }
        }
    }
    // Content types that a page can send without a preflight request.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
    ] {
        let response = ask("POST", harness.address, CHAT, &[("content-type", kind)], &question()).await;
        assert_eq!(response.head.status, 415, "{kind}");
    }
    assert_well(&harness).await;
}

#[tokio::test]
async fn a_listed_page_may_ask_and_is_told_so() {
    let harness = Harness::with(ServerConfig {
        allow_origins: vec!["http://page.test".into()],
        ..ServerConfig::default()
    })
    .await;
    let answering = harness.answer_all();
    let page = ("origin", "http://page.test");
    let preflight = ask(
        "OPTIONS",
        harness.address,
        CHAT,
        &[
            page,
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
            ("access-control-request-private-network", "true"),
        ],
        b"",
    )
    .await;
    assert_eq!(preflight.head.status, 204);
    for (name, value) in [
        ("access-control-allow-origin", "http://page.test"),
        ("access-control-allow-headers", "content-type"),
        ("access-control-allow-private-network", "true"),
    ] {
        assert_eq!(preflight.head.header(name), Some(value));
    }
    let answer = ask("POST", harness.address, CHAT, &[page, JSON], &question()).await;
    assert_eq!(
        (answer.head.status, answer.head.header("access-control-allow-origin")),
        (200, Some("http://page.test"))
    );
    answering.abort();
}

#[tokio::test]
async fn a_key_is_asked_for_on_every_path_but_two() {
    let harness = Harness::with(ServerConfig {
        key: Some("secret".into()),
        ..ServerConfig::default()
    })
    .await;
    let answering = harness.answer_all();
    for path in [CHAT, "/v1/models", "/metrics", "/nothing"] {
        assert_eq!(get(harness.address, path).await.head.status, 401, "{path}");
    }
    for path in ["/", "/health"] {
        assert_eq!(get(harness.address, path).await.head.status, 200, "{path}");
    }
    // Ollama's clients send none and read no other error; both ways out are named.
    let ollama = get(harness.address, "/api/tags").await;
    let told = ollama.json()["error"].as_str().unwrap().to_owned();
    assert_eq!((ollama.head.status, ollama.json().as_object().unwrap().len()), (401, 1));
    assert!(
        told.contains("Authorization: Bearer") && told.contains("--no-key"),
        "{told}"
    );
    let wrong = ask(
        "POST",
        harness.address,
        "/v1/messages",
        &[JSON, ("x-api-key", "other")],
        &question(),
    )
    .await;
    assert_eq!(
        (wrong.head.status, &wrong.json()["error"]["type"]),
        (401, &json!("authentication_error"))
    );
    let right = ask(
        "POST",
        harness.address,
        CHAT,
        &[JSON, ("authorization", "Bearer secret")],
        &question(),
    )
    .await;
    assert_eq!(right.head.status, 200);
    answering.abort();
}

/// Asks from a shell that runs as another user, which only root can start: its status.
#[cfg(target_os = "linux")]
fn status_as_other_user(address: SocketAddr, path: &str) -> Option<String> {
    use std::os::unix::process::CommandExt;

    let (ip, port) = (address.ip(), address.port());
    let script = format!(
        "exec 3<>/dev/tcp/{ip}/{port}; printf 'GET {path} HTTP/1.1\\r\\nhost: {address}\\r\\nauthorization: Bearer secret\\r\\n\
         connection: close\\r\\n\\r\\n' >&3; head -n 1 <&3"
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .uid(65_534)
        .output()
        .ok()?;
    let line = String::from_utf8(output.stdout).ok()?;
    line.split(' ').nth(1).map(str::to_owned)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn another_user_of_this_computer_gets_nothing_even_with_the_key() {
    let config = |allow_hosts: &[&str]| ServerConfig {
        key: Some("secret".into()),
        allow_hosts: allow_hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..ServerConfig::default()
    };
    let (harness, behind_proxy) = (
        Harness::with(config(&[])).await,
        Harness::with(config(&["proxy.lan"])).await,
    );
    let asked = |address, path: &'static str| tokio::task::spawn_blocking(move || status_as_other_user(address, path));
    let Some(status) = asked(harness.address, "/v1/models").await.unwrap() else {
        println!("skipped: only root can ask as another user");
        return;
    };
    assert_eq!(status, "403");
    assert_eq!(asked(harness.address, "/health").await.unwrap().as_deref(), Some("200"));
    assert_eq!(
        asked(behind_proxy.address, "/v1/models").await.unwrap().as_deref(),
        Some("200")
    );
}

#[tokio::test]
async fn bodies_that_are_no_requests_are_errors() {
    let harness = limited().await;
    let nested = format!("{{\"messages\": {}", "[".repeat(10_000));
    let many = format!("{{\"messages\": [{}0]}}", "{},".repeat(300_000));
    let bad_text = b"{\"model\": \"pebble\", \"messages\": \"\xff\xfe\"}".to_vec();
    let large = vec![b' '; 2 << 20];
    for (body, status) in [
        (nested.into_bytes(), 400),
        (many.into_bytes(), 413),
        (bad_text, 400),
        (large, 413),
        (b"".to_vec(), 400),
        (b"[]".to_vec(), 400),
        (b"{\"model\": 5}".to_vec(), 400),
        (b"{\"model\": \"pebble\"".to_vec(), 400),
        (b"{\"model\": \"pebble\", \"messages\": \"\\ud800\"}".to_vec(), 400),
        (b"{\"model\": \"pebble\", \"messages\": []} trailing".to_vec(), 400),
        (b"{\"model\": \"pebble\", \"messages\": []}".to_vec(), 400),
    ] {
        for path in [CHAT, "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"] {
            let response = ask("POST", harness.address, path, &[JSON], &body).await;
            // An empty conversation can be counted.
            if response.head.status != 200 || path != "/v1/messages/count_tokens" {
                assert_eq!(
                    response.head.status,
                    status,
                    "{path} {}",
                    String::from_utf8_lossy(&body[..body.len().min(60)])
                );
            }
        }
    }
    let compressed = ask(
        "POST",
        harness.address,
        CHAT,
        &[JSON, ("content-encoding", "gzip")],
        &question(),
    )
    .await;
    assert_eq!(compressed.head.status, 415);
    assert_well(&harness).await;
}

#[tokio::test]
async fn what_comes_too_slowly_or_too_large_is_cut() {
    let harness = limited().await;
    // Headers that never end.
    let patient = Harness::with(ServerConfig {
        limits: Limits {
            header_time: Duration::from_secs(3600),
            ..short_limits()
        },
        ..ServerConfig::default()
    })
    .await;
    let mut open = Connection::open(patient.address).await;
    open.send(b"POST / HTTP/1.1\r\nhost: ").await.unwrap();
    let mut slow = Connection::open(harness.address).await;
    slow.send(b"POST / HTTP/1.1\r\nhost: ").await.unwrap();
    assert!(slow.is_closed().await);
    // The server's own time counts, not one that every connection has.
    let longer = tokio::time::timeout(Duration::from_millis(20), open.is_closed()).await;
    assert!(longer.is_err(), "the other server waits on");
    // A body that never ends.
    let mut slow = Connection::open(harness.address).await;
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        harness.address
    );
    slow.send(head.as_bytes()).await.unwrap();
    assert_eq!(slow.head().await.unwrap().status, 408);
    // Headers that are too large.
    let mut large = Connection::open(harness.address).await;
    let value = "x".repeat(64 << 10);
    let sent = large
        .send(&request("GET", harness.address, "/", &[("x", &value)], b""))
        .await;
    if sent.is_ok() {
        assert!(large.head().await.is_none_or(|head| head.status == 431));
    }
    // A body that lies about its size and one that grows without end.
    let lying = [JSON, ("content-length", "99999999999")];
    let mut connection = Connection::open(harness.address).await;
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: {}\r\n", harness.address);
    let lines: String = lying
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    connection.send(format!("{head}{lines}\r\n").as_bytes()).await.unwrap();
    assert_eq!(connection.head().await.unwrap().status, 413);
    let mut growing = Connection::open(harness.address).await;
    let start = format!("{head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    growing.send(start.as_bytes()).await.unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..100 {
        if growing.send(&chunk).await.is_err() {
            break;
        }
    }
    assert!(growing.head().await.is_none_or(|head| head.status == 413));
    assert_well(&harness).await;
}

#[tokio::test]
async fn what_is_no_http_is_cut() {
    let harness = limited().await;
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(),
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
        b"GET \xff HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n123456",
    ] {
        let mut connection = Connection::open(harness.address).await;
        connection.send(bytes).await.unwrap();
        if let Some(head) = connection.head().await {
            assert!((400..500).contains(&head.status), "{head:?}");
        }
    }
    assert_well(&harness).await;
}

#[tokio::test]
async fn answers_beyond_the_most_are_told_when_to_come_back() {
    let harness = Harness::with(ServerConfig {
        limits: Limits {
            answers: 3,
            ..Limits::default()
        },
        ..ServerConfig::default()
    })
    .await;
    let mut first = Connection::open(harness.address).await;
    let two = json!({"model": "pebble", "stream": true, "n": 2, "messages": [{"role": "user", "content": "hi"}]});
    first
        .send(&request(
            "POST",
            harness.address,
            CHAT,
            &[JSON],
            two.to_string().as_bytes(),
        ))
        .await
        .unwrap();
    let jobs = [harness.job().await, harness.job().await];
    let refused = post(harness.address, CHAT, &two).await;
    assert_eq!(
        (refused.head.status, refused.head.header("retry-after")),
        (429, Some("1"))
    );
    // One more has room, and all have when the first client is gone.
    drop(first);
    for job in &jobs {
        tokio::time::timeout(LONG, job.cancel.cancelled()).await.unwrap();
    }
    let answering = harness.answer_all();
    for _ in 0..6000 {
        if post(harness.address, CHAT, &two).await.head.status == 200 {
            answering.abort();
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody is let in any more");
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let harness = Harness::open().await;
    let start = |address: SocketAddr, key: Option<&str>| {
        let config = ServerConfig {
            address,
            key: key.map(Into::into),
            ..ServerConfig::default()
        };
        Server::start(config, Arc::new(FakeEngine::new()), Arc::new(Shelf))
    };
    let taken = start(harness.address, None).await.err().unwrap();
    assert!(
        matches!(taken, Error::PortTaken { .. }) && taken.to_string().contains("--port"),
        "{taken}"
    );
    let everywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    for key in [None, Some("")] {
        assert!(matches!(start(everywhere, key).await, Err(Error::NeedsKey(_))));
    }
    assert!(start(everywhere, Some("secret")).await.is_ok());
    let elsewhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 0);
    assert!(matches!(
        start(elsewhere, Some("secret")).await,
        Err(Error::Address { .. })
    ));
}

#[tokio::test]
async fn changed_requests_never_break_anything() {
    let harness = limited().await;
    let answering = harness.answer_all();
    let seed = std::env::var("PONDER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20261121_u64);
    let mut random = Random(seed | 1);
    let whole = json!({"model": "pebble", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "r"}], "max_tokens": 9, "stream": true, "tools": [{"type": "function", "function": {"name": "f",
        "parameters": {"type": "object"}}, "name": "f"}], "tool_choice": "auto", "stop": ["a"], "temperature": 0.5, "thinking": {"type": "adaptive"},
        "input": [{"role": "user", "content": "hi"}, {"type": "reasoning", "content": []}], "system": [{"type": "text", "text": "s"}]});
    let mut places = Vec::new();
    collect_places(&whole, String::new(), &mut places);
    for round in 0..2000 {
        let path = [CHAT, "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"][round % 4];
        let body = if round % 3 == 0 {
            // Bytes are changed.
            let mut bytes = whole.to_string().into_bytes();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = b"\"[]{},:\\0\xff"[random.below(10)];
            }
            bytes
        } else {
            // A value is changed.
            let mut changed = whole.clone();
            let values = [
                json!(null),
                json!(-1),
                json!(1e300),
                json!([]),
                json!({}),
                json!("\u{0}"),
                json!(true),
                json!([{}, 5, null]),
            ];
            *changed.pointer_mut(&places[random.below(places.len())]).unwrap() =
                values[random.below(values.len())].clone();
            changed.to_string().into_bytes()
        };
        let response = ask("POST", harness.address, path, &[JSON], &body).await;
        assert!(
            matches!(response.head.status, 200 | 400 | 404),
            "seed {seed}, round {round}: {} {}",
            response.head.status,
            response.body
        );
    }
    answering.abort();
    assert_eq!(get(harness.address, "/health").await.head.status, 200);
    let figures = harness.server.figures();
    assert_eq!(figures.in_flight, 0, "{figures:?}");
}

/// Numbers that look random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// The JSON pointers of all values.
fn collect_places(value: &serde_json::Value, at: String, places: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_places(item, format!("{at}/{index}"), places);
            }
        }
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                collect_places(field, format!("{at}/{name}"), places);
            }
        }
        _ => {}
    }
    places.push(at);
}
