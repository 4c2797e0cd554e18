//! Files of projects in turns: every chat in the project takes their texts along, at the same place in every turn, and
//! they count.

use std::time::Duration;

use api::{ChatSettings, CompactionMark, ExportFormat, Position};
use protocol::{Content, ErrorCode, Role};
use tokio::time::sleep;

use crate::prefetch::said;
use crate::Harness;

impl Harness {
    /// A chat in a new project with files of these names and texts; the project and the files, too.
    async fn chat_with_files(&self, files: &[(&str, &str)]) -> (String, String, Vec<Content>) {
        let chat = self.new_chat().await;
        let project = self.chat.projects().create("Thesis").await.unwrap().id;
        self.chat.projects().move_chat(&chat, Some(&project)).await.unwrap();
        let mut added = Vec::new();
        for (name, text) in files {
            let file = self
                .chat
                .files()
                .add_file(text.as_bytes().to_vec(), name)
                .await
                .unwrap();
            self.chat.projects().put_file(&project, &file).await.unwrap();
            added.push(file);
        }
        (chat, project, added)
    }

    /// The same with the two files of `QUOTED` and instructions.
    async fn chat_with_two_files(&self) -> (String, String, Vec<Content>) {
        let made = self.chat_with_files(&[("a.md", "# Tea"), ("b.txt", "Cups: 2\n")]).await;
        self.chat
            .projects()
            .change(&made.1, "Thesis", "Be brief.")
            .await
            .unwrap();
        made
    }
}

fn attachment(file: &Content) -> &str {
    let Content::File { attachment, .. } = file else {
        panic!("{file:?}")
    };
    attachment
}

const QUOTED: &str = "File `a.md`:\n\n```md\n# Tea\n```\n\nFile `b.txt`:\n\n```txt\nCups: 2\n```\n\n";

#[tokio::test]
async fn a_chat_has_the_files_of_its_project_and_of_its_messages_and_no_others() {
    let harness = Harness::new().await;
    let (chat, _, files) = harness.chat_with_two_files().await;
    let other = harness.new_chat().await;
    let add = |name: &'static str| harness.chat.files().add_file(b"Milk".to_vec(), name);
    let (own, foreign) = (add("own.txt").await.unwrap(), add("foreign.txt").await.unwrap());
    let answers = harness.chat.answers();
    for (chat, file) in [(&chat, &own), (&other, &foreign)] {
        answers
            .send(chat, &[file.clone(), Content::text("Read it")], &Position::End)
            .await
            .unwrap();
    }
    let of = harness.chat.files().of_chat(&chat).await.unwrap();
    assert_eq!(of, [files[0].clone(), files[1].clone(), own]);
    assert_eq!(harness.chat.files().of_chat(&other).await.unwrap(), [foreign]);
    let missing = harness.chat.files().of_chat("no such chat").await.unwrap_err();
    assert_eq!(missing.code, ErrorCode::NotFound);
}

#[tokio::test]
async fn every_chat_of_a_project_takes_its_files_along_at_the_same_place_in_every_turn() {
    let harness = Harness::new().await;
    let (chat, project, files) = harness.chat_with_two_files().await;
    let first = harness.said(&chat, "How many cups?").await;
    let asked = [
        (Role::System, "Be brief.".to_owned()),
        (Role::User, format!("{QUOTED}How many cups?")),
    ];
    assert_eq!(first, asked);
    // The next prompt begins with the same bytes, so that nothing is read again.
    let second = harness.said(&chat, "And spoons?").await;
    assert_eq!(second[..2], asked);
    assert_eq!(second[3], (Role::User, "And spoons?".to_owned()));
    // They are no part of what is stored.
    assert_eq!(
        harness.stored(&chat).await[0].parts[0].content,
        Content::text("How many cups?")
    );

    // Another chat of the project takes them along, one outside does not, and one that is moved there does from its
    // next question on.
    let (other, outside) = (harness.new_chat().await, harness.new_chat().await);
    harness.chat.projects().move_chat(&other, Some(&project)).await.unwrap();
    assert_eq!(harness.said(&other, "Hello").await[1].1, format!("{QUOTED}Hello"));
    assert_eq!(
        harness.said(&outside, "Hello").await,
        [(Role::User, "Hello".to_owned())]
    );
    harness
        .chat
        .projects()
        .move_chat(&outside, Some(&project))
        .await
        .unwrap();
    assert_eq!(harness.said(&outside, "Again").await[1].1, format!("{QUOTED}Hello"));

    // A file that is taken out is gone from the next answer on, and so is all with the project.
    harness
        .chat
        .projects()
        .remove_file(&project, attachment(&files[0]))
        .await
        .unwrap();
    assert!(!harness.said(&chat, "Which files?").await[1].1.contains("a.md"));
    harness.chat.projects().put_file(&project, &files[0]).await.unwrap();
    assert!(harness.said(&chat, "Now?").await[1].1.starts_with(QUOTED));
    harness.chat.projects().delete(&project).await.unwrap();
    assert_eq!(
        harness.said(&chat, "And now?").await[0],
        (Role::User, "How many cups?".to_owned())
    );
}

