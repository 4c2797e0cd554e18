//! Several models in memory at the same time: who stays, who goes, who waits for whom, and whether all of them answer.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{hear, pebble_dir, question, source, Heard};
use engine::{EngineOptions, MlxEngine};
use protocol::{
    Engine, EngineEvent, ErrorCode, FolderSource, JobHandle, LocalEngine, MemoryGuard, Priority, Request, Thinking,
};
use tokio::sync::MutexGuard;

use crate::ALONE;

/// So much memory as a test says.
#[derive(Debug)]
struct Room {
    /// Bytes for models; each is taken to need as much as Pebble.
    models: AtomicU64,
    /// The most that may be asked for at once while reading, and the most that was.
    reading: AtomicU64,
    asked: AtomicU64,
}

impl MemoryGuard for Room {
    fn before_load(&self, _: &FolderSource, _: &str, kept: u64, _: u64) -> protocol::Result<()> {
        match kept + PEBBLE <= self.models.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(protocol::Error::new(ErrorCode::MemoryShort, "there is no room")),
        }
    }

    fn before_chunk(&self, bytes: u64, _: &str, _: u64) -> protocol::Result<()> {
        self.asked.fetch_max(bytes, Ordering::Relaxed);
        match bytes <= self.reading.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(protocol::Error::new(ErrorCode::MemoryShort, "there is no room")),
        }
    }

    fn record_peak(&self, _: &FolderSource, _: u64) {}
}

/// About what Pebble takes on a CPU.
const PEBBLE: u64 = 23_000_000;

