//! Opening, damage, crashes, two users at once.

use std::path::Path;

use api::{ChatWindowState, Position};
use history::{Error, History};
use sqlx::Connection;

use crate::{asked, delta, new_answer, texts, Fresh, WRITER};

fn reason(error: Error) -> Error {
    match error {
        Error::Open { source, .. } => *source,
        other => panic!("the error does not name the file: {other}"),
    }
}

#[tokio::test]
async fn missing_folders_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/history.sqlite");
    History::open(&path).await.unwrap();
    assert!(path.is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_open_a_new_file_at_once_all_succeed() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.sqlite");
        let openings: Vec<_> = (0..8)
            .map(|_| {
                tokio::spawn({
                    let path = path.clone();
                    async move { History::open(&path).await }
                })
            })
            .collect();
        for opening in openings {
            opening
                .await
                .unwrap()
                .unwrap()
                .set_chat_window(&ChatWindowState::default())
                .await
                .unwrap();
        }
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    let junk = "not a database ".repeat(1000);
    std::fs::write(&path, &junk).unwrap();
    let error = History::open(&path).await.unwrap_err();
    assert!(
        error.to_string().contains("history.sqlite") && error.to_string().contains("nothing was changed"),
        "{error}"
    );
    assert!(matches!(reason(error), Error::Damaged));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), junk);
}

