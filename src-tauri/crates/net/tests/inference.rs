//! Requests to a server of models: a body goes out, a stream comes back, and a key stays where it belongs.

#![allow(clippy::unwrap_used)]

mod server;

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use axum::http::Response;
use futures::stream;
use net::{Environment, Error, Net, Purpose, Settings, Timeouts};
use protocol::Reason;
use serde_json::json;
use server::{answer, slow, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

const KEY: &str = "sk-aKeyThatNobodyElseMaySee";
const HUB_TOKEN: &str = "hf_aTokenForTheHubAlone";

/// A client whose hub is the server itself, so that a token sent by mistake would be seen.
fn client(address: &str) -> Net {
    Net::open(Settings {
        environment: Environment::of(&[("HF_ENDPOINT", address), ("HF_TOKEN", HUB_TOKEN)]),
        ..Settings::of_a_test(address)
    })
}

fn sent_on(status: u16, to: &str) -> Response<Body> {
    let mut response = answer(status, "");
    response.headers_mut().insert(LOCATION, to.parse().unwrap());
    response
}

/// Reads a request up to and with a body of `{}`.
async fn read_request(connection: &mut TcpStream) -> usize {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n{}") {
        read.push(connection.read_u8().await.unwrap());
    }
    read.len()
}

/// The head of a stream and its first piece.
const BEGINNING: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n";

#[tokio::test]
async fn a_body_goes_out_and_a_stream_comes_back_piece_by_piece() {
    let (give, pieces) = mpsc::channel::<&'static str>(1);
    let pieces = std::sync::Mutex::new(Some(pieces));
    let server = Server::start(move |_| {
        let pieces = pieces.lock().unwrap().take().unwrap();
        let pieces = stream::unfold(pieces, |mut pieces| async {
            let piece = pieces.recv().await?;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())), pieces))
        });
        answer(200, Body::from_stream(pieces))
    })
    .await;
    let net = client(&server.address());
    let mut answer = net
        .post(&format!("{}/v1/chat/completions", server.address()), Purpose::Inference)
        .bearer(KEY)
        .json(&json!({ "stream": true }))
        .send()
        .await
        .unwrap()
        .error_for_status()
        .unwrap();
    // Each piece is given only after the one before it was read.
    for piece in ["data: 1\n\n", "data: 2\n\n", "data: [DONE]\n\n"] {
        give.send(piece).await.unwrap();
        assert_eq!(answer.chunk().await.unwrap().unwrap(), piece.as_bytes());
    }
    drop(give);
    assert_eq!(answer.chunk().await.unwrap(), None);
    let asked = server.requests().remove(0);
    assert_eq!(
        (asked.method().as_str(), asked.uri().path()),
        ("POST", "/v1/chat/completions")
    );
    assert_eq!(asked.headers()[AUTHORIZATION], format!("Bearer {KEY}").as_str());
    assert_eq!(asked.headers()[CONTENT_TYPE], "application/json");
    assert_eq!(asked.body(), r#"{"stream":true}"#);
    let listed = net.requests().remove(0);
    assert_eq!((listed.purpose, listed.method.as_str()), (Purpose::Inference, "POST"));
    assert!(!serde_json::to_string(&listed).unwrap().contains("sk-"));
}

#[tokio::test]
async fn the_bytes_that_are_sent_include_the_body() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let read = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let read = read_request(&mut connection).await;
        connection
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        read as u64
    });
    let net = client(&address);
    let asked = net.post(&format!("{address}/v1/x?y=z"), Purpose::Inference).bearer(KEY);
    asked.json(&json!({})).send().await.unwrap();
    assert_eq!(net.requests()[0].sent, read.await.unwrap());
}

#[tokio::test]
async fn a_server_on_this_computer_answers_while_offline() {
    let server = Server::start(|_| slow(Duration::from_millis(5), 20)).await;
    let port = server.address().rsplit(':').next().unwrap().to_owned();
    let net = client(&server.address());
    let ask = |address: String| net.post(&address, Purpose::Inference).json(&json!({})).send();
    let mut running = ask(server.address()).await.unwrap();
    let first = running.chunk().await.unwrap().unwrap();
    net.set_offline(true).unwrap();
    let rest = running.bytes_capped(1 << 20).await.unwrap();
    assert_eq!(
        first.len() + rest.len(),
        20_000,
        "a stream of this computer survives the switch"
    );
    for host in ["127.0.0.1", "localhost", "models.localhost", "127.1.2.3"] {
        // Other systems give an interface 127.0.0.1 alone.
        if host == "127.1.2.3" && !cfg!(target_os = "linux") {
            continue;
        }
        let listener = TcpListener::bind((if host.starts_with("127") { host } else { "127.0.0.1" }, 0));
        let listener = listener.await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let _server = Server::start_on(listener, |_| answer(200, "here"));
        let answer = ask(format!("http://{host}:{port}/v1")).await.unwrap();
        assert_eq!(answer.text_capped(10).await.unwrap(), "here", "{host}");
    }
    match TcpListener::bind("[::1]:0").await {
        Ok(listener) => {
            let port = listener.local_addr().unwrap().port();
            let _server = Server::start_on(listener, |_| answer(200, "here"));
            for host in ["[::1]", "localhost"] {
                let answer = ask(format!("http://{host}:{port}/v1")).await.unwrap();
                assert_eq!(answer.text_capped(10).await.unwrap(), "here", "{host}");
            }
        }
        Err(error) => println!("report: [::1] was not tried, because this computer has no IPv6 ({error})"),
    }
    for elsewhere in [
        "http://192.0.2.1:8000/v1",
        "http://no-such-name.invalid/v1",
        "http://0.0.0.0:1/",
        "http://localhost.example/",
    ] {
        let error = ask(elsewhere.into()).await.unwrap_err();
        assert_eq!(error, Error::Offline { forced: false }, "{elsewhere}");
    }
    // A hub on loopback stands for one that is elsewhere.
    let error = net.get(&server.address(), Purpose::Search).send().await.unwrap_err();
    assert_eq!(error, Error::Offline { forced: false });
    let forced = Net::open(Settings {
        environment: Environment::of(&[("HF_HUB_OFFLINE", "1")]),
        ..Settings::of_a_test("")
    });
    let asked = forced.get(&format!("http://127.0.0.1:{port}/v1/models"), Purpose::Inference);
    assert!(asked.send().await.is_ok());
}

