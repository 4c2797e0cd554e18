use api::{AnswerState, ChatSettings, Position};
use protocol::{fake::FakeJob, Content, ErrorCode, FinishReason, Thinking};

use crate::{done, text, Harness};

fn settings(thinking: Thinking, max_tokens: Option<u32>) -> ChatSettings {
    ChatSettings {
        thinking: Some(thinking),
        max_tokens,
        ..ChatSettings::default()
    }
}

async fn ask_two(harness: &Harness, chat: &str) -> (api::TurnWithTwoAnswers, [FakeJob; 2]) {
    let both = [settings(Thinking::Off, None), settings(Thinking::On, Some(9))];
    let asked = harness
        .chat
        .answers()
        .send_to_two(chat, &[Content::text("Why?")], &Position::End, both)
        .await;
    (asked.unwrap(), [harness.job().await, harness.job().await])
}

#[tokio::test]
async fn each_is_asked_with_its_own_settings_and_ends_alone() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (turn, jobs) = ask_two(&harness, &chat).await;
    let thinks = |job: &FakeJob| (job.request.thinking, job.request.max_tokens);
    let mut asked = jobs.iter().map(thinks).collect::<Vec<_>>();
    asked.sort_by_key(|(_, most)| *most);
    assert_eq!(asked, [(Some(Thinking::Off), None), (Some(Thinking::On), Some(9))]);
    assert_eq!(harness.chat.answers().running().len(), 2);
    assert_eq!(harness.refusal(&chat, "And now?").await, ErrorCode::Busy);

    let [first, second] = turn.answers;
    let [plain, thinking] = match jobs[0].request.max_tokens {
        None => jobs,
        Some(_) => {
            let [one, other] = jobs;
            [other, one]
        }
    };
    harness.chat.answers().stop(&second.id).await.unwrap();
    thinking.cancel.cancelled().await;
    thinking.events.send(done(FinishReason::Cancelled));
    assert_eq!(harness.end(&second.id).await.state, AnswerState::Stopped);
    assert!(!plain.cancel.is_cancelled(), "the other goes on");
    plain.events.send(text("Because.", 1));
    plain.events.send(done(FinishReason::Stop));
    let ended = harness.end(&first.id).await;
    assert_eq!(
        (ended.state, ended.siblings),
        (AnswerState::Complete, vec![first.id.clone(), second.id.clone()])
    );

    // The chat looks at the first and keeps its own settings.
    let view = harness.chat.chats().get(&chat).await.unwrap();
    assert_eq!(view.messages.last().unwrap().id, first.id);
    let kept = ChatSettings {
        model: Some("pebble".into()),
        ..ChatSettings::default()
    };
    assert_eq!(view.settings, kept);
    let (_, next) = harness.ask(&chat, "And now?").await;
    assert_eq!(next.request.thinking, None);
}

#[tokio::test]
async fn nothing_is_stored_if_one_of_them_cannot_be_asked() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let other = |other: ChatSettings| [ChatSettings::default(), other];
    let gone = ChatSettings {
        model: Some("missing".into()),
        ..ChatSettings::default()
    };
    for (pair, code) in [
        (other(gone), ErrorCode::ModelNotFound),
        (other(settings(Thinking::Off, Some(0))), ErrorCode::BadRequest),
    ] {
        let asked = harness
            .chat
            .answers()
            .send_to_two(&chat, &[Content::text("Why?")], &Position::End, pair)
            .await;
        assert_eq!(asked.unwrap_err().code, code);
    }
    assert!(harness.stored(&chat).await.is_empty());
    assert!(harness.engine.take_job().is_none());
}

#[tokio::test]
async fn all_chats_can_be_deleted_while_answers_are_being_written() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (_, jobs) = ask_two(&harness, &chat).await;
    let ending = tokio::spawn(async move {
        for job in jobs {
            job.cancel.cancelled().await;
            job.events.send(done(FinishReason::Cancelled));
        }
    });
    harness.chat.library().back_up_now().await.unwrap();
    let before = harness.chat.library().data_use().await.unwrap();
    assert_eq!((before.chats, before.backups.len()), (1, 1));
    harness.chat.library().delete_all_chats(true).await.unwrap();
    ending.await.unwrap();
    let after = harness.chat.library().data_use().await.unwrap();
    assert_eq!((after.chats, after.backups.len()), (0, 0));
    assert!(harness.chat.chats().list().await.unwrap().is_empty());
}
