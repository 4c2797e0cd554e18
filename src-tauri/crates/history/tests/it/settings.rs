use api::{ChatWindowState, Settings};
use history::{stored_settings, History};
use protocol::{Content, Thinking};
use serde_json::{json, Map, Value};
use sqlx::Connection;

use crate::Fresh;

fn values(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn settings_keep_their_values_and_the_others_their_defaults() {
    let fresh = Fresh::new().await;
    assert_eq!(fresh.history.settings().await.unwrap(), Settings::default());
    let change = values(json!({"default_model": "it's \"quoted\"", "thinking": "low"}));
    fresh.history.store_settings(&change).await.unwrap();
    let wanted = Settings {
        default_model: "it's \"quoted\"".into(),
        thinking: Some(Thinking::Low),
        ..Settings::default()
    };
    assert_eq!(fresh.history.settings().await.unwrap(), wanted);
    assert_eq!(
        stored_settings(&fresh.path()).await,
        wanted,
        "read beside the open history"
    );
}

#[tokio::test]
async fn what_the_chat_window_remembers_is_no_setting() {
    let fresh = Fresh::new().await;
    assert_eq!(fresh.history.chat_window().await.unwrap(), ChatWindowState::default());
    let state = ChatWindowState {
        open_chat: Some("a chat".into()),
        new_draft: vec![Content::text("half a quest")],
        folded_projects: vec!["a project".into()],
    };
    fresh.history.set_chat_window(&state).await.unwrap();
    assert_eq!(fresh.history.chat_window().await.unwrap(), state);
    assert_eq!(fresh.history.settings().await.unwrap(), Settings::default());

    // Earlier versions kept the words alone.
    for (kept, wanted) in [("half a quest", vec![Content::text("half a quest")]), ("", vec![])] {
        let old = json!({"open_chat": null, "new_draft": kept});
        let mut file = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
            .await
            .unwrap();
        sqlx::query("UPDATE settings SET value = ? WHERE key = 'chat_window'")
            .bind(old.to_string())
            .execute(&mut file)
            .await
            .unwrap();
        assert_eq!(fresh.history.chat_window().await.unwrap().new_draft, wanted);
    }
}

#[tokio::test]
async fn the_list_of_model_folders_moves_in_from_its_old_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("history.sqlite"), folder.path().join("folders.json"));
    std::fs::write(&old, r#"{"folders":["/models","/Volumes/Disk"]}"#).unwrap();
    let expected = ["/models", "/Volumes/Disk"];
    assert_eq!(
        stored_settings(&path).await.model_folders,
        expected,
        "read before it has moved"
    );
    assert!(!path.exists(), "only looking creates nothing");

    let history = History::open(&path).await.unwrap();
    assert_eq!(history.settings().await.unwrap().model_folders, expected);
    assert!(!old.exists(), "the old file has done its work");

    let change = values(json!({"model_folders": ["/models"]}));
    history.store_settings(&change).await.unwrap();
    history.close().await;
    let history = History::open(&path).await.unwrap();
    assert_eq!(
        history.settings().await.unwrap().model_folders,
        ["/models"],
        "a forgotten folder does not come back"
    );
}

#[tokio::test]
async fn an_old_list_of_folders_that_cannot_be_read_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("history.sqlite"), folder.path().join("folders.json"));
    std::fs::write(&old, r#"{"folders":["/models""#).unwrap();
    let history = History::open(&path).await.unwrap();
    assert_eq!(history.settings().await.unwrap(), Settings::default());
    assert!(old.exists());
}

#[tokio::test]
async fn a_file_that_is_no_history_has_no_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    std::fs::write(&path, "this is no database").unwrap();
    assert_eq!(stored_settings(&path).await, Settings::default());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "this is no database");
}
