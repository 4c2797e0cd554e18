//! Chats that the real engine answers, with the model that comes with the app: the titles and summaries that it writes,
//! and what it reads before somebody asks.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api::{AnswerBody, ChatSettings, CompactionMark, ModelShelf, Position, StoredMessage};
use chat::Chat;
use engine::MlxEngine;
use futures::future::BoxFuture;
use protocol::{
    mailbox, Capabilities, Content, Engine, EngineActivity, ErrorCode, FolderSource, JobHandle, LoadEvent, LocalEngine,
    MemoryFigures, ModelInfo, ModelSource, Priority, Receiver, Request, Result, Role, Sampling, Thinking, TokenCount,
};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Long enough for any of these on a busy computer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Has Pebble, whatever it is asked for.
struct Shelf;

impl ModelShelf for Shelf {
    fn resolve(&self, _reference: &str) -> Result<ModelSource> {
        Ok(ModelSource::Folder(FolderSource {
            reference: "pebble".into(),
            path: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pebble/model"),
            revision: None,
            adapter: None,
        }))
    }
}

/// The engine, which records its requests, and multiplies the number of parameters that its model reports: Pebble is
/// too small to be asked for titles.
struct Witness {
    engine: MlxEngine,
    times: u64,
    asked: watch::Sender<Vec<Request>>,
    prefetched: watch::Sender<Vec<Request>>,
    /// How many titles have been written to their end.
    titles: watch::Sender<usize>,
}

impl Witness {
    fn new(times: u64) -> Arc<Self> {
        Arc::new(Self {
            engine: MlxEngine::start(),
            times,
            asked: watch::Sender::default(),
            prefetched: watch::Sender::default(),
            titles: watch::Sender::default(),
        })
    }

    /// The last question of a person, as the engine got it.
    fn question(&self) -> Request {
        let asked = self.asked.borrow();
        let question = asked.iter().rfind(|request| request.priority == Priority::Chat);
        question.unwrap().clone()
    }

    /// The prefetched request with these words in it, once it was prefilled.
    async fn read_ahead(&self, words: &str) -> Vec<(Role, String)> {
        let mut prefetched = self.prefetched.subscribe();
        let with_words = |requests: &[Request]| {
            requests
                .iter()
                .map(said)
                .find(|said| said.iter().any(|(_, text)| text.contains(words)))
        };
        let waited = timeout(PATIENCE, prefetched.wait_for(|requests| with_words(requests).is_some())).await;
        let found = with_words(&waited.expect("it is read ahead").unwrap()).unwrap();
        timeout(PATIENCE, self.engine.prefetched()).await.unwrap();
        found
    }
}

impl Engine for Witness {
    fn generate(&self, request: Request) -> JobHandle {
        let is_title = request.priority == Priority::Background;
        self.asked.send_modify(|asked| asked.push(request.clone()));
        let mut job = self.engine.generate(request);
        if is_title {
            let (sender, events) = mailbox();
            let (mut said, titles) = (std::mem::replace(&mut job.events, events), self.titles.clone());
            tokio::spawn(async move {
                while let Some(event) = said.recv().await {
                    sender.send(event);
                }
                titles.send_modify(|written| *written += 1);
            });
        }
        job
    }

    fn capabilities(&self, model: &ModelSource) -> Capabilities {
        self.engine.capabilities(model)
    }

    fn count(&self, request: Request) -> BoxFuture<'static, Result<TokenCount>> {
        self.engine.count(request)
    }

    fn local(&self) -> Option<&dyn LocalEngine> {
        Some(self)
    }
}

impl LocalEngine for Witness {
    fn load(&self, model: FolderSource) -> Receiver<LoadEvent> {
        self.engine.load(model)
    }

    fn prefetch(&self, request: Request) {
        self.engine.prefetch(request.clone());
        self.prefetched.send_modify(|prefetched| prefetched.push(request));
    }