#[tokio::test]
async fn the_files_are_read_ahead_before_the_first_question() {
    let harness = Harness::new().await;
    let (chat, project, _) = harness.chat_with_two_files().await;
    let files = QUOTED.trim_end().to_owned();
    let ahead = [(Role::System, "Be brief.".to_owned()), (Role::User, files.clone())];
    // When the empty chat is opened, and before there is one.
    harness.chat.chats().open(&chat).await.unwrap();
    // The move into the project was prefetched, too, with what stood in it by then.
    while !harness.prefetch().await.iter().any(|request| said(request) == ahead) {}
    harness
        .chat
        .projects()
        .prefetch(&project, ChatSettings::default())
        .await
        .unwrap();
    assert_eq!(said(&harness.engine.take_prefetched()[0]), ahead);
    // An engine puts an empty line before the question that it does not know yet.
    let asked = harness.said(&chat, "How many cups?").await;
    assert_eq!(asked[1].1, format!("{files}\n\nHow many cups?"));

    let empty = harness.chat.projects().create("Empty").await.unwrap().id;
    let other = harness.new_chat().await;
    harness.prefetch().await;
    harness
        .chat
        .projects()
        .prefetch(&empty, ChatSettings::default())
        .await
        .unwrap();
    harness.chat.projects().move_chat(&other, Some(&empty)).await.unwrap();
    let elsewhere = ChatSettings {
        model: Some("endpoint:lab/owl".into()),
        ..ChatSettings::default()
    };
    harness.chat.projects().prefetch(&project, elsewhere).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    assert!(
        harness.engine.take_prefetched().is_empty(),
        "there is nothing to read, or nobody who asked for it"
    );
    let missing = harness
        .chat
        .projects()
        .prefetch("missing", ChatSettings::default())
        .await;
    assert_eq!(missing.unwrap_err().code, ErrorCode::NotFound);
}

#[tokio::test]
async fn a_chat_that_is_moved_is_read_ahead_with_what_now_stands_before_it() {
    let harness = Harness::new().await;
    let (_, project, _) = harness
        .chat_with_files(&[("a.md", "# Tea"), ("b.txt", "Cups: 2\n")])
        .await;
    let chat = harness.new_chat().await;
    harness.said(&chat, "How many cups?").await;
    harness.prefetch().await;
    harness.chat.projects().move_chat(&chat, Some(&project)).await.unwrap();
    let ahead = said(&harness.prefetch().await[0]);
    assert_eq!(
        (ahead.len(), &ahead[0]),
        (2, &(Role::User, format!("{QUOTED}How many cups?")))
    );
}

#[tokio::test]
async fn a_compacted_chat_keeps_its_files() {
    let harness = Harness::new().await;
    let (chat, ..) = harness
        .chat_with_files(&[("a.md", "# Tea"), ("b.txt", "Cups: 2\n")])
        .await;
    harness.said(&chat, "One").await;
    let cut = harness.stored(&chat).await[1].id.clone();
    harness
        .chat
        .compaction()
        .set_mark(&cut, Some(&CompactionMark { summary: None }))
        .await
        .unwrap();
    assert_eq!(harness.said(&chat, "Two").await, [(Role::User, format!("{QUOTED}Two"))]);
    // Another answer to the first question, and a part of a file.
    let regenerated = harness.stored(&chat).await[0].id.clone();
    harness.chat.answers().regenerate(&regenerated, None).await.unwrap();
    let job = harness.job().await;
    assert_eq!(job.request.messages[0].text_with_placeholders(), format!("{QUOTED}One"));
}

