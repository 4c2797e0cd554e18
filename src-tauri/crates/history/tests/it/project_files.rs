//! Files of projects: kept in their order, taken out and put back, and gone with their project.

use history::{read_import, repair, with_projects, Error, ExportedImages, History};
use protocol::{Content, Excerpt, ExcerptUnit};
use serde_json::json;
use sqlx::Connection;

use crate::Fresh;

/// Long after now.
const LATER: i64 = i64::MAX;

impl Fresh {
    /// A text that is kept, as a file of this name.
    async fn file(&self, name: &str, text: &str) -> Content {
        Content::File {
            attachment: self.history.add_text(text.to_owned()).await.unwrap(),
            media_type: "text/plain".into(),
            name: name.into(),
            bytes: text.len() as u64,
            excerpt: Some(Excerpt::whole(ExcerptUnit::Lines, 1)),
        }
    }

    async fn files_of(&self, project: &str) -> Vec<Content> {
        let projects = self.history.projects().await.unwrap();
        projects.into_iter().find(|other| other.id == project).unwrap().files
    }

    async fn remaining(&self) -> usize {
        self.history.remove_unlinked_attachments(LATER).await.unwrap();
        std::fs::read_dir(self.folder.path().join("attachments")).map_or(0, Iterator::count)
    }
}

fn attachment(file: &Content) -> &str {
    let Content::File { attachment, .. } = file else {
        panic!("{file:?}")
    };
    attachment
}

#[tokio::test]
async fn files_are_kept_in_their_order_and_come_back_to_their_place() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let (project, other) = (
        history.create_project("Thesis").await.unwrap().id,
        history.create_project("Other").await.unwrap().id,
    );
    let (one, two, three) = (
        fresh.file("1.txt", "one").await,
        fresh.file("2.txt", "two").await,
        fresh.file("3.txt", "three").await,
    );
    for file in [&one, &two, &three] {
        history.put_project_file(&project, file).await.unwrap();
    }
    history.put_project_file(&other, &two).await.unwrap();
    let chat = fresh.chat().await;
    history.move_chat(&chat, Some(&project)).await.unwrap();
    let seen = history.project_of(&chat).await.unwrap().unwrap().files;
    assert_eq!(seen, [one.clone(), two.clone(), three.clone()]);

    history.remove_project_file(&project, attachment(&two)).await.unwrap();
    assert_eq!(fresh.files_of(&project).await, [one.clone(), three.clone()]);
    assert_eq!(fresh.files_of(&other).await, std::slice::from_ref(&two));
    assert!(matches!(
        history.remove_project_file(&project, attachment(&two)).await,
        Err(Error::NotFound("file"))
    ));
    history.put_project_file(&project, &two).await.unwrap();
    // The same text under another name, and a part of it, takes its place.
    let mut part = fresh.file("first.txt", "one").await;
    if let Content::File { excerpt, .. } = &mut part {
        *excerpt = Some(Excerpt {
            first: 2,
            last: 3,
            ..Excerpt::whole(ExcerptUnit::Lines, 9)
        });
    }
    history.put_project_file(&project, &part).await.unwrap();
    assert_eq!(fresh.files_of(&project).await, [part, two, three]);
}

