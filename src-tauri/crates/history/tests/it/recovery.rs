//! Recovery beside everything else: files, locks, deleted chats, backups and settings that it must leave as they are.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use history::{examine, remove_copies, remove_examined, repair, set_aside, Checked, Contents, Error, History, Remedy};
use sqlx::Connection;

use crate::{texts, Fresh};

/// Runs this in a file that nobody has open.
async fn raw(path: &Path, sql: &'static str) {
    let mut file = sqlx::SqliteConnection::connect(path.to_str().unwrap()).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut file).await.unwrap();
    file.close().await.unwrap();
}

/// Overwrites the pages that hold these words.
fn destroy(path: &Path, words: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let holds = |page: &[u8]| page.windows(words.len()).any(|place| place == words.as_bytes());
    let mut destroyed = 0;
    for page in bytes.chunks_mut(4096).filter(|page| holds(page)) {
        page.fill(0);
        destroyed += 1;
    }
    assert!(destroyed > 0, "no page holds these words");
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_neither_opened_nor_made_while_a_repair_moves_it() {
    let fresh = Fresh::new().await;
    fresh.turn(&fresh.chat().await, "question", "answer").await;
    fresh.history.close().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    let draft = folder.path().join("history.repaired.sqlite");
    std::fs::copy(fresh.path(), &draft).unwrap();
    let moving = File::create(folder.path().join("history.lock")).unwrap();
    moving.lock().unwrap();
    let opening = tokio::spawn({
        let path = path.clone();
        async move { History::open(&path).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(
        draft.exists() && !path.exists(),
        "the repair has not put it in its place"
    );
    moving.unlock().unwrap();
    let history = opening.await.unwrap().unwrap();
    assert_eq!(history.chats().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_history_that_is_open_is_not_set_aside_and_no_draft_takes_the_place_of_one_that_was() {
    let fresh = Fresh::new().await;
    fresh.chat().await;
    let refused = set_aside(&fresh.path()).unwrap_err();
    assert!(matches!(refused, Error::Locked), "{refused}");
    fresh.history.close().await;
    std::fs::copy(fresh.path(), fresh.folder.path().join("history.repaired.sqlite")).unwrap();
    let aside = set_aside(&fresh.path()).unwrap();
    assert!(aside.exists());
    let history = History::open(&fresh.path()).await.unwrap();
    assert!(history.chats().await.unwrap().is_empty());
}

/// The locks of this process on a file, as the system lists them.
#[cfg(target_os = "linux")]
fn locks_on(path: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{} ", std::fs::metadata(path).unwrap().ino());
    let listed = std::fs::read_to_string("/proc/locks").unwrap();
    listed.lines().filter(|line| line.contains(&inode)).count()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn counting_a_history_that_is_open_keeps_the_locks_on_it() {
    let fresh = Fresh::new().await;
    fresh.turn(&fresh.chat().await, "question", "answer").await;
    let before = locks_on(&fresh.path());
    assert!(before > 0);
    assert_eq!(examine(&fresh.path()).await.unwrap().readable.chats, 1);
    assert_eq!(locks_on(&fresh.path()), before);
    let refused = fresh.history.add_from(&fresh.path()).await.unwrap_err();
    assert!(matches!(refused, Error::File(_)), "{refused}");
    assert_eq!(locks_on(&fresh.path()), before);
}

#[tokio::test]
async fn a_text_whose_end_is_lost_is_taken_from_the_backup() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = format!("{}the very end", "words of an answer ".repeat(1500));
    fresh.turn(&chat, "question", &answer).await;
    fresh.history.back_up(Duration::ZERO).await.unwrap().unwrap();
    let later = fresh.chat().await;
    fresh
        .turn(&later, "later", &answer.replace("the very end", "the later end"))
        .await;
    fresh.history.close().await;
    destroy(&fresh.path(), "the very end");
    destroy(&fresh.path(), "the later end");
    repair(&fresh.path(), Remedy::Everything).await.unwrap();
    let history = History::open(&fresh.path()).await.unwrap();
    let kept = texts(&history.chat(&chat).await.unwrap().messages);
    assert!(kept == ["question", &answer], "the answer is cut");
    let [_, cut] = &texts(&history.chat(&later).await.unwrap().messages)[..] else {
        panic!("a message is lost")
    };
    assert!(
        cut.starts_with("words of an answer") && cut.len() < answer.len(),
        "{cut}"
    );
}

#[tokio::test]
async fn a_chat_that_was_deleted_for_good_does_not_come_back_from_the_pages_that_the_log_hides() {
    let mut fresh = Fresh::new().await;
    let mut chats = Vec::new();
    for number in 0..6 {
        let chat = fresh.chat().await;
        fresh
            .turn(&chat, "question", &format!("answer {number} ").repeat(900))
            .await;
        chats.push(chat);
    }
    fresh.history.close().await;
    fresh.history = History::open(&fresh.path()).await.unwrap();
    fresh.history.trash_chat(&chats[2]).await.unwrap();
    fresh.history.purge_chat(&chats[2]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    std::fs::copy(fresh.path(), &path).unwrap();
    std::fs::copy(
        fresh.folder.path().join("history.sqlite-wal"),
        folder.path().join("history.sqlite-wal"),
    )
    .unwrap();
    let done = repair(&path, Remedy::Everything).await.unwrap();
    assert_eq!(done.contents, Contents { chats: 5, messages: 10 });
}

#[tokio::test]
async fn a_file_that_is_not_there_is_reported_and_settings_stay_as_they_are() {
    let fresh = Fresh::new().await;
    fresh.turn(&fresh.chat().await, "question", "answer").await;
    let model = |name: &str| serde_json::Map::from_iter([("default_model".to_owned(), name.into())]);
    fresh.history.store_settings(&model("mole")).await.unwrap();
    fresh.history.close().await;
    let aside = set_aside(&fresh.path()).unwrap();
    let history = History::open(&fresh.path()).await.unwrap();
    let before = history.settings().await.unwrap();
    let missing = history.add_from(&fresh.folder.path().join("typo")).await.unwrap_err();
    assert!(matches!(missing, Error::File(_)), "{missing}");
    let added = history.add_from(&aside).await.unwrap();
    assert_eq!(added, Contents { chats: 1, messages: 2 });
    assert_eq!(history.settings().await.unwrap(), before);
}

#[tokio::test]
async fn what_followed_a_result_of_a_tool_follows_the_one_that_is_here() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.turn(&chat, "question", "answer").await;
    let result = fresh.turn(&chat, "result", "what followed").await;
    fresh.history.close().await;
    let aside = fresh.folder.path().join("aside.sqlite");
    std::fs::copy(fresh.path(), &aside).unwrap();
    raw(
        &aside,
        "UPDATE messages SET tool_call_id = 'call' WHERE id = (SELECT message_id FROM parts WHERE content = 'result')",
    )
    .await;
    raw(
        &fresh.path(),
        "PRAGMA foreign_keys = off;
         DELETE FROM messages WHERE id IN (SELECT message_id FROM parts WHERE content = 'what followed');
         DELETE FROM parts WHERE message_id NOT IN (SELECT id FROM messages);
         UPDATE chats SET head = NULL;
         UPDATE parts SET message_id = 'other' WHERE content = 'result';
         UPDATE messages SET id = 'other', tool_call_id = 'call' WHERE id NOT IN (SELECT message_id FROM parts)",
    )
    .await;
    let history = History::open(&fresh.path()).await.unwrap();
    let added = history.add_from(&aside).await.unwrap();
    assert_eq!(added, Contents { chats: 0, messages: 1 });
    let followed = history.message(&result.answer.id).await.unwrap();
    assert_eq!(
        (followed.parent.as_deref(), followed.text().as_str()),
        (Some("other"), "what followed")
    );
}

#[tokio::test]
async fn copies_that_a_killed_process_left_are_removed_and_those_of_others_stay() {
    let fresh = Fresh::new().await;
    let file = |name: &str| fresh.folder.path().join(name);
    let copies = [
        "history-examined-1000.sqlite",
        "history-examined-5000.sqlite",
        "history-readable.sqlite",
    ];
    for copy in copies {
        std::fs::write(file(copy), "").unwrap();
    }
    examine(&fresh.path()).await.unwrap();
    remove_examined(&fresh.path(), 2000);
    assert_eq!(copies.map(|copy| file(copy).exists()), [false, true, true]);
    remove_copies(&fresh.path());
    assert_eq!(copies.map(|copy| file(copy).exists()), [false; 3]);
    assert!(fresh.path().exists());
}

#[tokio::test]
async fn counting_leaves_the_old_list_of_model_folders_where_it_is() {
    let fresh = Fresh::new().await;
    fresh.chat().await;
    let old = fresh.folder.path().join("folders.json");
    std::fs::write(&old, r#"{"folders":["/models"]}"#).unwrap();
    examine(&fresh.path()).await.unwrap();
    assert!(old.exists());
}

#[tokio::test]
async fn a_file_with_more_damage_than_that_of_the_index_is_not_checked_again() {
    let fresh = Fresh::new().await;
    for number in 0..20 {
        let chat = fresh.chat().await;
        fresh
            .turn(&chat, &format!("question {number}"), &"answer ".repeat(900))
            .await;
    }
    fresh.history.close().await;
    let whole = std::fs::read(fresh.path()).unwrap();
    destroy(&fresh.path(), "question 7");
    let history = History::open(&fresh.path()).await.unwrap();
    assert_eq!(history.mend_index().await.unwrap(), Checked::Damaged);
    std::fs::write(fresh.path(), whole).unwrap();
    assert_eq!(
        history.mend_index().await.unwrap(),
        Checked::Damaged,
        "it is remembered"
    );
    history.close().await;
    let history = History::open(&fresh.path()).await.unwrap();
    assert_eq!(history.mend_index().await.unwrap(), Checked::Sound);
}
