//! Damaged files that were set aside, and damage that is none.

use std::fs::File;
use std::time::{Duration, SystemTime};

use protocol::ErrorCode;
use tokio::time::timeout;

use crate::{open, Harness};

#[tokio::test]
async fn images_stay_as_long_as_a_damaged_file_that_may_name_them_was_set_aside() {
    let harness = Harness::new().await;
    harness.chat.shut_down().await;
    let folder = harness.path.parent().unwrap();
    let image = folder.join("attachments").join("a".repeat(64));
    std::fs::create_dir_all(image.parent().unwrap()).unwrap();
    std::fs::write(&image, "x").unwrap();
    let days_ago = SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    File::options()
        .write(true)
        .open(&image)
        .unwrap()
        .set_modified(days_ago)
        .unwrap();
    let aside = folder.join("history-damaged-1000.sqlite");
    std::fs::write(&aside, "damaged").unwrap();
    open(&harness.path).await.1.shut_down().await;
    assert!(image.exists());
    std::fs::remove_file(&aside).unwrap();
    open(&harness.path).await.1.shut_down().await;
    assert!(!image.exists());
}

#[tokio::test]
async fn deleting_all_chats_with_the_backups_leaves_no_copy_of_them() {
    let harness = Harness::new().await;
    let folder = harness.path.parent().unwrap();
    let (aside, copies) = (
        folder.join("history-damaged-1000.sqlite"),
        ["history-readable.sqlite", "history-examined-1000.sqlite"].map(|name| folder.join(name)),
    );
    for file in copies.iter().chain([&aside]) {
        std::fs::write(file, "").unwrap();
    }
    harness.chat.library().delete_all_chats(false).await.unwrap();
    assert!(aside.exists(), "it is kept as backups are");
    assert!(!copies.iter().any(|copy| copy.exists()), "no list shows them");
    harness.chat.library().delete_all_chats(true).await.unwrap();
    assert!(!aside.exists());
}

#[tokio::test]
async fn damage_that_is_none_any_more_is_not_reported() {
    let harness = Harness::new().await;
    let library = harness.chat.library();
    library.note_damage();
    assert!(timeout(Duration::from_secs(1), library.damage()).await.is_err());
}

#[tokio::test]
async fn a_history_that_was_repaired_meanwhile_is_neither_repaired_again_nor_set_aside() {
    let harness = Harness::new().await;
    harness.new_chat().await;
    harness.chat.shut_down().await;
    let repaired = chat::repair_history(&harness.path, api::HistoryRemedy::Everything).await;
    assert_eq!(repaired.unwrap_err().code, ErrorCode::Storage);
    let aside = chat::set_history_aside(&harness.path).await;
    assert_eq!(aside.unwrap_err().code, ErrorCode::Storage);
    let (_, chat) = open(&harness.path).await;
    assert_eq!(chat.chats().list().await.unwrap().len(), 1);
}
