//! Notes about the user and passages of their other chats: told where they are used, and to no endpoint that may not know.

use std::sync::Arc;

use api::{ChatSettings, Endpoint, Retrieval};
use futures::future::BoxFuture;
use protocol::fake::FakeJob;
use protocol::{
    Content, Coverage, Error, ErrorCode, FinishReason, PassageRequest, PassageSource, QuotedPassage, ReadDocuments,
    ReadingCost, ReadingRequest, Result, Role, TellProgress, OWN_CHATS, SUGGEST_NOTE,
};
use serde_json::{json, Map};

use crate::tool_calls::with_tools;
use crate::{done, text, Harness};

impl Harness {
    async fn use_notes(&self) {
        let change = Map::from_iter([("uses_notes".to_owned(), json!(true))]);
        self.chat.settings().change(&change).await.unwrap();
    }

    async fn set_endpoint(&self, personal: bool) {
        let endpoint = Endpoint {
            name: "lab".into(),
            base_url: "http://127.0.0.1:1/v1".into(),
            has_key: false,
            unencrypted_key: false,
            personal,
        };
        self.chat.settings().set_endpoints(&[endpoint]).await.unwrap();
    }

    async fn chat_with(&self, settings: ChatSettings) -> String {
        self.chat.chats().create(settings).await.unwrap().summary.id
    }

    async fn instructions_of(&self, settings: ChatSettings) -> String {
        let chat = self.chat_with(settings).await;
        instructions(&self.ask(&chat, "a").await.1)
    }
}

fn of_endpoint() -> ChatSettings {
    ChatSettings {
        model: Some("endpoint:lab/owl".into()),
        ..ChatSettings::default()
    }
}

fn instructions(job: &FakeJob) -> String {
    let first = &job.request.messages[0];
    match first.role {
        Role::System => first.text_with_placeholders(),
        _ => String::new(),
    }
}