#[tokio::test]
async fn a_destroyed_page_is_reported_as_damage() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    for _ in 0..50 {
        fresh
            .turn(&chat, &"question ".repeat(100), &"answer ".repeat(300))
            .await;
    }
    fresh.history.close().await;
    let mut bytes = std::fs::read(fresh.path()).unwrap();
    // The first pages hold the schema; what lies behind them is chats.
    let start = bytes.len() / 4;
    bytes[start..].fill(0xAA);
    std::fs::write(fresh.path(), bytes).unwrap();
    let error = match History::open(&fresh.path()).await {
        Ok(history) => history.chat(&chat).await.unwrap_err(),
        Err(error) => reason(error),
    };
    assert!(matches!(error, Error::Damaged), "{error}");
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_unchanged() {
    let fresh = Fresh::new().await;
    fresh.history.close().await;
    let mut connection = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
        .await
        .unwrap();
    sqlx::query("PRAGMA user_version = 99")
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let before = std::fs::read(fresh.path()).unwrap();
    let error = reason(History::open(&fresh.path()).await.unwrap_err());
    assert!(matches!(error, Error::Newer { found: 99, known: 15 }), "{error}");
    assert!(std::fs::read(fresh.path()).unwrap() == before);
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = reason(History::open(folder.path()).await.unwrap_err());
    assert!(matches!(error, Error::ReadOnly), "{error}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = reason(History::open(&file.join("history.sqlite")).await.unwrap_err());
    assert!(matches!(error, Error::Folder(_)), "{error}");
}

#[tokio::test]
async fn what_was_written_is_there_without_a_close() {
    let Fresh { folder, history } = Fresh::new().await;
    let path = folder.path().join("history.sqlite");
    let fresh = Fresh { folder, history };
    let chat = fresh.chat().await;
    fresh.turn(&chat, "a", "b").await;
    let turn = fresh
        .history
        .begin_turn(&chat, &asked("c"), &Position::End, "", &new_answer())
        .await
        .unwrap();
    fresh
        .history
        .append(&turn.answer.id, WRITER, &delta("half an ans", &[1, 2]))
        .await
        .unwrap();
    let Fresh {
        folder: _folder,
        history,
    } = fresh;
    drop(history);
    let again = History::open(&path).await.unwrap();
    assert_eq!(
        texts(&again.chat(&chat).await.unwrap().messages),
        ["a", "b", "c", "half an ans"]
    );
    assert_eq!(again.tokens(&turn.answer.id).await.unwrap(), [1, 2]);
}

/// The two files as a kill would leave them, with the log cut off at this length.
async fn after_a_kill(from: &Path, log_length: usize) -> (tempfile::TempDir, History) {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("history.sqlite");
    std::fs::copy(from, &to).unwrap();
    let log = std::fs::read(from.with_extension("sqlite-wal")).unwrap();
    std::fs::write(to.with_extension("sqlite-wal"), &log[..log_length.min(log.len())]).unwrap();
    let history = History::open(&to).await.unwrap();
    (folder, history)
}

#[tokio::test]
async fn a_kill_at_any_moment_leaves_a_readable_file_with_a_beginning_of_the_text() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let turn = fresh
        .history
        .begin_turn(&chat, &asked("question"), &Position::End, "", &new_answer())
        .await
        .unwrap();
    let log_path = fresh.path().with_extension("sqlite-wal");
    let begun = std::fs::metadata(&log_path).unwrap().len() as usize;
    let mut whole = String::new();
    for i in 0..30 {
        let piece = format!("piece {i} 猫 ");
        whole.push_str(&piece);
        fresh
            .history
            .append(&turn.answer.id, WRITER, &delta(&piece, &[i]))
            .await
            .unwrap();
    }
    let length = std::fs::metadata(&log_path).unwrap().len() as usize;
    let mut seen = 0;
    for cut in (begun..=length).step_by(3001).chain([length]) {
        let (_folder, history) = after_a_kill(&fresh.path(), cut).await;
        let text = history.message(&turn.answer.id).await.unwrap().text();
        assert!(whole.starts_with(&text) && text.len() >= seen, "{text}");
        assert_eq!(
            history.tokens(&turn.answer.id).await.unwrap().len(),
            text.matches("piece").count()
        );
        seen = text.len();
    }
    assert_eq!(seen, whole.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_users_that_write_at_once_both_succeed() {
    let fresh = Fresh::new().await;
    let other = History::open(&fresh.path()).await.unwrap();
    let mut tasks = Vec::new();
    for history in [&fresh.history, &other] {
        for _ in 0..4 {
            let (history, chat) = (history.clone(), fresh.chat().await);
            tasks.push(tokio::spawn(async move {
                let turn = history
                    .begin_turn(&chat, &asked("question"), &Position::End, "", &new_answer())
                    .await
                    .unwrap();
                for i in 0..50 {
                    history
                        .append(&turn.answer.id, WRITER, &delta("x", &[i]))
                        .await
                        .unwrap();
                }
                turn.answer.id
            }));
        }
    }
    for task in tasks {
        let message = task.await.unwrap();
        assert_eq!(other.message(&message).await.unwrap().text(), "x".repeat(50));
        assert_eq!(
            fresh.history.tokens(&message).await.unwrap(),
            (0..50).collect::<Vec<u32>>()
        );
    }
}

#[tokio::test]
async fn only_the_writing_of_others_counts_as_change_elsewhere() {
    let fresh = Fresh::new().await;
    let other = History::open(&fresh.path()).await.unwrap();
    let before = fresh.history.foreign_changes().await.unwrap();
    fresh.chat().await;
    assert_eq!(fresh.history.foreign_changes().await.unwrap(), before);
    other.set_chat_window(&ChatWindowState::default()).await.unwrap();
    assert_ne!(fresh.history.foreign_changes().await.unwrap(), before);
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_the_data_folder_or_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.join("history.sqlite");
    let files = || ["", "-wal", "-shm"].map(|end| data.join(format!("history.sqlite{end}")));
    let private = |when: &str| {
        assert_eq!(mode(&data), 0o700, "{when}");
        for file in files() {
            assert_eq!(mode(&file), 0o600, "{when}: {}", file.display());
        }
    };
    let state = ChatWindowState {
        new_draft: vec![protocol::Content::text("half a quest")],
        ..ChatWindowState::default()
    };
    let history = History::open(&path).await.unwrap();
    history.set_chat_window(&state).await.unwrap();
    private("made anew");
    // As earlier versions left them, with a log because the process was killed.
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    for file in files() {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let again = History::open(&path).await.unwrap();
    assert_eq!(again.chat_window().await.unwrap(), state);
    private("opened again");
}
