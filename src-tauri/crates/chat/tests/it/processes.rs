//! Several processes, kills, and what is on disk when.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use api::{AnswerBody, AnswerState, ChatSettings, Position, StoredMessage};
use history::{AnswerDelta, History};
use protocol::{Content, EngineEvent, ErrorCode, FinishReason, Notice, NoticeCode};
use tokio::time::{sleep, timeout};

use crate::{all, done, finished, open, text, Harness};

/// The environment variable that names the history file to the child.
const FILE: &str = "PONDER_TEST_HISTORY";

/// Not a test: the other process of the tests below, which is this same binary. It answers until it is stopped or
/// killed, and prints the chat, the message, and every piece just after the engine said it. Asked to answer now, it
/// adds a notice.
#[tokio::test]
#[ignore = "started by other tests"]
async fn other_process() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let (engine, chats) = open(Path::new(&file)).await;
    let chat = chats.chats().create(ChatSettings::default()).await.unwrap().summary.id;
    let message = chats
        .answers()
        .send(&chat, &[Content::text("question")], &Position::End)
        .await
        .unwrap()
        .answer
        .id;
    println!("\nchat {chat}\nmessage {message}");
    let job = loop {
        match engine.take_job() {
            Some(job) => break job,
            None => sleep(Duration::from_millis(1)).await,
        }
    };
    let mut thinking_ended = false;
    for i in 0.. {
        if job.end_thinking.is_asked() && !std::mem::replace(&mut thinking_ended, true) {
            job.events.send(EngineEvent::ThinkingEnded);
            job.events.send(EngineEvent::Notice(Notice::new(
                NoticeCode::ThinkingEnded,
                "You ended the thought here.",
            )));
        }
        if job.cancel.is_cancelled() {
            break;
        }
        job.events.send(text(&piece(i), i));
        println!("piece {}", history::now());
        sleep(Duration::from_millis(20)).await;
    }
    job.events.send(done(FinishReason::Cancelled));
    all(chats.answers().attach(&message, 0).await.unwrap()).await;
}

fn piece(i: u32) -> String {
    format!("{i} 猫 ")
}

struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    chat: String,
    message: String,
}

