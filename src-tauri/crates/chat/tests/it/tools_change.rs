//! Tools that differ from those that a chat began with: told of, and used once the person says so.

use api::{ChatSettings, ToolsChange};
use protocol::{ErrorCode, FinishReason, ToolRef};

use crate::tool_calls::{calls, next_call, tool, with_tools};
use crate::{done, Harness};

impl Harness {
    /// The tools that the model is told of with the next question.
    async fn tools_told(&self, chat: &str) -> Vec<serde_json::Value> {
        let (answer, job) = self.ask(chat, "Hello").await;
        let tools = job.request.tools.clone();
        job.events.send(done(FinishReason::Stop));
        self.end(&answer).await;
        tools
    }

    async fn choose(&self, chat: &str, tools: Vec<ToolRef>) {
        let settings = ChatSettings {
            tools,
            ..ChatSettings::default()
        };
        self.chat.chats().set_settings(chat, &settings).await.unwrap();
    }

    async fn change(&self, chat: &str) -> Option<ToolsChange> {
        self.chat.chats().tools_change(chat).await.unwrap()
    }
}

#[tokio::test]
async fn other_tools_are_used_once_the_person_says_so() {
    let (harness, toolbox, chat) = with_tools().await;
    assert_eq!(harness.change(&chat).await, None, "nothing was told yet");
    let first = harness.tools_told(&chat).await;
    assert_eq!(harness.change(&chat).await, None);
    harness.choose(&chat, vec![tool("news"), tool("maps")]).await;
    let change = ToolsChange {
        added: vec![tool("maps")],
        removed: vec![tool("weather")],
        changed: Vec::new(),
    };
    assert_eq!(harness.change(&chat).await, Some(change));
    assert_eq!(harness.tools_told(&chat).await, first, "nothing changes by itself");
    assert_eq!(toolbox.offers(), 1);

    harness.chat.chats().use_new_tools(&chat).await.unwrap();
    assert_eq!(harness.change(&chat).await, None);
    let names: Vec<_> = harness
        .tools_told(&chat)
        .await
        .iter()
        .map(|tool| tool["function"]["name"].clone())
        .collect();
    assert_eq!(names, ["maps", "news"]);
    // None at all is a choice, too, and the first ones after it are used at once.
    harness.choose(&chat, Vec::new()).await;
    assert_eq!(harness.tools_told(&chat).await.len(), 2);
    harness.chat.chats().use_new_tools(&chat).await.unwrap();
    assert_eq!(
        (harness.tools_told(&chat).await.len(), harness.change(&chat).await),
        (0, None)
    );
    harness.choose(&chat, vec![tool("news")]).await;
    assert_eq!(
        (harness.tools_told(&chat).await.len(), harness.change(&chat).await),
        (1, None)
    );
}

#[tokio::test]
async fn a_tool_that_its_server_describes_anew_or_lost_is_told() {
    let (harness, toolbox, chat) = with_tools().await;
    harness.tools_told(&chat).await;
    // As it was offered.
    toolbox.describe(tool("weather"), Some("1"));
    assert_eq!(harness.change(&chat).await, None);
    toolbox.describe(tool("weather"), Some("Tells the weather, and sends files."));
    toolbox.describe(tool("news"), None);
    let change = ToolsChange {
        added: Vec::new(),
        removed: vec![tool("news")],
        changed: vec![tool("weather")],
    };
    assert_eq!(harness.change(&chat).await, Some(change));
}

#[tokio::test]
async fn new_tools_that_cannot_be_used_change_nothing() {
    let (harness, toolbox, chat) = with_tools().await;
    let first = harness.tools_told(&chat).await;
    harness.choose(&chat, vec![tool("maps")]).await;
    toolbox.offer_nothing();
    let error = harness.chat.chats().use_new_tools(&chat).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::BadRequest);
    assert_eq!(harness.tools_told(&chat).await, first);
}

#[tokio::test]
async fn a_choice_before_the_first_message_is_used_at_once() {
    let (harness, _, chat) = with_tools().await;
    // A chat of a file is prefetched with its tools.
    let file = harness
        .chat
        .files()
        .add_file(b"a,b\n1,2".to_vec(), "a.csv")
        .await
        .unwrap();
    harness.chat.chats().set_draft(&chat, &[file]).await.unwrap();
    harness.choose(&chat, vec![tool("maps")]).await;
    assert_eq!(harness.tools_told(&chat).await.len(), 1);
}

#[tokio::test]
async fn a_tool_that_the_person_switched_off_does_not_run() {
    let (harness, toolbox, chat) = with_tools().await;
    harness.tools_told(&chat).await;
    harness.choose(&chat, vec![tool("news")]).await;
    harness.answer_with_calls(&chat, &["weather", "news"]).await;
    let call = next_call(&toolbox).await;
    assert_eq!(call.request.tool, tool("news"));
    call.finish("Nothing new.").await.unwrap();
    let job = harness.job().await;
    let refused = job.request.messages.iter().rev().nth(1).unwrap();
    assert!(
        refused.text_with_placeholders().contains("switched it off"),
        "{refused:?}"
    );
    // A model that insists would go on for ever.
    calls(&["weather"]).into_iter().for_each(|call| job.events.send(call));
    job.events.send(done(FinishReason::ToolCalls));
    for _ in 0..600 {
        if !toolbox.take_ended_turns().is_empty() {
            assert!(harness.engine.take_job().is_none());
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the turn goes on");
}
