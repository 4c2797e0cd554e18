//! The client against real servers on loopback.

#![allow(clippy::unwrap_used)]

mod server;

use std::time::Duration;

use api::TokenSource;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, IF_RANGE, LINK, LOCATION, RANGE};
use axum::http::Response;
use net::{Environment, Error, Keychain, MemoryKeychain, Net, Purpose, Settings};
use protocol::ErrorCode;
use server::{answer, slow, Server};

const TOKEN: &str = "hf_aSecretThatNobodyElseMaySee";

fn with_token(endpoint: &str) -> Net {
    Net::open(Settings {
        environment: Environment::of(&[("HF_ENDPOINT", endpoint), ("HF_TOKEN", TOKEN)]),
        ..Settings::of_a_test(endpoint)
    })
}

fn sent_on(to: &str) -> Response<Body> {
    let mut response = answer(302, "");
    response.headers_mut().insert(LOCATION, to.parse().unwrap());
    response
        .headers_mut()
        .insert("x-linked-etag", "\"hub\"".parse().unwrap());
    response
}

#[tokio::test]
async fn the_token_goes_to_the_hub_and_not_to_where_it_sends_us() {
    let cdn = Server::start(|_| {
        let mut response = answer(206, "bytes");
        response
            .headers_mut()
            .insert("x-linked-etag", "\"cdn\"".parse().unwrap());
        response
    })
    .await;
    let away = format!("{}/large?sig=1", cdn.address());
    let hub = Server::start(move |request| match request.uri().path() {
        "/o/n/resolve/main/model" => sent_on("/o/renamed/model"),
        _ => sent_on(&away),
    })
    .await;
    let net = with_token(&hub.address());
    let address = net.endpoint().at(&["o", "n", "resolve", "main", "model"]);
    let asked = || net.get(&address, Purpose::Download).range(3, Some(7)).if_range("abc");
    let answer = asked().send().await.unwrap().error_for_status().unwrap();
    assert_eq!(answer.status(), 206);
    assert_eq!(
        (answer.header("x-linked-etag"), answer.hub_header("x-linked-etag")),
        (Some("\"cdn\""), Some("\"hub\""))
    );
    assert_eq!(answer.text_capped(100).await.unwrap(), "bytes");

    let bearer = format!("Bearer {TOKEN}");
    for request in hub.requests() {
        assert_eq!(request.headers()[AUTHORIZATION], bearer.as_str());
    }
    let there = cdn.requests();
    assert_eq!((hub.requests().len(), there.len()), (2, 1));
    assert!(there[0].headers().get(AUTHORIZATION).is_none());
    assert_eq!(there[0].headers()[RANGE], "bytes=3-7");
    assert_eq!(there[0].headers()[IF_RANGE], "\"abc\"");

    let stayed = asked().stay_on_hub().send().await.unwrap();
    assert_eq!(
        (stayed.status(), stayed.hub_header("x-linked-etag")),
        (302, Some("\"hub\""))
    );
    assert_eq!(cdn.requests().len(), 1, "it was not followed off the hub");

    let listed = serde_json::to_string(&net.requests()).unwrap();
    assert!(!listed.contains("hf_") && !listed.contains("sig="), "{listed}");
    assert!(!format!("{net:?}").contains("hf_"));
}

#[tokio::test]
async fn redirects_end_somewhere() {
    let hub = Server::start(|_| sent_on("/again")).await;
    let net = Net::open(Settings::of_a_test(&hub.address()));
    let error = net.get(&hub.address(), Purpose::Search).send().await.unwrap_err();
    assert!(matches!(error, Error::Redirect { .. }), "{error}");
    assert_eq!(hub.requests().len(), 11);
    let hub = Server::start(|_| sent_on("file:///etc/passwd")).await;
    let net = Net::open(Settings::of_a_test(&hub.address()));
    let error = net.get(&hub.address(), Purpose::Search).send().await.unwrap_err();
    assert!(matches!(error, Error::Redirect { .. }), "{error}");
}

