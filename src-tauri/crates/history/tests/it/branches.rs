//! Editing, copying and deleting in the tree of a chat.

use api::{AnswerState, CompactionMark, DeleteScope, DeletedMessages, HistoryQuery, Position, ScrollPlace};
use history::Error;
use protocol::{Content, Role};
use sqlx::Connection;

use crate::{asked, new_answer, part, words, Fresh};

impl Fresh {
    /// The texts of the branch that is looked at.
    async fn shown(&self, chat: &str) -> Vec<String> {
        let view = self.history.chat(chat).await.unwrap();
        view.messages.iter().map(|message| message.text()).collect()
    }

    async fn revision(&self, chat: &str) -> i64 {
        self.history.chat_head(chat).await.unwrap().0.summary.revision
    }

    async fn three_turns(&self, chat: &str) -> [String; 6] {
        let mut ids = Vec::new();
        for name in ["1", "2", "3"] {
            let turn = self.turn(chat, &format!("q{name}"), &format!("a{name}")).await;
            ids.extend([turn.question.id, turn.answer.id]);
        }
        ids.try_into().unwrap()
    }
}

#[tokio::test]
async fn an_answer_is_written_over_beside_the_first_with_its_thought() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let mut turn = fresh
        .history
        .begin_turn(&chat, &asked("q"), &Position::End, "q", &new_answer())
        .await
        .unwrap();
    turn.answer.parts = vec![part(Content::thinking("hm")), part(words("wrong"))];
    turn.answer.state = AnswerState::Complete;
    turn.answer.finished_at = Some(5);
    assert!(matches!(
        fresh.history.edit_answer(&turn.answer.id, "right").await,
        Err(Error::NoEdit)
    ));
    fresh
        .history
        .finish(&turn.answer, crate::WRITER, &[1, 2])
        .await
        .unwrap();

    let edited = fresh.history.edit_answer(&turn.answer.id, "right").await.unwrap();
    let contents: Vec<Content> = edited.parts.iter().map(|part| part.content.clone()).collect();
    assert_eq!(contents, [Content::thinking("hm"), words("right")]);
    assert_eq!(edited.siblings, [turn.answer.id.clone(), edited.id.clone()]);
    assert!(edited.edited && !edited.continuable && edited.model.as_deref() == Some("pebble"));
    assert_eq!(fresh.shown(&chat).await, ["q", "right"]);
    assert_eq!(fresh.history.message(&turn.answer.id).await.unwrap().text(), "wrong");
    assert!(matches!(
        fresh.history.edit_answer(&turn.question.id, "x").await,
        Err(Error::NoEdit)
    ));
    assert!(matches!(
        fresh.history.edit_answer("nothing", "x").await,
        Err(Error::NotFound(_))
    ));
}

#[tokio::test]
async fn a_branch_that_is_deleted_lies_in_the_trash_and_comes_back_to_its_place() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let [_, _, q2, a2, ..] = fresh.three_turns(&chat).await;
    let other = fresh.sibling(&q2, "b2").await.id;
    fresh.history.show_branch(&a2).await.unwrap();
    assert_eq!(fresh.shown(&chat).await, ["q1", "a1", "q2", "a2", "q3", "a3"]);
    let before = fresh.revision(&chat).await;

    let trash = fresh.history.delete_message(&a2, DeleteScope::Branch).await.unwrap();
    assert_eq!(
        fresh.shown(&chat).await,
        ["q1", "a1", "q2", "b2"],
        "the branch beside it is looked at"
    );
    assert_eq!(
        fresh.history.message(&other).await.unwrap().siblings,
        std::slice::from_ref(&other)
    );
    assert_eq!(fresh.history.tree(&chat).await.unwrap().len(), 4);
    assert!(
        fresh.revision(&chat).await > before,
        "other windows see that something changed"
    );
    assert!(
        fresh
            .history
            .search(&HistoryQuery::words("a3"))
            .await
            .unwrap()
            .hits
            .is_empty(),
        "what is deleted is not found"
    );

    let restored = fresh.history.restore_chat(&trash).await.unwrap();
    assert_eq!(restored.id, chat);
    assert_eq!(fresh.shown(&chat).await, ["q1", "a1", "q2", "a2", "q3", "a3"]);
    assert_eq!(fresh.history.message(&a2).await.unwrap().siblings.len(), 2);
    assert_eq!(
        fresh.history.chats().await.unwrap().len(),
        1,
        "nothing is left of the trash"
    );
    assert!(matches!(
        fresh.history.restore_chat(&trash).await,
        Err(Error::NotFound(_))
    ));
}

