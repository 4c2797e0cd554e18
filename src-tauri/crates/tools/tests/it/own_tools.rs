//! Ponder's own tools by way of a host: switches, consent for a host, and what strangers' words change.

use std::sync::Arc;

use api::{
    CallApproval, ConsentExtent, ConsentReason, FileText, HistoryHits, HistoryQuery, SearchProvider, WebSearchSetup,
};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use futures::FutureExt;
use net::{MemoryKeychain, Net};
use protocol::{
    CallEnd, CallOrigin, CallRequest, CallResult, Error, ErrorCode, ReadingCost, Result, StoreStart, ToolCall, ToolRef,
    Toolbox,
};
use serde_json::{json, Value};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tools::builtin::{AttachedFile, ChatSource, NoChats};
use tools::host::Tools;

use crate::guard;
use crate::host::{approval, text, waiting};
use crate::pages::{net, serve};

struct Own {
    _folder: TempDir,
    net: Net,
    port: u16,
    tools: Tools,
}

fn page(path: &str) -> Response {
    match path {
        "/other-host" => (axum::http::StatusCode::FOUND, [("location", "http://other.test/")]).into_response(),
        path => ([("content-type", "text/plain")], format!("text of {path}")).into_response(),
    }
}

/// Chats of which one has documents.
struct Documents;

impl ChatSource for Documents {
    fn search(&self, _query: HistoryQuery) -> BoxFuture<'_, Result<HistoryHits>> {
        async { Ok(HistoryHits::default()) }.boxed()
    }

    fn files(&self, _chat: String) -> BoxFuture<'_, Result<Vec<AttachedFile>>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn text(&self, _chat: String, _attachment: String) -> BoxFuture<'_, Result<FileText>> {
        async { Err(Error::new(ErrorCode::NotFound, "there are no files here")) }.boxed()
    }

    fn reading_cost(&self, chat: String) -> BoxFuture<'_, Result<ReadingCost>> {
        async move {
            match chat.as_str() {
                "chat" => Ok(COST),
                _ => Err(Error::new(ErrorCode::NotFound, "this chat has no documents")),
            }
        }
        .boxed()
    }
}

const COST: ReadingCost = ReadingCost {
    passages: 212,
    parts: 14,
    tokens: 46_000,
    note_tokens: 5_600,
    seconds: Some(130),
};

impl Own {
    async fn new() -> Self {
        Self::with(NoChats).await
    }

    async fn with(chats: impl ChatSource + 'static) -> Self {
        let (port, _) = serve(page).await;
        let (folder, net) = (tempfile::tempdir().unwrap(), net(port));
        let keychain = Arc::new(MemoryKeychain::default());
        let tools = Tools::open(folder.path(), net.clone(), keychain, Arc::new(chats), guard(), true);
        tools.switch_own_tool("fetch_page", true).unwrap();
        Self {
            _folder: folder,
            net,
            port,
            tools,
        }
    }

    fn at(&self, host: &str, path: &str) -> Value {
        json!({ "url": format!("http://{host}:{}/{path}", self.port) })
    }

    fn call(&self, id: &str, tool: &str, arguments: Value) -> (JoinHandle<CallResult>, watch::Sender<bool>) {
        let (stop, stopped) = watch::channel(false);
        let start: StoreStart = Box::new(|_| async { Ok(()) }.boxed());
        let request = CallRequest {
            chat: "chat".into(),
            turn: format!("turn of {id}"),
            answer: format!("answer of {id}"),
            call: ToolCall {
                id: id.into(),
                name: tool.into(),
                arguments,
            },
            attempt: 1,
            tool: own(tool),
            origin: CallOrigin::Answer,
        };
        let tools = self.tools.clone();
        (
            tokio::spawn(async move { tools.run(request, start, Arc::new(|_| {}), stopped).await }),
            stop,
        )
    }

    async fn approved(&self, id: &str, arguments: Value, extent: ConsentExtent) -> CallResult {
        let (running, _stop) = self.call(id, "fetch_page", arguments);
        let shown = waiting(&self.tools).await;
        self.tools.approve(approval(&shown, extent)).await.unwrap();
        running.await.unwrap()
    }
}

fn own(tool: &str) -> ToolRef {
    ToolRef {
        server: "ponder".into(),
        tool: tool.into(),
    }
}