impl Other {
    fn start(file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::other_process", "--ignored", "--nocapture"])
            .env(FILE, file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut find = |mark: &str| loop {
            let line = lines.next().expect("the other process prints its ids").unwrap();
            if let Some(id) = line.strip_prefix(mark) {
                return id.to_owned();
            }
        };
        let (chat, message) = (find("chat "), find("message "));
        Self {
            child,
            lines,
            chat,
            message,
        }
    }

    /// The next pieces' times, in Unix milliseconds.
    fn pieces(&mut self, count: usize) -> Vec<i64> {
        let time = |line: std::io::Result<String>| line.unwrap().strip_prefix("piece ").unwrap().parse().unwrap();
        self.lines.by_ref().take(count).map(time).collect()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills a process in the middle of an answer; what is kept of it then, and whether that is all that is older than a
/// quarter second.
async fn kill_another(folder: &Path) -> (Other, StoredMessage, bool) {
    let file = folder.join("history.sqlite");
    let mut other = Other::start(&file);
    let times = other.pieces(60);
    other.child.kill().unwrap();
    other.child.wait().unwrap();
    let killed = history::now();

    let (_, chats) = open(&file).await;
    let answer = chats.chats().get(&other.chat).await.unwrap().messages.pop().unwrap();
    assert_eq!((&answer.id, answer.state), (&other.message, AnswerState::Interrupted));
    let (said, kept) = ((0..200).map(piece).collect::<String>(), answer.text());
    assert!(said.starts_with(&kept), "{kept:?}");
    let old = times.iter().filter(|time| **time < killed - 250).count();
    let safe: String = (0..).take(old).map(piece).collect();
    (other, answer, kept.starts_with(&safe) && old > 0)
}

#[tokio::test]
async fn a_killed_process_leaves_its_words_up_to_a_quarter_second_before_marked_interrupted() {
    let folders = [(); 5].map(|()| tempfile::tempdir().unwrap());
    let mut found = None;
    // A busy computer may let the other process, or the disk, wait for longer.
    for folder in &folders {
        let (other, answer, whole) = kill_another(folder.path()).await;
        found = Some((folder.path().join("history.sqlite"), other, answer, whole));
        if whole {
            break;
        }
    }
    let (file, other, answer, whole) = found.unwrap();
    let kept = answer.text();
    assert!(whole, "kept {kept:?}");
    let (_, chats) = open(&file).await;
    let tokens = History::open(&file).await.unwrap().tokens(&answer.id).await.unwrap();
    assert_eq!(kept, tokens.into_iter().map(piece).collect::<String>());
    // The chat goes on.
    chats
        .answers()
        .send(&other.chat, &[Content::text("go on")], &Position::End)
        .await
        .unwrap();
}

#[tokio::test]
async fn the_answer_of_a_living_process_is_left_alone_and_can_be_watched_and_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.sqlite");
    let mut other = Other::start(&file);
    other.pieces(10);
    let (_, chats) = open(&file).await;
    assert_eq!(
        chats.chats().get(&other.chat).await.unwrap().messages[1].state,
        AnswerState::Streaming
    );
    assert!(chats.chats().list().await.unwrap()[0].running && chats.answers().running().is_empty());
    assert_eq!(
        chats
            .answers()
            .send(&other.chat, &[Content::text("more")], &Position::End)
            .await
            .unwrap_err()
            .code,
        ErrorCode::Busy
    );
    assert_eq!(
        chats.answers().regenerate(&other.message, None).await.unwrap_err().code,
        ErrorCode::Busy
    );

    // One window stays, one leaves and comes back for the rest.
    let staying = tokio::spawn(all(chats.answers().attach(&other.message, 0).await.unwrap()));
    let mut leaving = chats.answers().attach(&other.message, 0).await.unwrap();
    let mut got = vec![crate::next(&mut leaving).await, crate::next(&mut leaving).await];
    drop(leaving);
    other.pieces(10);
    let coming_back = chats.answers().attach(&other.message, got[1].seq).await.unwrap();
    chats.answers().stop(&other.message).await.unwrap();
    got.extend(all(coming_back).await);
    let events = staying.await.unwrap();
    let end = finished(events.last().unwrap());
    assert_eq!(
        (end.state, end.finish_reason),
        (AnswerState::Stopped, Some(FinishReason::Cancelled))
    );
    for events in [&events, &got] {
        let mut text = String::new();
        let mut seq = 0;
        for event in events {
            assert!(event.seq > seq);
            seq = event.seq;
            if let AnswerBody::Delta {
                content: Content::Text { text: more },
                ..
            } = &event.body
            {
                text.push_str(more);
                assert_eq!(seq, text.chars().count() as u64);
            }
        }
        assert_eq!(text, end.text());
    }
    assert!(other.child.wait().unwrap().success());
}

#[tokio::test]
async fn the_thought_of_another_process_can_be_ended_and_its_answer_goes_on_here_when_it_dies() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.sqlite");
    let mut other = Other::start(&file);
    other.pieces(5);
    let (engine, chats) = open(&file).await;
    assert_eq!(
        chats.answers().continue_answer(&other.message).await.unwrap_err().code,
        ErrorCode::Busy
    );
    chats.answers().answer_now(&other.message).await.unwrap();
    let reader = History::open(&file).await.unwrap();
    let ended = async {
        while reader.message(&other.message).await.unwrap().notices.is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), ended).await.unwrap();
    // Asked once, it is told once, although the wish stays in the file.
    other.pieces(20);
    assert_eq!(reader.message(&other.message).await.unwrap().notices.len(), 1);
    other.child.kill().unwrap();
    other.child.wait().unwrap();

