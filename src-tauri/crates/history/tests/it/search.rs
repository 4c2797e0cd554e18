//! Finding chats by what was said.

use api::{HistoryHit, HistoryQuery, Position};
use history::{History, NewAnswer};
use protocol::{Content, Role};
use sqlx::Connection;

use crate::{asked, delta, new_answer, words, Fresh, WRITER};

async fn found(fresh: &Fresh, text: &str) -> Vec<HistoryHit> {
    fresh.history.search(&HistoryQuery::words(text)).await.unwrap().hits
}

/// The marked words of a snippet.
fn marked(hit: &HistoryHit) -> Vec<String> {
    let units: Vec<u16> = hit.snippet.encode_utf16().collect();
    let text = |(from, to): &(u32, u32)| String::from_utf16(&units[*from as usize..*to as usize]).unwrap();
    hit.marks.iter().map(text).collect()
}

#[tokio::test]
async fn titles_come_first_then_what_was_said_newest_first_whatever_the_case() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let turn = fresh.turn(&chat, "Where does TEA grow?", "Tea grows in Assam.").await;
    let other = fresh.chat().await;
    fresh.turn(&other, "Coffee?", "No.").await;
    let hits = found(&fresh, "tea").await;
    let ids: Vec<_> = hits.iter().map(|hit| hit.message.clone()).collect();
    assert_eq!(ids, [None, Some(turn.answer.id), Some(turn.question.id)]);
    assert!(hits
        .iter()
        .all(|hit| hit.chat == chat && hit.title == "Where does TEA grow?"));
    assert_eq!(
        hits.iter().map(|hit| hit.role).collect::<Vec<_>>(),
        [None, Some(Role::Assistant), Some(Role::User)]
    );
    assert_eq!(hits[1].model.as_deref(), Some("pebble"));
    assert_eq!(hits[1].snippet, "Tea grows in Assam.");
    assert_eq!(marked(&hits[1]), ["Tea"]);
}

#[tokio::test]
async fn beginnings_of_words_words_without_accents_phrases_and_parts_of_chinese_sentences_are_found() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let text =
        "Le déjeuner à Besançon; 私は東京都に住んでいます。 서울에서 만나요. ภาษาไทยง่าย. Straße, naïve cafe\u{301}, green tea leaves.";
    fresh.turn(&chat, "q", text).await;
    for (looked_for, seen) in [
        ("dejeu", "déjeu"),
        ("BESANCON", "Besançon"),
        ("京都", "京都"),
        ("都", "都"),
        ("住んで", "住んで"),
        ("서울", "서울"),
        ("ไทย", "ไทย"),
        ("café", "cafe\u{301}"),
        ("naive", "naïve"),
        ("\"green tea\"", "green tea"),
        ("STRASSE", ""),
    ] {
        let hits = found(&fresh, looked_for).await;
        match seen {
            "" => assert!(hits.is_empty(), "{looked_for}"),
            seen => assert_eq!(hits.iter().map(marked).collect::<Vec<_>>(), [[seen]], "{looked_for}"),
        }
    }
    for nowhere in ["京東", "\"tea green\"", "ejeuner", "\"green te\""] {
        assert!(found(&fresh, nowhere).await.is_empty(), "{nowhere}");
    }
    // All words have to stand there, in whatever order.
    assert_eq!(found(&fresh, "leaves besancon").await.len(), 1);
    assert!(found(&fresh, "leaves paris").await.is_empty());
}

#[tokio::test]
async fn signs_of_the_index_stand_for_themselves() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.turn(&chat, "50 or 100 percent NEAR text: x", "it is a'b").await;
    for nowhere in [
        "%",
        "_",
        "' OR 1=1 --x9",
        "*",
        "",
        "\"",
        "\"\"",
        "^",
        "text:zebra",
        "{title}",
        "NOT",
        "\u{0}",
    ] {
        assert!(found(&fresh, nowhere).await.is_empty(), "{nowhere:?}");
    }
    for somewhere in ["a'b", "50%", "NEAR", "near(", "\"text: x", "a\u{0}b", "-50", "(100)"] {
        assert!(!found(&fresh, somewhere).await.is_empty(), "{somewhere:?}");
    }
    assert!(found(&fresh, &"x".repeat(100_000)).await.is_empty());
    assert_eq!(found(&fresh, &"x ".repeat(50_000)).await.len(), 2);
    assert!(found(&fresh, &"\"a\" ".repeat(50_000)).await.len() <= 2);
}

#[tokio::test]
async fn the_place_is_shown_out_of_a_long_text_and_after_a_nul() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let text = format!("{}\u{0}needle{}", "ä ".repeat(5000), "ö".repeat(5000));
    fresh.turn(&chat, "question", &text).await;
    let hits = found(&fresh, "needle").await;
    assert_eq!(hits.len(), 1);
    assert!(
        hits[0].snippet.contains("ä needleö") && hits[0].snippet.chars().count() <= 170,
        "{}",
        hits[0].snippet
    );
}