#[tokio::test]
async fn a_server_on_this_computer_cannot_lead_out_while_offline() {
    let server = Server::start(|_| sent_on(307, "http://192.0.2.1/v1/models")).await;
    let net = client(&server.address());
    net.set_offline(true).unwrap();
    let asked = net.get(&server.address(), Purpose::Inference);
    assert_eq!(asked.send().await.unwrap_err(), Error::Offline { forced: false });
}

#[tokio::test]
async fn a_key_and_a_body_are_never_sent_on_to_another_origin() {
    let other = Server::start(|_| answer(200, "mine now")).await;
    let away = other.address();
    let server = Server::start(move |request| match request.uri().path() {
        "/307" => sent_on(307, &away),
        "/302" => sent_on(302, &away),
        "/303" => sent_on(303, "/here"),
        "/moved" => sent_on(308, "/here"),
        _ => answer(200, "here"),
    })
    .await;
    let net = client(&server.address());
    let at = |path: &str| format!("{}{path}", server.address());
    for path in ["/307", "/302"] {
        let with_key = net
            .get(&at(path), Purpose::Inference)
            .bearer(KEY)
            .send()
            .await
            .unwrap_err();
        let with_body = net
            .post(&at(path), Purpose::Inference)
            .json(&json!({}))
            .send()
            .await
            .unwrap_err();
        for error in [with_key, with_body] {
            assert!(matches!(error, Error::Redirect { .. }), "{error}");
            assert!(!error.to_string().contains(KEY));
        }
    }
    assert_eq!(other.requests().len(), 0);
    let dropped = net
        .post(&at("/303"), Purpose::Inference)
        .json(&json!({}))
        .send()
        .await
        .unwrap_err();
    assert!(matches!(dropped, Error::Redirect { .. }), "{dropped}");
    let asked = net
        .post(&at("/moved"), Purpose::Inference)
        .bearer(KEY)
        .json(&json!({ "a": 1 }));
    assert_eq!(asked.send().await.unwrap().text_capped(10).await.unwrap(), "here");
    let last = server.requests().pop().unwrap();
    assert_eq!((last.uri().path(), &last.body()[..]), ("/here", &br#"{"a":1}"#[..]));
    assert!(last.headers().contains_key(AUTHORIZATION));
}

#[tokio::test]
async fn a_wrong_key_is_said_with_the_servers_reason_and_the_hubs_token_stays_at_home() {
    let server = Server::start(|request| match request.uri().path() {
        "/v1/models" => answer(401, r#"{"error":"bad key"}"#),
        "/v1/limit" => answer(429, ""),
        "/v1/loading" => answer(503, ""),
        _ => answer(404, ""),
    })
    .await;
    let net = client(&server.address());
    let get = |path: &str| net.get(&format!("{}{path}", server.address()), Purpose::Inference);
    for (request, with_key) in [(get("/v1/models").bearer(KEY), true), (get("/v1/models"), false)] {
        let answer = request.send().await.unwrap();
        let error = answer.status_error().unwrap();
        assert!(
            matches!(error, Error::KeyRefused { with_key: sent, .. } if sent == with_key),
            "{error:?}"
        );
        assert!(!error.is_transient() && !error.to_string().contains(KEY), "{error}");
        assert_eq!(answer.text_capped(100).await.unwrap(), r#"{"error":"bad key"}"#);
    }
    for (path, name, passes) in [
        ("/v1/limit", "TooManyRequests", true),
        ("/v1/loading", "ServerError", true),
        ("/v1/none", "NotFound", false),
    ] {
        let error = get(path)
            .bearer(KEY)
            .send()
            .await
            .unwrap()
            .error_for_status()
            .unwrap_err();
        assert!(format!("{error:?}").starts_with(name), "{error:?}");
        assert_eq!(error.is_transient(), passes);
        assert!(!error.to_string().contains("token from your account"), "{error}");
    }
    let keys: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.headers().get(AUTHORIZATION).cloned())
        .collect();
    assert!(
        keys.iter().flatten().all(|key| key == &format!("Bearer {KEY}")),
        "{keys:?}"
    );
    assert_eq!(keys.iter().filter(|key| key.is_none()).count(), 1);
    assert_eq!(
        get("/v1/models").bearer("two words").send().await.unwrap_err(),
        Error::BadKey
    );
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_is_an_error_and_not_an_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (die, dead) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        read_request(&mut connection).await;
        connection.write_all(BEGINNING).await.unwrap();
        dead.await.unwrap();
    });
    let net = client(&address);
    let asked = net.post(&address, Purpose::Inference).json(&json!({}));
    let mut answer = asked.send().await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "one");
    die.send(()).unwrap();
    let error = answer.chunk().await.unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error:?}");
    drop(answer);
    let listed = net.requests().remove(0);
    let failure = listed.failure.unwrap();
    assert_eq!((listed.over, failure.reason), (true, Some(Reason::ConnectionLost)));
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (asked, mut was_asked) = mpsc::channel::<()>(1);
    let (closed, mut was_closed) = mpsc::channel::<usize>(1);
    tokio::spawn(async move {
        for beginning in [BEGINNING, b""] {
            let (mut connection, _) = listener.accept().await.unwrap();
            read_request(&mut connection).await;
            connection.write_all(beginning).await.unwrap();
            asked.send(()).await.unwrap();
            closed
                .send(connection.read(&mut [0; 1]).await.unwrap_or_default())
                .await
                .unwrap();
        }
    });
    let net = client(&address);
    let ask = || net.post(&address, Purpose::Inference).json(&json!({})).send();
    // In the middle of a stream.
    let mut answer = ask().await.unwrap();
    assert!(answer.chunk().await.unwrap().is_some());
    drop(answer);
    assert_eq!(was_closed.recv().await, Some(0));
    was_asked.recv().await.unwrap();
    // Before the head of the answer.
    let waiting = tokio::spawn(ask());
    was_asked.recv().await.unwrap();
    waiting.abort();
    assert_eq!(was_closed.recv().await, Some(0));
}