    let view = chats.answers().continue_answer(&other.message).await.unwrap();
    let begun = view.messages[1].clone();
    let job = loop {
        match engine.take_job() {
            Some(job) => break job,
            None => sleep(Duration::from_millis(1)).await,
        }
    };
    assert!(!job.end_thinking.is_asked(), "the wish was for the process that died");
    let tokens = reader.tokens(&other.message).await.unwrap();
    assert_eq!(
        begun.text(),
        tokens.iter().map(|token| piece(*token)).collect::<String>()
    );
    match &job.request.answer_prefix {
        Some(protocol::AnswerPrefix::Tokens {
            tokens: asked,
            thinking_ended,
            ..
        }) => assert!(*asked == tokens && *thinking_ended),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_death_of_another_process_is_noticed_by_those_who_watch() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.sqlite");
    let mut other = Other::start(&file);
    let (_, chats) = open(&file).await;
    other.pieces(10);
    let window = chats.answers().attach(&other.message, 0).await.unwrap();
    // Its heart goes on beating here, so only its death can tell.
    let heart = History::open(&file).await.unwrap();
    let owner = heart.running().await.unwrap().pop().unwrap().owner;
    let killed = Instant::now();
    other.child.kill().unwrap();
    let message = other.message.clone();
    let beats = tokio::spawn(async move {
        loop {
            // Fails once the answer has ended.
            let _ = heart.append(&message, &owner, &AnswerDelta::default()).await;
            sleep(Duration::from_secs(1)).await;
        }
    });
    // Not waited for: a zombie is as dead.
    let end = finished(all(window).await.last().unwrap());
    beats.abort();
    assert_eq!(end.state, AnswerState::Interrupted);
    println!(
        "report: the death of another process was noticed after {:?}",
        killed.elapsed()
    );
}

#[tokio::test]
async fn what_was_shown_is_on_disk_before_anything_more_is_shown() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    let reader = History::open(&harness.path).await.unwrap();
    let mut window = harness.chat.answers().attach(&message, 0).await.unwrap();
    let mut waits = Vec::new();
    for i in 0..40u32 {
        // Pieces arrive at all moments of the writer's rhythm.
        sleep(Duration::from_millis(u64::from(i * 37 % 190))).await;
        job.events.send(text(&format!("<{i}>"), i));
        crate::next(&mut window).await;
        let shown = Instant::now();
        while !reader
            .message(&message)
            .await
            .unwrap()
            .text()
            .ends_with(&format!("<{i}>"))
        {
            assert!(shown.elapsed() < Duration::from_secs(120), "piece {i} is not stored");
            sleep(Duration::from_millis(2)).await;
        }
        waits.push(shown.elapsed());
    }
    waits.sort();
    println!(
        "report: what was shown is on disk after {:?}, 38 of 40 times after {:?}",
        waits[20], waits[37]
    );
}

#[tokio::test]
async fn a_silent_answer_says_that_it_lives() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (message, job) = harness.ask(&chat, "question").await;
    let reader = History::open(&harness.path).await.unwrap();
    let notice = Notice::new(NoticeCode::Repetition, "b");
    job.events.send(EngineEvent::Notice(notice.clone()));
    job.events.send(text("half", 1));
    while reader.message(&message).await.unwrap().text() != "half" {
        sleep(Duration::from_millis(20)).await;
    }
    let first = reader.running().await.unwrap()[0].heartbeat;
    let beats = async {
        while reader.running().await.unwrap()[0].heartbeat == first {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), beats).await.unwrap();
    let stored = reader.message(&message).await.unwrap();
    assert_eq!((stored.text().as_str(), stored.notices), ("half", vec![notice]));
    job.events
        .send(EngineEvent::Failed(protocol::Error::new(ErrorCode::Engine, "broken")));
    harness.end(&message).await;
    assert!(reader.running().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_window_learns_of_an_answer_of_another_process_and_follows_it_live() {
    let harness = Harness::new().await;
    let chat = harness.new_chat().await;
    let (_, other) = open(&harness.path).await;
    let mut changes = other.changes();
    changes.mark_unchanged();
    let (message, job) = harness.ask(&chat, "question").await;
    timeout(Duration::from_secs(60), changes.changed())
        .await
        .unwrap()
        .unwrap();
    let answer = other.chats().get(&chat).await.unwrap().messages.pop().unwrap();
    assert_eq!((&answer.id, answer.state), (&message, AnswerState::Streaming));
    let mut window = other.answers().attach(&message, 0).await.unwrap();
    job.events.send(text("half", 1));
    match crate::next(&mut window).await.body {
        AnswerBody::Delta { content, .. } => assert_eq!(content, Content::text("half"), "before the answer has ended"),
        other => panic!("{other:?}"),
    }
    // It can be stopped from there.
    other.answers().stop(&message).await.unwrap();
    while !job.cancel.is_cancelled() {
        tokio::task::yield_now().await;
    }
    job.events.send(done(FinishReason::Cancelled));
    let end = finished(all(window).await.last().unwrap());
    assert_eq!((end.state, end.text().as_str()), (AnswerState::Stopped, "half"));
}
