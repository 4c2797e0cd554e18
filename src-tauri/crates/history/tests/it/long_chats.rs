//! The part of a long chat that a window reads, and the revision that saves it from reading again.

use api::ScrollPlace;
use history::Error;

use crate::{delta, texts, Fresh, WRITER};

#[tokio::test]
async fn a_long_chat_is_read_from_its_end_and_the_rest_apart() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    for number in 0..6 {
        fresh.turn(&chat, &format!("q{number}"), &format!("a{number}")).await;
    }
    let whole = fresh.history.chat(&chat).await.unwrap();
    let newest = async |most| fresh.history.newest_of_chat(&chat, most).await.unwrap();
    let view = newest(3).await;
    assert_eq!(texts(&view.messages), ["a4", "q5", "a5"]);
    assert_eq!(view.messages, whole.messages[9..]);
    let first = view.messages[0].id.clone();
    let before = async |message: String, most| fresh.history.messages_before(&message, most).await.unwrap();
    assert_eq!(before(first.clone(), 4).await, whole.messages[5..9]);
    assert_eq!(before(first.clone(), 100).await, whole.messages[..9]);
    assert_eq!(before(whole.messages[0].id.clone(), 100).await, []);
    let unknown = fresh.history.messages_before("unknown", 1).await;
    assert!(matches!(unknown, Err(Error::NotFound("message"))), "{unknown:?}");
    assert_eq!(newest(100).await, whole);

    // Messages beyond the place that it was scrolled to, and nothing more for a place that is gone.
    let place = |message: &str| ScrollPlace {
        message: message.into(),
        offset: 0.0,
    };
    fresh
        .history
        .set_scroll_place(&chat, Some(&place(&whole.messages[6].id)))
        .await
        .unwrap();
    assert_eq!(newest(3).await.messages, whole.messages[4..]);
    fresh
        .history
        .set_scroll_place(&chat, Some(&place("gone")))
        .await
        .unwrap();
    assert_eq!(newest(3).await.messages, whole.messages[9..]);
    let empty = fresh.chat().await;
    assert_eq!(fresh.history.newest_of_chat(&empty, 3).await.unwrap().messages, []);
}

#[tokio::test]
async fn a_turn_tells_which_state_of_the_chat_it_was_added_to_and_its_end_is_one_change() {
    let fresh = Fresh::new().await;
    let chat = fresh.chat().await;
    let revision = async || fresh.history.chat(&chat).await.unwrap().summary.revision;
    let mut seen = revision().await;
    for number in 0..3 {
        let turn = fresh.turn(&chat, &format!("q{number}"), "a").await;
        assert_eq!(turn.revision_before, seen);
        assert!(turn.revision > seen);
        seen = revision().await;
        assert_eq!(seen, turn.revision + 1);
    }
    // A growing answer and a new title do not change the revision.
    let answer = fresh.streaming_answer(&chat).await;
    let begun = revision().await;
    fresh
        .history
        .append(&answer, WRITER, &delta("more", &[1]))
        .await
        .unwrap();
    fresh.history.rename_chat(&chat, "Another").await.unwrap();
    fresh.history.mark_read(&chat).await.unwrap();
    assert_eq!(revision().await, begun);
}
