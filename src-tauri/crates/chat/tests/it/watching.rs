//! Windows that come, go and sleep while an answer is written.

use std::time::Duration;

use api::{AnswerBody, AnswerEvent, AnswerState};
use protocol::{Coalesce, Content, EngineEvent, ErrorCode, FinishReason, Notice, NoticeCode, Stage};
use tokio::time::{sleep, timeout};

use crate::{all, done, finished, next, text, thought, Harness};

/// All text of one kind.
fn joined(events: &[AnswerEvent], of: &Content) -> String {
    let text = |event: &AnswerEvent| match &event.body {
        AnswerBody::Delta { content, .. } if content.with_text("") == *of => {
            content.growing_text().unwrap_or_default().to_owned()
        }
        _ => String::new(),
    };
    events.iter().map(text).collect()
}

/// The same events with neighboring deltas joined, as far as that goes.
fn merged(events: &[AnswerEvent]) -> Vec<AnswerEvent> {
    let mut merged: Vec<AnswerEvent> = Vec::new();
    for event in events.iter().cloned() {
        let rest = match merged.last_mut() {
            Some(last) => last.coalesce(event),
            None => Some(event),
        };
        merged.extend(rest);
    }
    merged
}

#[tokio::test]
async fn whoever_attaches_after_any_event_gets_the_rest_without_gap_or_repeat() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    let mut script = vec![EngineEvent::Progress {
        stage: Stage::Prefill,
        done: 28,
        total: 28,
    }];
    script.extend((0..8).map(|i| thought(&format!("t{i} "), i)));
    script.extend((0..8).map(|i| text(&format!("a{i} 猫"), i)));
    script.push(EngineEvent::Notice(Notice::new(NoticeCode::Repetition, "b")));
    script.extend((8..16).map(|i| text(&format!("a{i} "), i)));

    let mut first = harness.chat.answers().attach(&message, 0).await.unwrap();
    let mut seen = Vec::new();
    let mut windows = Vec::new();
    for event in script {
        // Everybody who could come now, having seen this much or less.
        for from in 0..=seen.len() as u64 {
            windows.push((from, harness.chat.answers().attach(&message, from).await.unwrap()));
        }
        job.events.send(event);
        seen.push(next(&mut first).await);
    }
    for from in 0..=seen.len() as u64 {
        windows.push((from, harness.chat.answers().attach(&message, from).await.unwrap()));
    }
    job.events.send(done(FinishReason::Stop));
    seen.push(next(&mut first).await);

    assert!(seen.iter().map(|event| event.seq).eq(1..=seen.len() as u64));
    assert_eq!(windows.len(), 27 * 28 / 2);
    for (from, window) in windows {
        let got = all(window).await;
        assert_eq!(merged(&got), merged(&seen[from as usize..]), "from {from}");
    }
    let answer = finished(seen.last().unwrap());
    assert_eq!(answer.text(), joined(&seen, &Content::text("")));
}

#[tokio::test]
async fn for_whom_an_answer_waits_is_told_and_the_wait_can_be_ended() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    let mut window = harness.chat.answers().attach(&message, 0).await.unwrap();
    let models = vec!["other".to_owned()];
    job.events.send(EngineEvent::Waiting { models: models.clone() });
    assert_eq!(next(&mut window).await.body, AnswerBody::Waiting { models });
    let (stopped, ()) = tokio::join!(harness.chat.answers().stop(&message), async {
        job.cancel.cancelled().await;
        job.events.send(done(FinishReason::Cancelled));
    });
    stopped.unwrap();
    let answer = finished(&next(&mut window).await);
    assert_eq!((answer.state, answer.parts.len()), (AnswerState::Stopped, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn windows_that_come_and_go_while_tokens_pour_miss_nothing() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    let writer = tokio::spawn(async move {
        for i in 0..3000u32 {
            job.events.send(if i % 500 < 250 {
                text(&format!("{i},"), i)
            } else {
                thought(&format!("{i};"), i)
            });
            if i % 10 == 0 {
                sleep(Duration::from_micros(500)).await;
            }
        }
        job.events.send(done(FinishReason::Stop));
    });
    let visitors: Vec<_> = (0..16u64)
        .map(|visitor| {
            let (chats, message) = (harness.chat.clone(), message.clone());
            tokio::spawn(async move {
                let (mut got, mut seen): (Vec<AnswerEvent>, u64) = (Vec::new(), 0);
                loop {
                    let mut window = chats.answers().attach(&message, seen).await.unwrap();
                    // Leaves after some events and comes back for what it has not seen.
                    for _ in 0..(visitor * 7 + 1) {
                        let event = next(&mut window).await;
                        assert!(event.seq > seen);
                        seen = event.seq;
                        let last = event.is_last();
                        got.push(event);
                        if last {
                            return got;
                        }
                    }
                    sleep(Duration::from_millis(visitor)).await;
                }
            })
        })
        .collect();
    writer.await.unwrap();
    let answer = harness.end(&message).await;
    let numbers = |of: u32| {
        (0..3000u32)
            .filter(|i| (i % 500 < 250) == (of == 0))
            .collect::<Vec<_>>()
    };
    let text: String = numbers(0).iter().map(|i| format!("{i},")).collect();
    let thought: String = numbers(1).iter().map(|i| format!("{i};")).collect();
    assert_eq!(answer.text(), text);
    for visitor in visitors {
        let got = visitor.await.unwrap();
        // One that was away at the end is given the end alone, which holds everything.
        assert!(text.starts_with(&joined(&got, &Content::text(""))));
        assert!(thought.starts_with(&joined(&got, &Content::thinking(""))));
        assert_eq!(finished(got.last().unwrap()), answer);
    }
}

#[tokio::test]
async fn a_window_that_does_not_read_holds_up_nobody_and_loses_nothing() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    let asleep = harness.chat.answers().attach(&message, 0).await.unwrap();
    let gone = harness.chat.answers().attach(&message, 0).await.unwrap();
    let mut awake = harness.chat.answers().attach(&message, 0).await.unwrap();
    drop(gone);
    let mut got = Vec::new();
    for i in 0..2000 {
        job.events.send(text("x", i));
        got.push(timeout(Duration::from_secs(60), awake.recv()).await.unwrap().unwrap());
    }
    job.events.send(done(FinishReason::Stop));
    got.push(next(&mut awake).await);
    let late = all(asleep).await;
    assert_eq!(late.len(), 2);
    assert_eq!((late[0].seq, late[1].seq), (2000, 2001));
    assert_eq!(late, merged(&got));
}

#[tokio::test]
async fn an_answer_that_has_ended_gives_its_end_at_once() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    job.events.send(text("answer", 1));
    job.events.send(done(FinishReason::Stop));
    harness.end(&message).await;
    for from in [0, 1, 7] {
        let events = all(harness.chat.answers().attach(&message, from).await.unwrap()).await;
        assert_eq!(events.len(), 1);
        let answer = finished(&events[0]);
        assert_eq!(
            (answer.state, answer.text().as_str()),
            (AnswerState::Complete, "answer")
        );
    }
    assert_eq!(
        harness.chat.answers().attach("nothing", 0).await.unwrap_err().code,
        ErrorCode::NotFound
    );
}
