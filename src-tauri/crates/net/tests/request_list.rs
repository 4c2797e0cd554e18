//! The list of requests counts every byte on the network.

#![allow(clippy::unwrap_used)]

mod server;

use std::time::Duration;

use axum::body::Body;
use axum::http::header::LOCATION;
use net::{Environment, Net, OutboundRequest, Purpose, Settings};
use protocol::Reason;
use server::{answer, slow, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn open(folder: &std::path::Path, endpoint: &str) -> Net {
    Net::open(Settings {
        folder: Some(folder.to_owned()),
        environment: Environment::of(&[("HF_ENDPOINT", endpoint), ("HF_TOKEN", "hf_secret")]),
        ..Settings::of_a_test("")
    })
}

#[tokio::test]
async fn the_bytes_are_those_on_the_wire() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let wire = tokio::spawn(async move {
        let mut sizes = Vec::new();
        for body in [0usize, 1, 70_000] {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                read.push(connection.read_u8().await.unwrap());
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {body}\r\nconnection: close\r\n\r\n");
            connection.write_all(head.as_bytes()).await.unwrap();
            connection.write_all(&vec![7; body]).await.unwrap();
            sizes.push((read.len() as u64, body as u64));
        }
        sizes
    });
    let folder = tempfile::tempdir().unwrap();
    let net = open(folder.path(), &address);
    for path in ["/", "/o/n/resolve/main/a%20b?x=1&y=%C3%BC", "/third"] {
        let asked = net
            .get(&format!("{address}{path}"), Purpose::Download)
            .range(5, None)
            .header("x-more", "some");
        asked.send().await.unwrap().bytes_capped(1 << 20).await.unwrap();
    }
    let listed: Vec<(u64, u64)> = net
        .requests()
        .iter()
        .map(|request| (request.sent, request.received))
        .collect();
    assert_eq!(listed, wire.await.unwrap());
    for request in net.requests() {
        assert_eq!(
            (request.method.as_str(), request.status, request.purpose),
            ("GET", Some(200), Purpose::Download)
        );
        assert!(request.over && request.failure.is_none() && address.ends_with(&request.host));
    }
}

#[tokio::test]
async fn each_hop_is_a_request_of_its_own_and_a_failure_says_why() {
    let cdn = Server::start(|_| answer(503, "busy")).await;
    let away = cdn.address();
    let hub = Server::start(move |_| {
        let mut response = answer(302, Body::empty());
        response.headers_mut().insert(LOCATION, away.parse().unwrap());
        response
    })
    .await;
    let net = Net::open(Settings::of_a_test(&hub.address()));
    net.head(&hub.address(), Purpose::Verify)
        .send()
        .await
        .unwrap()
        .error_for_status()
        .unwrap_err();
    let listed = net.requests();
    assert_eq!(
        listed.iter().map(|request| request.status).collect::<Vec<_>>(),
        [Some(302), Some(503)]
    );
    assert!(cdn.address().ends_with(&listed[1].host));
    let failure = listed[1].failure.as_ref().unwrap();
    assert_eq!(failure.reason, Some(Reason::ServerTrouble));
    assert_eq!(failure.arguments["status"], 503u16.into());
    assert!(listed.iter().all(|request| request.over && request.method == "HEAD"));
}

async fn until(mut done: impl FnMut() -> bool) {
    tokio::time::timeout(Duration::from_secs(120), async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("it comes about");
}

#[tokio::test]
async fn what_is_on_its_way_is_on_disk_already_and_another_process_sees_it() {
    let hub = Server::start(|_| slow(Duration::from_millis(10), 10_000)).await;
    let folder = tempfile::tempdir().unwrap();
    let (net, other) = (open(folder.path(), &hub.address()), open(folder.path(), &hub.address()));
    let mut changes = net.watch_requests();
    changes.borrow_and_update();
    let mut answer = net.get(&hub.address(), Purpose::Download).send().await.unwrap();
    assert!(changes.has_changed().unwrap());
    let mut received = 0;
    while received < 5_000 {
        received += answer.chunk().await.unwrap().unwrap().len() as u64;
    }
    let on_disk = || -> Vec<OutboundRequest> {
        let text = std::fs::read_to_string(folder.path().join("requests.jsonl")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    };
    until(|| {
        on_disk()
            .iter()
            .any(|request| request.received >= 5_000 && !request.over)
    })
    .await;
    assert_eq!(other.requests().last().unwrap().received, received);
    drop(answer);
    until(|| other.requests().last().is_some_and(|request| request.over)).await;
    let text = std::fs::read_to_string(folder.path().join("requests.jsonl")).unwrap();
    assert!(!text.contains("hf_secret"));
    // A line that a crash tore hides none of the others.
    std::fs::write(folder.path().join("requests.jsonl"), format!("{text}{{\"number\": 12")).unwrap();
    assert_eq!(open(folder.path(), &hub.address()).requests().len(), 1);
}

#[tokio::test]
async fn the_last_thousand_are_kept_over_a_restart() {
    let hub = Server::start(|_| answer(200, "x")).await;
    let folder = tempfile::tempdir().unwrap();
    let net = open(folder.path(), &hub.address());
    for number in 0..1100 {
        let asked = net.get(&format!("{}/{number}", hub.address()), Purpose::Search);
        asked.send().await.unwrap().text_capped(10).await.unwrap();
    }
    let before = net.requests();
    assert_eq!(before.len(), 1000);
    assert!(before.windows(2).all(|pair| pair[0].number < pair[1].number));
    drop(net);
    assert_eq!(open(folder.path(), &hub.address()).requests(), before);
}