#[tokio::test]
async fn texts_stay_as_long_as_their_project_or_its_trash() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let project = history.create_project("Thesis").await.unwrap().id;
    let (one, two) = (fresh.file("1.txt", "one").await, fresh.file("2.txt", "two").await);
    history.put_project_file(&project, &one).await.unwrap();
    history.put_project_file(&project, &two).await.unwrap();
    fresh.file("nobody.txt", "nobody's").await;
    assert_eq!(fresh.remaining().await, 2);

    // A removed file can be restored until the trash is emptied.
    history.remove_project_file(&project, attachment(&one)).await.unwrap();
    assert_eq!(fresh.remaining().await, 2);
    history.put_project_file(&project, &one).await.unwrap();
    assert_eq!(history.text(attachment(&one)).await.unwrap(), "one");
    history.remove_project_file(&project, attachment(&one)).await.unwrap();
    history.purge_trash(history::now() + 1).await.unwrap();
    assert_eq!(fresh.remaining().await, 1);
    assert!(matches!(
        history.put_project_file(&project, &one).await,
        Err(Error::NotFound("file"))
    ));

    // Deleting all chats leaves projects as they are.
    history.delete_all_chats().await.unwrap();
    assert_eq!(fresh.remaining().await, 1);
    history.delete_project(&project).await.unwrap();
    assert_eq!(fresh.remaining().await, 1);
    assert!(matches!(
        history.put_project_file(&project, &two).await,
        Err(Error::NotFound("folder"))
    ));
    history.restore_project(&project).await.unwrap();
    assert_eq!(fresh.files_of(&project).await, std::slice::from_ref(&two));
    history.delete_project(&project).await.unwrap();
    history.purge_trash(history::now() + 1).await.unwrap();
    assert_eq!(fresh.remaining().await, 0);
}

#[tokio::test]
async fn a_project_refuses_what_is_no_file_and_more_than_a_model_reads() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let project = history.create_project("Thesis").await.unwrap().id;
    let refused = async |file: &Content| match history.put_project_file(&project, file).await {
        Err(error @ Error::ProjectFile(_)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(&Content::text("words")).await.contains("only documents"));
    let half = fresh.file("half.txt", &"x".repeat(6_000_000)).await;
    let more = fresh.file("more.txt", &"y".repeat(4_000_001)).await;
    history.put_project_file(&project, &half).await.unwrap();
    // The same again is not counted twice.
    history.put_project_file(&project, &half).await.unwrap();
    let said = refused(&more).await;
    assert!(
        said.contains("10.0 MB") && said.contains("Remove one first") && said.ends_with("Nothing was changed"),
        "{said}"
    );
    history.remove_project_file(&project, attachment(&half)).await.unwrap();
    history.put_project_file(&project, &more).await.unwrap();
    assert!(
        refused(&half).await.contains("10.0 MB"),
        "what was removed does not come back if it no longer fits"
    );
    for number in 0..99 {
        let file = fresh.file("many.txt", &format!("{number}")).await;
        history.put_project_file(&project, &file).await.unwrap();
    }
    assert!(refused(&fresh.file("last.txt", "last").await)
        .await
        .contains("100 files"));
    assert_eq!(fresh.files_of(&project).await.len(), 100);
}

#[tokio::test]
async fn a_project_goes_with_the_export_of_its_chats_and_stays_as_it_is_where_it_is_known() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let project = history.create_project("Thesis").await.unwrap().id;
    history.change_project(&project, "Thesis", "Be brief.").await.unwrap();
    for (name, text) in [("b.md", "# One 猫"), ("a.md", "two\u{0}")] {
        history
            .put_project_file(&project, &fresh.file(name, text).await)
            .await
            .unwrap();
    }
    let chat = fresh.chat().await;
    let turn = fresh.turn(&chat, "question", "answer").await;
    history.move_chat(&chat, Some(&project)).await.unwrap();
    let copy = history.fork_chat(&turn.answer.id, "copy").await.unwrap();
    assert_eq!(
        copy.project.as_ref(),
        Some(&project),
        "a copy lies where its original does"
    );
    let known = history.project_of(&chat).await.unwrap().unwrap();
    let projects = vec![history.export_project(&known).await.unwrap()];
    let exported = history.export_json(&chat, &ExportedImages::new()).await.unwrap();
    let file = with_projects(exported, projects).to_string().into_bytes();

    let other = Fresh::new().await;
    assert_eq!(
        other.history.import(read_import(&file).unwrap()).await.unwrap().chats,
        1
    );
    let came = other.history.project_of(&chat).await.unwrap().unwrap();
    assert_eq!(came, known);
    let texts = [attachment(&came.files[0]), attachment(&came.files[1])];
    assert_eq!(other.history.text(texts[0]).await.unwrap(), "# One 猫");
    assert_eq!(other.remaining().await, 2);

    other.history.change_project(&project, "Mine", "").await.unwrap();
    other.history.remove_project_file(&project, texts[1]).await.unwrap();
    other.history.import(read_import(&file).unwrap()).await.unwrap();
    let kept = other.history.projects().await.unwrap().pop().unwrap();
    assert_eq!((kept.name.as_str(), kept.files.len()), ("Mine", 1));
}