#[tokio::test]
async fn a_turn_in_the_middle_goes_without_what_follows_it() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let [_, a1, q2, a2, q3, _] = fresh.three_turns(&chat).await;
    let cut = CompactionMark {
        summary: Some("before".into()),
    };
    fresh.history.set_compaction_mark(&a2, Some(&cut)).await.unwrap();
    let trash = fresh.history.delete_message(&a2, DeleteScope::Turn).await.unwrap();
    assert_eq!(fresh.shown(&chat).await, ["q1", "a1", "q3", "a3"]);
    assert_eq!(
        fresh.history.message(&q3).await.unwrap().parent.as_deref(),
        Some(a1.as_str())
    );
    assert_eq!(
        fresh.history.message(&a1).await.unwrap().compaction_mark,
        Some(cut.clone()),
        "the model does not remember more than before"
    );
    fresh.history.restore_chat(&trash).await.unwrap();
    assert_eq!(fresh.shown(&chat).await, ["q1", "a1", "q2", "a2", "q3", "a3"]);
    assert_eq!(fresh.history.message(&a1).await.unwrap().compaction_mark, None);
    assert_eq!(fresh.history.message(&a2).await.unwrap().compaction_mark, Some(cut));

    // The first turn leaves a chat that begins with the second.
    let trash = fresh.history.delete_message(&a1, DeleteScope::Turn).await.unwrap();
    assert_eq!(fresh.shown(&chat).await, ["q2", "a2", "q3", "a3"]);
    let more = fresh.history.delete_message(&q2, DeleteScope::Branch).await.unwrap();
    assert_eq!(fresh.shown(&chat).await, [""; 0]);
    for trash in [more, trash] {
        fresh.history.restore_chat(&trash).await.unwrap();
    }
    assert_eq!(fresh.shown(&chat).await, ["q1", "a1", "q2", "a2", "q3", "a3"]);
}

#[tokio::test]
async fn deleted_messages_are_told_apart_from_a_chat_in_the_trash() {
    let fresh = Fresh::new().await;
    let (chat, whole) = (fresh.chat().await, fresh.chat().await);
    let [q1, _, q2, a2, ..] = fresh.three_turns(&chat).await;
    let (alone, long) = (
        fresh.sibling(&q2, "b2").await.id,
        fresh.sibling(&q2, &"b".repeat(81)).await.id,
    );
    fresh.history.trash_chat(&whole).await.unwrap();
    assert!(fresh.history.deleted_messages().await.unwrap().is_empty());
    let cut = |role, excerpt: &str, alone| DeletedMessages {
        role,
        excerpt: excerpt.to_owned(),
        alone,
    };
    for (message, wanted) in [
        (&alone, cut(Role::Assistant, "b2", true)),
        (&long, cut(Role::Assistant, &format!("{}…", "b".repeat(80)), true)),
        (&a2, cut(Role::Assistant, "a2", false)),
        (&q1, cut(Role::User, "q1", false)),
    ] {
        let trash = fresh
            .history
            .delete_message(message, DeleteScope::Branch)
            .await
            .unwrap();
        let mut deleted = fresh.history.deleted_messages().await.unwrap();
        assert_eq!(deleted.remove(&trash), Some(wanted));
        assert!(!deleted.contains_key(&whole));
    }
}

