//! Servers behind an address, as they misbehave.

mod bad_server;
mod oauth_server;
mod real_server;
mod sign_in;
mod wire;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use protocol::{CallOrigin, CallRequest, StoreStart, ToolCall, ToolRef, Toolbox};
use serde_json::json;
use tokio::sync::watch;
use tools::host::Tools;
use tools::http::{ConnectError, Failure, Header, HttpClient};
use tools::session::{CallError, Connection, Session};

use crate::{call, net, LIMITS};
use bad_server::BadServer;

fn connection(address: &str) -> Connection {
    Connection {
        address: address.to_owned(),
        client: HttpClient::new(net(), Vec::new(), None),
        roots: Vec::new(),
    }
}

async fn connect(address: &str) -> Result<Session, ConnectError> {
    Session::connect(connection(address), LIMITS).await
}

/// A server's start, its list and a call, each in a word.
async fn tried(address: &str) -> [String; 3] {
    let session = match connect(address).await {
        Err(error) => return [error.to_string(), String::new(), String::new()],
        Ok(session) => session,
    };
    let list = match session.tools().await {
        Ok(listing) => format!("{} tools, {} problems", listing.tools.len(), listing.problems.len()),
        Err(error) => error.to_string(),
    };
    let called = match call(&session).await {
        Ok(outcome) => outcome.for_model(60),
        Err(error) => error.to_string(),
    };
    session.close().await;
    ["ready".to_owned(), list, called]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_of_an_address_to_misbehave_costs_its_own_calls_and_nothing_else() {
    let one = "1 tools, 0 problems";
    let echo = r#"{"n":1}"#;
    let silent = "nothing came for 2 s, so the call was given up; it may or may not have been done";
    let broke_off =
        "the connection to the server ended before its answer was complete; the call may or may not have been done";
    let large = "the server sent more than 16 MB in one piece, so the rest was not read; the call may or may not have been done";
    let ready = |call| ["ready", one, call];
    let start = |error| [error, "", ""];
    let ways = [
        ("good", ready(echo)),
        ("without session", ready(echo)),
        ("answers the probe", ready(echo)),
        ("breaks on the probe", ready(echo)),
        ("moved here", ready(echo)),
        ("stream", ready(echo)),
        ("floods", ready(echo)),
        ("unasked for ever", ready(echo)),
        ("second answer", ready("first")),
        ("forgets the session", ready(echo)),
        ("forgets it in its own way", ready(echo)),
        ("lying schema", ["ready", "1 tools, 2 problems", echo]),
        ("mute", start("the server said nothing for 5 s")),
        ("mute in list", ["ready", silent, echo]),
        ("mute in call", ready(silent)),
        ("keeps alive for ever", ready(silent)),
        ("other id", ready(silent)),
        ("dies in stream", ready(broke_off)),
        ("large event", ready(large)),
        ("large body", ready(large)),
        ("event without end", ready(large)),
        ("refuses", ready("the server refused: no such tool")),
        (
            "forbids",
            ready("the server answered with status 403 and says: not for you; nothing was done"),
        ),
        (
            "fails",
            ready(
                "the server answered with status 500 and says: out of memory; the call may or may not have been done",
            ),
        ),
        (
            "overloaded",
            start("the server answered with status 503 and says: come back later"),
        ),
        ("nothing there", start("the server answered with status 404")),
        (
            "strangers out",
            start("the server wants you to sign in, under Settings › Tools"),
        ),
    ];
    for (way, expected) in ways {
        let (server, begun) = (BadServer::start(way).await, Instant::now());
        let words = tried(&server.address).await;
        println!(
            "report: http: {way}: {} in {:.1} s",
            words.join(" | "),
            begun.elapsed().as_secs_f64()
        );
        assert_eq!(words, expected, "{way}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{way} took too long");
    }
}

#[tokio::test]
async fn an_address_that_is_no_server_of_tools_says_what_it_is() {
    for (way, said) in [
        ("web page", "text/html"),
        ("moved away", "which was not meant to get what was sent"),
        ("into the network", "192.168.1.1"),
        ("dropped body", "leaves out what was sent"),
    ] {
        let server = BadServer::start(way).await;
        let [error, ..] = tried(&server.address).await;
        assert!(error.contains(said), "{way}: {error}");
    }
    for (way, said) in [
        ("dies in call", "may or may not have been done"),
        ("breaks off", "may or may not have been done"),
        ("wrong json", "no message"),
        ("no answer", "instead of a message"),
        ("web page in call", "text/html"),
        ("wants a sign-in now", "sign in"),
        ("never knows the session", ""),
    ] {
        let server = BadServer::start(way).await;
        let [ready, list, called] = tried(&server.address).await;
        println!("report: http: {way}: {ready} | {list} | {called}");
        assert!(ready == "ready" && called.contains(said), "{way}: {list} | {called}");
    }
    let nobody = connect("http://127.0.0.1:9/mcp").await.err().unwrap();
    assert!(
        matches!(&nobody, ConnectError::Failed(Failure::Net(net::Error::Connect { .. }))),
        "{nobody}"
    );
    let nowhere = connect("https://no-such-name.invalid/mcp").await.err().unwrap();
    assert!(matches!(nowhere, ConnectError::Failed(Failure::Net(_))), "{nowhere}");
}

#[tokio::test]
async fn a_server_that_is_killed_in_a_call_costs_that_call_and_works_again_when_it_is_back() {
    let server = BadServer::start("good").await;
    let session = connect(&server.address).await.unwrap();
    assert!(call(&session).await.is_ok());
    drop(server);
    let lost = call(&session).await.unwrap_err();
    assert!(
        matches!(
            lost,
            CallError::NotDone(Failure::Net(_)) | CallError::Lost(Failure::Net(_))
        ),
        "{lost}"
    );
    assert!(!session.is_closed());
    assert!(session.log(9).iter().any(|line| line.contains("127.0.0.1")));
    session.close().await;
}

#[tokio::test]
async fn a_call_to_an_address_is_stopped_and_told_to_it() {
    let server = BadServer::start("mute in call").await;
    let session = connect(&server.address).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let arguments = json!({});
    let called = session.call("echo", &arguments, watch::Sender::default(), stopped);
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        stop.send_replace(true);
    };
    let (called, ()) = tokio::join!(called, stopping);
    assert_eq!(called, Err(CallError::Stopped));
    session.close().await;
    let told: Vec<String> = server.asked().iter().map(|asked| asked.called().to_owned()).collect();
    assert!(told.contains(&"notifications/cancelled".to_owned()), "{told:?}");
    // The session is ended, too.
    assert!(server.asked().iter().any(|asked| asked.method == "DELETE"));
}