#[tokio::test]
async fn what_reaches_the_internet_is_off_until_a_person_switches_it_on() {
    let own_tools = Own::new().await;
    let tools = &own_tools.tools;
    tools.switch_own_tool("fetch_page", false).unwrap();
    let all = ["fetch_page", "search_web", "get_time", "search_chats"].map(own);
    let names = |offered: Vec<protocol::OfferedTool>| offered.into_iter().map(|tool| tool.name).collect::<Vec<_>>();
    assert_eq!(names(tools.offer(&all).await), ["get_time", "search_chats"]);
    let (refused, _stop) = own_tools.call("one", "fetch_page", own_tools.at("page.test", "a"));
    let refused = refused.await.unwrap();
    assert!(
        refused.end == CallEnd::Failed && text(&refused).contains("not switched on"),
        "{refused:?}"
    );
    let view = tools.view().await.unwrap();
    let on = |name: &str| view.servers[0].tools.iter().find(|tool| tool.name == name).unwrap().on;
    assert_eq!(
        (on("fetch_page"), on("search_web"), on("calculate")),
        (Some(false), Some(false), None)
    );
    for always_on in ["calculate", "shell", ""] {
        tools.switch_own_tool(always_on, true).unwrap_err();
    }
    // A search needs an engine as well.
    tools.switch_own_tool("search_web", true).unwrap();
    assert_eq!(names(tools.offer(&all).await), ["get_time", "search_chats"]);
    let setup = WebSearchSetup {
        provider: SearchProvider::Searxng,
        address: "http://localhost:8888".into(),
        key: None,
    };
    tools.set_web_search(Some(setup)).await.unwrap();
    assert_eq!(
        names(tools.offer(&all).await),
        ["search_web", "get_time", "search_chats"]
    );
}

#[tokio::test]
async fn a_consent_to_pages_is_one_for_their_host() {
    let own_tools = Own::new().await;
    let tools = &own_tools.tools;
    let at = |host: &str, path: &str| own_tools.at(host, path);
    let (running, _stop) = own_tools.call("one", "fetch_page", at("page.test", "a"));
    let shown = waiting(tools).await;
    let host = format!("page.test:{}", own_tools.port);
    assert_eq!(
        (shown.host.as_deref(), shown.reason),
        (Some(host.as_str()), ConsentReason::New)
    );
    assert!(shown.effects.open_world && shown.effects.read_only);
    // A person may write another page of the host, and go on to others of it.
    let elsewhere = CallApproval {
        arguments: Some(at("other.test", "b").to_string()),
        ..approval(&shown, ConsentExtent::Always)
    };
    let error = tools.approve(elsewhere).await.unwrap_err().to_string();
    assert!(error.contains("other.test") && error.contains("once"), "{error}");
    let nonsense = CallApproval {
        arguments: Some(json!({ "url": "http://localhost/" }).to_string()),
        ..approval(&shown, ConsentExtent::Once)
    };
    tools.approve(nonsense).await.unwrap_err();
    let same = CallApproval {
        arguments: Some(at("page.test", "b").to_string()),
        ..approval(&shown, ConsentExtent::Always)
    };
    tools.approve(same).await.unwrap();
    assert!(text(&running.await.unwrap()).ends_with("text of /b"));
    let (second, _stop) = own_tools.call("two", "fetch_page", at("page.test", "c"));
    assert!(text(&second.await.unwrap()).ends_with("text of /c"));
    // Not for another host, nor for the same one behind a redirect.
    for (id, host) in [("three", "other.test"), ("four", "www.page.test")] {
        let (asked, stop) = own_tools.call(id, "fetch_page", at(host, "a"));
        assert_eq!(waiting(tools).await.reason, ConsentReason::New);
        stop.send_replace(true);
        assert_eq!(asked.await.unwrap().end, CallEnd::Stopped);
    }
    let (redirected, _stop) = own_tools.call("five", "fetch_page", at("page.test", "other-host"));
    let redirected = redirected.await.unwrap();
    assert!(redirected.end == CallEnd::Failed && text(&redirected).contains("http://other.test/"));
    let grants = tools.view().await.unwrap().grants;
    assert_eq!(
        grants.iter().map(|grant| grant.host.as_deref()).collect::<Vec<_>>(),
        [Some(host.as_str())]
    );
    // It is taken back for the host alone.
    own_tools
        .approved("six", at("other.test", "a"), ConsentExtent::Always)
        .await;
    tools.revoke(&own("fetch_page"), Some(&host)).await.unwrap();
    let left = tools.view().await.unwrap().grants;
    assert!(left.len() == 1 && left[0].host != Some(host), "{left:?}");
    let (asked, stop) = own_tools.call("seven", "fetch_page", at("page.test", "d"));
    waiting(tools).await;
    stop.send_replace(true);
    asked.await.unwrap();
}

#[tokio::test]
async fn every_note_is_asked_about_whatever_was_allowed_before() {
    let own_tools = Own::new().await;
    let tools = &own_tools.tools;
    for (id, reason) in [("one", ConsentReason::New), ("two", ConsentReason::Rule)] {
        let (running, _stop) = own_tools.call(id, "suggest_note", json!({ "note": "I sail." }));
        let shown = waiting(tools).await;
        assert_eq!(shown.reason, reason);
        // Without notes nothing is kept, and the model is told so.
        tools.approve(approval(&shown, ConsentExtent::Always)).await.unwrap();
        let ended = running.await.unwrap();
        assert!(
            ended.end == CallEnd::Failed && text(&ended).contains("not used here"),
            "{ended:?}"
        );
    }
}

#[tokio::test]
async fn nobody_is_asked_about_an_address_that_is_never_read() {
    let own_tools = Own::new().await;
    for address in ["http://localhost/", "http://10.0.0.1/", "file:///etc/passwd", "tea"] {
        let (refused, _stop) = own_tools.call(address, "fetch_page", json!({ "url": address }));
        let refused = refused.await.unwrap();
        assert!(
            refused.end == CallEnd::Failed && text(&refused).contains("was not run"),
            "{refused:?}"
        );
    }
    assert!(own_tools.tools.waiting().is_empty() && own_tools.net.requests().is_empty());
}

