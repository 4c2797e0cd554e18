//! Each way to fail has a name and a sentence.

#![allow(clippy::unwrap_used)]

mod server;

use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use net::{Error, Net, Purpose, Settings};
use protocol::ErrorCode;
use server::{answer, slow, Server};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

async fn ask(net: &Net, address: &str) -> Error {
    ask_within(net, address, Duration::from_secs(60)).await
}

async fn ask_within(net: &Net, address: &str, timeout: Duration) -> Error {
    let asked = net.get(address, Purpose::ModelInfo).head_timeout(timeout);
    let answer = match asked.send().await {
        Ok(answer) => answer,
        Err(error) => return error,
    };
    match answer.error_for_status() {
        Ok(answer) => answer.json_capped::<Vec<u8>>(100).await.expect_err("it fails"),
        Err(error) => error,
    }
}

fn coded(status: u16, headers: &[(&'static str, &str)]) -> Response<Body> {
    let mut response = answer(status, "{}");
    for (name, value) in headers {
        response.headers_mut().insert(*name, value.parse().unwrap());
    }
    response
}

#[tokio::test]
async fn a_status_is_an_error_that_says_what_to_do() {
    let hub = Server::start(|request| match request.uri().path() {
        "/gated" => coded(403, &[("x-error-code", "GatedRepo")]),
        "/gated-unknown" => coded(401, &[("x-error-code", "GatedRepo")]),
        "/hidden" => coded(401, &[("x-error-code", "RepoNotFound")]),
        "/gone" => coded(404, &[("x-error-code", "EntryNotFound")]),
        "/wait" => coded(429, &[("retry-after", "17")]),
        "/wait-until" => coded(503, &[("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT")]),
        "/ill" => coded(500, &[]),
        _ => coded(418, &[]),
    })
    .await;
    let net = Net::open(Settings::of_a_test(&hub.address()));
    let at = |path: &str| format!("{}{path}", hub.address());
    for (path, name, code, passes, says) in [
        ("/gated", "Gated", ErrorCode::Gated, false, "accept the terms"),
        ("/gated-unknown", "Gated", ErrorCode::Gated, false, "make a token"),
        ("/hidden", "Unauthorised", ErrorCode::Gated, false, "token"),
        ("/gone", "NotFound", ErrorCode::NotFound, false, "such file"),
        ("/wait", "TooManyRequests", ErrorCode::Network, true, "17 seconds"),
        ("/wait-until", "ServerError", ErrorCode::Network, true, "503"),
        ("/ill", "ServerError", ErrorCode::Network, true, "500"),
        ("/odd", "UnexpectedStatus", ErrorCode::Network, false, "418"),
    ] {
        let error = ask(&net, &at(path)).await;
        assert!(format!("{error:?}").starts_with(name), "{path}: {error:?}");
        assert!(error.to_string().contains(says), "{path}: {error}");
        assert_eq!(error.is_transient(), passes, "{path}");
        assert_eq!(protocol::Error::from(error).code, code, "{path}");
    }
    assert_eq!(
        ask(&net, &at("/wait")).await.retry_after(),
        Some(Duration::from_secs(17))
    );
    assert!(ask(&net, &at("/wait-until"))
        .await
        .retry_after()
        .is_some_and(|wait| wait.as_secs() > 1_000_000));
}

#[tokio::test]
async fn what_keeps_an_answer_from_coming_has_a_name() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed_address = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = Server::start(|_| answer(200, "hello")).await;
    let net = Net::open(Settings::of_a_test(&plain.address()));
    for (address, name) in [
        (closed_address, "Connect"),
        (format!("http://{}", silent.local_addr().unwrap()), "TimedOut"),
        ("http://no-such-name.invalid/".into(), "Dns"),
        (plain.address().replace("http:", "https:"), "Tls"),
        ("gopher://hub.example".into(), "BadAddress"),
        ("http://me:secret@hub.example".into(), "BadAddress"),
        ("nonsense".into(), "BadAddress"),
    ] {
        let timeout = if name == "TimedOut" { 200 } else { 60_000 };
        let error = ask_within(&net, &address, Duration::from_millis(timeout)).await;
        assert!(format!("{error:?}").starts_with(name), "{address}: {error:?}");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert_eq!(error.is_transient(), matches!(name, "Connect" | "Dns" | "TimedOut"));
    }
    let bad = Net::open(Settings::of_a_test("huggingface.co"));
    let error = ask(&bad, &plain.address()).await;
    assert!(
        matches!(error, Error::BadEndpoint { .. }),
        "the public hub is not asked instead: {error}"
    );
}

#[tokio::test]
async fn a_body_may_be_cut_too_large_or_something_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let cut = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            connection
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[1,")
                .await
                .unwrap();
        }
    });
    let hub = Server::start(|request| match request.uri().path() {
        "/promised" => answer(200, vec![b'1'; 101]),
        "/endless" => slow(Duration::ZERO, 1_000_000),
        "/other" => answer(200, "<html>"),
        _ => answer(200, "[1, 2]"),
    })
    .await;
    let net = Net::open(Settings::of_a_test(&hub.address()));
    let at = |path: &str| format!("{}{path}", hub.address());
    for (address, name) in [
        (cut, "ConnectionLost"),
        (at("/promised"), "TooLarge"),
        (at("/endless"), "TooLarge"),
        (at("/other"), "UnexpectedBody"),
    ] {
        let error = ask(&net, &address).await;
        assert!(format!("{error:?}").starts_with(name), "{address}: {error:?}");
    }
    let right = net
        .get(&at("/"), Purpose::Search)
        .send()
        .await
        .unwrap()
        .json_capped::<Vec<u8>>(6)
        .await;
    assert_eq!(right.unwrap(), [1, 2]);
    assert!(
        net.requests()
            .iter()
            .filter(|request| request.failure.is_some())
            .count()
            >= 3
    );
}

/// Asks in a process of its own, because a proxy is read from the process's environment.
#[test]
#[ignore = "run by `a_proxy_in_the_environment_is_used`"]
fn in_a_process_with_a_proxy() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let net = Net::open(Settings::of_a_test("http://hub.invalid"));
        let asked = net.get(&std::env::var("ASK").unwrap(), Purpose::Search).send().await;
        match asked {
            Ok(answer) => println!("\nanswer: {}", answer.text_capped(1000).await.unwrap()),
            Err(error) => println!("\nanswer: {error:?}"),
        }
    });
}

#[tokio::test]
async fn a_proxy_in_the_environment_is_used() {
    let direct = Server::start(|_| answer(200, "direct")).await;
    let proxy = Server::start(|request| answer(200, format!("through the proxy to {}", request.uri()))).await;
    let ask = |address: String, without: &'static str| {
        let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "in_a_process_with_a_proxy", "--ignored", "--nocapture"])
            .env("ASK", address)
            .env("HTTP_PROXY", proxy.address())
            .env("http_proxy", proxy.address())
            .env("NO_PROXY", without)
            .env("no_proxy", without);
        async move {
            let printed = String::from_utf8(command.output().await.unwrap().stdout).unwrap();
            let answer = printed.lines().find_map(|line| line.strip_prefix("answer: "));
            answer.expect(&printed).to_owned()
        }
    };
    let there = "http://hub.invalid/api?x=1".to_owned();
    assert_eq!(
        ask(there.clone(), "").await,
        "through the proxy to http://hub.invalid/api?x=1"
    );
    assert!(ask(there, "hub.invalid").await.starts_with("Dns"));
    // A proxy's loopback is another computer.
    assert_eq!(ask(direct.address(), "").await, "direct");
}