#[tokio::test]
async fn a_server_that_ends_every_stream_is_not_asked_without_a_rest() {
    let server = BadServer::start("ends every stream").await;
    let session = connect(&server.address).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let streams = server.asked().iter().filter(|asked| asked.method == "GET").count();
    assert!((2..=11).contains(&streams), "{streams} in 2 s");
    assert!(call(&session).await.is_ok());
    session.close().await;
}

#[tokio::test]
async fn headers_reach_the_server_and_the_list_of_requests_names_it() {
    let server = BadServer::start("good").await;
    let net = net();
    let header = |name: &str, value: &str| Header {
        name: name.into(),
        value: value.into(),
    };
    let headers = vec![header("Authorization", "Basic c2VjcmV0"), header("X-Key", "another")];
    let connection = Connection {
        address: server.address.clone(),
        client: HttpClient::new(net.clone(), headers, None),
        roots: Vec::new(),
    };
    net.set_offline(true).unwrap();
    // This computer is not elsewhere.
    let session = Session::connect(connection, LIMITS).await.unwrap();
    call(&session).await.unwrap();
    session.close().await;
    for asked in server.asked() {
        assert_eq!(asked.header("authorization"), Some("Basic c2VjcmV0"), "{asked:?}");
        assert_eq!(asked.header("x-key"), Some("another"));
    }
    let call = server
        .asked()
        .into_iter()
        .find(|asked| asked.called() == "tools/call")
        .unwrap();
    assert_eq!(call.header("mcp-session-id"), Some("s1"));
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    let listed = net.requests();
    assert!(!listed.is_empty() && listed.iter().all(|request| request.purpose == net::Purpose::ToolServer));
    // Another computer is.
    let elsewhere = Connection {
        address: "http://192.0.2.1/mcp".into(),
        client: HttpClient::new(net, Vec::new(), None),
        roots: Vec::new(),
    };
    let error = Session::connect(elsewhere, LIMITS).await.err().unwrap();
    assert_eq!(
        error,
        ConnectError::Failed(net::Error::Offline { forced: false }.into())
    );
}

#[tokio::test]
async fn the_newest_protocol_has_no_session_and_tells_changes_to_those_who_subscribe() {
    let server = BadServer::start("newest").await;
    let session = connect(&server.address).await.unwrap();
    let mut changes = session.list_changes();
    let changed = tokio::time::timeout(Duration::from_secs(3), changes.changed());
    changed.await.expect("a change is told").unwrap();
    assert_eq!(session.tools().await.unwrap().tools.len(), 1);
    assert_eq!(call(&session).await.unwrap().for_model(60), r#"{"n":1}"#);
    session.close().await;
    let asked = server.asked();
    assert!(asked
        .iter()
        .all(|asked| asked.called() != "initialize" && asked.method == "POST"));
    let call = asked.iter().find(|asked| asked.called() == "tools/call").unwrap();
    for (name, value) in [
        ("mcp-protocol-version", Some("2026-07-28")),
        ("mcp-method", Some("tools/call")),
        ("mcp-name", Some("echo")),
        ("mcp-session-id", None),
    ] {
        assert_eq!(call.header(name), value, "{name}");
    }
}

/// A call that the person allowed before, in words.
async fn allowed_call(tools: &Tools, of: ToolRef) -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    if let Err(error) = tools.allow_in_chat("chat", &of, None).await {
        return error.to_string();
    }
    let request = CallRequest {
        chat: "chat".into(),
        turn: format!("turn {number}"),
        answer: format!("answer {number}"),
        call: ToolCall {
            id: format!("call {number}"),
            name: of.tool.clone(),
            arguments: json!({}),
        },
        attempt: 1,
        tool: of,
        origin: CallOrigin::Answer,
    };
    let (_stop, stopped) = watch::channel(false);
    let start: StoreStart = Box::new(|_| async { Ok(()) }.boxed());
    let result = tools.run(request, start, Arc::new(|_| {}), stopped).await;
    result.content.iter().filter_map(|part| part.as_text()).collect()
}