#[tokio::test]
async fn after_words_of_strangers_a_page_is_asked_about_again_and_a_sum_is_not() {
    let own_tools = Own::new().await;
    let tools = &own_tools.tools;
    let first = own_tools.at("page.test", "a");
    own_tools.approved("one", first, ConsentExtent::Always).await;
    tools.allow_in_chat("chat", &own("calculate"), None).await.unwrap();
    let in_turn = |id: &str, tool: &str, arguments: Value| {
        let request = CallRequest {
            chat: "chat".into(),
            turn: "one turn".into(),
            answer: format!("answer of {id}"),
            call: ToolCall {
                id: id.into(),
                name: tool.into(),
                arguments,
            },
            attempt: 1,
            tool: own(tool),
            origin: CallOrigin::Answer,
        };
        let (stop, stopped) = watch::channel(false);
        let tools = tools.clone();
        let start: StoreStart = Box::new(|_| async { Ok(()) }.boxed());
        (
            tokio::spawn(async move { tools.run(request, start, Arc::new(|_| {}), stopped).await }),
            stop,
        )
    };
    let (read, _stop) = in_turn("two", "fetch_page", own_tools.at("page.test", "b"));
    assert_eq!(read.await.unwrap().end, CallEnd::Done);
    let (sum, _stop) = in_turn("three", "calculate", json!({ "expression": "1 + 1" }));
    assert_eq!(text(&sum.await.unwrap()), "2");
    let (asked, stop) = in_turn("four", "fetch_page", own_tools.at("page.test", "c?secret"));
    assert_eq!(waiting(tools).await.reason, ConsentReason::UntrustedResult);
    stop.send_replace(true);
    assert_eq!(asked.await.unwrap().end, CallEnd::Stopped);
}

#[tokio::test]
async fn another_search_engine_is_another_tool_and_its_key_is_in_the_keychain() {
    let own_tools = Own::new().await;
    let tools = &own_tools.tools;
    tools.switch_own_tool("search_web", true).unwrap();
    let setup = |address: &str, key: Option<&str>| WebSearchSetup {
        provider: SearchProvider::Brave,
        address: address.into(),
        key: key.map(str::to_owned),
    };
    for wrong in [
        setup("localhost", None),
        setup("", Some("two words")),
        setup("", Some("a\nb")),
    ] {
        tools.set_web_search(Some(wrong)).await.unwrap_err();
    }
    assert_eq!(tools.view().await.unwrap().web_search, None);
    tools
        .set_web_search(Some(setup("", Some("very-secret"))))
        .await
        .unwrap();
    let file = std::fs::read_to_string(own_tools._folder.path().join("tools.json")).unwrap();
    assert!(!file.contains("very-secret") && file.contains("brave"), "{file}");
    let view = tools.view().await.unwrap();
    assert!(view.web_search.as_ref().unwrap().has_key && !format!("{view:?}").contains("very-secret"));
    // Kept without being told again, and gone with its engine.
    tools.set_web_search(Some(setup("", None))).await.unwrap();
    assert!(tools.view().await.unwrap().web_search.unwrap().has_key);
    tools.allow_in_chat("chat", &own("search_web"), None).await.unwrap();
    tools
        .set_web_search(Some(setup("http://127.0.0.1:9", None)))
        .await
        .unwrap();
    assert!(!tools.view().await.unwrap().web_search.unwrap().has_key);
    let (asked, stop) = own_tools.call("one", "search_web", json!({ "query": "tea" }));
    let shown = waiting(tools).await;
    assert_eq!(shown.host.as_deref(), Some("127.0.0.1:9"));
    stop.send_replace(true);
    asked.await.unwrap();
    tools.set_web_search(Some(setup("", None))).await.unwrap();
    assert!(
        !tools.view().await.unwrap().web_search.unwrap().has_key,
        "the key was forgotten"
    );
    tools.set_web_search(None).await.unwrap();
    assert_eq!(tools.view().await.unwrap().web_search, None);
}

#[tokio::test]
async fn the_cost_of_reading_everything_is_told_before_it_runs() {
    let own_tools = Own::with(Documents).await;
    let (reading, stop) = own_tools.call("one", "read_all", json!({ "question": "How many?" }));
    let shown = waiting(&own_tools.tools).await;
    assert_eq!(shown.reading, Some(COST));
    stop.send_replace(true);
    assert_eq!(reading.await.unwrap().end, CallEnd::Stopped);
    let (other, stop) = own_tools.call("two", "search_documents", json!({ "query": "ferry" }));
    assert_eq!(waiting(&own_tools.tools).await.reading, None);
    stop.send_replace(true);
    other.await.unwrap();
    // A call whose cost is not known asks all the same.
    let without = Own::new().await;
    let (reading, stop) = without.call("three", "read_all", json!({ "question": "How many?" }));
    assert_eq!(waiting(&without.tools).await.reading, None);
    stop.send_replace(true);
    reading.await.unwrap();
}
