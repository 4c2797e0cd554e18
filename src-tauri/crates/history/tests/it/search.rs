//! Finding chats by what was said.

use crate::Fresh;

#[tokio::test]
async fn questions_answers_and_titles_are_found_whatever_their_case() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let turn = fresh.turn(&chat, "Where does TEA grow?", "Tea grows in Assam.").await;
    let other = fresh.chat().await;
    fresh.turn(&other, "Coffee?", "No.").await;
    let found = fresh.history.search("tea").await.unwrap();
    let mut places: Vec<_> = found.iter().map(|found| found.message.clone()).collect();
    places.sort();
    assert_eq!(places, [None, Some(turn.question.id), Some(turn.answer.id)]);
    assert!(found
        .iter()
        .all(|found| found.chat == chat && found.title == "Where does TEA grow?"));
    assert_eq!(fresh.history.search("Assam").await.unwrap()[0].snippet, "Tea grows in Assam.");
}

#[tokio::test]
async fn signs_of_sql_patterns_stand_for_themselves() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.turn(&chat, "50 or 100 percent", "it is a'b").await;
    for nowhere in ["%", "_", "50%", "' OR 1=1 --", "*", ""] {
        assert!(fresh.history.search(nowhere).await.unwrap().is_empty(), "{nowhere:?}");
    }
    assert_eq!(fresh.history.search("a'b").await.unwrap().len(), 1);
    assert!(fresh.history.search(&"x".repeat(100_000)).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_place_is_shown_out_of_a_long_text_and_behind_a_nul() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let text = format!("{}\u{0}needle{}", "ä".repeat(5000), "ö".repeat(5000));
    fresh.turn(&chat, "question", &text).await;
    let found = fresh.history.search("needle").await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(
        found[0].snippet.contains("ä needleö") && found[0].snippet.chars().count() <= 120,
        "{}",
        found[0].snippet
    );
}

#[tokio::test]
async fn the_trash_is_not_searched() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    fresh.turn(&chat, "tea", "tea").await;
    fresh.history.trash_chat(&chat).await.unwrap();
    assert!(fresh.history.search("tea").await.unwrap().is_empty());
    fresh.history.restore_chat(&chat).await.unwrap();
    assert_eq!(fresh.history.search("tea").await.unwrap().len(), 3);
}
