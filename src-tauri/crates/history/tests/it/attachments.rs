//! Images beside the database.

use std::collections::BTreeSet;
use std::time::Duration;

use api::Position;
use history::{examine, repair, Contents, Error, ExportedImages, History, Remedy};
use protocol::{Content, ImageBytes};
use serde_json::json;
use sqlx::Connection;

use crate::{new_answer, words, Fresh};

/// Long ago, and long after now.
const ALWAYS: i64 = i64::MIN;
const LATER: i64 = i64::MAX;

fn bytes(text: &str) -> ImageBytes {
    text.as_bytes().to_vec().into()
}

fn image(bytes: &ImageBytes) -> Content {
    Content::Image {
        attachment: bytes.id(),
        media_type: "image/png".into(),
        width: 3,
        height: 2,
        alt: "a [cat]".into(),
    }
}

impl Fresh {
    async fn add(&self, text: &str) -> ImageBytes {
        let bytes = bytes(text);
        let kept = self.history.add_attachment(&bytes, "image/png", (3, 2)).await.unwrap();
        assert_eq!(
            (kept.sha256, kept.bytes, kept.width, kept.height),
            (bytes.id(), text.len() as i64, 3, 2)
        );
        bytes
    }

    async fn send(&self, chat: &str, content: &[Content]) {
        self.history
            .begin_turn(chat, content, &Position::End, "", &new_answer())
            .await
            .unwrap();
    }

    fn files(&self) -> BTreeSet<String> {
        let Ok(entries) = std::fs::read_dir(self.folder.path().join("attachments")) else {
            return BTreeSet::new();
        };
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    async fn clean(&self, before: i64) -> u64 {
        self.history.remove_unlinked_attachments(before).await.unwrap()
    }
}

fn names(all: &[&ImageBytes]) -> BTreeSet<String> {
    all.iter().map(|bytes| bytes.id()).collect()
}

#[tokio::test]
async fn an_image_is_kept_once_for_its_owner_alone() {
    let fresh = Fresh::new().await;
    let one = fresh.add("one").await;
    assert_eq!(fresh.add("one").await, one);
    assert_eq!(fresh.files(), names(&[&one]));
    assert_eq!(fresh.history.attachment_bytes(&one.id()).await.unwrap(), one);
    assert_eq!(fresh.history.attachments_size().await.unwrap(), 3);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = fresh.folder.path().join("attachments");
        assert_eq!((mode(folder.clone()), mode(folder.join(one.id()))), (0o700, 0o600));
    }
}

#[tokio::test]
async fn the_text_of_a_file_stays_as_long_as_it_is_named_and_leaves_with_its_chat() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let text = "one\n```\ntwo\u{c}three\n";
    let (sent, drafted, lost) = (
        fresh.history.add_text(text.into()).await.unwrap(),
        fresh.history.add_text("draft".into()).await.unwrap(),
        fresh.history.add_text("lost".into()).await.unwrap(),
    );
    let file = |attachment: &str| Content::File {
        attachment: attachment.into(),
        media_type: "application/pdf".into(),
        name: "a [b].pdf".into(),
        bytes: 9,
        excerpt: None,
    };
    fresh.send(&chat, &[file(&sent), words("What is it?")]).await;
    fresh.history.set_draft(&chat, &[file(&drafted)]).await.unwrap();
    assert_eq!(fresh.clean(LATER).await, 1);
    assert!(matches!(fresh.history.text(&lost).await, Err(Error::NotFound("file"))));
    assert_eq!(fresh.history.text(&sent).await.unwrap(), text);
    let named = fresh.history.attachments_of(&chat).await.unwrap();
    let mut expected = [sent.clone(), drafted];
    expected.sort();
    assert_eq!(
        named.iter().map(|named| named.sha256.clone()).collect::<Vec<_>>(),
        expected
    );
    assert!(named
        .iter()
        .all(|named| named.media_type == "text/plain" && named.width == 0));
    let images = ExportedImages::from([(sent.clone(), ("text/plain".to_owned(), bytes(text)))]);
    let markdown = fresh.history.export_markdown(&chat, &images).await.unwrap();
    assert!(
        markdown.contains("\n**a  b .pdf**\n\n````\none\n```\ntwo\n\nthree\n````\n"),
        "{markdown}"
    );
    let refused = fresh
        .history
        .begin_turn(&chat, &[file(&lost)], &Position::End, "", &new_answer())
        .await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
}

