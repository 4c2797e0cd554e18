//! Signing in to a server, in a browser that is a test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{ToolClient, ToolServerState, ToolSetup};
use net::{Keychain, MemoryKeychain, Purpose};
use protocol::ToolRef;
use tempfile::TempDir;
use tools::host::Tools;
use tools::oauth::Browser;

use super::oauth_server::OauthServer;
use crate::host::open;
use crate::net;

/// A host with one server at an address.
struct Host {
    folder: TempDir,
    keychain: Arc<MemoryKeychain>,
    tools: Tools,
    id: String,
    /// The pages that were opened.
    opened: Arc<Mutex<Vec<String>>>,
}

impl Host {
    async fn of(address: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keychain = Arc::new(MemoryKeychain::default());
        let tools = open(folder.path(), keychain.clone(), false);
        let setup = ToolSetup {
            name: String::new(),
            command: address.to_owned(),
            parts: Vec::new(),
        };
        let id = tools.add(setup).await.unwrap();
        tools.switch_on(&id, address).unwrap();
        Self {
            folder,
            keychain,
            tools,
            id,
            opened: Arc::default(),
        }
    }

    /// A browser in which somebody agrees to everything.
    fn browser(&self) -> Browser {
        let opened = self.opened.clone();
        Browser {
            open: Box::new(move |page| {
                opened.lock().unwrap().push(page.clone());
                tokio::spawn(visit(page));
                Box::pin(async { true })
            }),
            done: "done".into(),
            refused: "refused".into(),
        }
    }

    async fn sign_in(&self) -> tools::error::Result<bool> {
        self.tools.sign_in(&self.id, None, self.browser()).await
    }

    async fn state(&self) -> ToolServerState {
        self.tools.view().await.unwrap().servers[1].state.clone()
    }

    async fn call(&self, tool: &str) -> String {
        let of = ToolRef {
            server: self.id.clone(),
            tool: tool.into(),
        };
        super::allowed_call(&self.tools, of).await
    }

    fn kept(&self) -> Option<String> {
        self.keychain.get(&format!("tool-sign-in/{}", self.id)).unwrap()
    }
}