#[tokio::test]
async fn a_deleted_message_that_cannot_be_read_hides_no_others() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let [_, _, q2, _, q3, _] = fresh.three_turns(&chat).await;
    let broken = fresh.history.delete_message(&q3, DeleteScope::Branch).await.unwrap();
    let readable = fresh.history.delete_message(&q2, DeleteScope::Branch).await.unwrap();
    let mut file = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
        .await
        .unwrap();
    sqlx::query("PRAGMA ignore_check_constraints = on")
        .execute(&mut file)
        .await
        .unwrap();
    sqlx::query("UPDATE messages SET role = 'of a later version' WHERE id = ?")
        .bind(&q3)
        .execute(&mut file)
        .await
        .unwrap();
    file.close().await.unwrap();
    let deleted = fresh.history.deleted_messages().await.unwrap();
    assert_eq!(deleted[&readable].excerpt, "q2");
    assert!(!deleted.contains_key(&broken));
}

#[tokio::test]
async fn messages_whose_place_is_gone_come_back_as_a_chat_of_their_own() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let [_, _, q2, _, q3, _] = fresh.three_turns(&chat).await;
    let end = fresh.history.delete_message(&q3, DeleteScope::Branch).await.unwrap();
    let middle = fresh.history.delete_message(&q2, DeleteScope::Branch).await.unwrap();
    let own = fresh.history.restore_chat(&end).await.unwrap();
    assert_eq!(own.id, end);
    assert_eq!(fresh.shown(&end).await, ["q3", "a3"]);
    fresh.history.trash_chat(&chat).await.unwrap();
    assert_eq!(fresh.history.restore_chat(&middle).await.unwrap().id, middle);
    assert_eq!(fresh.shown(&middle).await, ["q2", "a2"]);
    // A purge takes nothing along that came back.
    fresh.history.purge_trash(history::now() + 1).await.unwrap();
    assert_eq!(fresh.history.chats().await.unwrap().len(), 2);
}

#[tokio::test]
async fn nothing_is_deleted_edited_or_copied_while_an_answer_is_being_written() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let done = fresh.turn(&chat, "q", "a").await.answer.id;
    let running = fresh.streaming_answer(&chat).await;
    for message in [&done, &running] {
        let deleted = fresh.history.delete_message(message, DeleteScope::Branch).await;
        assert!(matches!(deleted, Err(Error::Busy)));
    }
    assert!(matches!(fresh.history.edit_answer(&done, "x").await, Err(Error::Busy)));
    assert!(matches!(
        fresh.history.fork_chat(&running, "copy").await,
        Err(Error::Busy)
    ));
    assert!(
        fresh.history.fork_chat(&done, "copy").await.is_ok(),
        "what has ended can be copied"
    );
}

#[tokio::test]
async fn a_copy_of_a_branch_is_a_chat_that_shares_nothing() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let [_, a1, _, a2, ..] = fresh.three_turns(&chat).await;
    fresh
        .history
        .set_compaction_mark(&a1, Some(&CompactionMark::default()))
        .await
        .unwrap();
    let copy = fresh.history.fork_chat(&a2, "q1, copied").await.unwrap();
    assert_eq!(copy.title, "q1, copied");
    assert_eq!(fresh.shown(&copy.id).await, ["q1", "a1", "q2", "a2"]);
    let view = fresh.history.chat(&copy.id).await.unwrap();
    assert!(view.messages[1].compaction_mark.is_some());
    assert_eq!(view.messages[3].siblings, [view.messages[3].id.clone()]);
    fresh.turn(&copy.id, "more", "still more").await;
    assert_eq!(fresh.shown(&chat).await.len(), 6);
    fresh.history.trash_chat(&chat).await.unwrap();
    fresh.history.purge_trash(history::now() + 1).await.unwrap();
    assert_eq!(
        fresh.shown(&copy.id).await,
        ["q1", "a1", "q2", "a2", "more", "still more"]
    );
}

