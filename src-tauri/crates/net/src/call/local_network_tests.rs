//! Names that lead into this computer's network, against real servers on loopback.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;
use std::sync::Arc;

use api::Purpose;
use axum::http::header::LOCATION;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::Router;
use futures::FutureExt;
use tokio::net::TcpListener;

use crate::connections::Connections;
use crate::credentials::MemoryKeychain;
use crate::endpoint::Place;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::offline::{Found, Names};
use crate::RequestBuilder;

/// Names whose place is their top-level domain. All are on this computer, which the client is not told.
fn connections(hub: Option<&str>) -> Arc<Connections> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let variables = hub.map(|hub| ("HF_ENDPOINT", hub));
    let environment = Environment::of(variables.as_slice());
    let mut connections = Connections::open(None, environment, Arc::new(MemoryKeychain::default()));
    connections.names = Arc::new(Names::looked_up(|name| {
        let found = |place| Found {
            number: Ipv4Addr::LOCALHOST.into(),
            place,
        };
        let place = match name.rsplit('.').next() {
            Some("internet") => Place::Internet,
            Some("network") => Place::Network,
            _ => Place::ThisComputer,
        };
        async move { Ok(vec![found(place)]) }.boxed()
    }));
    Arc::new(connections)
}

/// A server that redirects `/to/ADDRESS`, and else says hello.
async fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(|uri: axum::http::Uri| async move {
        match uri.path().strip_prefix("/to/") {
            Some(address) => (StatusCode::FOUND, [(LOCATION, address.to_owned())]).into_response(),
            None => "hello".into_response(),
        }
    });
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    port
}

async fn ask(net: &Arc<Connections>, purpose: Purpose, address: &str) -> Result<u16> {
    let request = RequestBuilder::new(Arc::clone(net), reqwest::Method::GET, address, purpose);
    Ok(request.send().await?.status())
}

#[tokio::test]
async fn only_an_address_that_the_user_set_may_lead_into_this_network() {
    let port = server().await;
    for (name, allowed) in [
        ("cdn.internet", true),
        ("printer.network", false),
        ("rebound.here", false),
    ] {
        let address = format!("http://{name}:{port}/");
        let net = connections(None);
        let asked = ask(&net, Purpose::AppUpdate, &address).await;
        let refused = Error::LocalNetwork {
            host: format!("{name}:{port}"),
        };
        assert_eq!(asked, if allowed { Ok(200) } else { Err(refused) }, "{name}");
        assert_eq!(
            ask(&net, Purpose::Inference, &address).await,
            Ok(200),
            "an endpoint: {name}"
        );
        let mirror = connections(Some(&address));
        assert_eq!(
            ask(&mirror, Purpose::Search, &address).await,
            Ok(200),
            "a mirror: {name}"
        );
        // A connection that an endpoint may use is not used for others.
        assert_eq!(ask(&net, Purpose::AppUpdate, &address).await.is_ok(), allowed, "{name}");
    }
    let net = connections(None);
    for number in ["192.168.1.1", "[fe80::1]", "0.0.0.0"] {
        let asked = ask(&net, Purpose::AppUpdate, &format!("http://{number}:{port}/")).await;
        assert!(matches!(asked, Err(Error::LocalNetwork { .. })), "{number}: {asked:?}");
    }
}

#[tokio::test]
async fn a_redirect_leads_no_nearer_than_the_server_that_sent_it() {
    let port = server().await;
    for (from, to, allowed) in [
        ("hub.internet", "cdn.internet", true),
        ("hub.internet", "printer.network", false),
        ("hub.internet", "rebound.here", false),
        ("hub.internet", "192.168.1.1", false),
        ("mirror.network", "cdn.internet", true),
        ("mirror.network", "cdn.network", true),
        ("mirror.network", "rebound.here", false),
        ("mirror.network", "localhost", false),
        ("mirror.here", "cdn.here", true),
        ("127.0.0.1", "cdn.network", true),
    ] {
        let hub = format!("http://{from}:{port}");
        let net = connections(Some(&hub));
        let asked = ask(&net, Purpose::Download, &format!("{hub}/to/http://{to}:{port}/")).await;
        match asked {
            Ok(200) => assert!(allowed, "{from} to {to}"),
            Err(Error::Redirect { host, reason }) => {
                assert!(!allowed && reason.contains("computer"), "{from} to {to}: {reason}");
                assert_eq!(host, format!("{from}:{port}"));
            }
            other => panic!("{from} to {to}: {other:?}"),
        }
    }
    // The way there does not matter: what the last server may do counts.
    let hub = format!("http://mirror.network:{port}");
    let there = format!("http://cdn.internet:{port}/to/http://printer.network:{port}/");
    let asked = ask(
        &connections(Some(&hub)),
        Purpose::Download,
        &format!("{hub}/to/{there}"),
    )
    .await;
    assert!(matches!(asked, Err(Error::Redirect { .. })), "{asked:?}");
}

#[tokio::test]
async fn an_address_that_a_server_named_leads_no_nearer_than_that_server() {
    let port = server().await;
    for (by, to, allowed) in [
        ("tools.internet", "sign-in.internet", true),
        ("tools.internet", "printer.network", false),
        ("tools.internet", "rebound.here", false),
        ("tools.internet", "127.0.0.1", false),
        ("tools.internet", "169.254.169.254", false),
        ("tools.network", "sign-in.network", true),
        ("tools.network", "rebound.here", false),
        ("127.0.0.1", "127.0.0.1", true),
    ] {
        let net = connections(None);
        let server = format!("http://{by}:{port}/");
        assert_eq!(ask(&net, Purpose::ToolServer, &server).await, Ok(200), "{by}");
        let address = format!("http://{to}:{port}/");
        let request = RequestBuilder::new(Arc::clone(&net), reqwest::Method::GET, &address, Purpose::ToolServer);
        let asked = request.named_by(&server).send().await;
        match asked {
            Ok(answer) => assert!(allowed && answer.status() == 200, "{by} names {to}"),
            Err(error) => assert!(
                !allowed && matches!(error, Error::Redirect { .. }),
                "{by} names {to}: {error}"
            ),
        }
    }
}

#[tokio::test]
async fn a_page_leads_to_the_internet_alone_and_a_search_where_the_user_set_it() {
    let port = server().await;
    for (name, allowed) in [
        ("cdn.internet", true),
        ("printer.network", false),
        ("rebound.here", false),
        ("127.0.0.1", false),
        ("localhost", false),
    ] {
        let address = format!("http://{name}:{port}/");
        // Not even to the mirror that the user set.
        for hub in [None, Some(address.as_str()), Some("no hub at all")] {
            let net = connections(hub);
            let asked = ask(&net, Purpose::WebPage, &address).await;
            assert_eq!(asked.is_ok(), allowed, "{name}: {asked:?}");
            assert_eq!(ask(&net, Purpose::WebSearch, &address).await, Ok(200), "{name}");
        }
    }
    let there = format!("http://cdn.internet:{port}/to/http://printer.network:{port}/");
    let asked = ask(&connections(None), Purpose::WebPage, &there).await;
    assert!(matches!(asked, Err(Error::Redirect { .. })), "{asked:?}");
}
