//! Requests to a server of tools: it is the one that the user set, and nothing leads away from it.

#![allow(clippy::unwrap_used)]

mod server;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use axum::http::Response;
use net::{Environment, Error, Net, Purpose, Settings};
use server::{answer, Server};

/// A client whose hub is the server itself, so that a token sent by mistake would be seen.
fn client(address: &str) -> Net {
    Net::open(Settings {
        environment: Environment::of(&[("HF_ENDPOINT", address), ("HF_TOKEN", "hf_aTokenForTheHubAlone")]),
        ..Settings::of_a_test(address)
    })
}

fn sent_on(status: u16, to: &str) -> Response<Body> {
    let mut response = answer(status, "");
    response.headers_mut().insert(LOCATION, to.parse().unwrap());
    response
}

#[tokio::test]
async fn a_server_of_tools_gets_what_was_meant_for_it_and_no_token_of_the_hub() {
    let server = Server::start(|_| answer(200, "")).await;
    let net = client(&server.address());
    let at = |path: &str| format!("{}{path}", server.address());
    let posted = net
        .post(&at("/token"), Purpose::ToolServer)
        .authorization("Basic YTpi")
        .body("application/x-www-form-urlencoded", "a=b")
        .send();
    posted.await.unwrap();
    net.delete(&at("/mcp"), Purpose::ToolServer).send().await.unwrap();
    let [posted, deleted] = server.requests().try_into().unwrap();
    assert_eq!(posted.headers()[AUTHORIZATION], "Basic YTpi");
    assert_eq!(posted.headers()[CONTENT_TYPE], "application/x-www-form-urlencoded");
    assert_eq!(&posted.body()[..], b"a=b");
    assert_eq!(deleted.method(), "DELETE");
    assert!(!deleted.headers().contains_key(AUTHORIZATION));
    let listed = net.requests();
    assert!(listed.iter().all(|request| request.purpose == Purpose::ToolServer));
    assert_eq!(listed[1].method, "DELETE");
    for value in ["", "a\nb"] {
        let refused = net.get(&at("/"), Purpose::ToolServer).authorization(value).send().await;
        assert_eq!(refused.unwrap_err(), Error::BadKey);
    }
}

#[tokio::test]
async fn no_redirect_leads_away_from_a_server_of_tools_and_each_can_be_returned() {
    let other = Server::start(|_| answer(200, "mine now")).await;
    let away = other.address();
    let server = Server::start(move |request| match request.uri().path() {
        "/away" => sent_on(307, &away),
        "/moved" => sent_on(308, "/here"),
        _ => answer(200, "here"),
    })
    .await;
    let net = client(&server.address());
    let at = |path: &str| net.get(&format!("{}{path}", server.address()), Purpose::ToolServer);
    let error = at("/away").send().await.unwrap_err();
    assert!(matches!(error, Error::Redirect { .. }), "{error}");
    assert_eq!(
        at("/moved").send().await.unwrap().text_capped(10).await.unwrap(),
        "here"
    );
    for path in ["/away", "/moved"] {
        let returned = at(path).return_redirects().send().await.unwrap();
        assert!(returned.header("location").is_some() && returned.status() >= 307);
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn tools_of_this_computer_work_offline_and_others_do_not() {
    let server = Server::start(|_| answer(200, "")).await;
    let net = client(&server.address());
    net.set_offline(true).unwrap();
    let asked = net.get(&server.address(), Purpose::ToolServer).send().await;
    assert_eq!(asked.unwrap().status(), 200);
    for elsewhere in ["http://192.0.2.1/mcp", "https://no-such-name.invalid/mcp"] {
        let error = net.get(elsewhere, Purpose::ToolServer).send().await.unwrap_err();
        assert_eq!(error, Error::Offline { forced: false }, "{elsewhere}");
    }
}