#[tokio::test]
async fn a_turn_that_does_not_fit_is_taken_back_into_the_draft() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let turn = fresh
        .history
        .begin_turn(&chat, &asked("long"), &Position::End, "long", &new_answer())
        .await
        .unwrap();
    assert!(fresh
        .history
        .retract_turn(&turn.question, &turn.answer.id, "long")
        .await
        .unwrap());
    let view = fresh.history.chat(&chat).await.unwrap();
    assert_eq!(
        (view.messages.len(), view.draft, view.summary.title.as_str()),
        (0, asked("long"), "")
    );

    // A draft that was written meanwhile is not overwritten, and the branch before it is looked at again.
    fresh.turn(&chat, "q", "a").await;
    let turn = fresh
        .history
        .begin_turn(&chat, &asked("long"), &Position::End, "", &new_answer())
        .await
        .unwrap();
    fresh.history.set_draft(&chat, &asked("newer")).await.unwrap();
    assert!(fresh
        .history
        .retract_turn(&turn.question, &turn.answer.id, "long")
        .await
        .unwrap());
    assert!(!fresh
        .history
        .retract_turn(&turn.question, &turn.answer.id, "long")
        .await
        .unwrap());
    let view = fresh.history.chat(&chat).await.unwrap();
    assert_eq!((view.draft, view.summary.title.as_str()), (asked("newer"), "q"));
    assert_eq!(fresh.shown(&chat).await, ["q", "a"]);

    // An answer that says something stays, and so does one that has ended.
    let done = fresh.turn(&chat, "q2", "a2").await;
    assert!(!fresh
        .history
        .retract_turn(&done.question, &done.answer.id, "long")
        .await
        .unwrap());
}

#[tokio::test]
async fn what_windows_remember_of_a_chat_is_kept() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    assert!(!fresh.history.mark_read(&chat).await.unwrap());
    let turn = fresh.turn(&chat, "q", "a").await;
    assert!(fresh.history.chats().await.unwrap()[0].unread);
    let before = fresh.revision(&chat).await;
    assert!(fresh.history.mark_read(&chat).await.unwrap());
    assert!(!fresh.history.mark_read(&chat).await.unwrap());
    let place = ScrollPlace {
        message: turn.answer.id.clone(),
        offset: -12.5,
    };
    fresh.history.set_scroll_place(&chat, Some(&place)).await.unwrap();
    fresh.history.set_draft(&chat, &asked("draft")).await.unwrap();
    let view = fresh.history.chat(&chat).await.unwrap();
    assert_eq!(view.scroll_place, Some(place));
    assert!(!view.summary.unread);
    assert_eq!(view.summary.revision, before, "nothing of it is drawn from the chat");

    assert!(fresh.history.replace_title(&chat, "q", "better").await.unwrap());
    assert!(!fresh.history.replace_title(&chat, "q", "worse").await.unwrap());
    assert_eq!(fresh.history.chats().await.unwrap()[0].title, "better");
}

#[tokio::test]
async fn an_export_says_where_the_models_memory_begins() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let [_, a1, ..] = fresh.three_turns(&chat).await;
    let cut = CompactionMark {
        summary: Some("Cats.\nDogs.".into()),
    };
    fresh.history.set_compaction_mark(&a1, Some(&cut)).await.unwrap();
    let text = fresh.history.export_markdown(&chat, &Default::default()).await.unwrap();
    let (before, after) = text.split_once("*The model's memory begins here.*").unwrap();
    assert!(before.contains("a1") && after.contains("> Cats.\n> Dogs.\n") && after.contains("q2"));
    let json = fresh.history.export_json(&chat, &Default::default()).await.unwrap();
    assert_eq!(json["messages"][1]["compaction_mark"]["summary"], "Cats.\nDogs.");
}