/// Follows a page to this computer; the status and the text there.
async fn visit(page: String) -> (u16, String) {
    let net = net();
    let sent_on = net
        .get(&page, Purpose::ToolServer)
        .return_redirects()
        .send()
        .await
        .unwrap();
    let back = sent_on.header("location").unwrap().to_owned();
    let there = net.get(&back, Purpose::ToolServer).send().await.unwrap();
    (there.status(), there.text_capped(1 << 16).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_signs_in_and_out_and_nothing_begins_before() {
    let server = OauthServer::start("good").await;
    let host = Host::of(&server.address).await;
    let refused = host.tools.start(&host.id).await.unwrap_err().to_string();
    assert!(refused.contains("sign-in"), "{refused}");
    assert_eq!(host.state().await, ToolServerState::NeedsSignIn);
    // Nobody was asked anything yet but the server itself.
    assert!(host.opened.lock().unwrap().is_empty() && server.asked("/register").is_empty());
    assert!(server.asked("/.well-known/oauth-protected-resource/mcp").is_empty());
    assert!(host.sign_in().await.unwrap());
    assert_eq!(host.state().await, ToolServerState::Ready);
    assert_eq!(host.call("read").await, "read");
    let registered = server.asked("/register").remove(0).body;
    assert_eq!(registered["client_name"], "Ponder");
    assert_eq!(registered["application_type"], "native");
    let page = host.opened.lock().unwrap()[0].clone();
    assert!(page.contains("scope=read&") || page.ends_with("scope=read"), "{page}");
    // Tokens are in the keychain alone.
    assert!(host.kept().unwrap().contains("token-1"));
    let file = std::fs::read_to_string(host.folder.path().join("tools.json")).unwrap();
    assert!(
        !file.contains("token-1") && file.contains("\"signed_in\": true"),
        "{file}"
    );
    assert!(host.tools.view().await.unwrap().servers[1].signed_in);
    host.tools.sign_out(&host.id).await.unwrap();
    assert_eq!(host.kept(), None);
    host.tools.start(&host.id).await.unwrap_err();
    let view = host.tools.view().await.unwrap();
    assert_eq!(
        (view.servers[1].signed_in, &view.servers[1].state),
        (false, &ToolServerState::NeedsSignIn)
    );
    // A server that is removed leaves nothing.
    host.sign_in().await.unwrap();
    host.tools.remove(&host.id).await.unwrap();
    assert_eq!(host.kept(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_way_to_go_wrong_keeps_nothing_and_says_why() {
    for (way, said) in [
        ("wrong iss", "other.example"),
        ("no iss", "nobody by name"),
        ("other issuer", "other.example"),
        ("issuer in the clear", "not encrypted"),
        ("issuer in the network", ""),
        ("another resource", "resource"),
        ("token in the clear", "not encrypted"),
        ("page in the clear", "not encrypted"),
        ("page of a program", "not encrypted"),
        ("no proof", "S256"),
        ("refuses registration", "friends only"),
        ("no registration", "client id"),
        ("denied", "access_denied"),
        ("no token", "gave no permission"),
        ("no metadata", ""),
    ] {
        let server = OauthServer::start(way).await;
        let host = Host::of(&server.address).await;
        let _ = host.tools.start(&host.id).await;
        let error = host.sign_in().await.unwrap_err();
        println!("report: sign-in: {way}: {error}");
        assert!(error.to_string().contains(said), "{way}: {error}");
        assert_eq!(host.kept(), None, "{way}");
        assert_eq!(host.state().await, ToolServerState::NeedsSignIn, "{way}");
        let wants_client = protocol::Error::from(error).reason == Some(protocol::Reason::ToolsNotRegistered);
        let unregistered = matches!(way, "refuses registration" | "no registration" | "no metadata");
        assert_eq!(wants_client, unregistered, "{way}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_with_another_state_is_turned_away_and_the_waiting_goes_on() {
    let server = OauthServer::start("wrong state").await;
    let host = Host::of(&server.address).await;
    let (tell, told) = tokio::sync::oneshot::channel();
    let browser = Browser {
        open: Box::new(move |page| {
            tokio::spawn(async move { tell.send(visit(page).await) });
            Box::pin(async { true })
        }),
        ..host.browser()
    };
    let signing_in = host.tools.sign_in(&host.id, None, browser);
    let watched = tokio::time::timeout(Duration::from_secs(3), signing_in).await;
    assert!(watched.is_err(), "it goes on waiting");
    assert_eq!(told.await.unwrap().0, 404);
    assert_eq!(host.kept(), None);
    assert!(server.asked("/token").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_ended_or_was_refused_is_renewed_and_a_revoked_one_asks_anew() {
    let server = OauthServer::start("short").await;
    let host = Host::of(&server.address).await;
    host.sign_in().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(host.call("read").await, "read");
    assert!(!host.kept().unwrap().contains("refresh-1"));
    // In the middle of a session, without a word before.
    let server = OauthServer::start("good").await;
    let host = Host::of(&server.address).await;
    host.sign_in().await.unwrap();
    assert_eq!(host.call("read").await, "read");
    server.forget_tokens();
    assert_eq!(host.call("read").await, "read");
    assert!(host.kept().unwrap().contains("token-2"));
    server.revoke();
    let refused = host.call("read").await;
    assert!(
        refused.contains("sign in") && refused.contains("nothing was done"),
        "{refused}"
    );
    assert_eq!(host.state().await, ToolServerState::NeedsSignIn);
    assert!(!host.kept().unwrap().contains("token-2"));
    // Ponder is known there already.
    host.sign_in().await.unwrap();
    assert_eq!(host.call("read").await, "read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_wants_more_permission_is_refused_until_somebody_gives_it() {
    let server = OauthServer::start("good").await;
    let host = Host::of(&server.address).await;
    host.tools.start(&host.id).await.unwrap_err();
    host.sign_in().await.unwrap();
    let refused = host.call("write").await;
    assert!(
        refused.contains("permission") && refused.contains("nothing was done"),
        "{refused}"
    );
    assert_eq!(host.state().await, ToolServerState::NeedsSignIn);
    // Other calls go on.
    assert_eq!(host.call("read").await, "read");
    host.sign_in().await.unwrap();
    assert_eq!(host.call("write").await, "write");
    assert_eq!(host.call("read").await, "read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_a_registration_and_a_client_of_the_person_are_used() {
    let server = OauthServer::start("secret").await;
    let host = Host::of(&server.address).await;
    host.sign_in().await.unwrap();
    server.forget_tokens();
    // The one that renews knows the secret, too.
    assert_eq!(host.call("read").await, "read");
    let server = OauthServer::start("no registration").await;
    let host = Host::of(&server.address).await;
    let client = ToolClient {
        id: " mine ".into(),
        secret: String::new(),
    };
    assert!(!format!("{client:?}").contains("secret:"));
    host.tools
        .sign_in(&host.id, Some(client), host.browser())
        .await
        .unwrap();
    let page = host.opened.lock().unwrap()[0].clone();
    assert!(page.contains("client_id=mine&"), "{page}");
    // It is known when the person signs in again.
    server.revoke();
    host.call("read").await;
    host.sign_in().await.unwrap();
    assert_eq!(host.call("read").await, "read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_goes_to_the_address_that_it_was_given_for() {
    let server = OauthServer::start("good").await;
    let host = Host::of(&server.address).await;
    host.sign_in().await.unwrap();
    // Somebody writes another address into the file.
    let other = OauthServer::start("good").await;
    let file = host.folder.path().join("tools.json");
    let changed = std::fs::read_to_string(&file)
        .unwrap()
        .replace(&server.address, &other.address);
    std::fs::write(&file, changed).unwrap();
    host.tools.start(&host.id).await.unwrap_err();
    let sent = other.asked("/mcp");
    assert!(!sent.is_empty() && sent.iter().all(|asked| asked.header("authorization").is_none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn somebody_who_does_not_want_the_page_or_begins_anew_ends_a_sign_in() {
    let server = OauthServer::start("good").await;
    let host = Host::of(&server.address).await;
    let declined = Browser {
        open: Box::new(|_| Box::pin(async { false })),
        ..host.browser()
    };
    assert!(!host.tools.sign_in(&host.id, None, declined).await.unwrap());
    let (tell, told) = tokio::sync::oneshot::channel();
    let forgotten = Browser {
        open: Box::new(|page| {
            let _ = tell.send(page);
            Box::pin(async { true })
        }),
        ..host.browser()
    };
    let (tools, id) = (host.tools.clone(), host.id.clone());
    let first = tokio::spawn(async move { tools.sign_in(&id, None, forgotten).await });
    told.await.unwrap();
    assert!(host.sign_in().await.unwrap());
    assert!(!first.await.unwrap().unwrap());
    assert_eq!(host.call("read").await, "read");
    // Without a keychain nobody is signed in.
    let absent = Arc::new(MemoryKeychain::absent());
    let tools = open(host.folder.path(), absent, false);
    let error = tools.sign_in(&host.id, None, host.browser()).await.unwrap_err();
    assert!(error.to_string().contains("keychain"), "{error}");
}
