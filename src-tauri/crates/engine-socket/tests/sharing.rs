//! An engine that one side shares and the other uses, over a real socket.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine_socket::{EngineSocket, Error, SharedEngine};
use protocol::fake::{FakeEngine, FakeJob};
use protocol::{
    Content, Done, EmbeddingInput, EmbeddingRequest, EndedBy, Engine, EngineEvent, ErrorCode, FinishReason,
    FolderSource, LoadEvent, LocalEngine, MemoryFigures, Message, Priority, Request, Role, Stage, Timing,
    TokenLogprobs, Usage,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Handle;

/// Both sides in one process, whose own engine is another one.
struct Sharing {
    fake: FakeEngine,
    socket: EngineSocket,
    own: FakeEngine,
    used: SharedEngine,
    folder: PathBuf,
    home: TempDir,
}

fn share() -> Sharing {
    let home = tempfile::tempdir().unwrap();
    let (fake, own) = (FakeEngine::new(), FakeEngine::new());
    let socket = EngineSocket::listen(home.path(), Arc::new(fake.clone()))
        .unwrap()
        .unwrap();
    Sharing {
        used: using(home.path(), &own),
        fake,
        socket,
        own,
        folder: home.path().join("run"),
        home,
    }
}

fn using(home: &Path, own: &FakeEngine) -> SharedEngine {
    let own = own.clone();
    SharedEngine::new(home, Handle::current(), move || Arc::new(own.clone()))
}

fn model() -> FolderSource {
    FolderSource {
        reference: "pebble".into(),
        path: "/models/pebble".into(),
        revision: Some("1".into()),
        adapter: None,
    }
}

fn request() -> Request {
    let mut request = Request::new(model(), vec![Message::text(Role::User, "Grüße\nan \"alle\"")]);
    request.priority = Priority::Background;
    request.keep_alive = Some(Duration::MAX);
    request.sampling.logit_bias.insert(7, -1.5);
    request.tools = vec![serde_json::json!({"type": "function", "function": {"name": "f"}})];
    request
}

async fn job(fake: &FakeEngine) -> FakeJob {
    for _ in 0..24_000 {
        if let Some(job) = fake.take_job() {
            return job;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nobody asked the engine")
}

fn done(finish_reason: FinishReason) -> EngineEvent {
    EngineEvent::Done(Done {
        finish_reason,
        ended_by: EndedBy::TokenLimit,
        usage: Some(Usage::default()),
        timing: Timing::default(),
        tokens: vec![9],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_and_answered_arrives_as_it_was() {
    let sharing = share();
    let mut answer = sharing.used.generate(request());
    let job = job(&sharing.fake).await;
    assert_eq!(job.request, request());
    let events = [
        EngineEvent::Waiting {
            models: vec!["other".into()],
        },
        EngineEvent::Progress {
            stage: Stage::Load,
            done: 1,
            total: 2,
        },
        EngineEvent::Started {
            prompt_tokens: Some(5),
            model_revision: Some("1".into()),
            template_hash: None,
        },
        EngineEvent::Logprobs(vec![TokenLogprobs {
            token: 3,
            bytes: vec![0xc3],
            logprob: -0.1,
            top: Vec::new(),
        }]),
        EngineEvent::Delta {
            content: Content::text("Ünde\n"),
            tokens: vec![3, 4],
            thinking_tokens: None,
        },
        done(FinishReason::Length),
    ];
    for event in &events {
        job.events.send(event.clone());
        assert_eq!(answer.events.recv().await.as_ref(), Some(event));
    }
    assert_eq!(answer.events.recv().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_and_its_thought_are_ended_from_the_other_side() {
    let sharing = share();
    let mut answer = sharing.used.generate(request());
    let job = job(&sharing.fake).await;
    answer.end_thinking.answer_now();
    while !job.end_thinking.is_asked() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!job.cancel.is_cancelled());
    answer.cancel.cancel();
    job.cancel.cancelled().await;
    job.events.send(done(FinishReason::Cancelled));
    assert_eq!(answer.events.recv().await, Some(done(FinishReason::Cancelled)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_calls_are_the_engines_own() {
    let sharing = share();
    let count = sharing.used.count(request()).await.unwrap();
    assert_eq!(
        (count.tokens, count.estimated),
        (request().messages[0].text_with_placeholders().len() as u32, false)
    );
    let texts = EmbeddingRequest {
        model: model().into(),
        inputs: vec![EmbeddingInput::Text("four".into()), EmbeddingInput::Tokens(vec![1, 2])],
        dimensions: Some(2),
        priority: Priority::Api,
        keep_alive: None,
    };
    let embedded = sharing.used.embed(texts).await.unwrap();
    assert_eq!(
        (embedded.vectors, embedded.prompt_tokens),
        (vec![vec![4.0, 1.0], vec![2.0, 1.0]], 6)
    );
    let mut load = sharing.used.load(model());
    assert!(matches!(load.recv().await, Some(LoadEvent::Ready(info)) if info.reference == "pebble"));
    let used = sharing.used.clone();
    let loaded = tokio::task::spawn_blocking(move || used.loaded()).await.unwrap();
    assert_eq!(loaded[0].reference, "pebble");
    sharing.used.prefetch(request());
    while sharing.fake.take_prefetched().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!sharing.used.unload_idle("pebble").await.unwrap(), "it answers");
    sharing.fake.set_idle(Some(Duration::ZERO));
    assert!(!sharing.used.unload_idle("other").await.unwrap());
    assert!(sharing.used.unload_idle("pebble").await.unwrap());
    assert!(sharing.fake.loaded().is_empty());
    drop(sharing.used.load(model()));
    while sharing.fake.loaded().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    sharing.used.unload("pebble").await.unwrap();
    assert!(sharing.fake.loaded().is_empty());
    sharing.used.unload_all().await.unwrap();
    assert_eq!(
        sharing.used.memory().await.unwrap(),
        sharing.fake.memory().await.unwrap()
    );
    sharing.fake.set_memory(MemoryFigures {
        cache: 1,
        ..MemoryFigures::default()
    });
    sharing.used.free_caches().await.unwrap();
    assert_eq!(sharing.fake.memory().await.unwrap().cache, 0);
    let own = model().into();
    assert_eq!(sharing.used.capabilities(&own), sharing.fake.capabilities(&own));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_that_vanishes_ends_the_answer_on_the_other_which_then_uses_its_own() {
    let sharing = share();
    let mut answer = sharing.used.generate(request());
    let first = job(&sharing.fake).await;
    assert!(!sharing.used.is_own() && sharing.own.take_job().is_none());
    drop(sharing.socket);
    let Some(EngineEvent::Failed(error)) = answer.events.recv().await else {
        panic!("it is an error")
    };
    assert_eq!(error.code, ErrorCode::EngineGone);
    first.cancel.cancelled().await;
    assert!(!sharing.folder.join("engine.sock").exists());

    drop(sharing.used.generate(request()));
    assert_eq!(job(&sharing.own).await.request, request());
    // Its weights are loaded now, so it stays with it.
    let _again = EngineSocket::listen(sharing.home.path(), Arc::new(sharing.fake.clone()))
        .unwrap()
        .unwrap();
    assert!(sharing.used.is_own());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_gone_ends_its_answers() {
    let sharing = share();
    // As a process does that is killed: its runtime goes with everything that follows the answer.
    let (home, own) = (sharing.home.path().to_owned(), sharing.own.clone());
    let other = tokio::runtime::Runtime::new().unwrap();
    let _answer = SharedEngine::new(&home, other.handle().clone(), move || Arc::new(own.clone())).generate(request());
    let asked = job(&sharing.fake).await;
    other.shutdown_background();
    asked.cancel.cancelled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_listens_only_its_user_may_ask_and_what_a_killed_one_left_is_replaced() {
    let sharing = share();
    let home = sharing.home.path();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(sharing.folder.clone()), 0o700);
    assert_eq!(mode(sharing.folder.join("engine.sock")), 0o600);
    let second = EngineSocket::listen(home, Arc::new(FakeEngine::new())).unwrap();
    assert!(second.is_none(), "one listens already");
    drop(sharing.socket);
    assert!(using(home, &sharing.own).is_own());
    // As after a kill: the file is there and nobody listens.
    drop(UnixListener::bind(sharing.folder.join("engine.sock")).unwrap());
    fs::set_permissions(&sharing.folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(using(home, &sharing.own).is_own());
    let third = EngineSocket::listen(home, Arc::new(FakeEngine::new())).unwrap();
    assert!(third.is_some() && !using(home, &sharing.own).is_own());
    assert_eq!(mode(sharing.folder.clone()), 0o700);

    let long = home.join("x".repeat(120));
    let refused = EngineSocket::listen(&long, Arc::new(FakeEngine::new()));
    assert!(matches!(refused, Err(Error::Socket { .. })));
}

/// A connection of a program that is not ours: it sends these bytes, and reads until the other side closes.
async fn exchange(socket: &Path, sent: Vec<u8>) -> Vec<u8> {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    // The other side may close before all is written.
    let _ = stream.write_all(&sent).await;
    let mut read = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(&mut read))
        .await
        .expect("the other side closes");
    read
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_says_its_version() {
    let sharing = share();
    let socket = sharing.folder.join("engine.sock");
    let version = env!("CARGO_PKG_VERSION");
    let opening = |version: &str| format!("{{\"version\":\"{version}\",\"call\":\"loaded\"}}\n").into_bytes();
    assert_eq!(exchange(&socket, opening(version)).await, b"[]\n");
    for refused in [opening("0.0.0"), b"\"loaded\"\n".to_vec(), b"nonsense\n".to_vec()] {
        assert_eq!(exchange(&socket, refused).await, b"");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_has_a_limit_on_both_sides() {
    let sharing = share();
    let socket = sharing.folder.join("engine.sock");
    // A reader without a limit would wait for the end of the line.
    assert_eq!(exchange(&socket, vec![b'x'; (64 << 20) + 1]).await, b"");

    let mut long = request();
    long.messages = vec![Message::text(Role::User, "x".repeat(64 << 20))];
    let counted = sharing.used.count(long.clone()).await.unwrap_err();
    assert_eq!(counted.code, ErrorCode::BadRequest);
    let mut answer = sharing.used.generate(long);
    assert_eq!(answer.events.recv().await, Some(EngineEvent::Failed(counted)));
    assert!(!sharing.used.is_own());
}