#[tokio::test]
async fn no_name_leads_out_of_the_folder() {
    let fresh = Fresh::new().await;
    std::fs::write(fresh.folder.path().join("secret"), "x").unwrap();
    for name in ["../secret", "/etc/passwd", "", "..", "history.sqlite"] {
        assert!(
            matches!(
                fresh.history.attachment_bytes(name).await,
                Err(Error::NotFound("image"))
            ),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_image_goes_when_nobody_names_it_any_more() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let (sent, drafted, lost) = (
        fresh.add("sent").await,
        fresh.add("drafted").await,
        fresh.add("lost").await,
    );
    fresh.send(&chat, &[image(&sent), words("What is it?")]).await;
    fresh
        .history
        .set_draft(&chat, &[words("and "), image(&drafted)])
        .await
        .unwrap();
    // It was added a moment ago, so a message that names it may still come.
    assert_eq!(fresh.clean(ALWAYS).await, 0);
    assert_eq!(fresh.clean(LATER).await, 1);
    assert_eq!(fresh.files(), names(&[&sent, &drafted]));
    assert!(matches!(
        fresh.history.attachment_bytes(&lost.id()).await,
        Err(Error::NotFound(_))
    ));
    // In the trash it is still named, and comes back with its chat.
    fresh.history.trash_chat(&chat).await.unwrap();
    assert_eq!(fresh.clean(LATER).await, 0);
    fresh.history.restore_chat(&chat).await.unwrap();
    assert_eq!(fresh.history.attachment_bytes(&sent.id()).await.unwrap(), sent);
    fresh.history.set_draft(&chat, &[]).await.unwrap();
    assert_eq!(fresh.clean(LATER).await, 1);
    fresh.history.trash_chat(&chat).await.unwrap();
    fresh.history.purge_trash(LATER).await.unwrap();
    assert_eq!((fresh.clean(LATER).await, fresh.files()), (1, BTreeSet::new()));
}

#[tokio::test]
async fn what_another_chat_or_the_window_names_stays() {
    let fresh = Fresh::new().await;
    let (one, two) = (fresh.chat().await, fresh.chat().await);
    let (shared, new) = (fresh.add("shared").await, fresh.add("of a new chat").await);
    for chat in [&one, &two] {
        fresh.send(chat, &[image(&shared)]).await;
    }
    let state = api::ChatWindowState {
        open_chat: None,
        new_draft: vec![image(&new)],
        folded_projects: vec![],
    };
    fresh.history.set_chat_window(&state).await.unwrap();
    fresh.history.trash_chat(&one).await.unwrap();
    fresh.history.purge_trash(LATER).await.unwrap();
    assert_eq!(fresh.clean(LATER).await, 0);
    assert_eq!(fresh.files(), names(&[&shared, &new]));
}

#[tokio::test]
async fn a_message_cannot_name_an_image_that_is_gone() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let gone = bytes("gone");
    let sent = fresh
        .history
        .begin_turn(&chat, &[image(&gone)], &Position::End, "", &new_answer())
        .await;
    assert!(matches!(sent, Err(Error::NotFound("image"))), "{sent:?}");
    assert!(fresh.history.chat(&chat).await.unwrap().messages.is_empty());
}

/// The traces that a kill can leave: a file without a row, a draft of a file, a row without a file, a file that is cut
/// or another one.
#[tokio::test]
async fn whatever_a_kill_leaves_is_mended() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let kept = fresh.add("kept").await;
    fresh.send(&chat, &[image(&kept)]).await;
    let folder = fresh.folder.path().join("attachments");
    let orphan = bytes("orphan").id();
    for name in [orphan.as_str(), ".ponder-draft", "a person's own.txt"] {
        std::fs::write(folder.join(name), "x").unwrap();
    }
    assert_eq!(fresh.clean(ALWAYS).await, 0, "they may be of a process that is at work");
    assert_eq!(fresh.clean(LATER).await, 2);
    assert_eq!(fresh.files(), BTreeSet::from([kept.id(), "a person's own.txt".into()]));

    for damage in ["", "ke", "tpek"] {
        match damage {
            "" => std::fs::remove_file(folder.join(kept.id())).unwrap(),
            other => std::fs::write(folder.join(kept.id()), other).unwrap(),
        }
        assert!(
            matches!(
                fresh.history.attachment_bytes(&kept.id()).await,
                Err(Error::NotFound(_))
            ),
            "{damage}"
        );
        if damage.len() != kept.len() {
            // The same image once more, and it is there again.
            fresh.add("kept").await;
            assert_eq!(fresh.history.attachment_bytes(&kept.id()).await.unwrap(), kept);
        }
    }
}

