//! Notes about the user: kept with their project, limited, and part of a repair.

use history::{repair, Error, Remedy};
use sqlx::Connection;

use crate::Fresh;

#[tokio::test]
async fn notes_are_lines_that_are_added_once_changed_and_deleted() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let project = history.create_project("Thesis").await.unwrap().id;
    let chat = fresh.chat().await;
    let one = history.add_note(None, " I sail.\n Often. ", None).await.unwrap();
    assert_eq!((one.text.as_str(), one.chat.as_deref()), ("I sail. Often.", None));
    let again = history.add_note(None, "I sail. Often.", Some(&chat)).await.unwrap();
    assert_eq!(again, one, "the same words are noted once");
    let other = history
        .add_note(Some(&project), "I sail. Often.", Some(&chat))
        .await
        .unwrap();
    assert_eq!(history.notes(None).await.unwrap(), std::slice::from_ref(&one));
    assert_eq!(
        history.notes(Some(&project)).await.unwrap(),
        std::slice::from_ref(&other)
    );
    history.change_note(&one.id, "I row.").await.unwrap();
    assert_eq!(history.notes(None).await.unwrap()[0].text, "I row.");
    // A suggestion outlives its chat, and a project in the trash takes no more.
    history.delete_all_chats().await.unwrap();
    assert_eq!(history.notes(Some(&project)).await.unwrap()[0].chat, None);
    history.delete_project(&project).await.unwrap();
    assert!(matches!(
        history.add_note(Some(&project), "More", None).await,
        Err(Error::NotFound("folder"))
    ));
    history.restore_project(&project).await.unwrap();
    assert_eq!(history.notes(Some(&project)).await.unwrap().len(), 1);
    history.delete_project(&project).await.unwrap();
    history.purge_trash(history::now() + 1).await.unwrap();
    assert_eq!(history.notes(Some(&project)).await.unwrap(), []);
    history.delete_note(&one.id).await.unwrap();
    assert!(matches!(
        history.delete_note(&one.id).await,
        Err(Error::NotFound("note"))
    ));
    assert!(matches!(
        history.change_note(&one.id, "a").await,
        Err(Error::NotFound("note"))
    ));
}

#[tokio::test]
async fn a_note_has_words_and_few_of_them_and_a_list_has_an_end() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let long = "ä".repeat(501);
    for text in ["", " \n\t ", long.as_str()] {
        assert!(
            matches!(history.add_note(None, text, None).await, Err(Error::Note(_))),
            "{text:?}"
        );
    }
    history.add_note(None, &long[..1000], None).await.unwrap();
    for number in 1..100 {
        history.add_note(None, &format!("Note {number}"), None).await.unwrap();
    }
    let error = history.add_note(None, "One more", None).await.unwrap_err();
    assert!(error.to_string().contains("delete one first"), "{error}");
    assert_eq!(history.notes(None).await.unwrap().len(), 100);
}

#[tokio::test]
async fn a_repair_keeps_notes_and_tells_none_where_it_does_not_belong() {
    let fresh = Fresh::new().await;
    let project = fresh.history.create_project("Thesis").await.unwrap().id;
    fresh.chat().await;
    let kept = fresh.history.add_note(None, "I sail.", None).await.unwrap();
    fresh
        .history
        .add_note(Some(&project), "Only here.", None)
        .await
        .unwrap();
    fresh.history.set_project_uses_notes(&project, true).await.unwrap();
    fresh.history.close().await;
    let path = fresh.folder.path().join("history.sqlite");
    let mut file = sqlx::SqliteConnection::connect(&format!("sqlite:{}", path.display()))
        .await
        .unwrap();
    sqlx::raw_sql("PRAGMA foreign_keys = off; DELETE FROM projects")
        .execute(&mut file)
        .await
        .unwrap();
    file.close().await.unwrap();
    repair(&path, Remedy::Everything).await.unwrap();
    let history = history::History::open(&path).await.unwrap();
    assert_eq!(history.notes(None).await.unwrap(), [kept]);
    assert_eq!(history.notes(Some(&project)).await.unwrap(), []);
}