#[tokio::test]
async fn a_mirror_may_have_a_path_in_front() {
    let mirror = Server::start(|request| {
        let mut response = answer(200, request.uri().path().to_owned());
        response
            .headers_mut()
            .insert(LINK, "<https://elsewhere/?cursor=x>; rel=\"next\"".parse().unwrap());
        response
    })
    .await;
    let net = Net::open(Settings::of_a_test(&format!("{}/hf/", mirror.address())));
    let address = net.endpoint().at(&["api", "models", "o", "a b"]);
    let answer = net.get(&address, Purpose::ModelInfo).send().await.unwrap();
    assert_eq!(answer.text_capped(100).await.unwrap(), "/hf/api/models/o/a%20b");
}

#[tokio::test]
async fn offline_opens_no_connection_and_asks_for_no_name() {
    let hub = Server::start(|_| answer(200, "hello")).await;
    let folder = tempfile::tempdir().unwrap();
    let open = |offline: &str| {
        Net::open(Settings {
            folder: Some(folder.path().to_owned()),
            environment: Environment::of(&[("HF_ENDPOINT", &hub.address()), ("HF_HUB_OFFLINE", offline)]),
            ..Settings::of_a_test("")
        })
    };
    let net = open("");
    assert!(net.get(&hub.address(), Purpose::Search).send().await.is_ok());
    let mut told = net.watch_offline();
    net.set_offline(true).unwrap();
    assert!(*told.borrow_and_update());
    for address in [hub.address(), "http://no-such-name.invalid/".into()] {
        let error = net.get(&address, Purpose::Search).send().await.unwrap_err();
        assert_eq!(error, Error::Offline { forced: false });
    }
    assert!(open("").is_offline(), "it is kept");
    net.set_offline(false).unwrap();
    assert!(!open("").is_offline());
    assert!(net.get(&hub.address(), Purpose::Search).send().await.is_ok());

    let forced = open("true");
    assert!(forced.is_offline() && forced.settings().await.forced_by_env);
    forced.set_offline(false).unwrap();
    let error = forced.get(&hub.address(), Purpose::Search).send().await.unwrap_err();
    assert_eq!(error, Error::Offline { forced: true });
    assert_eq!(hub.requests().len(), 2);
    let refused: Vec<_> = net
        .requests()
        .into_iter()
        .filter(|request| request.failure.is_some())
        .collect();
    assert!(
        refused.len() >= 2
            && refused
                .iter()
                .all(|request| request.sent == 0 && request.status.is_none())
    );

    std::fs::write(folder.path().join("network.json"), "nonsense").unwrap();
    assert!(open("").is_offline(), "what cannot be understood is the safe side");
}

