//! Requests of servers amid a call: forms, addresses, folders, the use of the model.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{ConsentExtent, ElicitationWants, FieldProblemKind, WaitingElicitation};
use futures::FutureExt;
use protocol::{CallEnd, CallProgress, CallResult, Toolbox};
use serde_json::{json, Value};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tools::elicitation::{Elicitation, Reply};
use tools::host::Tools;
use tools::session::{Caller, Limits, Session};

use crate::host::{approval, open, text, waiting, Host};
use crate::{bad, guard, marker, none_is_left};

fn form(message: &str, properties: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": ["name"] });
    json!({ "method": "elicitation/create", "params": { "message": message, "requestedSchema": schema } })
}

fn name_form() -> Value {
    form("Who are you?", &json!({ "name": { "type": "string", "minLength": 2 } }))
}

/// Calls the tool with these requests, as a person who allows it.
async fn relay(host: &Host, id: &str, requests: &[Value]) -> (JoinHandle<CallResult>, watch::Sender<bool>) {
    let request = host.request(id, json!({ "requests": requests }));
    let running = host.call_in(&host.tools, request);
    let shown = waiting(&host.tools).await;
    host.tools.approve(approval(&shown, ConsentExtent::Once)).await.unwrap();
    running
}

async fn elicited(tools: &Tools) -> WaitingElicitation {
    for _ in 0..3000 {
        if let Some(elicited) = tools.elicitations().into_iter().next() {
            return elicited;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("no server asks");
}

/// Waits until no request waits any more.
async fn nobody_asks(tools: &Tools) {
    for _ in 0..500 {
        if tools.elicitations().is_empty() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", tools.elicitations());
}

fn replies(result: &CallResult) -> Vec<Value> {
    serde_json::from_str(&text(result)).unwrap_or_else(|_| panic!("{result:?}"))
}

#[tokio::test]
async fn a_person_fills_in_the_form_of_a_server() {
    let host = Host::new("relays").await;
    let properties = json!({
        "name": { "type": "string", "title": "Your name", "minLength": 2 },
        "age": { "type": "integer", "minimum": 0, "default": 7 },
        "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }, { "const": "l", "title": "Large" }] },
        "password": { "type": "string" }
    });
    let ask = form("Your \u{202e}eman\u{202c} and\u{200b} more?", &properties);
    let (running, _stop) = relay(&host, "one", &[ask]).await;
    let shown = elicited(&host.tools).await;
    assert_eq!(shown.message, "Your ⟨U+202E⟩eman⟨U+202C⟩ and⟨U+200B⟩ more?");
    assert_eq!(
        (shown.server_name.as_str(), shown.chat.as_str()),
        ("echo server", "chat")
    );
    assert!(shown.server_command.contains("bad_server"));
    let ElicitationWants::Form { fields } = &shown.wants else {
        panic!("{shown:?}")
    };
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    // In the server's order.
    assert_eq!(names, ["name", "age", "size", "password"]);
    assert!(fields[0].required && fields[3].looks_secret && !fields[0].looks_secret);
    // A value that does not fit is told, and the form goes on waiting.
    let wrong = host.tools.send_form(&shown.id, r#"{"name": "A", "age": -1}"#).unwrap();
    let wrong: Vec<_> = wrong.into_iter().map(|wrong| (wrong.field, wrong.problem)).collect();
    assert_eq!(
        wrong,
        [
            ("name".to_owned(), FieldProblemKind::TooLittle),
            ("age".to_owned(), FieldProblemKind::TooLittle)
        ]
    );
    for odd in ["", "[]", "null", "{"] {
        host.tools.send_form(&shown.id, odd).unwrap_err();
    }
    host.tools.elicited_address(&shown.id).unwrap_err();
    host.tools.send_form("another", r#"{"name": "Ada"}"#).unwrap_err();
    assert_eq!(host.tools.elicitations().len(), 1);
    let sent = r#"{"name": "Ada", "age": 12345678901234567, "size": "l", "password": null, "more": 1}"#;
    assert_eq!(host.tools.send_form(&shown.id, sent).unwrap(), []);
    let result = running.await.unwrap();
    let content = json!({ "name": "Ada", "age": 12345678901234567_u64, "size": "l" });
    assert_eq!(replies(&result), [json!({ "action": "accept", "content": content })]);
    host.tools.send_form(&shown.id, sent).unwrap_err();
    assert!(host.tools.elicitations().is_empty());
}

#[tokio::test]
async fn a_person_declines_or_closes_the_window_and_is_asked_again() {
    let host = Host::new("relays").await;
    let (running, _stop) = relay(&host, "one", &[name_form(), name_form(), name_form()]).await;
    let first = elicited(&host.tools).await;
    host.tools.decline(&first.id).unwrap();
    host.tools.decline(&first.id).unwrap_err();
    let second = elicited(&host.tools).await;
    assert_ne!(first.id, second.id);
    host.tools.dismiss_elicitations();
    let third = elicited(&host.tools).await;
    host.tools.send_form(&third.id, r#"{"name": "Ada"}"#).unwrap();
    let said = replies(&running.await.unwrap());
    assert_eq!(
        said,
        [
            json!({ "action": "decline" }),
            json!({ "action": "cancel" }),
            json!({ "action": "accept", "content": { "name": "Ada" } })
        ]
    );
}

#[tokio::test]
async fn a_flood_of_requests_shows_one_and_ten_in_all() {
    let host = Host::new("relays at once").await;
    let flood = vec![name_form(); 300];
    let (running, _stop) = relay(&host, "one", &flood).await;
    let shown = elicited(&host.tools).await;
    // Those that came beside it are refused.
    sleep(Duration::from_millis(300)).await;
    assert_eq!(host.tools.elicitations(), std::slice::from_ref(&shown));
    host.tools.decline(&shown.id).unwrap();
    let said = replies(&running.await.unwrap());
    let refused = said.iter().filter(|reply| reply["code"] == json!(-32602)).count();
    assert_eq!((said.len(), refused), (300, 299));

    let host = Host::new("relays").await;
    let (running, _stop) = relay(&host, "one", &vec![name_form(); 12]).await;
    for _ in 0..10 {
        let shown = elicited(&host.tools).await;
        host.tools.decline(&shown.id).unwrap();
    }
    let said = replies(&running.await.unwrap());
    assert!(
        said[..10].iter().all(|reply| *reply == json!({ "action": "decline" })),
        "{said:?}"
    );
    assert!(said[10..]
        .iter()
        .all(|reply| reply["message"].as_str().unwrap().contains("10 times")));
}

#[tokio::test]
async fn nobody_is_asked_outside_of_a_call() {
    let host = Host::new("relays after").await;
    let (running, _stop) = relay(&host, "one", &[name_form()]).await;
    let result = running.await.unwrap();
    assert_eq!(text(&result), "over");
    for _ in 0..500 {
        let heard = host.calls();
        if let Some(heard) = heard.iter().find(|line| line.starts_with("heard")) {
            assert!(heard.contains("error") && heard.contains("while a tool"), "{heard}");
            assert!(host.tools.elicitations().is_empty());
            return;
        }
        assert!(host.tools.elicitations().is_empty());
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", host.calls());
}

#[tokio::test]
async fn a_request_goes_with_its_call() {
    // The server answers the call itself.
    let host = Host::new("relays and ends").await;
    let (running, _stop) = relay(&host, "one", &[name_form()]).await;
    elicited(&host.tools).await;
    assert_eq!(text(&running.await.unwrap()), "without you");
    nobody_asks(&host.tools).await;
    // The person stops the call.
    let host = Host::new("relays").await;
    let (running, stop) = relay(&host, "one", &[name_form()]).await;
    let shown = elicited(&host.tools).await;
    stop.send_replace(true);
    assert_eq!(running.await.unwrap().end, CallEnd::Stopped);
    nobody_asks(&host.tools).await;
    host.tools.send_form(&shown.id, r#"{"name": "Ada"}"#).unwrap_err();
    // The server is gone.
    let (running, _stop) = relay(&host, "two", &[name_form()]).await;
    elicited(&host.tools).await;
    host.tools.switch_off(&host.server).unwrap();
    assert_eq!(running.await.unwrap().end, CallEnd::Failed);
    nobody_asks(&host.tools).await;
}

#[tokio::test]
async fn hostile_requests_ask_nobody_and_say_why() {
    let host = Host::new("relays").await;
    let create = |params: Value| json!({ "method": "elicitation/create", "params": params });
    let hostile = [
        create(json!({})),
        create(json!([])),
        create(
            json!({ "message": "?", "requestedSchema": { "type": "object", "properties": { "a": { "type": "object" } } } }),
        ),
        create(json!({ "message": "?", "requestedSchema": { "type": "array" } })),
        create(json!({ "message": 7, "mode": "url", "url": "javascript:alert(1)" })),
        create(json!({ "message": "?", "mode": "url", "url": "http://10.0.0.1/", "elicitationId": "1" })),
        create(json!({ "message": "?", "mode": "url", "url": "file:///etc/passwd", "elicitationId": "1" })),
        create(json!({ "message": "?", "mode": "shell", "command": "rm -rf /" })),
        form(&"x".repeat(70_000), &json!({})),
        form(
            "?",
            &json!({ "name": { "type": "string", "description": "x".repeat(70_000) } }),
        ),
        json!({ "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 100 } }),
        json!({ "method": "sampling/createMessage" }),
        json!({ "method": "no/such" }),
    ];
    let (running, _stop) = relay(&host, "one", &hostile).await;
    let result = running.await.unwrap();
    let said = replies(&result);
    assert_eq!(said.len(), hostile.len());
    for (asked, reply) in hostile.iter().zip(&said) {
        assert!(
            reply["code"].is_i64() && reply["message"].is_string(),
            "{asked:.200} {reply}"
        );
    }
    // Sampling is refused with a word, and its log says so once.
    assert!(
        said[10]["message"].as_str().unwrap().contains("sampling"),
        "{}",
        said[10]
    );
    let log = host.tools.log(&host.server);
    assert_eq!(
        log.iter().filter(|line| line.contains("sampling")).count(),
        1,
        "{log:?}"
    );
}

#[tokio::test]
async fn an_address_is_shown_whole_and_opened_by_nobody_but_the_person() {
    let host = Host::new("relays").await;
    let url = "https://example.org:8443/login?state=%E2%80%AE&next=https://bank.example";
    let address = json!({ "message": "Log in", "mode": "url", "url": url, "elicitationId": "7" });
    let ask = json!({ "method": "elicitation/create", "params": address });
    let (running, _stop) = relay(&host, "one", &[ask.clone(), ask]).await;
    let shown = elicited(&host.tools).await;
    let expected = ElicitationWants::Address {
        url: url.to_owned(),
        host: "example.org:8443".to_owned(),
    };
    assert_eq!(shown.wants, expected);
    host.tools.send_form(&shown.id, "{}").unwrap_err();
    assert_eq!(host.tools.elicited_address(&shown.id).unwrap(), url);
    // It was opened by then.
    host.tools.address_opened(&shown.id).unwrap();
    let second = elicited(&host.tools).await;
    host.tools.decline(&second.id).unwrap();
    let said = replies(&running.await.unwrap());
    assert_eq!(said, [json!({ "action": "accept" }), json!({ "action": "decline" })]);
}

#[tokio::test]
async fn a_call_waits_as_long_as_the_person_is_asked_and_no_longer() {
    let limits = Limits {
        start: Duration::from_secs(5),
        list: Duration::from_secs(2),
        call: Duration::from_millis(800),
        whole_call: Duration::from_millis(1600),
    };
    let marker = marker();
    let session = Session::start(&bad("relays", &marker), &guard(), limits).await.unwrap();
    let (progress, mut heard) = watch::channel(CallProgress::default());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let list = asked.clone();
    let caller = Caller {
        progress,
        ask: Some(Arc::new(move |elicitation: Elicitation| {
            list.lock().unwrap().push(elicitation.message);
            async {
                // Longer than both limits.
                sleep(Duration::from_millis(2500)).await;
                Reply::Decline
            }
            .boxed()
        })),
    };
    let (_stop, stopped) = watch::channel(false);
    let arguments = json!({ "requests": [name_form()] });
    let (called, asks) = tokio::join!(session.call("echo", &arguments, caller, stopped), async {
        heard.wait_for(|progress| progress.asks).await.unwrap().asks
    });
    assert!(asks && called.is_ok(), "{called:?}");
    assert_eq!(*asked.lock().unwrap(), ["Who are you?"]);
    // Without a person the answer is no, at once.
    let (_stop, stopped) = watch::channel(false);
    let called = session
        .call("echo", &arguments, Caller::default(), stopped)
        .await
        .unwrap();
    assert!(called.for_model(200).contains("decline"), "{called:?}");
    session.close().await;
    none_is_left(&marker);
}

#[tokio::test]
async fn an_answer_that_wants_something_first_is_the_same_for_the_person() {
    let host = Host::new("relays in answers").await;
    let roots = json!({ "method": "roots/list" });
    let (running, _stop) = relay(&host, "one", &[name_form(), roots]).await;
    let shown = elicited(&host.tools).await;
    host.tools.send_form(&shown.id, r#"{"name": "Ada"}"#).unwrap();
    let result = running.await.unwrap();
    let said = json!([
        "state",
        { "0": { "action": "accept", "content": { "name": "Ada" } }, "1": { "roots": [] } }
    ]);
    assert_eq!(replies(&result), *said.as_array().unwrap());
    let sampling = json!({ "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } });
    let (running, _stop) = relay(&host, "two", &[sampling]).await;
    let result = running.await.unwrap();
    assert!(
        result.end == CallEnd::Failed && text(&result).contains("sampling"),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_page_that_a_server_wants_first_is_asked_about_and_the_call_ends() {
    let host = Host::new("relays in errors").await;
    let page = json!({ "message": "Log in", "mode": "url", "url": "https://example.org/", "elicitationId": "7" });
    for (opens, word) in [(true, "call it again"), (false, "did not")] {
        let id = format!("opens {opens}");
        let (running, _stop) = relay(&host, &id, &[json!({ "params": page })]).await;
        let shown = elicited(&host.tools).await;
        match opens {
            true => host.tools.address_opened(&shown.id).unwrap(),
            false => host.tools.decline(&shown.id).unwrap(),
        }
        let result = running.await.unwrap();
        assert!(
            result.end == CallEnd::Failed && text(&result).contains(word),
            "{result:?}"
        );
    }
    let bad = json!({ "message": "Log in", "mode": "url", "url": "file:///etc/passwd" });
    let (running, _stop) = relay(&host, "bad", &[json!({ "params": bad })]).await;
    let result = running.await.unwrap();
    assert!(
        result.end == CallEnd::Failed && text(&result).contains("https"),
        "{result:?}"
    );
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_answer_is_no_and_whoever_runs_the_call_hears_it() {
    let host = Host::new("relays").await;
    let tools = open(host.folder.path(), host.keychain.clone(), false);
    tools.allow_in_chat("chat", &host.tool(), None).await.unwrap();
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    let tell = Arc::new(move |progress: CallProgress| *count.lock().unwrap() += usize::from(progress.asks));
    let (_stop, stopped) = watch::channel(false);
    let request = host.request("one", json!({ "requests": [name_form()] }));
    let start = Box::new(|_| async { Ok(()) }.boxed());
    let result = tools.run(request, start, tell, stopped).await;
    assert_eq!(replies(&result), [json!({ "action": "decline" })]);
    assert!(*asked.lock().unwrap() >= 1 && tools.elicitations().is_empty());
}

#[tokio::test]
async fn a_server_is_told_of_the_folders_that_a_person_chose_and_of_no_others() {
    let host = Host::new("relays").await;
    let roots = || json!({ "method": "roots/list" });
    let (running, _stop) = relay(&host, "one", &[roots()]).await;
    assert_eq!(replies(&running.await.unwrap()), [json!({ "roots": [] })]);
    let notes = host.folder.path().join("my notes");
    std::fs::create_dir(&notes).unwrap();
    host.tools
        .add_root(&host.server, &host.file("no such folder"))
        .await
        .unwrap_err();
    host.tools
        .add_root(&host.server, &host.file("description"))
        .await
        .unwrap_err();
    host.tools.add_root(&host.server, &notes).await.unwrap();
    host.tools.add_root(&host.server, &notes).await.unwrap();
    let view = host.tools.view().await.unwrap();
    assert_eq!(view.servers[1].roots, [notes.display().to_string()]);
    let (running, _stop) = relay(&host, "two", &[roots()]).await;
    let said = replies(&running.await.unwrap());
    let uri = said[0]["roots"][0]["uri"].as_str().unwrap();
    assert!(uri.starts_with("file:///") && uri.ends_with("/my%20notes"), "{uri}");
    assert_eq!(said[0]["roots"][0]["name"], json!("my notes"));
    // It runs on, and another process that starts it tells it, too.
    host.tools.restart(&host.server).await.unwrap();
    let (running, _stop) = relay(&host, "three", &[roots()]).await;
    assert_eq!(replies(&running.await.unwrap()), said);
    host.tools
        .remove_root(&host.server, &notes.display().to_string())
        .await
        .unwrap();
    let (running, _stop) = relay(&host, "four", &[roots()]).await;
    assert_eq!(replies(&running.await.unwrap()), [json!({ "roots": [] })]);
}

#[tokio::test]
async fn another_folder_ends_what_was_allowed() {
    let host = Host::new("relays").await;
    let (running, _stop) = host.call("one");
    let shown = waiting(&host.tools).await;
    host.tools
        .approve(approval(&shown, ConsentExtent::Always))
        .await
        .unwrap();
    running.await.unwrap();
    let (running, _stop) = host.call("two");
    assert_eq!(running.await.unwrap().end, CallEnd::Done);
    host.tools.add_root(&host.server, host.folder.path()).await.unwrap();
    let (running, stop) = host.call("three");
    assert_eq!(waiting(&host.tools).await.reason, api::ConsentReason::Changed);
    stop.send_replace(true);
    running.await.unwrap();
}