#[tokio::test]
async fn a_hostile_project_in_a_file_is_tamed() {
    let fresh = Fresh::new().await;
    let file = |projects: serde_json::Value| {
        let chat = json!({"format": "ponder-chat", "version": 1, "chat": {"id": "c", "title": "", "created_at": 0, "updated_at": 0, "pinned": false,
            "running": false, "unread": false, "revision": 0, "archived": false, "project": "f"}, "head": null, "messages": []});
        with_projects(chat, projects.as_array().unwrap().clone())
            .to_string()
            .into_bytes()
    };
    assert!(matches!(read_import(&file(json!([{"id": 7}]))), Err(Error::Import(_))));
    let hostile = json!([
        {"id": "f", "name": " \n ", "created_at": i64::MAX, "system_prompt": "x",
         "files": [{"kind": "text", "text": "no file"},
                   {"kind": "file", "attachment": "../../etc/passwd", "media_type": "x", "name": "gone", "bytes": 1},
                   {"kind": "file", "attachment": "here", "media_type": "text/plain", "name": "here.txt", "bytes": 1}],
         "attachments": {"here": {"media_type": "text/plain", "base64": "/w=="}}},
        {"id": "f", "name": "twice", "created_at": 0}
    ]);
    assert_eq!(
        fresh
            .history
            .import(read_import(&file(hostile)).unwrap())
            .await
            .unwrap()
            .chats,
        1
    );
    let projects = fresh.history.projects().await.unwrap();
    let [project] = &projects[..] else {
        panic!("{projects:?}")
    };
    assert_eq!(project.name, "Untitled folder");
    assert_eq!(
        fresh.history.text(attachment(&project.files[0])).await.unwrap(),
        "\u{fffd}"
    );
    assert_eq!(project.files.len(), 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_hides_neither_its_project_nor_the_others_and_a_repair_keeps_them() {
    let fresh = Fresh::new().await;
    let history = &fresh.history;
    let project = history.create_project("Thesis").await.unwrap().id;
    let (one, two) = (fresh.file("1.txt", "one").await, fresh.file("2.txt", "two").await);
    for file in [&one, &two, &fresh.file("3.txt", "three").await] {
        history.put_project_file(&project, file).await.unwrap();
    }
    let chat = fresh.chat().await;
    fresh.turn(&chat, "question", "answer").await;
    history.move_chat(&chat, Some(&project)).await.unwrap();
    history.close().await;
    let mut file = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
        .await
        .unwrap();
    sqlx::raw_sql(
        "UPDATE project_files SET content = CAST(x'ff00' AS TEXT) WHERE position = 3;
         PRAGMA foreign_keys = off;
         INSERT INTO project_files (project_id, sha256, position, content) VALUES ('nowhere', 'x', 1, '{}')",
    )
    .execute(&mut file)
    .await
    .unwrap();
    file.close().await.unwrap();
    let opened = History::open(&fresh.path()).await.unwrap();
    assert_eq!(opened.projects().await.unwrap()[0].files, [one.clone(), two.clone()]);
    opened.close().await;

    repair(&fresh.path(), history::Remedy::Everything).await.unwrap();
    let repaired = History::open(&fresh.path()).await.unwrap();
    assert_eq!(repaired.project_of(&chat).await.unwrap().unwrap().files, [one, two]);
    repaired.remove_unlinked_attachments(LATER).await.unwrap();
    assert_eq!(
        std::fs::read_dir(fresh.folder.path().join("attachments"))
            .unwrap()
            .count(),
        3
    );
}
