//! Random work on a history by a process that is killed again and again, beside a model of what must be there. Whatever
//! was asked for when the process died is there whole or not at all, and everything before it is.

mod model;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use api::{HistoryQuery, StoredMessage};
use history::History;
use protocol::Content;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};

use self::model::{Chat, Message, Model};
use self::worker::Worker;

/// The projects at the beginning.
const PROJECTS: [&str; 2] = ["f1", "f2"];

/// A command to the process. Chats are named by their ids, messages by their labels.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Step {
    New,
    Ask {
        chat: String,
        at: At,
        words: String,
        model: String,
        image: Option<u8>,
    },
    Regenerate {
        chat: String,
        question: String,
        model: String,
    },
    Grow {
        chat: String,
        words: String,
    },
    Finish {
        chat: String,
    },
    Retract {
        chat: String,
    },
    Interrupt {
        chat: String,
    },
    Edit {
        chat: String,
        answer: String,
        words: String,
    },
    Show {
        chat: String,
        message: String,
    },
    DeleteBranch {
        chat: String,
        message: String,
    },
    DeleteTurn {
        chat: String,
        message: String,
    },
    Fork {
        chat: String,
        message: String,
        title: String,
    },
    Forget {
        chat: String,
        message: String,
        summary: Option<String>,
    },
    Trash {
        chat: String,
    },
    Restore {
        chat: String,
    },
    /// Deletes a chat of the trash for good.
    Purge {
        chat: String,
    },
    /// Into the project of this name, or into none.
    Move {
        chat: String,
        project: Option<String>,
    },
    Archive {
        chat: String,
        archived: bool,
    },
    Rename {
        chat: String,
        title: String,
    },
    Pin {
        chat: String,
        pinned: bool,
    },
    Draft {
        chat: String,
        words: String,
    },
    Tidy,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum At {
    End,
    Beginning,
    After(String),
}

/// By which name the model knows a message.
fn label_of(message: &StoredMessage) -> String {
    match message.role {
        protocol::Role::Assistant if !message.edited => message.model.clone().expect("a model"),
        _ => message.text(),
    }
}

/// All that is there, chats in the trash included.
async fn read(history: &History, file: &mut SqliteConnection) -> BTreeMap<String, Chat> {
    type Row = (String, String, bool, bool, bool, Option<String>, String, Option<String>);
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT c.id, c.title, c.pinned, c.archived_at IS NOT NULL, c.deleted_at IS NOT NULL, f.name, c.draft, c.head
           FROM chats c LEFT JOIN projects f ON f.id = c.project_id",
    )
    .fetch_all(file)
    .await
    .expect("rows");
    let mut chats = BTreeMap::new();
    for (id, title, pinned, archived, deleted, project, draft, head) in rows {
        let tree = history.tree(&id).await.expect("a tree");
        let labels: BTreeMap<&String, String> = tree.iter().map(|message| (&message.id, label_of(message))).collect();
        let messages = tree.iter().map(|message| {
            let message_there = Message {
                parent: message.parent.as_ref().map(|parent| labels[parent].clone()),
                is_answer: message.role == protocol::Role::Assistant,
                state: serde_json::to_string(&message.state)
                    .expect("a word")
                    .trim_matches('"')
                    .to_owned(),
                text: message.text(),
                image: message
                    .parts
                    .iter()
                    .any(|part| matches!(part.content, Content::Image { .. })),
                compaction_mark: message.compaction_mark.clone(),
            };
            (labels[&message.id].clone(), message_there)
        });
        let chat = Chat {
            title,
            pinned,
            archived,
            deleted,
            project,
            draft,
            head: head.as_ref().map(|head| labels[head].clone()),
            messages: messages.collect(),
        };
        assert_eq!(chat.messages.len(), tree.len(), "a label stands twice in {id}");
        chats.insert(id, chat);
    }
    chats
}

/// SplitMix64: https://prng.di.unimi.it/splitmix64.c
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let at = self.below(of.len());
        of.get(at).cloned()
    }
}