#[tokio::test]
async fn each_stage_of_a_call_has_its_own_time_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        for beginning in [&b""[..], head, BEGINNING] {
            let (mut connection, _) = listener.accept().await.unwrap();
            read_request(&mut connection).await;
            connection.write_all(beginning).await.unwrap();
            open.push(connection);
        }
        std::future::pending::<()>().await;
    });
    let net = client(&address);
    let short = Duration::from_millis(100);
    let long = Duration::from_secs(600);
    let ask = |head, first_bytes, stall| {
        let timeouts = Timeouts {
            head,
            first_bytes: Some(first_bytes),
            stall: Some(stall),
        };
        net.post(&address, Purpose::Inference)
            .json(&json!({}))
            .timeouts(timeouts)
            .send()
    };
    assert!(matches!(ask(short, long, long).await, Err(Error::TimedOut { .. })));
    let mut answer = ask(long, short, long).await.unwrap();
    assert!(matches!(answer.chunk().await, Err(Error::TimedOut { after, .. }) if after == short));
    let mut answer = ask(long, long, short).await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "one");
    assert!(matches!(answer.chunk().await, Err(Error::TimedOut { after, .. }) if after == short));
}

#[tokio::test]
async fn a_hub_address_that_makes_no_sense_is_no_matter_to_other_servers() {
    let server = Server::start(|_| answer(200, "here")).await;
    let net = client("nonsense");
    assert!(net.get(&server.address(), Purpose::Inference).send().await.is_ok());
}

#[tokio::test]
async fn keys_are_kept_by_name_beside_the_hubs_token() {
    let net = Net::open(Settings::of_a_test("http://hub.invalid"));
    assert_eq!(net.secret("endpoint:a").await, Ok(None));
    net.set_token(HUB_TOKEN).await.unwrap();
    net.set_secret("endpoint:a", " first\n").await.unwrap();
    net.set_secret("endpoint:b", "other").await.unwrap();
    net.set_secret("endpoint:a", "second").await.unwrap();
    assert_eq!(net.secret("endpoint:a").await, Ok(Some("second".into())));
    for bad in ["", "two words", "line\nbreak"] {
        assert_eq!(net.set_secret("endpoint:a", bad).await, Err(Error::BadKey));
    }
    net.forget_secret("endpoint:a").await.unwrap();
    net.forget_secret("endpoint:a").await.unwrap();
    assert_eq!(net.secret("endpoint:a").await, Ok(None));
    assert_eq!(net.secret("endpoint:b").await, Ok(Some("other".into())));
    assert_eq!(net.settings().await.token, api::TokenSource::Keychain);
    net.forget_token().await.unwrap();
    assert_eq!(net.secret("endpoint:b").await, Ok(Some("other".into())));
}