#[tokio::test]
async fn a_folder_of_images_that_is_lost_costs_no_chat() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let sent = fresh.add("sent").await;
    fresh.send(&chat, &[words("What is this?"), image(&sent)]).await;
    fresh.history.close().await;
    std::fs::remove_dir_all(fresh.folder.path().join("attachments")).unwrap();
    let whole = Contents { chats: 1, messages: 2 };
    assert_eq!(examine(&fresh.path()).await.unwrap().readable, whole);
    let history = History::open(&fresh.path()).await.unwrap();
    assert_eq!(history.chats().await.unwrap().len(), 1);
    assert_eq!(history.chat(&chat).await.unwrap().messages[0].text(), "What is this?");
    assert!(history.attachment_bytes(&sent.id()).await.is_err());
    assert!(history.back_up(Duration::ZERO).await.unwrap().is_some());
    let text = history.export_markdown(&chat, &ExportedImages::new()).await.unwrap();
    assert!(text.contains("What is this?"), "{text}");
    history.close().await;
    assert_eq!(repair(&fresh.path(), Remedy::Everything).await.unwrap().contents, whole);
}

#[tokio::test]
async fn an_image_whose_row_is_lost_stays_as_long_as_it_is_named() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let (sent, drafted, new) = (
        fresh.add("sent").await,
        fresh.add("drafted").await,
        fresh.add("new").await,
    );
    fresh.send(&chat, &[image(&sent)]).await;
    fresh.history.set_draft(&chat, &[image(&drafted)]).await.unwrap();
    let state = api::ChatWindowState {
        open_chat: None,
        new_draft: vec![image(&new)],
        folded_projects: vec![],
    };
    fresh.history.set_chat_window(&state).await.unwrap();
    let mut file = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
        .await
        .unwrap();
    sqlx::raw_sql("DELETE FROM attachments; INSERT INTO settings VALUES ('broken', '{')")
        .execute(&mut file)
        .await
        .unwrap();
    file.close().await.unwrap();
    assert_eq!(fresh.clean(LATER).await, 0);
    assert_eq!(fresh.files(), names(&[&sent, &drafted, &new]));
}

#[tokio::test]
async fn two_processes_that_add_and_clean_lose_nothing() {
    let fresh = Fresh::new().await;
    let other = History::open(&fresh.path()).await.unwrap();
    let cleaning = tokio::spawn(async move {
        for _ in 0..60 {
            other.remove_unlinked_attachments(LATER).await.unwrap();
        }
    });
    for round in 0..60 {
        let chat = fresh.chat().await;
        let bytes = bytes(&format!("image {}", round % 3));
        // Cleaned away before it is named, it is added anew, as a window would.
        loop {
            fresh.history.add_attachment(&bytes, "image/png", (1, 1)).await.unwrap();
            match fresh
                .history
                .begin_turn(&chat, &[image(&bytes)], &Position::End, "", &new_answer())
                .await
            {
                Ok(_) => break,
                Err(Error::NotFound("image")) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(fresh.history.attachment_bytes(&bytes.id()).await.unwrap(), bytes);
        if round % 2 == 0 {
            fresh.history.trash_chat(&chat).await.unwrap();
            fresh.history.purge_trash(LATER).await.unwrap();
        }
    }
    cleaning.await.unwrap();
    for name in 0..3 {
        let bytes = bytes(&format!("image {name}"));
        assert_eq!(
            fresh.history.attachment_bytes(&bytes.id()).await.unwrap(),
            bytes,
            "chats of odd rounds still name all three"
        );
    }
}

#[tokio::test]
async fn exports_hold_the_images_they_are_given() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let (shown, other) = (fresh.add("shown").await, fresh.add("other").await);
    fresh.send(&chat, &[image(&shown), words("What is it?")]).await;
    fresh.send(&fresh.chat().await, &[image(&other)]).await;
    let named = fresh.history.attachments_of(&chat).await.unwrap();
    assert_eq!(
        named.iter().map(|one| one.sha256.clone()).collect::<Vec<_>>(),
        [shown.id()]
    );
    let images = ExportedImages::from([(shown.id(), ("image/png".to_owned(), bytes("bare")))]);
    let markdown = fresh.history.export_markdown(&chat, &images).await.unwrap();
    assert!(
        markdown.contains("\n![a  cat ](data:image/png;base64,YmFyZQ==)\n\nWhat is it?"),
        "{markdown}"
    );
    let json = fresh.history.export_json(&chat, &images).await.unwrap();
    assert_eq!(
        json["attachments"],
        json!({(shown.id()): {"media_type": "image/png", "base64": "YmFyZQ=="}})
    );
    let without = fresh
        .history
        .export_markdown(&chat, &ExportedImages::new())
        .await
        .unwrap();
    assert!(without.contains("*[image: a [cat]]*"), "{without}");
}