#[tokio::test]
async fn files_count_in_what_a_chat_takes_of_its_context() {
    let harness = Harness::new().await;
    harness.load().await;
    let (chat, ..) = harness.chat_with_files(&[("long.txt", &"x".repeat(1000))]).await;
    let empty = harness.chat.compaction().context_use(&chat, &[]).await.unwrap();
    assert!((1000..1200).contains(&empty.tokens), "{empty:?}");
    let asked = harness
        .chat
        .compaction()
        .context_use(&chat, &[Content::text("y".repeat(500))])
        .await
        .unwrap();
    assert!((1500..1700).contains(&asked.tokens), "{asked:?}");
    let outside = harness.new_chat().await;
    assert_eq!(
        harness
            .chat
            .compaction()
            .context_use(&outside, &[])
            .await
            .unwrap()
            .tokens,
        0
    );
}

#[tokio::test]
async fn a_question_that_does_not_fit_beside_the_files_is_refused_and_says_what_they_take() {
    let harness = Harness::new().await;
    harness.load().await;
    // The fake counts a token for each byte, and its context holds 4096.
    let (chat, project, files) = harness.chat_with_files(&[("long.txt", &"x".repeat(4000))]).await;
    let question = [Content::text("y".repeat(200))];
    let refused = harness
        .chat
        .answers()
        .send(&chat, &question, &Position::End)
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::ContextFull);
    assert!(
        refused.message.contains("the files of its folder take 40"),
        "{}",
        refused.message
    );
    let arguments = serde_json::to_value(&refused).unwrap()["arguments"].clone();
    assert!(
        (4000..4100).contains(&arguments["files"].as_u64().unwrap()),
        "{arguments}"
    );
    assert!(harness.stored(&chat).await.is_empty());
    assert!(harness.engine.take_job().is_none());
    harness
        .chat
        .projects()
        .remove_file(&project, attachment(&files[0]))
        .await
        .unwrap();
    harness
        .chat
        .answers()
        .send(&chat, &question, &Position::End)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_file_of_a_question_that_does_not_fit_is_refused_before_anything_is_stored() {
    let harness = Harness::new().await;
    harness.load().await;
    let chat = harness.new_chat().await;
    let file = harness
        .chat
        .files()
        .add_file("x".repeat(5000).into_bytes(), "long.txt")
        .await
        .unwrap();
    let refused = harness
        .chat
        .answers()
        .send(&chat, &[file], &Position::End)
        .await
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::ContextFull);
    assert!(harness.stored(&chat).await.is_empty());
}

#[tokio::test]
async fn files_outlive_a_start_and_are_gone_with_their_project() {
    let harness = Harness::new().await;
    let (chat, project, _) = harness
        .chat_with_files(&[("a.md", "# Tea"), ("b.txt", "Cups: 2\n")])
        .await;
    // A start removes what nobody names.
    let (_, again) = crate::open(&harness.path).await;
    again.shut_down().await;
    assert_eq!(harness.said(&chat, "One").await[0].1, format!("{QUOTED}One"));
    assert!(harness.chat.files().attachments_size().await.unwrap() > 0);
    harness.chat.library().delete_all_chats(false).await.unwrap();
    assert_eq!(harness.chat.projects().list().await.unwrap()[0].files.len(), 2);
    assert!(harness.chat.files().attachments_size().await.unwrap() > 0);
    assert_eq!(harness.chat.projects().list().await.unwrap()[0].id, project);
}

#[tokio::test]
async fn an_export_carries_the_project_of_its_chats_once() {
    let harness = Harness::new().await;
    let (chat, project, _) = harness
        .chat_with_files(&[("a.md", "# Tea"), ("b.txt", "Cups: 2\n")])
        .await;
    let other = harness.new_chat().await;
    harness.chat.projects().move_chat(&other, Some(&project)).await.unwrap();
    for chat in [&chat, &other] {
        harness.said(chat, "Hello").await;
    }
    let all = harness.chat.library().export(None, ExportFormat::Json).await.unwrap();
    let value: serde_json::Value = serde_json::from_str(&all).unwrap();
    assert_eq!(
        (
            value["chats"].as_array().unwrap().len(),
            value["projects"].as_array().unwrap().len()
        ),
        (2, 1)
    );
    let one = harness
        .chat
        .library()
        .export(Some(std::slice::from_ref(&chat)), ExportFormat::Json)
        .await
        .unwrap();

    for (export, chats) in [(all, 2), (one, 1)] {
        let there = Harness::new().await;
        assert_eq!(
            there.chat.library().import(export.into_bytes()).await.unwrap().chats,
            chats
        );
        assert_eq!(there.said(&chat, "And there?").await[0].1, format!("{QUOTED}Hello"));
    }
}
