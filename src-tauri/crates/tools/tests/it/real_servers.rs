//! Servers that people use, as their makers publish them: read out of a configuration, started, listed and called.

use std::time::Instant;

use serde_json::json;
use tokio::sync::watch;
use tools::configuration::{Setting, Transport};
use tools::import;
use tools::session::{Limits, Session};
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
            .call(tool, &arguments, watch::Sender::default(), stopped)
            .await
            .unwrap();
        let text = outcome.for_model(10_000);
        assert!(text.contains(expected), "{name}: {text}");
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
