//! Damage: what can be read stays, what cannot be read hides nothing else, and the damaged file is kept.

use std::time::Duration;

use api::HistoryQuery;
use history::{backups, repair, Contents, Error, History, Remedy};
use sqlx::Connection;

use crate::Fresh;

async fn raw(fresh: &Fresh, sql: &'static str) {
    fresh.history.close().await;
    let mut file = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
        .await
        .unwrap();
    sqlx::raw_sql(sql).execute(&mut file).await.unwrap();
    file.close().await.unwrap();
}

/// Chats with long texts, each on pages of its own.
async fn filled(chats: usize) -> (Fresh, Vec<String>) {
    let fresh = Fresh::new().await;
    let mut ids = Vec::new();
    for chat in 0..chats {
        let id = fresh.chat().await;
        for turn in 0..3 {
            let answer = format!("answer {chat} {turn} ").repeat(300);
            fresh.turn(&id, &format!("question {chat} {turn}"), &answer).await;
        }
        ids.push(id);
    }
    (fresh, ids)
}

fn set_aside(fresh: &Fresh) -> usize {
    let names = std::fs::read_dir(fresh.folder.path()).unwrap().flatten();
    names
        .filter(|entry| {
            let name = entry.file_name().into_string().unwrap();
            name.starts_with("history-damaged-") && name.ends_with(".sqlite")
        })
        .count()
}

#[tokio::test]
async fn values_that_cannot_be_read_hide_neither_their_chat_nor_their_message() {
    let (fresh, ids) = filled(2).await;
    raw(
        &fresh,
        "UPDATE chats SET settings = '{nonsense', draft = 'x', title = CAST(x'41ff42' AS TEXT);
         UPDATE messages SET notices = '?', usage = '[]', timing = '{}', settings = '7', error = 'x', finish_reason = 'unheard_of';
         UPDATE parts SET content = CAST(x'48ff0069' AS TEXT);
         INSERT INTO parts SELECT message_id, 1, 'data', '{broken', 0, 0 FROM parts;
         INSERT INTO parts SELECT message_id, 2, 'of_a_later_version', '{}', 0, 0 FROM parts WHERE position = 0",
    )
    .await;
    let history = History::open(&fresh.path()).await.unwrap();
    let chats = history.chats().await.unwrap();
    assert_eq!(
        chats.iter().map(|chat| chat.title.as_str()).collect::<Vec<_>>(),
        ["A\u{fffd}B"; 2]
    );
    for id in ids {
        let chat = history.chat(&id).await.unwrap();
        assert_eq!(chat.messages.len(), 6);
        for message in chat.messages {
            assert_eq!(message.text(), "H\u{fffd}\0i");
            assert_eq!(message.notices.len(), 2, "one for each part that is left out");
        }
    }
    assert_eq!(history.search(&HistoryQuery::words("h")).await.unwrap().hits.len(), 12);
}

#[tokio::test]
async fn every_chat_outside_destroyed_pages_is_read_after_a_repair_and_the_file_is_kept() {
    let (fresh, ids) = filled(40).await;
    fresh.history.close().await;
    let whole = std::fs::read(fresh.path()).unwrap();
    let page = 4096;
    // Pages that hold words of three chats, one after another and here and there. The roots are among the first pages;
    // without them only a backup helps.
    let holds = |number: usize, words: &str| {
        let bytes = &whole[number * page..(number + 1) * page];
        bytes.windows(words.len()).any(|place| place == words.as_bytes())
    };
    let of = |chat: usize| {
        (20..whole.len() / page).filter(move |number| holds(*number, &format!("answer {chat} 1 answer {chat} 1 ")))
    };
    let mut hurt = 0;
    for chats in [vec![11], vec![17, 18, 30]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.sqlite");
        let mut bytes = whole.clone();
        for number in chats.iter().flat_map(|chat| of(*chat)) {
            bytes[number * page..(number + 1) * page].fill(0xAA);
        }
        assert_ne!(bytes, whole, "no page of a chat was destroyed");
        std::fs::write(&path, &bytes).unwrap();
        let done = repair(&path, Remedy::Everything).await.unwrap();
        assert_eq!(
            std::fs::read(&done.set_aside).unwrap(),
            bytes,
            "nothing of the damaged file is changed"
        );
        let history = History::open(&path).await.unwrap();
        for (place, id) in ids.iter().enumerate() {
            let messages = history.chat(id).await.unwrap().messages;
            let whole = messages.len() == 6
                && messages
                    .iter()
                    .all(|message| message.text().starts_with(['q', 'a']) && !message.text().contains('\u{aa}'));
            // A page that lies inside the tree leads to the texts of neighbors, too.
            let near = chats.iter().any(|chat| chat.abs_diff(place) <= 6);
            assert!(whole || near, "chat {place} is not whole after {chats:?} were hurt");
            hurt += usize::from(!whole || messages.iter().any(|message| message.text().contains('\u{fffd}')));
        }
    }
    assert!(hurt > 0);
}

#[tokio::test]
async fn a_missing_table_is_noticed_and_the_rest_is_kept() {
    let (fresh, ids) = filled(3).await;
    raw(
        &fresh,
        "DROP TABLE settings; DROP TABLE search_documents; DROP TABLE search_index",
    )
    .await;
    let error = History::open(&fresh.path()).await.unwrap_err();
    let Error::Open { source, .. } = error else {
        panic!("{error}")
    };
    assert!(matches!(*source, Error::Damaged), "{source}");
    let done = repair(&fresh.path(), Remedy::Everything).await.unwrap();
    assert_eq!(done.contents, Contents { chats: 3, messages: 18 });
    let history = History::open(&fresh.path()).await.unwrap();
    assert_eq!(history.chat(&ids[1]).await.unwrap().messages.len(), 6);
    while history.index_texts(100, false).await.unwrap() {}
    let found = history.search(&HistoryQuery::words("\"answer 2 1\"")).await.unwrap();
    assert_eq!(found.hits.len(), 1);
}

