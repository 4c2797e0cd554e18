//! The process that does the steps, and that is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use api::{AnswerState, ChatSettings, CompactionMark, DeleteScope, Position, StoredMessage};
use history::{AnswerDelta, History, NewAnswer, PartDelta};
use protocol::{Content, FinishReason};

use super::{label_of, At, Step};

/// Names the file to the process that works on it.
const FILE: &str = "PONDER_TORTURE_FILE";
/// Begins a line by which that process says that something is done.
const DONE: &str = "@@done";

/// The process that works on the file, asked line by line.
pub(super) struct Worker {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Worker {
    pub(super) fn start(file: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--exact",
                "torture::worker::works_on_a_file",
                "--ignored",
                "--nocapture",
            ])
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("it starts");
        let to = process.stdin.take().expect("a pipe");
        let from = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut worker = Self { process, to, from };
        assert!(worker.wait(), "the worker opens the file");
        worker
    }

    pub(super) fn ask(&mut self, step: &Step) {
        let line = serde_json::to_string(step).expect("JSON");
        writeln!(self.to, "{line}").expect("it listens");
    }

    /// True if the command was done; `false` if the process is gone.
    pub(super) fn wait(&mut self) -> bool {
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line).unwrap_or(0) == 0 {
                return false;
            }
            if line.contains(DONE) {
                return true;
            }
        }
    }

    pub(super) fn kill(mut self) {
        self.process.kill().expect("it is killed");
        self.process.wait().expect("it ends");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The other side of [`Worker`]; started by it alone.
#[tokio::test]
#[ignore = "a process of the tests beside it"]
async fn works_on_a_file() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let history = History::open(Path::new(&file)).await.unwrap();
    println!("{DONE}");
    for line in std::io::stdin().lines() {
        let step: Step = serde_json::from_str(&line.unwrap()).unwrap();
        do_step(&history, &step).await;
        println!("{DONE}");
    }
}

async fn find(history: &History, chat: &str, label: &str) -> StoredMessage {
    let tree = history.tree(chat).await.unwrap();
    tree.into_iter()
        .find(|message| label_of(message) == label)
        .expect("a message")
}

async fn streaming(history: &History, chat: &str) -> StoredMessage {
    let tree = history.tree(chat).await.unwrap();
    tree.into_iter()
        .find(|message| message.state == AnswerState::Streaming)
        .expect("a running answer")
}

async fn do_step(history: &History, step: &Step) {
    let new_answer = |model: &str| NewAnswer {
        model: model.into(),
        settings: ChatSettings::default(),
        owner: crate::WRITER.into(),
    };
    match step {
        Step::New => drop(history.create_chat(&ChatSettings::default()).await.unwrap()),
        Step::Ask {
            chat,
            at,
            words,
            model,
            image,
        } => {
            let position = match at {
                At::End => Position::End,
                At::Beginning => Position::Beginning,
                At::After(label) => Position::After(find(history, chat, label).await.id),
            };
            let mut content = vec![Content::text(words.clone())];
            if let Some(image) = image {
                let kept = history
                    .add_attachment(&vec![*image; 2000].into(), "image/png", (2, 2))
                    .await
                    .unwrap();
                let image = Content::Image {
                    attachment: kept.sha256,
                    media_type: kept.media_type,
                    width: 2,
                    height: 2,
                    alt: String::new(),
                };
                content.insert(0, image);
            }
            history
                .begin_turn(chat, &content, &position, words, &new_answer(model))
                .await
                .unwrap();
        }
        Step::Regenerate { chat, question, model } => {
            let question = find(history, chat, question).await.id;
            history.begin_answer(&question, &new_answer(model)).await.unwrap();
        }
        Step::Grow { chat, words } => {
            let parts = vec![PartDelta {
                position: 0,
                content: Content::text(words.clone()),
                started_at: 1,
                ended_at: 2,
            }];
            let delta = AnswerDelta {
                parts,
                tokens: vec![1, 2],
                ..AnswerDelta::default()
            };
            let answer = streaming(history, chat).await.id;
            history.append(&answer, crate::WRITER, &delta).await.unwrap();
        }
        Step::Finish { chat } => {
            let mut answer = streaming(history, chat).await;
            answer.state = AnswerState::Complete;
            answer.finish_reason = Some(FinishReason::Stop);
            answer.finished_at = Some(history::now());
            history.finish(&answer, crate::WRITER, &[1, 2, 3]).await.unwrap();
        }
        Step::Retract { chat } => {
            let answer = streaming(history, chat).await;
            let question = history.message(&answer.parent.unwrap()).await.unwrap();
            assert!(history
                .retract_turn(&question, &answer.id, &question.text())
                .await
                .unwrap());
        }
        Step::Interrupt { chat } => {
            let running = history.running().await.unwrap();
            let answer = running
                .into_iter()
                .find(|answer| answer.chat == *chat)
                .expect("a running answer");
            assert!(history.interrupt(&answer).await.unwrap());
        }
        Step::Edit { chat, answer, words } => {
            let answer = find(history, chat, answer).await.id;
            history.edit_answer(&answer, words).await.unwrap();
        }
        Step::Show { chat, message } => drop(
            history
                .show_branch(&find(history, chat, message).await.id)
                .await
                .unwrap(),
        ),
        Step::DeleteBranch { chat, message } => {
            let message = find(history, chat, message).await.id;
            history.delete_message(&message, DeleteScope::Branch).await.unwrap();
        }
        Step::DeleteTurn { chat, message } => {
            let message = find(history, chat, message).await.id;
            history.delete_message(&message, DeleteScope::Turn).await.unwrap();
        }
        Step::Fork { chat, message, title } => {
            let message = find(history, chat, message).await.id;
            history.fork_chat(&message, title).await.unwrap();
        }
        Step::Forget { chat, message, summary } => {
            let message = find(history, chat, message).await.id;
            let cut = CompactionMark {
                summary: summary.clone(),
            };
            history.set_compaction_mark(&message, Some(&cut)).await.unwrap();
        }
        Step::Trash { chat } => history.trash_chat(chat).await.unwrap(),
        Step::Restore { chat } => drop(history.restore_chat(chat).await.unwrap()),
        Step::Purge { chat } => history.purge_chat(chat).await.unwrap(),
        Step::Move { chat, project } => {
            let projects = history.projects().await.unwrap();
            let project = project.as_ref().map(|name| {
                projects
                    .iter()
                    .find(|project| project.name == *name)
                    .expect("a project")
                    .id
                    .clone()
            });
            history.move_chat(chat, project.as_deref()).await.unwrap();
        }
        Step::Archive { chat, archived } => history.archive_chat(chat, *archived).await.unwrap(),
        Step::Rename { chat, title } => history.rename_chat(chat, title).await.unwrap(),
        Step::Pin { chat, pinned } => history.pin_chat(chat, *pinned).await.unwrap(),
        Step::Draft { chat, words } => history.set_draft(chat, &[Content::text(words.clone())]).await.unwrap(),
        Step::Tidy => drop(history.remove_unlinked_attachments(history::now() + 1).await.unwrap()),
    }
}
