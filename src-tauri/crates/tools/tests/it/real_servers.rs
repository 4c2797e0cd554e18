//! Servers that people use, as their makers publish them: read out of a configuration, started, listed and called.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::FutureExt;
use serde_json::json;
use tokio::sync::watch;
use tools::configuration::{Setting, Transport};
use tools::elicitation::{Elicitation, Input, Reply, Wants};
use tools::import;
use tools::session::{Caller, Limits, Session};
use tools::stdio::Launch;

use crate::guard;

/// A call of each server, and what stands in its result.
const CALLS: [(&str, &str, &str, &str); 7] = [
    ("everything", "echo", r#"{ "message": "hello" }"#, "hello"),
    ("filesystem", "list_allowed_directories", "{}", "/"),
    ("memory", "read_graph", "{}", "entities"),
    (
        "sequential-thinking",
        "sequentialthinking",
        r#"{ "thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 }"#,
        "thoughtHistoryLength",
    ),
    (
        "time",
        "get_current_time",
        r#"{ "timezone": "Europe/Berlin" }"#,
        "Europe/Berlin",
    ),
    (
        "git",
        "git_status",
        r#"{ "repo_path": "/no/such/folder" }"#,
        "/no/such/folder",
    ),
    ("fetch", "fetch", r#"{ "url": "http://127.0.0.1:9/" }"#, "127.0.0.1"),
];

/// `PONDER_TOOL_SERVERS` names a configuration as Claude Desktop has it, with the servers under these names.
#[tokio::test]
async fn servers_that_people_use_start_list_and_answer() {
    let Some(path) = std::env::var_os("PONDER_TOOL_SERVERS") else {
        println!("report: servers of npm and PyPI are not here, so none was tried");
        return;
    };
    let configuration = std::fs::read_to_string(path).unwrap();
    let imported = import::read(&configuration).unwrap();
    assert!(imported.problems.is_empty(), "{:?}", imported.problems);
    for (name, tool, arguments, expected) in CALLS {
        let server = imported.servers.iter().find(|server| server.name == name).expect(name);
        let Transport::Stdio { command, args, env } = server.transport.clone() else {
            panic!("{name} is no program")
        };
        let plain = |value| match value {
            Setting::Plain(value) => value,
            Setting::Secret => panic!("{name} has a secret"),
        };
        let env = env.into_iter().map(|variable| (variable.name, plain(variable.value)));
        let launch = Launch {
            command,
            args,
            env: env.collect(),
            path: std::env::var_os("PATH").unwrap(),
        };
        let begun = Instant::now();
        let session = Session::start(&launch, &guard(), Limits::default()).await.unwrap();
        let ready = begun.elapsed();
        let listing = session.tools().await.unwrap();
        assert!(
            listing.problems.is_empty() && !listing.tools.is_empty(),
            "{name}: {listing:?}"
        );
        let (_stop, stopped) = watch::channel(false);
        let arguments = serde_json::from_str(arguments).unwrap();
        let outcome = session
            .call(tool, &arguments, Caller::default(), stopped)
            .await
            .unwrap();
        let text = outcome.for_model(10_000);
        assert!(text.contains(expected), "{name}: {text}");
        if session.has_resources() {
            let (resources, templates) = session.resources().await.unwrap();
            // One may have none yet.
            if let Some(first) = resources.first() {
                let content = session.resource(&first.uri).await.unwrap().expect(name);
                assert!(!content.bytes.is_empty(), "{name}: {content:?}");
            }
            println!(
                "report: {name}: {} resources, {} templates",
                resources.len(),
                templates.len()
            );
        }
        if session.has_prompts() {
            let prompts = session.prompts().await.unwrap();
            let plain = prompts
                .iter()
                .find(|prompt| prompt.arguments.iter().all(|argument| !argument.required));
            if let Some(plain) = plain {
                let text = session.prompt(&plain.name, &Default::default()).await.unwrap();
                assert!(text.is_some_and(|text| !text.is_empty()), "{name}");
            }
            println!("report: {name}: {} prompts", prompts.len());
        }
        let closing = Instant::now();
        session.close().await;
        println!(
            "report: {name}: ready after {:.1} s, {} tools, {} bytes for the model, closed in {:.1} s",
            ready.as_secs_f64(),
            listing.tools.len(),
            json!(listing
                .tools
                .iter()
                .map(|tool| (&tool.name, &tool.description, &tool.parameters))
                .collect::<Vec<_>>())
            .to_string()
            .len(),
            closing.elapsed().as_secs_f64()
        );
    }
}

/// The reference server asks by a form with every kind of field, and by an address.
#[tokio::test]
async fn the_reference_server_asks_the_person() {
    let Some(path) = std::env::var_os("PONDER_TOOL_SERVERS") else {
        println!("report: servers of npm and PyPI are not here, so none asked");
        return;
    };
    let imported = import::read(&std::fs::read_to_string(path).unwrap()).unwrap();
    let server = imported
        .servers
        .iter()
        .find(|server| server.name == "everything")
        .unwrap();
    let Transport::Stdio { command, args, .. } = server.transport.clone() else {
        panic!("it is no program")
    };
    let launch = Launch {
        command,
        args,
        env: Default::default(),
        path: std::env::var_os("PATH").unwrap(),
    };
    let folder = tempfile::tempdir().unwrap();
    let roots = vec![folder.path().to_path_buf()];
    let session = Session::start_with_roots(&launch, &guard(), Limits::default(), roots)
        .await
        .unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let list = asked.clone();
    let caller = || {
        let list = list.clone();
        Caller {
            ask: Some(Arc::new(move |elicitation: Elicitation| {
                let reply = match &elicitation.wants {
                    Wants::Form(form) => {
                        let values = json!({ "name": "Ada", "email": "ada@example.org", "integer": 7, "check": true });
                        Reply::Accept(Some(form.content(values.as_object().unwrap()).unwrap()))
                    }
                    Wants::Address(_) => Reply::Accept(None),
                };
                list.lock().unwrap().push(elicitation);
                async { reply }.boxed()
            })),
            ..Caller::default()
        }
    };
    let call = async |tool: &str, arguments| {
        let (_stop, stopped) = watch::channel(false);
        let outcome = session.call(tool, &arguments, caller(), stopped).await.unwrap();
        outcome.for_model(10_000)
    };
    let said = call("trigger-elicitation-request", json!({})).await;
    assert!(
        said.contains("Name: Ada") && said.contains("Favorite Integer: 7"),
        "{said}"
    );
    let said = call("trigger-url-elicitation", json!({ "url": "https://example.org/login" })).await;
    assert!(said.to_lowercase().contains("accept"), "{said}");
    let said = call("get-roots-list", json!({})).await;
    assert!(said.contains(&folder.path().display().to_string()), "{said}");
    let asked = asked.lock().unwrap().clone();
    let Wants::Form(form) = &asked[0].wants else {
        panic!("{asked:?}")
    };
    assert_eq!(form.fields.len(), 13);
    assert_eq!(
        form.fields
            .iter()
            .filter(|field| matches!(field.input, Input::One { .. }))
            .count(),
        3
    );
    assert_eq!(
        form.fields
            .iter()
            .filter(|field| matches!(field.input, Input::Some { .. }))
            .count(),
        2
    );
    assert!(matches!(&asked[1].wants, Wants::Address(address) if address.host() == "example.org"));
    session.close().await;
}
