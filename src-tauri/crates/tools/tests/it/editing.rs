//! Servers that a person changes after they were added, and the log of one that does not start.

use api::{CallApproval, ConsentExtent, ConsentReason, ServerVariable, ToolServerState, ToolSetup};
use net::Keychain;
use protocol::CallEnd;

use crate::example;
use crate::host::{approval, text, waiting, Host};

fn setup(name: &str, command: &str, parts: &[(&str, Option<&str>)]) -> ToolSetup {
    ToolSetup {
        name: name.into(),
        command: command.into(),
        parts: parts
            .iter()
            .map(|(name, value)| ServerVariable {
                name: (*name).into(),
                value: value.map(str::to_owned),
            })
            .collect(),
    }
}

#[tokio::test]
async fn a_changed_server_keeps_its_secrets_and_is_off_until_its_command_was_seen() {
    let host = Host::off("fine").await;
    let tools = &host.tools;
    let (key, token) = ("API_KEY", "OTHER_TOKEN");
    let first = [(key, Some("first")), (token, Some("gone")), ("MODE", Some("slow"))];
    let id = tools.add(setup("mine", "env -i one", &first)).await.unwrap();
    let secret = |name: &str| host.keychain.get(&format!("tool-server/{id}/{name}")).unwrap();
    let state = || async {
        let view = tools.view().await.unwrap();
        view.servers.into_iter().find(|server| server.id == id).unwrap()
    };
    let on = || {
        let (_, command) = tools.command_of(&id).unwrap();
        tools.switch_on(&id, &command).unwrap();
    };
    on();
    // Another name is the same server.
    let kept = [(key, None), (token, Some("")), ("MODE", Some("slow"))];
    tools.change(&id, setup("yours", "env -i one", &kept)).await.unwrap();
    let server = state().await;
    assert_eq!((server.name.as_str(), server.state), ("yours", ToolServerState::Idle));
    assert_eq!(
        (secret(key).as_deref(), secret(token).as_deref()),
        (Some("first"), Some("gone"))
    );
    // Another command is off, and a part that is left out is forgotten with its secret.
    tools
        .change(
            &id,
            setup("yours", "env -i two", &[(key, None), ("MODE", Some("fast"))]),
        )
        .await
        .unwrap();
    let server = state().await;
    assert_eq!(
        (server.command.as_str(), server.state),
        ("env -i two", ToolServerState::Off)
    );
    assert_eq!((secret(key).as_deref(), secret(token)), (Some("first"), None));
    // So is one with another secret, which looks the same.
    on();
    let replaced = [(key, Some("second")), ("MODE", Some("fast"))];
    tools
        .change(&id, setup("yours", "env -i two", &replaced))
        .await
        .unwrap();
    assert_eq!(state().await.state, ToolServerState::Off);
    assert_eq!(secret(key).as_deref(), Some("second"));
    // Nothing is changed by what cannot be.
    on();
    for wrong in [
        setup("echo server", "env -i two", &kept),
        setup("Ponder", "env -i two", &kept),
        setup("yours", "env 'i", &kept),
        setup("yours", "", &kept),
        setup("yours", "env", &[("A=B", Some("c"))]),
    ] {
        tools.change(&id, wrong).await.unwrap_err();
        assert_eq!(state().await.state, ToolServerState::Idle);
    }
    tools.change("ponder", setup("x", "y", &[])).await.unwrap_err();
    let file = std::fs::read_to_string(host.file("tools.json")).unwrap();
    assert!(!file.contains("first") && !file.contains("second"), "{file}");
}

#[tokio::test]
async fn what_was_allowed_ends_with_the_command_that_it_was_allowed_for() {
    let host = Host::new("fine").await;
    let (running, _stop) = host.call("one");
    let shown = waiting(&host.tools).await;
    host.tools
        .approve(approval(&shown, ConsentExtent::Always))
        .await
        .unwrap();
    running.await.unwrap();
    let view = host.tools.view().await.unwrap();
    let server = &view.servers[1];
    let edited = ToolSetup {
        name: server.name.clone(),
        command: format!("{} more", server.command),
        parts: server.parts.clone(),
    };
    host.tools.change(&host.server, edited).await.unwrap();
    let (running, _stop) = host.call("two");
    assert!(text(&running.await.unwrap()).contains("not switched on"));
    host.on();
    let (running, stop) = host.call("three");
    assert_eq!(waiting(&host.tools).await.reason, ConsentReason::Changed);
    stop.send_replace(true);
    assert_eq!(running.await.unwrap().end, CallEnd::Stopped);
    assert_eq!(host.calls().len(), 1);
}

#[tokio::test]
async fn the_log_of_a_server_that_does_not_start_has_what_it_said() {
    let host = Host::off("fine").await;
    let command = format!("{} dies", example("bad_server").display());
    let id = host.tools.add(setup("dying", &command, &[])).await.unwrap();
    host.tools
        .switch_on(&id, &host.tools.command_of(&id).unwrap().1)
        .unwrap();
    host.tools.start(&id).await.unwrap_err();
    assert_eq!(host.tools.log(&id), ["bad_server: API_KEY is not set"]);
}

#[tokio::test]
async fn large_numbers_that_a_person_wrote_arrive_as_they_are() {
    let host = Host::new("fine").await;
    let exact = r#"{"account":12345678901234567890,"n":1}"#;
    let request = host.request("one", serde_json::from_str(exact).unwrap());
    let (running, _stop) = host.call_in(&host.tools, request);
    let shown = waiting(&host.tools).await;
    assert!(
        shown.arguments_text.contains("12345678901234567890"),
        "{}",
        shown.arguments_text
    );
    let written = |text: &str| CallApproval {
        arguments: Some(text.to_owned()),
        ..approval(&shown, ConsentExtent::Once)
    };
    for unfit in ["{", "[]", r#"{"account": 123456789012345678901234567890}"#] {
        host.tools.approve(written(unfit)).await.unwrap_err();
    }
    let other = r#"{"account":12345678901234567891,"n":2}"#;
    host.tools.approve(written(other)).await.unwrap();
    assert_eq!(text(&running.await.unwrap()), other);
    assert_eq!(host.calls(), [other]);
}
