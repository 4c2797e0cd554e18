//! Resources and prompts of real servers, and pictures in results.

use std::sync::Arc;
use std::time::Duration;

use api::ToolSetup;
use net::MemoryKeychain;
use protocol::{Error, ErrorCode, Reason};
use serde_json::json;
use tempfile::TempDir;
use tools::host::Tools;
use tools::session::{CallError, Caller, Session};
use tools::stdio::Launch;

use crate::host::open;
use crate::{example, guard, LIMITS};

fn launch(way: &str) -> Launch {
    Launch {
        command: example("shelf_server").display().to_string(),
        args: vec![way.to_owned()],
        env: Default::default(),
        path: "/usr/bin:/bin".into(),
    }
}

/// A host with servers that do this, all switched on.
async fn host(ways: &[&str]) -> (TempDir, Tools, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let tools = open(folder.path(), Arc::new(MemoryKeychain::default()), true);
    let mut ids = Vec::new();
    for way in ways {
        let setup = ToolSetup {
            name: format!("shelf {way}"),
            command: format!("{} '{way}'", example("shelf_server").display()),
            parts: Vec::new(),
        };
        let id = tools.add(setup).await.unwrap();
        let (_, command) = tools.command_of(&id).unwrap();
        tools.switch_on(&id, &command).unwrap();
        ids.push(id);
    }
    (folder, tools, ids)
}

#[tokio::test]
async fn resources_are_listed_whatever_else_a_list_holds() {
    let session = Session::start(&launch("plain"), &guard(), LIMITS).await.unwrap();
    assert!(session.has_resources() && session.has_prompts());
    let (resources, templates) = session.resources().await.unwrap();
    let uris: Vec<&str> = resources.iter().map(|resource| resource.uri.as_str()).collect();
    assert_eq!(
        uris,
        ["memo://tea", "memo://pixel", "memo://page"],
        "the page that names itself ends the list"
    );
    assert_eq!(templates.len(), 1);
    session.close().await;
    let session = Session::start(&launch("no templates"), &guard(), LIMITS).await.unwrap();
    assert!(session.resources().await.unwrap().1.is_empty());
    session.close().await;
    // A list that never comes is given up.
    let session = Session::start(&launch("mute"), &guard(), LIMITS).await.unwrap();
    for failed in [
        session.resources().await.err(),
        session.prompts().await.err(),
        session.resource("memo://tea").await.err(),
    ] {
        assert!(
            matches!(failed, Some(CallError::Silent(waited)) if waited >= Duration::from_secs(1)),
            "{failed:?}"
        );
    }
    session.close().await;
}

#[tokio::test]
async fn a_person_chooses_among_the_resources_of_servers_that_are_on() {
    let (_folder, tools, ids) = host(&["plain", "bare", "refuses", "off"]).await;
    tools.switch_off(&ids[3]).unwrap();
    let lists = tools.resources().await.unwrap();
    let shown: Vec<(&str, usize)> = lists
        .iter()
        .map(|list| (list.server_name.as_str(), list.resources.len()))
        .collect();
    assert_eq!(shown, [("shelf plain", 4), ("shelf refuses", 0)]);
    let [tea, pixel, ..] = &lists[0].resources[..] else {
        panic!("{lists:?}")
    };
    assert_eq!((tea.name.as_str(), tea.bytes), ("Tea", Some(12)));
    assert_eq!(pixel.name, "../../pixel⟨U+202E⟩gnp");
    assert_eq!(lists[0].resources[3].variables, ["day"]);
    let problem = lists[1].problem.as_deref().unwrap();
    assert!(problem.contains("locked ⟨U+202E⟩"), "{problem}");
    tools.shut_down();
}

#[tokio::test]
async fn a_resource_is_read_as_a_file_with_a_harmless_name() {
    let (_folder, tools, ids) = host(&["plain"]).await;
    let server = &ids[0];
    let tea = tools.read_resource(server, "memo://tea", "Tea").await.unwrap();
    assert_eq!(
        (tea.name.as_str(), tea.is_image, &tea.bytes[..5]),
        ("Tea.md", false, &b"# Tea"[..])
    );
    let pixel = tools
        .read_resource(server, "memo://pixel", "../../pixel\u{202e}gnp")
        .await
        .unwrap();
    assert_eq!(
        (pixel.name.as_str(), pixel.is_image),
        ("_.._pixel⟨U+202E⟩gnp.png", true)
    );
    let monday = tools.read_resource(server, "memo://monday", "").await.unwrap();
    assert_eq!((monday.name.as_str(), &monday.bytes[..]), ("monday", &b"Rain."[..]));
    for uri in ["memo://empty", "memo://none", "file:///etc/passwd", ""] {
        let error: Error = tools.read_resource(server, uri, "x").await.unwrap_err().into();
        assert_eq!(error.reason, Some(Reason::ToolsRefused), "{uri}: {error}");
        assert!(error.message.contains("nothing was attached"), "{error}");
    }
    let error: Error = tools
        .read_resource("nobody", "memo://tea", "x")
        .await
        .unwrap_err()
        .into();
    assert_eq!(error.code, ErrorCode::NotFound);
    tools.switch_off(server).unwrap();
    assert!(tools.read_resource(server, "memo://tea", "Tea").await.is_err());
}

#[tokio::test]
async fn prompts_come_from_servers_that_run_until_a_person_asks_for_more() {
    let (_folder, tools, ids) = host(&["plain", "refuses", "bare"]).await;
    let before = tools.prompts(false).await.unwrap();
    assert!(before.prompts.is_empty() && before.more);
    let asked = tools.prompts(true).await.unwrap();
    assert!(!asked.more);
    let [review] = &asked.prompts[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (review.name.as_str(), review.title.as_str(), review.server.as_str()),
        ("review", "Review", ids[0].as_str())
    );
    assert_eq!(tools.prompts(false).await.unwrap().prompts.len(), 1);

    let filled = [("file".to_owned(), "main.rs".to_owned())].into();
    let text = tools.prompt(&ids[0], "review", filled).await.unwrap();
    assert_eq!(text, "Review main.rs ⟨U+200B⟩please.\nThanks.");
    let long = [("file".to_owned(), "x".repeat(300 << 10))].into();
    assert!(tools.prompt(&ids[0], "review", long).await.is_err());
    let error: Error = tools
        .prompt(&ids[0], "none", Default::default())
        .await
        .unwrap_err()
        .into();
    assert!(error.message.contains("nothing was written"), "{error}");
    tools.shut_down();
}

#[tokio::test]
async fn a_picture_in_a_result_comes_as_an_image_and_a_link_as_a_line() {
    let session = Session::start(&launch("plain"), &guard(), LIMITS).await.unwrap();
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let called = session.call("picture", &json!({}), Caller::default(), stopped).await;
    let mut outcome = called.unwrap();
    let images = outcome.take_images();
    assert_eq!((images.len(), images[0].starts_with(b"\x89PNG")), (1, true));
    assert_eq!(outcome.text(1000), "A pixel.\n[link: page, http://127.0.0.1:9/secret]");
    session.close().await;
}
