//! Two processes that do the same to one file at the same moment. Each has connections of its own, as a process has.

use std::time::Duration;

use api::DeleteScope;
use history::{exported_together, read_import, with_projects, Error, ExportedImages, History};
use protocol::Content;
use serde_json::{json, Value};
use sqlx::Connection;

use crate::{texts, Fresh};

/// The outcomes of two imports of the same file at the same moment.
const CHATS: usize = 1000;

/// An export of this many chats with two messages each, which lie in a project with a file.
async fn export(chats: usize) -> Vec<u8> {
    let fresh = Fresh::new().await;
    let project = fresh.history.create_project("Harbour").await.unwrap();
    let attachment = fresh.history.add_text("the tide tables".into()).await.unwrap();
    let file = Content::File {
        attachment,
        name: "tides.txt".into(),
        media_type: "text/plain".into(),
        bytes: 15,
        excerpt: None,
    };
    fresh.history.put_project_file(&project.id, &file).await.unwrap();
    let project = fresh.history.projects().await.unwrap().pop().unwrap();
    let chat = fresh.chat().await;
    fresh.history.move_chat(&chat, Some(&project.id)).await.unwrap();
    fresh.turn(&chat, "When is high water?", "At noon.").await;
    let one = fresh.history.export_json(&chat, &ExportedImages::new()).await.unwrap();
    let numbered = |number: usize| {
        let mut chat = one.clone();
        chat["chat"]["id"] = json!(format!("chat-{number}"));
        for (place, message) in chat["messages"].as_array_mut().unwrap().iter_mut().enumerate() {
            message["id"] = json!(format!("message-{number}-{place}"));
            message["parent"] = if place == 0 {
                Value::Null
            } else {
                json!(format!("message-{number}-{}", place - 1))
            };
        }
        chat["head"] = json!(format!("message-{number}-1"));
        chat
    };
    let all = exported_together((0..chats).map(numbered).collect());
    let project = fresh.history.export_project(&project).await.unwrap();
    serde_json::to_vec(&with_projects(all, vec![project])).unwrap()
}

/// The faults that SQLite finds in a file, foreign keys included.
async fn problems(fresh: &Fresh) -> Vec<String> {
    let mut file = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
        .await
        .unwrap();
    let mut problems: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_all(&mut file)
        .await
        .unwrap();
    problems.retain(|problem| problem != "ok");
    let keys: Vec<String> = sqlx::query_scalar("SELECT \"table\" FROM pragma_foreign_key_check")
        .fetch_all(&mut file)
        .await
        .unwrap();
    file.close().await.unwrap();
    problems.extend(keys);
    problems
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_file_is_imported_once_by_both_together() {
    let file = export(CHATS).await;
    let fresh = Fresh::new().await;
    let other = History::open(&fresh.path()).await.unwrap();
    let take = |history: &History| {
        let (history, chats) = (history.clone(), read_import(&file).unwrap());
        tokio::spawn(async move { history.import(chats).await })
    };
    let (first, second) = tokio::join!(take(&fresh.history), take(&other));
    let (first, second) = (first.unwrap().unwrap(), second.unwrap().unwrap());
    assert_eq!(first.chats + second.chats, CHATS, "{first:?} {second:?}");
    assert_eq!(first.messages + second.messages, 2 * CHATS);
    for outcome in [first, second] {
        assert_eq!(outcome.chats + outcome.already_here, CHATS);
        assert_eq!(outcome.messages, 2 * outcome.chats);
    }
    let chats = fresh.history.chats().await.unwrap();
    let projects = fresh.history.projects().await.unwrap();
    assert_eq!((chats.len(), projects.len(), projects[0].files.len()), (CHATS, 1, 1));
    for chat in chats {
        let messages = fresh.history.chat(&chat.id).await.unwrap().messages;
        assert_eq!(texts(&messages), ["When is high water?", "At noon."], "{}", chat.id);
        assert_eq!(chat.project.as_ref(), Some(&projects[0].id));
    }
    assert_eq!(problems(&fresh).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_is_copied_whole_or_not_there_while_another_process_deletes_it_for_good() {
    let fresh = Fresh::new().await;
    let other = History::open(&fresh.path()).await.unwrap();
    let mut refused = 0;
    for _ in 0..60 {
        let chat = fresh.chat().await;
        let mut end = String::new();
        for _ in 0..3 {
            end = fresh.turn(&chat, "question", "answer").await.answer.id;
        }
        let first = fresh.history.chat(&chat).await.unwrap().messages[0].id.clone();
        let other = other.clone();
        let deleting = tokio::spawn(async move {
            let trashed = other.delete_message(&first, DeleteScope::Branch).await.unwrap();
            other.purge_chat(&trashed).await.unwrap();
        });
        let copied = fresh.history.fork_chat(&end, "copy").await;
        deleting.await.unwrap();
        match copied {
            Ok(copy) => assert_eq!(fresh.history.chat(&copy.id).await.unwrap().messages.len(), 6),
            Err(Error::NotFound(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    println!("{refused} of 60 were deleted first");
    assert_eq!(problems(&fresh).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_that_are_made_at_the_same_moment_are_all_sound() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    for _ in 0..20 {
        fresh
            .turn(&chat, &"question ".repeat(2000), &"answer ".repeat(2000))
            .await;
    }
    let others = [fresh.history.clone(), History::open(&fresh.path()).await.unwrap()];
    let backing_up = others.map(|history| {
        tokio::spawn(async move {
            for _ in 0..10 {
                history.back_up(Duration::ZERO).await?;
            }
            Ok::<(), Error>(())
        })
    });
    for process in backing_up {
        process.await.unwrap().unwrap();
    }
    for backup in history::backups(&fresh.path()) {
        let copy = History::open_read_only(&backup.path).await.unwrap();
        assert_eq!(copy.chat(&chat).await.unwrap().messages.len(), 40);
        copy.close().await;
    }
}