/// An engine that has room for `models` models, and copies of Pebble in folders of their own.
struct Setting {
    engine: MlxEngine,
    room: Arc<Room>,
    copies: Vec<FolderSource>,
    _folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Setting {
    async fn new(copies: usize, fitting: u64) -> Self {
        let alone = ALONE.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let copy = |name: usize| {
            let path = folder.path().join(name.to_string());
            copy_files(&pebble_dir(), &path);
            source(&path)
        };
        let copies = (0..copies).map(copy).collect();
        let room = Arc::new(Room {
            models: AtomicU64::new(fitting * PEBBLE + PEBBLE / 2),
            reading: AtomicU64::new(u64::MAX),
            asked: AtomicU64::new(0),
        });
        Self {
            engine: MlxEngine::with_options(EngineOptions {
                memory_guard: Some(room.clone()),
                ..EngineOptions::default()
            }),
            room,
            copies,
            _folder: folder,
            _alone: alone,
        }
    }

    fn story(&self, copy: usize, tokens: u32) -> Request {
        Request {
            model: self.copies[copy].clone().into(),
            max_tokens: Some(tokens),
            ..question("Tell me a story.", Thinking::Off)
        }
    }

    fn ask(&self, request: Request) -> JobHandle {
        self.engine.generate(request)
    }

    /// Which copies are loaded, the one used last at the end.
    fn loaded(&self) -> Vec<usize> {
        let index = |reference: &str| self.copies.iter().position(|copy| copy.reference == reference).unwrap();
        self.engine.loaded().iter().map(|info| index(&info.reference)).collect()
    }
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

async fn first_token(job: &mut JobHandle) {
    while !matches!(job.events.recv().await.unwrap(), EngineEvent::Delta { .. }) {}
}

/// When a job ended, and what it said.
async fn end(job: JobHandle) -> (Instant, Heard) {
    let heard = hear(job).await;
    (Instant::now(), heard)
}

#[tokio::test]
async fn models_that_fit_stay_and_answer_at_the_same_time() {
    let setting = Setting::new(2, 2).await;
    let alone = hear(setting.ask(setting.story(0, 80))).await;
    assert_eq!(hear(setting.ask(setting.story(1, 80))).await.text, alone.text);
    assert_eq!(setting.loaded(), [0, 1]);
    let (mut first, mut second) = (setting.ask(setting.story(0, 80)), setting.ask(setting.story(1, 80)));
    // Both are in the middle at the same time.
    first_token(&mut first).await;
    first_token(&mut second).await;
    assert_eq!(setting.loaded().len(), 2);
    let ((one, first), (other, second)) = tokio::join!(end(first), end(second));
    let apart = one.max(other) - one.min(other);
    println!("report: two models answer at the same time and end {apart:?} apart");
    assert!(
        alone.text.ends_with(&first.text) && alone.text.ends_with(&second.text),
        "{first:?} {second:?}"
    );
    assert!(first.done().timing.load_ms == 0.0 && second.done().timing.load_ms == 0.0);
    setting.engine.unload_all().await.unwrap();
    assert_eq!(setting.engine.inspect().unwrap().living, 0);
}

#[tokio::test]
async fn the_one_used_least_recently_makes_room() {
    let setting = Setting::new(3, 2).await;
    for copy in [0, 1, 0, 2] {
        hear(setting.ask(setting.story(copy, 3))).await.done();
    }
    assert_eq!(setting.loaded(), [0, 2], "1 was used least recently");
    let held = setting.engine.inspect().unwrap();
    assert_eq!(held.living, (held.tensors + held.prefix_cache_tensors) as i64);
    // The model in the middle of an answer stays, though it was used before the other.
    let mut story = setting.ask(setting.story(0, 300));
    first_token(&mut story).await;
    hear(setting.ask(setting.story(2, 3))).await.done();
    hear(setting.ask(setting.story(1, 3))).await.done();
    assert_eq!(setting.loaded(), [0, 1]);
    story.cancel.cancel();
    hear(story).await.done();
}

#[tokio::test]
async fn a_model_waits_until_the_answers_of_another_have_ended() {
    let setting = Setting::new(2, 1).await;
    let mut story = setting.ask(setting.story(0, 120));
    first_token(&mut story).await;
    let mut waiting = setting.ask(setting.story(1, 3));
    // It says at once for whom it waits, and once.
    let models = vec![setting.copies[0].reference.clone()];
    assert_eq!(waiting.events.recv().await, Some(EngineEvent::Waiting { models }));
    let given_up = setting.ask(setting.story(1, 3));
    given_up.cancel.cancel();
    hear(given_up).await.done();
    // Requests for the model that answers go on joining for a while.
    let joined = hear(setting.ask(setting.story(0, 3))).await;
    assert_eq!(joined.done().timing.load_ms, 0.0);
    assert_eq!(setting.loaded(), [0]);
    let ((story_end, story), (end, answer)) = tokio::join!(end(story), end(waiting));
    assert!(end > story_end, "an answer is never cut for another model");
    assert!(
        story.done().usage.unwrap().completion_tokens == 120
            || story.done().finish_reason == protocol::FinishReason::Stop
    );
    assert!(answer.done().timing.load_ms > 0.0);
    assert_eq!(setting.loaded(), [1]);
}

#[tokio::test]
async fn what_fits_nowhere_is_refused_and_nothing_goes_for_it() {
    let setting = Setting::new(2, 1).await;
    hear(setting.ask(setting.story(0, 3))).await.done();
    setting.room.models.store(PEBBLE / 2, Ordering::Relaxed);
    let refused = hear(setting.ask(setting.story(1, 3))).await;
    assert_eq!(refused.error().code, ErrorCode::MemoryShort);
    assert_eq!(setting.loaded(), [0]);
    assert_eq!(hear(setting.ask(setting.story(0, 3))).await.done().timing.load_ms, 0.0);
}

#[tokio::test]
async fn one_is_unloaded_while_another_answers() {
    let setting = Setting::new(2, 2).await;
    hear(setting.ask(setting.story(1, 3))).await.done();
    let mut story = setting.ask(setting.story(0, 300));
    first_token(&mut story).await;
    setting.engine.unload(&setting.copies[1].reference).await.unwrap();
    assert_eq!(setting.loaded(), [0]);
    assert!(setting.engine.memory().await.unwrap().active > 0);
    // The one that answers goes when its answer has ended, and a later request for it loads it again.
    let unload = setting.engine.unload(&setting.copies[0].reference);
    let later = setting.ask(setting.story(0, 3));
    story.cancel.cancel();
    hear(story).await.done();
    unload.await.unwrap();
    assert!(hear(later).await.done().timing.load_ms > 0.0);
}

#[tokio::test]
async fn a_sequence_that_does_not_fit_beside_the_others_waits() {
    let setting = Setting::new(1, 1).await;
    // Its plan is larger than what the other still needs at any time, so it does not fit beside it however far that is.
    let long = || Request {
        priority: Priority::Api,
        ..setting.story(0, 2_000)
    };
    let mut running = setting.ask(setting.story(0, 400));
    first_token(&mut running).await;
    let beside = hear(setting.ask(long())).await;
    hear(running).await.done();
    let both = setting.room.asked.load(Ordering::Relaxed);
    setting.room.reading.store(both / 2, Ordering::Relaxed);
    let mut running = setting.ask(setting.story(0, 400));
    first_token(&mut running).await;
    let mut second = setting.ask(long());
    let models = vec![setting.copies[0].reference.clone()];
    assert_eq!(second.events.recv().await, Some(EngineEvent::Waiting { models }));
    // A request that needs less goes on.
    let small = hear(setting.ask(setting.story(0, 2))).await;
    assert_eq!(small.ends.len(), 1);
    let ((first_end, _), (second_end, second)) = tokio::join!(end(running), end(second));
    assert!(second_end > first_end);
    assert_eq!(second.text, beside.text);
    // Alone it is refused as soon as its reading is.
    setting.room.reading.store(1, Ordering::Relaxed);
    let long = Request {
        model: setting.copies[0].clone().into(),
        ..question(&"word ".repeat(300), Thinking::Off)
    };
    assert_eq!(hear(setting.ask(long)).await.error().code, ErrorCode::MemoryShort);
}

#[tokio::test]
async fn a_chat_keeps_most_of_its_rate_beside_another_models_batch() {
    let setting = Setting::new(2, 2).await;
    hear(setting.ask(setting.story(1, 3))).await.done();
    let rate = |heard: &Heard| heard.done().timing.decode_tokens_per_second;
    hear(setting.ask(setting.story(0, 100))).await.done();
    let api = |_| {
        setting.ask(Request {
            priority: Priority::Api,
            ..setting.story(1, 400)
        })
    };
    // The share of the chat's steps in which the others step too. How often they may is measured, and this computer
    // does other things at the same time, so one of several has to show it.
    let mut least: f64 = 1.0;
    for _ in 0..8 {
        if least < 0.5 {
            break;
        }
        let alone = rate(&hear(setting.ask(setting.story(0, 100))).await);
        let mut others: Vec<JobHandle> = (0..2).map(api).collect();
        for other in &mut others {
            first_token(other).await;
        }
        let beside = rate(&hear(setting.ask(setting.story(0, 100))).await);
        let mut tokens = 0;
        let count = others.len();
        for other in others {
            other.cancel.cancel();
            let heard = hear(other).await;
            heard.done();
            tokens += heard.tokens.len();
        }
        let joined = tokens as f64 / (100 * count) as f64;
        println!(
            "report: a chat beside another model's batch: {beside:.0} of {alone:.0} tok/s, \
             which joins {joined:.2} of its steps"
        );
        assert!(tokens > 0, "the others go on");
        least = least.min(joined);
    }
    // Without the rule they would take part in every step.
    assert!(least < 0.7, "{least}");
}

#[tokio::test]
async fn a_model_in_steady_use_makes_room_in_the_end() {
    // Half a minute, so not every day.
    if std::env::var_os("PONDER_FULL").is_none() {
        return;
    }
    let setting = Setting::new(2, 1).await;
    let mut steady = setting.ask(setting.story(0, 20));
    first_token(&mut steady).await;
    let start = Instant::now();
    let mut waiting = tokio::spawn(end(setting.ask(setting.story(1, 3))));
    let (mut answered, mut late) = (0, Vec::new());
    let waited = loop {
        // Always one that overlaps with the one before it.
        let next = setting.ask(setting.story(0, 20));
        late.push(std::mem::replace(&mut steady, next));
        tokio::select! {
            waited = &mut waiting => break waited.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(40)) => {}
        }
        answered += 1;
        assert!(start.elapsed() < Duration::from_secs(300), "it waits for ever");
    };
    waited.1.done();
    let after = waited.0 - start;
    println!("report: a model waited {after:?} for one in steady use");
    assert!(
        after > Duration::from_secs(25) && answered > 10,
        "{after:?}, {answered}"
    );
    for job in late.into_iter().chain([steady]) {
        hear(job).await.done();
    }
}
