//! The sidebar, what a chat remembers, the trash.

use api::{ChatSettings, ChatSummary, Position};
use history::{Error, ExportedImages, NewAnswer};
use protocol::{ImageDetail, KvBits, Sampling, Thinking};

use crate::{asked, new_answer, Fresh};

fn ids(chats: &[ChatSummary]) -> Vec<&str> {
    chats.iter().map(|chat| chat.id.as_str()).collect()
}

#[tokio::test]
async fn pinned_chats_come_first_then_the_newest() {
    let fresh = Fresh::new().await;
    let (a, b, c) = (fresh.chat().await, fresh.chat().await, fresh.chat().await);
    assert_eq!(ids(&fresh.history.chats().await.unwrap()), [&c, &b, &a]);
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    fresh.turn(&a, "question", "answer").await;
    assert_eq!(ids(&fresh.history.chats().await.unwrap()), [&a, &c, &b]);
    fresh.history.pin_chat(&b, true).await.unwrap();
    let chats = fresh.history.chats().await.unwrap();
    assert_eq!(ids(&chats), [&b, &a, &c]);
    assert!(chats[0].pinned);
    fresh.history.pin_chat(&b, false).await.unwrap();
    assert_eq!(ids(&fresh.history.chats().await.unwrap()), [&a, &c, &b]);
}

#[tokio::test]
async fn a_chat_remembers_its_settings_and_draft() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let sampling = Sampling {
        temperature: Some(0.5),
        logit_bias: [(7, -1.5)].into(),
        seed: Some(u64::MAX),
        ..Sampling::default()
    };
    let settings = ChatSettings {
        model: Some("a/b".into()),
        thinking: Some(Thinking::Low),
        thinking_budget: Some(512),
        system_prompt: "It's \"so\"; --".into(),
        sampling,
        image_detail: ImageDetail::Quick,
        max_tokens: Some(64),
        context: Some(4096),
        kv_bits: Some(KvBits::Eight),
        kv_off: true,
        stop: vec!["END".into()],
        carried_summary: "Cats.".into(),
        tools: vec![protocol::ToolRef {
            server: "ponder".into(),
            tool: "calculate".into(),
        }],
        collections: vec!["0198".into()],
        retrieval: api::Retrieval::Tools,
    };
    fresh.history.set_chat_settings(&chat, &settings).await.unwrap();
    fresh
        .history
        .set_draft(&chat, &asked("half a thou\u{0}ght 猫"))
        .await
        .unwrap();
    fresh
        .history
        .rename_chat(&chat, "'); DROP TABLE chats; --")
        .await
        .unwrap();
    let view = fresh.history.chat(&chat).await.unwrap();
    assert_eq!(view.settings, settings);
    assert_eq!(view.draft, asked("half a thou\u{0}ght 猫"));
    assert!(view.summary.has_draft);
    fresh.history.set_draft(&chat, &[]).await.unwrap();
    assert!(!fresh.history.chats().await.unwrap()[0].has_draft);
    assert_eq!(view.summary.title, "'); DROP TABLE chats; --");
    let other = fresh.history.create_chat(&settings).await.unwrap();
    assert_eq!(other.settings, settings);
}

#[tokio::test]
async fn a_chat_runs_while_its_answer_is_written() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let mut turn = fresh
        .history
        .begin_turn(&chat, &asked("question"), &Position::End, "", &new_answer())
        .await
        .unwrap();
    assert!(fresh.history.chats().await.unwrap()[0].running);
    fresh.end(&mut turn.answer, "answer").await;
    assert!(!fresh.history.chats().await.unwrap()[0].running);
}

#[tokio::test]
async fn a_model_is_used_by_the_chats_that_it_answered_last() {
    let fresh = Fresh::new().await;
    let (first, second) = (fresh.chat().await, fresh.chat().await);
    assert_eq!(fresh.history.chats_answered_by("pebble").await.unwrap().len(), 0);
    fresh.turn(&first, "question", "answer").await;
    fresh.turn(&second, "question", "answer").await;
    assert_eq!(fresh.history.chats_answered_by("pebble").await.unwrap().len(), 2);
    let other = NewAnswer {
        model: "another".into(),
        ..new_answer()
    };
    let mut turn = fresh
        .history
        .begin_turn(&second, &asked("again"), &Position::End, "", &other)
        .await
        .unwrap();
    fresh.end(&mut turn.answer, "answer").await;
    assert_eq!(fresh.history.chats_answered_by("pebble").await.unwrap().len(), 1);
    assert_eq!(fresh.history.chats_answered_by("another").await.unwrap().len(), 1);
    fresh.history.trash_chat(&first).await.unwrap();
    assert_eq!(fresh.history.chats_answered_by("pebble").await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_chat_in_the_trash_is_gone_until_it_is_restored() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.turn(&chat, "question", "answer").await;
    fresh.history.trash_chat(&chat).await.unwrap();
    fresh.history.trash_chat(&chat).await.unwrap();
    assert!(fresh.history.chats().await.unwrap().is_empty());
    assert!(matches!(fresh.history.chat(&chat).await, Err(Error::NotFound("chat"))));
    assert!(matches!(
        fresh
            .history
            .begin_turn(&chat, &asked("more"), &Position::End, "", &new_answer())
            .await,
        Err(Error::NotFound("chat"))
    ));
    assert_eq!(fresh.history.restore_chat(&chat).await.unwrap().id, chat);
    assert_eq!(fresh.history.chat(&chat).await.unwrap().messages.len(), 2);
}

#[tokio::test]
async fn only_old_trash_is_purged_and_with_all_that_hangs_on_it() {
    let fresh = Fresh::new().await;
    let (kept, purged) = (fresh.chat().await, fresh.chat().await);
    let turn = fresh.turn(&purged, "question", "answer").await;
    fresh.turn(&kept, "question", "answer").await;
    fresh.history.trash_chat(&purged).await.unwrap();
    assert_eq!(fresh.history.purge_trash(history::now() - 1000).await.unwrap(), 0);
    assert_eq!(fresh.history.purge_trash(history::now() + 1).await.unwrap(), 1);
    assert!(matches!(
        fresh.history.restore_chat(&purged).await,
        Err(Error::NotFound("chat"))
    ));
    assert!(matches!(
        fresh.history.message(&turn.answer.id).await,
        Err(Error::NotFound("message"))
    ));
    assert_eq!(fresh.history.chat(&kept).await.unwrap().messages.len(), 2);
}

#[tokio::test]
async fn an_unknown_chat_is_not_found() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let nothing = "0190-nothing' OR 1=1 --";
    let results = [
        history.chat(nothing).await.map(drop),
        history.rename_chat(nothing, "x").await,
        history.pin_chat(nothing, true).await,
        history.set_chat_settings(nothing, &ChatSettings::default()).await,
        history.set_draft(nothing, &asked("x")).await,
        history.trash_chat(nothing).await,
        history.restore_chat(nothing).await.map(drop),
        history.export_markdown(nothing, &ExportedImages::new()).await.map(drop),
        history.export_json(nothing, &ExportedImages::new()).await.map(drop),
        history
            .begin_turn(nothing, &asked("x"), &Position::End, "x", &new_answer())
            .await
            .map(drop),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::NotFound("chat"))), "{result:?}");
    }
}