/// Something that can be done now.
fn choose(random: &mut Random, model: &Model, number: u64) -> Step {
    let open: Vec<&String> = model
        .chats
        .iter()
        .filter(|(_, chat)| !chat.deleted)
        .map(|(id, _)| id)
        .collect();
    let trash: Vec<&String> = model
        .chats
        .iter()
        .filter(|(_, chat)| chat.deleted)
        .map(|(id, _)| id)
        .collect();
    loop {
        let kind = random.below(27);
        let Some(id) = random.one(&open).cloned().filter(|_| open.len() > 1 || kind > 0) else {
            return Step::New;
        };
        let known = &model.chats[&id];
        let labels: Vec<String> = known.messages.keys().cloned().collect();
        let of = |answers: bool| -> Vec<String> {
            let wanted = labels
                .iter()
                .filter(|label| known.messages[*label].is_answer == answers);
            wanted.cloned().collect()
        };
        if let Some(answer) = known.streaming() {
            let message = &known.messages[answer];
            let question = message.parent.clone().unwrap_or_default();
            let alone = known.children(&question).count() == 1;
            return match random.below(5) {
                0 if message.text.is_empty() && alone && !known.messages[&question].image => Step::Retract { chat: id },
                0 | 1 => Step::Finish { chat: id },
                2 => Step::Interrupt { chat: id },
                3 if !labels.is_empty() => Step::Show {
                    message: random.one(&labels).expect("a message"),
                    chat: id,
                },
                _ => Step::Grow {
                    chat: id,
                    words: format!("g{number} "),
                },
            };
        }
        let step = match kind {
            0 if open.len() < 12 => Some(Step::New),
            1..=7 => {
                let at = match (random.below(4), random.one(&of(true))) {
                    (0, Some(answer)) => At::After(answer),
                    (1, _) => At::Beginning,
                    _ => At::End,
                };
                Some(Step::Ask {
                    chat: id,
                    at,
                    words: format!("q{number}"),
                    model: format!("m{number}"),
                    image: (random.below(6) == 0).then(|| random.below(5) as u8),
                })
            }
            8 | 9 => random.one(&of(false)).map(|question| Step::Regenerate {
                chat: id,
                question,
                model: format!("m{number}"),
            }),
            10 | 11 => random.one(&of(true)).map(|answer| Step::Edit {
                chat: id,
                answer,
                words: format!("e{number}"),
            }),
            12 | 13 => random.one(&labels).map(|message| Step::Show { chat: id, message }),
            14 => random
                .one(&labels)
                .map(|message| Step::DeleteBranch { chat: id, message }),
            15 => random
                .one(&known.branch())
                .map(|message| Step::DeleteTurn { chat: id, message }),
            16 if open.len() < 12 => random.one(&labels).map(|message| Step::Fork {
                chat: id,
                message,
                title: format!("t{number}"),
            }),
            17 => random.one(&labels).map(|message| Step::Forget {
                chat: id,
                message,
                summary: (number.is_multiple_of(2)).then(|| format!("s{number}")),
            }),
            18 if open.len() > 3 => Some(Step::Trash { chat: id }),
            19 | 20 => random.one(&trash).cloned().map(|chat| Step::Restore { chat }),
            21 => Some(Step::Rename {
                chat: id,
                title: format!("t{number}"),
            }),
            22 => Some(Step::Pin {
                chat: id,
                pinned: number.is_multiple_of(2),
            }),
            24 => Some(Step::Move {
                chat: id,
                project: random
                    .one(&[None, Some(PROJECTS[0]), Some(PROJECTS[1])])
                    .flatten()
                    .map(str::to_owned),
            }),
            25 => Some(Step::Archive {
                chat: id,
                archived: number.is_multiple_of(2),
            }),
            26 if random.below(4) == 0 => random.one(&trash).cloned().map(|chat| Step::Purge { chat }),
            23 if random.below(4) == 0 => Some(Step::Tidy),
            23 => Some(Step::Draft {
                chat: id,
                words: format!("d{number}"),
            }),
            _ => None,
        };
        if let Some(step) = step {
            return step;
        }
    }
}