#[tokio::test]
async fn an_answers_place_is_shown_without_marks_and_a_questions_as_it_was_written() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let code = "let total = price_each * count * 3; // **sum** ".repeat(200);
    let answer = format!(
        "# Where to eat\n\nThe **caf\u{e9}** at [the harbour](https://maps.example.org/quay_4) has `table_count` tables, 2 * 3 * 4 seats.\n\n\
         | dish | price |\n|---|---|\n| herring | 7 |\n\n- [x] booked\n\n```python\n{code}\nlast_line = a * b * ceiling\n```\n\nGoodbye **now**"
    );
    fresh.turn(&chat, "Is the **cafe** #1?", &answer).await;
    let shown = async |text: &str, role: Role| -> (String, Vec<String>) {
        let hits = found(&fresh, text).await;
        let hit = hits.into_iter().find(|hit| hit.role == Some(role)).unwrap();
        (hit.snippet.clone(), marked(&hit))
    };
    assert_eq!(
        shown("cafe", Role::User).await,
        ("Is the **cafe** #1?".into(), vec!["cafe".into()])
    );
    let (snippet, marks) = shown("caf\u{e9}", Role::Assistant).await;
    assert!(
        snippet.starts_with("Where to eat The caf\u{e9} at the harbour has table_count tables, 2 * 3 * 4 seats. dish \u{b7} price herring"),
        "{snippet}"
    );
    assert_eq!(marks, ["caf\u{e9}"]);
    let (snippet, marks) = shown("quay_4", Role::Assistant).await;
    assert!(
        snippet.contains("the harbour (https://maps.example.org/quay_4) has"),
        "{snippet}"
    );
    assert_eq!(marks, ["quay_4"]);
    let (snippet, marks) = shown("booked", Role::Assistant).await;
    assert!(
        snippet.contains("\u{2611} booked let total = price_each * count * 3; // **sum**"),
        "{snippet}"
    );
    assert_eq!(marks, ["booked"]);
    // Far into a block of code, where marks are none.
    let (snippet, marks) = shown("ceiling", Role::Assistant).await;
    assert!(
        snippet.starts_with('…') && snippet.ends_with("// **sum** last_line = a * b * ceiling Goodbye now"),
        "{snippet}"
    );
    assert_eq!(marks, ["ceiling"]);
}

#[tokio::test]
async fn the_trash_is_not_searched_and_what_is_deleted_leaves_the_index() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.turn(&chat, "tea", "tea").await;
    assert_eq!(found(&fresh, "tea").await.len(), 3);
    fresh.history.trash_chat(&chat).await.unwrap();
    assert!(found(&fresh, "tea").await.is_empty());
    fresh.history.restore_chat(&chat).await.unwrap();
    assert_eq!(found(&fresh, "tea").await.len(), 3);
    fresh.history.trash_chat(&chat).await.unwrap();
    fresh.history.purge_trash(history::now() + 1).await.unwrap();
    fresh.history.close().await;
    let mut file = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
        .await
        .unwrap();
    let left: (i64, i64) =
        sqlx::query_as("SELECT (SELECT count(*) FROM search_documents), (SELECT count(*) FROM search_index)")
            .fetch_one(&mut file)
            .await
            .unwrap();
    assert_eq!(left, (0, 0));
}

#[tokio::test]
async fn a_new_title_the_rest_of_an_answer_and_names_of_images_are_found_and_the_old_words_no_more() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let answer = fresh.streaming_answer(&chat).await;
    fresh
        .history
        .append(&answer, WRITER, &delta("Some wal", &[1]))
        .await
        .unwrap();
    assert_eq!(found(&fresh, "wal").await.len(), 1);
    fresh
        .history
        .append(&answer, WRITER, &delta("nuts and dates", &[2]))
        .await
        .unwrap();
    assert_eq!(found(&fresh, "walnuts").await.len(), 1);
    let mut message = fresh.history.message(&answer).await.unwrap();
    fresh.end(&mut message, "Only figs.").await;
    assert_eq!(
        (found(&fresh, "walnuts").await.len(), found(&fresh, "figs").await.len()),
        (0, 1)
    );
    fresh.history.rename_chat(&chat, "Fruit").await.unwrap();
    fresh.history.rename_chat(&chat, "Orchard").await.unwrap();
    assert_eq!(
        (found(&fresh, "fruit").await.len(), found(&fresh, "orchard").await.len()),
        (0, 1)
    );

    let bytes = protocol::ImageBytes::from(b"not unfolded here".to_vec());
    let image = fresh.history.add_attachment(&bytes, "image/png", (1, 1)).await.unwrap();
    let image = Content::Image {
        attachment: image.sha256,
        media_type: "image/png".into(),
        width: 1,
        height: 1,
        alt: "IMG_4711 Hafen.png".into(),
    };
    let other = fresh.chat().await;
    fresh
        .history
        .begin_turn(&other, &[image, words("look")], &Position::End, "", &new_answer())
        .await
        .unwrap();
    assert_eq!(marked(&found(&fresh, "hafen").await[0]), ["Hafen"]);
}