    fn unload(&self, reference: &str) -> BoxFuture<'static, Result<()>> {
        self.engine.unload(reference)
    }

    fn unload_idle(&self, reference: &str) -> BoxFuture<'static, Result<bool>> {
        self.engine.unload_idle(reference)
    }

    fn unload_after(&self, idle: Option<Duration>) {
        self.engine.unload_after(idle);
    }

    fn unload_all(&self) -> BoxFuture<'static, Result<()>> {
        self.engine.unload_all()
    }

    fn loaded(&self) -> Vec<ModelInfo> {
        let larger = |info: ModelInfo| ModelInfo {
            parameters: info.parameters * self.times,
            ..info
        };
        self.engine.loaded().into_iter().map(larger).collect()
    }

    fn follow(&self) -> watch::Receiver<EngineActivity> {
        self.engine.follow()
    }

    fn memory(&self) -> BoxFuture<'static, Result<MemoryFigures>> {
        self.engine.memory()
    }
}

struct Harness {
    folder: TempDir,
    engine: Arc<Witness>,
    chat: Chat,
}

impl Harness {
    async fn new(times: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = Witness::new(times);
        let chat = open(&history(&folder), &engine).await;
        Self { folder, engine, chat }
    }

    /// The same after the app was started again.
    async fn reopened(self) -> Self {
        self.chat.shut_down().await;
        let chat = open(&history(&self.folder), &self.engine).await;
        Self { chat, ..self }
    }

    /// A chat whose answers can be foretold.
    async fn new_chat(&self, settings: ChatSettings) -> String {
        let settings = ChatSettings {
            thinking: Some(Thinking::Off),
            sampling: Sampling::greedy(),
            ..settings
        };
        self.chat.chats().create(settings).await.unwrap().summary.id
    }

    /// The answer to this question, once it has ended.
    async fn ask(&self, chat: &str, question: &str) -> Result<StoredMessage> {
        let turn = self
            .chat
            .answers()
            .send(chat, &[Content::text(question)], &Position::End)
            .await?;
        let mut events = self.chat.answers().attach(&turn.answer.id, 0).await?;
        loop {
            let event = timeout(PATIENCE, events.recv()).await.unwrap().unwrap();
            if let AnswerBody::Finished { message } = event.body {
                return message.error.clone().map_or(Ok(*message), Err);
            }
        }
    }

    /// An empty chat in a project with files, which was opened.
    async fn chat_with_files(&self) -> String {
        let project = self.chat.projects().create("Notes").await.unwrap().id;
        for name in ["tea.md", "cups.txt"] {
            let lines: String = (1..=20).map(|line| format!("line {line} of {name}\n")).collect();
            let file = self.chat.files().add_file(lines.into_bytes(), name).await.unwrap();
            self.chat.projects().put_file(&project, &file).await.unwrap();
        }
        let chat = self.new_chat(ChatSettings::default()).await;
        self.chat.projects().move_chat(&chat, Some(&project)).await.unwrap();
        chat
    }

    /// Asks in a chat with files, which were read already: all but the question itself.
    async fn asked_after_its_files(&self, chat: &str) {
        let usage = self.ask(chat, "What is 347 + 589?").await.unwrap().usage.unwrap();
        assert!(usage.cached_tokens > 200 && usage.prefilled_tokens < 30, "{usage:?}");
    }

    async fn title(&self, chat: &str) -> String {
        self.chat.chats().get(chat).await.unwrap().summary.title
    }

    async fn titles_are_written(&self, count: usize) {
        let mut titles = self.engine.titles.subscribe();
        timeout(PATIENCE, titles.wait_for(|written| *written == count))
            .await
            .unwrap()
            .unwrap();
    }

    async fn stored(&self, chat: &str) -> Vec<StoredMessage> {
        self.chat.chats().get(chat).await.unwrap().messages
    }

    /// A process that ends while MLX computes may crash at its very end.
    async fn end(self) {
        self.chat.shut_down().await;
        self.engine.unload_all().await.unwrap();
    }
}

fn history(folder: &TempDir) -> PathBuf {
    folder.path().join("history.sqlite")
}

async fn open(path: &Path, engine: &Arc<Witness>) -> Chat {
    Chat::open(path, engine.clone(), Arc::new(Shelf)).await.unwrap()
}

fn said(request: &Request) -> Vec<(Role, String)> {
    let messages = request.messages.iter();
    messages
        .map(|message| (message.role, message.text_with_placeholders()))
        .collect()
}