#[tokio::test]
async fn what_runs_ends_when_the_switch_is_thrown_here_or_in_another_process() {
    let hub = Server::start(|request| match request.uri().path() {
        "/silent" => slow(Duration::from_secs(60), 0),
        _ => slow(Duration::from_millis(20), 100_000),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        Net::open(Settings {
            folder: Some(folder.path().to_owned()),
            ..Settings::of_a_test(&hub.address())
        })
    };
    let (net, other) = (open(), open());
    for thrower in [&net, &other] {
        let mut answer = net.get(&hub.address(), Purpose::Download).send().await.unwrap();
        assert!(answer.chunk().await.unwrap().is_some());
        let silent = tokio::spawn(net.get(&format!("{}/silent", hub.address()), Purpose::Download).send());
        tokio::time::sleep(Duration::from_millis(50)).await;
        thrower.set_offline(true).unwrap();
        let error = loop {
            match answer.chunk().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the body ended"),
                Err(error) => break error,
            }
        };
        assert_eq!(error, Error::Offline { forced: false });
        let silent = match silent.await.unwrap() {
            Ok(mut answer) => answer.chunk().await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(silent, Error::Offline { forced: false });
        thrower.set_offline(false).unwrap();
        // The other one looks at the folder twice a second.
        tokio::time::timeout(Duration::from_secs(120), async {
            while net.is_offline() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .unwrap();
    }
}

async fn source(environment: &[(&str, &str)], keychain: MemoryKeychain) -> TokenSource {
    let net = Net::open(Settings {
        environment: Environment::of(environment),
        keychain: std::sync::Arc::new(keychain),
        folder: None,
    });
    net.settings().await.token
}

fn keychain() -> MemoryKeychain {
    let keychain = MemoryKeychain::default();
    keychain.set("https://huggingface.co", TOKEN).unwrap();
    keychain
}

#[tokio::test]
async fn the_environment_goes_before_the_keychain_and_that_before_a_file() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join(".cache/huggingface")).unwrap();
    std::fs::write(home.path().join(".cache/huggingface/token"), "hf_file\n").unwrap();
    let home = home.path().to_str().unwrap();
    let path = format!("{home}/.cache/huggingface/token");
    assert_eq!(
        source(&[("HOME", home), ("HF_TOKEN", "hf_x")], keychain()).await,
        TokenSource::Environment
    );
    assert_eq!(
        source(&[("HOME", home), ("HF_TOKEN_PATH", &path)], keychain()).await,
        TokenSource::File
    );
    assert_eq!(source(&[("HOME", home)], keychain()).await, TokenSource::Keychain);
    assert_eq!(
        source(&[("HOME", home)], MemoryKeychain::default()).await,
        TokenSource::File
    );
    assert_eq!(
        source(&[("HOME", home)], MemoryKeychain::absent()).await,
        TokenSource::File
    );
    assert_eq!(
        source(
            &[("HF_HOME", &format!("{home}/.cache/huggingface"))],
            MemoryKeychain::absent()
        )
        .await,
        TokenSource::File
    );
    assert_eq!(source(&[], MemoryKeychain::default()).await, TokenSource::None);
    // A token for the public hub is none for a mirror.
    assert_eq!(
        source(&[("HF_ENDPOINT", "https://mirror.example")], keychain()).await,
        TokenSource::None
    );
}

#[tokio::test]
async fn a_token_is_kept_forgotten_and_refused() {
    let hub = Server::start(|_| answer(200, "hello")).await;
    let net = Net::open(Settings::of_a_test(&hub.address()));
    let ask = || async { net.get(&hub.address(), Purpose::Search).send().await.unwrap() };
    ask().await;
    for bad in ["", "two words", "line\nbreak", "grün"] {
        assert_eq!(net.set_token(bad).await, Err(Error::BadToken));
    }
    net.set_token(&format!("  {TOKEN}\n")).await.unwrap();
    assert_eq!(net.settings().await.token, TokenSource::Keychain);
    ask().await;
    net.forget_token().await.unwrap();
    assert_eq!(net.settings().await.token, TokenSource::None);
    ask().await;
    let tokens: Vec<_> = hub
        .requests()
        .iter()
        .map(|request| request.headers().contains_key(AUTHORIZATION))
        .collect();
    assert_eq!(tokens, [false, true, false]);

    let without = Net::open(Settings {
        keychain: std::sync::Arc::new(MemoryKeychain::absent()),
        ..Settings::of_a_test(&hub.address())
    });
    let error = without.set_token(TOKEN).await.unwrap_err();
    assert!(
        error.to_string().contains("HF_TOKEN") && !error.to_string().contains(TOKEN),
        "{error}"
    );
    let problem = without.settings().await.keychain_problem.unwrap();
    assert_eq!((problem.code, &problem), (ErrorCode::Keychain, &error.into()));
    assert_eq!(problem.arguments["variable"], "HF_TOKEN".into());
    without.get(&hub.address(), Purpose::Search).send().await.unwrap();
}