#[tokio::test]
async fn a_model_and_a_span_of_time_narrow_what_is_found() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let first = fresh.turn(&chat, "tea one", "tea").await;
    tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    let between = history::now();
    let other = NewAnswer {
        model: "org/Other-4B".into(),
        ..new_answer()
    };
    let mut second = fresh
        .history
        .begin_turn(&chat, &asked("tea two"), &Position::End, "", &other)
        .await
        .unwrap();
    fresh.end(&mut second.answer, "more tea").await;
    let ids = async |query: HistoryQuery| -> Vec<String> {
        let hits = fresh.history.search(&query).await.unwrap().hits;
        hits.into_iter().filter_map(|hit| hit.message).collect()
    };
    let of_other = HistoryQuery {
        model: Some("org/Other-4B".into()),
        ..HistoryQuery::words("tea")
    };
    assert_eq!(
        ids(of_other).await,
        [second.answer.id.clone(), second.question.id.clone()]
    );
    let since = HistoryQuery {
        since: Some(between),
        ..HistoryQuery::words("tea")
    };
    assert_eq!(ids(since).await, [second.answer.id, second.question.id]);
    let until = HistoryQuery {
        until: Some(between),
        ..HistoryQuery::words("tea")
    };
    assert_eq!(ids(until).await, [first.answer.id, first.question.id]);
    let odd = HistoryQuery {
        since: Some(i64::MAX),
        until: Some(i64::MIN),
        model: Some("\" OR *".into()),
        ..HistoryQuery::words("tea")
    };
    assert!(ids(odd).await.is_empty());
}

#[tokio::test]
async fn an_old_file_is_read_into_the_index_in_small_steps_and_new_words_are_found_at_once() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    for turn in 0..150 {
        fresh.turn(&chat, &format!("question {turn}"), "old words").await;
    }
    // As the migration leaves a file.
    fresh.history.close().await;
    let mut file = sqlx::SqliteConnection::connect(fresh.path().to_str().unwrap())
        .await
        .unwrap();
    sqlx::raw_sql("DELETE FROM search_index; UPDATE search_documents SET stale = 1")
        .execute(&mut file)
        .await
        .unwrap();
    file.close().await.unwrap();
    let history = History::open(&fresh.path()).await.unwrap();
    let first = history.search(&HistoryQuery::words("old")).await.unwrap();
    assert!(first.indexing && !first.hits.is_empty());
    let mut steps = 0;
    while history.index_texts(40, false).await.unwrap() {
        steps += 1;
    }
    assert_eq!(steps, (301 - 64) / 40, "every step reads a bounded number");
    let all = history.search(&HistoryQuery::words("old")).await.unwrap();
    assert!(!all.indexing && all.more && all.hits.len() == 80);
    assert!(!history.index_texts(40, false).await.unwrap(), "nothing is read twice");
}

#[tokio::test]
async fn every_word_that_begins_so_is_found_however_many_there_are() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let said = [
        "harbour",
        "Harbours",
        "h\u{e1}rbourside",
        "harbo ur",
        "HARBOURMASTER's",
        "harb",
    ];
    for text in said {
        fresh.turn(&chat, text, "no").await;
    }
    let questions = async |text: &str| -> Vec<String> {
        let hits = found(&fresh, text).await.into_iter();
        hits.filter(|hit| hit.role == Some(Role::User))
            .map(|hit| hit.snippet)
            .collect()
    };
    assert_eq!(
        questions("harbour").await,
        ["HARBOURMASTER's", "h\u{e1}rbourside", "Harbours", "harbour"]
    );
    assert_eq!(questions("HARBOURS").await, ["h\u{e1}rbourside", "Harbours"]);
    assert_eq!(questions("harbo").await.len(), 5);
    assert_eq!(questions("harbo ur").await, ["harbo ur"]);
    assert_eq!(questions("\"harbour\"").await, ["harbour"]);
    assert_eq!(questions("harbourx").await, Vec::<String>::new());
    // More words than are looked for one by one; the model's part is a column of its own.
    for number in 0..40 {
        fresh.turn(&chat, &format!("berg{number} tree"), "no").await;
    }
    while fresh.history.index_texts(1_000, true).await.unwrap() {}
    assert_eq!(questions("berg").await.len(), 40);
    assert_eq!(questions("berg tre").await.len(), 40);
    assert_eq!(questions("berg3 tree").await.len(), 11);
}

#[tokio::test]
async fn titles_are_left_out_for_who_has_them() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.turn(&chat, "Where does tea grow?", "no").await;
    let query = HistoryQuery {
        without_titles: true,
        ..HistoryQuery::words("tea")
    };
    let hits = fresh.history.search(&query).await.unwrap().hits;
    assert_eq!((hits.len(), hits[0].role), (1, Some(Role::User)));
}