/// Returns how often the process was killed.
async fn torture(seed: u64, steps: u64, kill_one_in: usize) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    // A second process on the same file, as a second window is.
    let history = History::open(&path).await.unwrap();
    for project in PROJECTS {
        history.create_project(project).await.unwrap();
    }
    let mut file = SqliteConnectOptions::new()
        .filename(&path)
        .read_only(true)
        .connect()
        .await
        .unwrap();
    let (mut random, mut model) = (Random(seed), Model::default());
    let mut worker = Worker::start(&path);
    let mut kills = 0;
    for number in 0..steps {
        let step = choose(&mut random, &model, number);
        let before = model.clone();
        model.apply(&step);
        worker.ask(&step);
        let killed = random.below(kill_one_in) == 0;
        if killed {
            tokio::time::sleep(Duration::from_micros(random.next() % 6000)).await;
            worker.kill();
            kills += 1;
            worker = Worker::start(&path);
        } else {
            assert!(worker.wait(), "seed {seed}: step {number} failed: {step:?}");
        }
        let there = read(&history, &mut file).await;
        if let Some(id) = there
            .keys()
            .find(|id| !model.chats.contains_key(*id))
            .filter(|id| !before.chats.contains_key(*id))
        {
            model.name_new(id);
        }
        if killed && there == before.chats {
            model = before;
        }
        assert_eq!(there, model.chats, "seed {seed}: after step {number}: {step:?}");
        if number % 50 == 0 {
            check_readable(&history, &model, &mut file, &mut random).await;
        }
    }
    check_readable(&history, &model, &mut file, &mut random).await;
    assert!(kills > 0, "seed {seed}: nothing was killed");
    kills
}

/// Compares what windows read (every chat, every image, every search) and checks the integrity of the file.
async fn check_readable(history: &History, model: &Model, file: &mut SqliteConnection, random: &mut Random) {
    let whole: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut *file)
        .await
        .unwrap();
    assert_eq!(whole, "ok");
    let dangling = sqlx::query("PRAGMA foreign_key_check")
        .fetch_all(&mut *file)
        .await
        .unwrap();
    assert!(dangling.is_empty());
    let listed: BTreeSet<String> = history.chats().await.unwrap().into_iter().map(|chat| chat.id).collect();
    let open: BTreeSet<String> = model
        .chats
        .iter()
        .filter(|(_, chat)| !chat.deleted)
        .map(|(id, _)| id.clone())
        .collect();
    assert_eq!(listed, open);
    let mut questions = Vec::new();
    for id in &open {
        let view = history.chat(id).await.unwrap();
        let shown: Vec<String> = view.messages.iter().map(label_of).collect();
        assert_eq!(shown, model.chats[id].branch());
        for message in &view.messages {
            for part in &message.parts {
                if let Content::Image { attachment, .. } = &part.content {
                    history.attachment_bytes(attachment).await.unwrap();
                }
            }
        }
        questions.extend(
            model.chats[id]
                .messages
                .keys()
                .filter(|label| label.starts_with('q'))
                .cloned(),
        );
    }
    let Some(wanted) = random.one(&questions) else { return };
    while history.index_texts(1_000, true).await.unwrap() {}
    let query = HistoryQuery::words(&format!("\"{wanted}\""));
    let found: BTreeSet<String> = history
        .search(&query)
        .await
        .unwrap()
        .hits
        .into_iter()
        .map(|hit| hit.chat)
        .collect();
    for id in model
        .chats
        .keys()
        .filter(|id| model.chats[*id].messages.contains_key(&wanted))
    {
        assert_eq!(found.contains(id), open.contains(id), "{wanted} in {id}");
    }
}

/// `PONDER_SEED` chooses the first seed, which `./dev test --full` draws anew.
#[tokio::test]
async fn whatever_is_done_and_whenever_it_dies_nothing_is_lost() {
    let full = std::env::var_os("PONDER_FULL").is_some();
    let (seeds, steps) = if full { (20, 2000) } else { (2, 200) };
    let first: u64 = std::env::var("PONDER_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (begun, mut kills) = (Instant::now(), 0);
    for seed in first..first + seeds {
        kills += torture(seed, steps, 12).await;
    }
    println!(
        "report: history: {seeds} seeds of {steps} operations, killed {kills} times, nothing lost, in {:.0?}",
        begun.elapsed()
    );
}