#[tokio::test]
async fn notes_follow_the_instructions_where_they_are_used() {
    let harness = Harness::new().await;
    let notes = harness.chat.notes();
    notes.add(None, "I prefer\n metric units.").await.unwrap();
    let brief = ChatSettings {
        system_prompt: "Be brief.".into(),
        ..ChatSettings::default()
    };
    assert_eq!(
        harness.instructions_of(brief.clone()).await,
        "Be brief.",
        "off by default"
    );
    harness.use_notes().await;
    let told = "Be brief.\n\nNotes about the user, which the user wrote or confirmed:\n- I prefer metric units.";
    assert_eq!(harness.instructions_of(brief).await, told);
    // A project has its own notes, and its own switch.
    let project = harness.chat.projects().create("Sea").await.unwrap().id;
    let note = notes.add(Some(&project), "My boat is called Elli.").await.unwrap();
    for uses_notes in [false, true] {
        notes.use_in_project(&project, uses_notes).await.unwrap();
        let chat = harness.new_chat().await;
        harness.chat.projects().move_chat(&chat, Some(&project)).await.unwrap();
        let told = instructions(&harness.ask(&chat, "a").await.1);
        assert_eq!(told.contains("Elli"), uses_notes, "{told}");
        assert!(!told.contains("metric"), "{told}");
    }
    notes.delete(&note.id).await.unwrap();
    assert_eq!(notes.list(Some(&project)).await.unwrap(), []);
    assert_eq!(notes.list(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_temporary_chat_is_told_nothing() {
    let harness = Harness::new().await;
    harness.use_notes().await;
    harness.chat.notes().add(None, "I prefer metric units.").await.unwrap();
    let temporary = harness.chat.temporary().await.unwrap();
    let chat = temporary
        .chats()
        .create(ChatSettings::default())
        .await
        .unwrap()
        .summary
        .id;
    let asked = temporary.answers();
    asked
        .send(&chat, &[Content::text("a")], &api::Position::End)
        .await
        .unwrap();
    assert_eq!(instructions(&harness.job().await), "");
    assert!(temporary.notes().add_suggested(&chat, "I sail.").await.is_err());
}

#[tokio::test]
async fn an_endpoint_is_told_only_if_it_may_know() {
    let harness = Harness::new().await;
    harness.use_notes().await;
    harness.chat.notes().add(None, "I prefer metric units.").await.unwrap();
    for personal in [false, true] {
        harness.set_endpoint(personal).await;
        let told = harness.instructions_of(of_endpoint()).await;
        assert_eq!(told.contains("metric"), personal, "{told}");
    }
    let unknown = ChatSettings {
        model: Some("endpoint:gone/owl".into()),
        ..ChatSettings::default()
    };
    assert_eq!(harness.instructions_of(unknown).await, "");
}

#[tokio::test]
async fn models_can_suggest_notes_where_they_are_used() {
    let (harness, _, chat) = with_tools().await;
    let offers = |job: &FakeJob| {
        let names = job.request.tools.iter().map(|tool| tool["function"]["name"].clone());
        names.into_iter().any(|name| name == SUGGEST_NOTE)
    };
    assert!(!offers(&harness.ask(&chat, "a").await.1));
    let refused = harness.chat.notes().add_suggested(&chat, "I sail.").await;
    assert!(refused.unwrap_err().message.contains("no notes"));
    harness.use_notes().await;
    let chat = harness.new_chat().await;
    assert!(offers(&harness.ask(&chat, "a").await.1));
    let note = harness.chat.notes().add_suggested(&chat, "I sail.").await.unwrap();
    assert_eq!(note.chat.as_deref(), Some(chat.as_str()));
    harness.set_endpoint(false).await;
    let chat = harness.chat_with(of_endpoint()).await;
    assert!(!offers(&harness.ask(&chat, "a").await.1));
}

/// Gives a passage of each collection that is asked.
struct Passages;

impl PassageSource for Passages {
    fn passages(&self, request: PassageRequest) -> BoxFuture<'_, Result<Option<Content>>> {
        let passage = |(at, collection): (usize, &String)| QuotedPassage {
            number: request.first_number + at as u32,
            collection: collection.clone(),
            file: format!("of {collection}"),
            file_hash: "ab".into(),
            headings: "Doctor".into(),
            page: None,
            first_line: 1,
            last_line: 1,
            text: format!("A word of {collection}."),
        };
        let passages = request.collections.iter().enumerate().map(passage).collect();
        let coverage = Coverage::default();
        Box::pin(std::future::ready(Ok(Some(Content::Passages { passages, coverage }))))
    }

    fn reading_cost(&self, _: Vec<String>, _: u32) -> BoxFuture<'_, Result<ReadingCost>> {
        Box::pin(std::future::ready(Ok(ReadingCost::default())))
    }

    fn read_all(&self, _: ReadingRequest, _: TellProgress) -> BoxFuture<'_, Result<ReadDocuments>> {
        let nothing = Error::new(ErrorCode::NotFound, "there are no documents");
        Box::pin(std::future::ready(Err(nothing)))
    }
}

#[tokio::test]
async fn passages_of_other_chats_stay_here_also_after_the_model_was_changed() {
    let harness = Harness::new().await;
    harness.chat.set_passage_source(Arc::new(Passages));
    let settings = ChatSettings {
        collections: vec![OWN_CHATS.to_owned(), "notes".into()],
        retrieval: Retrieval::Automatic,
        ..ChatSettings::default()
    };
    let chat = harness.chat_with(settings.clone()).await;
    let (answer, job) = harness.ask(&chat, "a").await;
    let asked = |job: &FakeJob| {
        let messages = job.request.messages.iter();
        messages
            .map(|message| message.text_with_placeholders())
            .collect::<String>()
    };
    assert!(asked(&job).contains("A word of chats.") && asked(&job).contains("[1] a chat of the user, line 1, Doctor"));
    job.events.send(text("So it is.", 1));
    job.events.send(done(FinishReason::Stop));
    harness.end(&answer).await;
    for personal in [false, true] {
        harness.set_endpoint(personal).await;
        let settings = ChatSettings {
            model: of_endpoint().model,
            ..settings.clone()
        };
        harness.chat.chats().set_settings(&chat, &settings).await.unwrap();
        let (answer, job) = harness.ask(&chat, "b").await;
        let told = asked(&job);
        assert_eq!(told.contains("A word of chats."), personal, "{told}");
        assert!(told.contains("A word of notes."), "{told}");
        job.events.send(text("So it is.", 1));
        job.events.send(done(FinishReason::Stop));
        harness.end(&answer).await;
    }
}