#[tokio::test]
async fn what_the_file_lost_comes_back_from_a_backup_and_garbage_without_one_is_left_as_it_is() {
    let (fresh, ids) = filled(3).await;
    let copy = fresh.history.back_up(Duration::ZERO).await.unwrap().unwrap();
    fresh.turn(&ids[0], "said after the backup", "yes").await;
    fresh.history.close().await;
    let garbage = b"no database at all ".repeat(1000);
    std::fs::write(fresh.path(), &garbage).unwrap();
    for companion in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{companion}", fresh.path().display()));
    }
    let done = repair(&fresh.path(), Remedy::Everything).await.unwrap();
    assert_eq!(done.contents, Contents { chats: 3, messages: 18 });
    assert_eq!(set_aside(&fresh), 1);
    let history = History::open(&fresh.path()).await.unwrap();
    assert_eq!(history.chat(&ids[0]).await.unwrap().messages.len(), 6);
    history.close().await;

    std::fs::remove_file(copy).unwrap();
    std::fs::write(fresh.path(), &garbage).unwrap();
    for companion in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{companion}", fresh.path().display()));
    }
    assert!(repair(&fresh.path(), Remedy::Everything).await.is_err());
    assert_eq!(std::fs::read(fresh.path()).unwrap(), garbage);
    assert_eq!(set_aside(&fresh), 1);
}

#[tokio::test]
async fn messages_that_lost_what_they_hang_on_are_still_read() {
    let (fresh, ids) = filled(2).await;
    raw(
        &fresh,
        "PRAGMA foreign_keys = off;
         DELETE FROM chats WHERE rowid = 1;
         DELETE FROM messages WHERE chat_id IN (SELECT id FROM chats) AND rowid IN (SELECT rowid FROM messages WHERE chat_id IN (SELECT id FROM chats) ORDER BY rowid LIMIT 1 OFFSET 2)",
    )
    .await;
    repair(&fresh.path(), Remedy::Everything).await.unwrap();
    let history = History::open(&fresh.path()).await.unwrap();
    assert_eq!(
        history.chat(&ids[0]).await.unwrap().messages.len(),
        6,
        "a chat without its row"
    );
    assert_eq!(
        history.chat(&ids[1]).await.unwrap().messages.len(),
        6,
        "a chat without one of its questions"
    );
    assert_eq!(history.chats().await.unwrap().len(), 2);
    assert!(history
        .chat(&ids[1])
        .await
        .unwrap()
        .messages
        .iter()
        .all(|message| !message.text().is_empty()));
}

#[tokio::test]
async fn pieces_without_a_message_are_recovered_again_beside_those_of_an_earlier_repair() {
    let (fresh, ids) = filled(2).await;
    for lost in 1..=2 {
        raw(
            &fresh,
            "PRAGMA foreign_keys = off;
             DELETE FROM messages WHERE id = (SELECT id FROM messages WHERE chat_id <> 'recovered-parts' AND role = 'assistant'
                 AND NOT EXISTS (SELECT 1 FROM messages c WHERE c.parent_id = messages.id) ORDER BY id LIMIT 1)",
        )
        .await;
        repair(&fresh.path(), Remedy::Everything).await.unwrap();
        let history = History::open(&fresh.path()).await.unwrap();
        let pieces = history.tree("recovered-parts").await.unwrap();
        assert_eq!(pieces.len(), lost);
        assert!(pieces.iter().all(|message| message.text().starts_with("answer")));
        history.close().await;
    }
    let history = History::open(&fresh.path()).await.unwrap();
    assert_eq!(
        history.tree(&ids[0]).await.unwrap().len() + history.tree(&ids[1]).await.unwrap().len(),
        10
    );
}

#[tokio::test]
async fn backups_are_made_when_they_are_due_are_sound_and_few() {
    let (fresh, ids) = filled(2).await;
    let day = Duration::from_secs(24 * 3600);
    let first = fresh.history.back_up(day).await.unwrap().unwrap();
    assert!(fresh.history.back_up(day).await.unwrap().is_none(), "one a day");
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&first).unwrap().permissions()) & 0o777,
        0o600
    );
    for _ in 0..7 {
        tokio::time::sleep(Duration::from_millis(3)).await;
        fresh.history.back_up(Duration::ZERO).await.unwrap().unwrap();
    }
    let kept = backups(&fresh.path());
    assert_eq!(kept.len(), 5);
    assert!(!first.exists() && kept.is_sorted_by_key(|backup| std::cmp::Reverse(backup.made_at)));
    let copy = History::open(&kept[0].path).await.unwrap();
    assert_eq!(copy.chat(&ids[1]).await.unwrap().messages.len(), 6);
    copy.close().await;

    // A damaged file makes no backup and takes none away.
    fresh.history.close().await;
    let mut bytes = std::fs::read(fresh.path()).unwrap();
    let middle = bytes.len() / 8192 * 4096;
    bytes[middle..middle + 8192].fill(0xAA);
    std::fs::write(fresh.path(), bytes).unwrap();
    let history = History::open(&fresh.path()).await.unwrap();
    assert!(history.back_up(Duration::ZERO).await.is_err());
    assert_eq!(backups(&fresh.path()).len(), 5);
}