/// The text of each message.
fn words(messages: &[StoredMessage]) -> Vec<(String, String)> {
    messages
        .iter()
        .map(|message| (message.id.clone(), message.text()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_answer_gets_the_title_that_its_model_writes_unless_that_is_none() {
    let harness = Harness::new(100).await;
    // Its title for a sum is its answer again.
    let sum = harness.new_chat(ChatSettings::default()).await;
    assert!(harness
        .ask(&sum, "What is 347 + 589?")
        .await
        .unwrap()
        .text()
        .contains("936"));
    harness.titles_are_written(1).await;
    // An answer that was cut short leaves something to be said.
    let capital = harness
        .new_chat(ChatSettings {
            max_tokens: Some(4),
            ..ChatSettings::default()
        })
        .await;
    let mut changes = harness.chat.changes();
    harness.ask(&capital, "What is the capital of France?").await.unwrap();
    harness.titles_are_written(2).await;
    // Its marks of Markdown are no part of it.
    while harness.title(&capital).await != "The capital of France is Paris" {
        timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
    }
    assert_eq!(harness.title(&sum).await, "What is 347 + 589?");

    // It can be changed, and what a person wrote stays.
    harness.chat.chats().rename(&capital, "Mine").await.unwrap();
    harness.ask(&capital, "What is the capital of Japan?").await.unwrap();
    let harness = harness.reopened().await;
    assert_eq!(harness.title(&capital).await, "Mine");
    let titles: Vec<Request> = harness
        .engine
        .asked
        .borrow()
        .iter()
        .filter(|request| request.priority == Priority::Background)
        .cloned()
        .collect();
    assert_eq!(titles.len(), 2, "one for each first answer");
    assert!(titles.iter().all(|request| request.thinking == Some(Thinking::Off)));
    harness.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_as_small_as_pebble_is_not_asked_for_titles() {
    let harness = Harness::new(1).await;
    let chat = harness.new_chat(ChatSettings::default()).await;
    harness.ask(&chat, "What is the capital of France?").await.unwrap();
    // A title would be asked for right after that.
    harness.engine.read_ahead("Paris").await;
    sleep(Duration::from_millis(150)).await;
    assert_eq!(harness.engine.asked.borrow().len(), 1);
    assert_eq!(harness.title(&chat).await, "What is the capital of France?");
    harness.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_context_is_summarised_and_the_next_question_comes_after_the_summary() {
    let harness = Harness::new(1).await;
    let settings = ChatSettings {
        context: Some(512),
        ..ChatSettings::default()
    };
    let chat = harness.new_chat(settings).await;
    harness.ask(&chat, "My name is Yara.").await.unwrap();
    let next = "Count from 1 to 40";
    let mut asked = 0;
    let full = loop {
        match harness.ask(&chat, next).await {
            Ok(_) => asked += 1,
            Err(error) => break error,
        }
        assert!(asked < 10, "the context is never full");
    };
    assert_eq!((full.code, asked > 1), (ErrorCode::ContextFull, true), "{full}");
    let before = words(&harness.stored(&chat).await);
    let used = harness.chat.compaction().context_use(&chat, &[]).await.unwrap().tokens;

    let question = [Content::text(next)];
    let view = harness
        .chat
        .compaction()
        .summarize_oldest_turns(&chat, &question, |_| {})
        .await
        .unwrap();
    assert_eq!(words(&view.messages), before, "nothing is deleted");
    let cuts: Vec<&StoredMessage> = view
        .messages
        .iter()
        .filter(|message| message.compaction_mark.is_some())
        .collect();
    let [cut] = cuts[..] else { panic!("{cuts:?}") };
    let summary = cut.compaction_mark.as_ref().unwrap().summary.clone().unwrap();
    assert!(!summary.trim().is_empty());
    assert!(harness.chat.compaction().context_use(&chat, &[]).await.unwrap().tokens < used);
    let ahead = harness.engine.read_ahead(&summary).await;
    assert_eq!(
        ahead[0],
        (Role::System, format!("Summary of the earlier conversation:\n{summary}"))
    );

    // It is written over, and kept.
    let written = "The person is called Yara, and likes to have numbers counted.";
    let edited = CompactionMark {
        summary: Some(written.into()),
    };
    let cut = cut.id.clone();
    harness.chat.compaction().set_mark(&cut, Some(&edited)).await.unwrap();
    harness.engine.read_ahead(written).await;
    let harness = harness.reopened().await;
    let kept = harness.stored(&chat).await;
    let at = kept.iter().position(|message| message.id == cut).unwrap();
    assert_eq!(
        (words(&kept), kept[at].compaction_mark.as_ref()),
        (before.clone(), Some(&edited))
    );

    let answer = harness.ask(&chat, next).await.unwrap();
    assert!(answer.text().starts_with("1, 2, 3"), "{}", answer.text());
    let request = harness.engine.question();
    let sent = said(&request);
    let remembered = kept[at + 1..].iter().map(|message| (message.role, message.text()));
    let expected: Vec<(Role, String)> = [(Role::System, format!("Summary of the earlier conversation:\n{written}"))]
        .into_iter()
        .chain(remembered)
        .chain([(Role::User, next.to_owned())])
        .collect();
    assert_eq!(sent, expected);
    let usage = answer.usage.unwrap();
    assert_eq!(usage.prompt_tokens, harness.engine.count(request).await.unwrap().tokens);
    // All but the question was read before it was asked.
    assert!(usage.prefilled_tokens < 40 && usage.cached_tokens > 20, "{usage:?}");

    // Taken back, the model remembers everything again.
    harness.chat.compaction().set_mark(&cut, None).await.unwrap();
    assert!(harness.chat.compaction().context_use(&chat, &[]).await.unwrap().tokens > used);
    harness.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_chat_carries_a_summary_and_the_old_one_stays() {
    let harness = Harness::new(1).await;
    let chat = harness.new_chat(ChatSettings::default()).await;
    harness.ask(&chat, "My name is Yara.").await.unwrap();
    let before = words(&harness.stored(&chat).await);
    let made = harness
        .chat
        .compaction()
        .fork_with_summary(&chat, "Yara, continued", |_| {})
        .await
        .unwrap();
    assert_eq!(
        (made.summary.title.as_str(), made.messages.len()),
        ("Yara, continued", 0)
    );
    let carried = made.settings.carried_summary.clone();
    assert!(!carried.trim().is_empty());
    harness.ask(&made.summary.id, "What is 2 + 3?").await.unwrap();
    let sent = said(&harness.engine.question());
    let expected = [
        (Role::System, format!("Summary of the earlier conversation:\n{carried}")),
        (Role::User, "What is 2 + 3?".to_owned()),
    ];
    assert_eq!(sent, expected);
    assert_eq!(words(&harness.stored(&chat).await), before);
    harness.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_project_are_read_before_the_first_question() {
    let harness = Harness::new(1).await;
    let other = harness.new_chat(ChatSettings::default()).await;
    harness.ask(&other, "What is 2 + 3?").await.unwrap();
    let chat = harness.chat_with_files().await;
    harness.engine.read_ahead("line 20 of cups.txt").await;
    harness.asked_after_its_files(&chat).await;
    harness.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_project_are_read_when_the_model_is_loaded_while_the_question_is_written() {
    let harness = Harness::new(1).await;
    let chat = harness.chat_with_files().await;
    harness.engine.read_ahead("line 20 of cups.txt").await;
    assert!(
        harness.engine.loaded().is_empty(),
        "nothing is loaded for what nobody asked yet"
    );
    let Ok(ModelSource::Folder(pebble)) = Shelf.resolve("pebble") else {
        panic!("Pebble is a folder")
    };
    let mut loading = harness.engine.load(pebble);
    while loading.recv().await.is_some() {}
    let begins = async {
        while !harness.engine.engine.prefetching() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    // It may have come to its end in between.
    let _ = timeout(Duration::from_secs(10), begins).await;
    timeout(PATIENCE, harness.engine.engine.prefetched()).await.unwrap();
    harness.asked_after_its_files(&chat).await;
    harness.end().await;
}
