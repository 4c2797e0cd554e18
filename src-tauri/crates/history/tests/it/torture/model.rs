//! The expected state after each step.

use std::collections::{BTreeMap, BTreeSet};

use api::CompactionMark;
use protocol::Content;

use super::{At, Step};

/// A message as it must be; its label is its key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    pub(super) parent: Option<String>,
    pub(super) is_answer: bool,
    pub(super) state: String,
    pub(super) text: String,
    pub(super) image: bool,
    pub(super) compaction_mark: Option<CompactionMark>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Chat {
    pub(super) title: String,
    pub(super) pinned: bool,
    pub(super) archived: bool,
    pub(super) deleted: bool,
    pub(super) project: Option<String>,
    pub(super) draft: String,
    pub(super) head: Option<String>,
    pub(super) messages: BTreeMap<String, Message>,
}

/// The place of deleted messages.
#[derive(Debug, Clone)]
struct DeletedBranch {
    chat: String,
    root: String,
    parent: Option<String>,
    end: Option<String>,
    after: Vec<String>,
    head: Option<String>,
}

/// The expected state.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) chats: BTreeMap<String, Chat>,
    deleted_branches: BTreeMap<String, DeletedBranch>,
    /// Of each chat its labels, oldest first.
    order: BTreeMap<String, Vec<String>>,
}

/// The key of a chat whose id is not known yet.
const NEW: &str = "new";

impl Chat {
    pub(super) fn children<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a String> {
        self.messages
            .iter()
            .filter(move |(_, message)| message.parent.as_deref() == Some(label))
            .map(|(label, _)| label)
    }

    fn below(&self, root: &str, end: Option<&str>) -> BTreeSet<String> {
        let (mut found, mut open) = (BTreeSet::new(), vec![root.to_owned()]);
        while let Some(label) = open.pop() {
            if end != Some(label.as_str()) {
                open.extend(self.children(&label).cloned());
            }
            found.insert(label);
        }
        found
    }

    pub(super) fn branch(&self) -> Vec<String> {
        let mut branch = Vec::new();
        let mut at = self.head.clone();
        while let Some(label) = at {
            at = self.messages[&label].parent.clone();
            branch.insert(0, label);
        }
        branch
    }

    pub(super) fn streaming(&self) -> Option<&String> {
        self.messages
            .iter()
            .find(|(_, message)| message.state == "streaming")
            .map(|(label, _)| label)
    }
}

impl Model {
    fn newest_leaf(&self, chat: &str, label: &str) -> String {
        let known = &self.chats[chat];
        let below = known.below(label, None);
        let leaf = |label: &&String| below.contains(*label) && known.children(label).next().is_none();
        self.order[chat].iter().rfind(leaf).expect("a branch ends").clone()
    }

    fn add(&mut self, chat: &str, label: &str, message: Message) {
        self.order.entry(chat.to_owned()).or_default().push(label.to_owned());
        let chat = self.chats.get_mut(chat).expect("a chat");
        chat.messages.insert(label.to_owned(), message);
        chat.head = Some(label.to_owned());
    }

    fn answer(&mut self, chat: &str, parent: &str, model: &str) {
        let message = Message {
            parent: Some(parent.to_owned()),
            is_answer: true,
            state: "streaming".into(),
            text: String::new(),
            image: false,
            compaction_mark: None,
        };
        self.add(chat, model, message);
    }

    /// The state after a step.
    pub(super) fn apply(&mut self, step: &Step) {
        match step.clone() {
            Step::New => drop(self.chats.insert(
                NEW.into(),
                Chat {
                    draft: "[]".into(),
                    ..Chat::default()
                },
            )),
            Step::Ask {
                chat,
                at,
                words,
                model,
                image,
            } => {
                let known = self.chats.get_mut(&chat).expect("a chat");
                known.draft = "[]".into();
                if known.title.is_empty() {
                    known.title.clone_from(&words);
                }
                let parent = match at {
                    At::End => known.head.clone(),
                    At::Beginning => None,
                    At::After(label) => Some(label),
                };
                let message = Message {
                    parent,
                    is_answer: false,
                    state: "complete".into(),
                    text: words.clone(),
                    image: image.is_some(),
                    compaction_mark: None,
                };
                self.add(&chat, &words, message);
                self.answer(&chat, &words, &model);
            }
            Step::Regenerate { chat, question, model } => self.answer(&chat, &question, &model),
            Step::Grow { chat, words } => self.change_streaming(&chat, |answer| answer.text.push_str(&words)),
            Step::Finish { chat } => self.change_streaming(&chat, |answer| answer.state = "complete".into()),
            Step::Retract { chat } => {
                let known = self.chats.get_mut(&chat).expect("a chat");
                let answer = known.streaming().expect("a running answer").clone();
                let question = known.messages[&answer].parent.clone().expect("a question");
                let asked = known.messages[&question].clone();
                known.messages.retain(|label, _| *label != answer && *label != question);
                if known.head.as_ref() == Some(&answer) {
                    known.head = asked.parent;
                }
                if known.draft == "[]" {
                    known.draft = draft(&question);
                }
                if known.messages.is_empty() && known.title == question {
                    known.title.clear();
                }
                self.order
                    .get_mut(&chat)
                    .expect("an order")
                    .retain(|label| *label != answer && *label != question);
            }
            Step::Interrupt { chat } => self.change_streaming(&chat, |answer| answer.state = "interrupted".into()),
            Step::Edit { chat, answer, words } => {
                let message = Message {
                    text: words.clone(),
                    state: "complete".into(),
                    compaction_mark: None,
                    ..self.chats[&chat].messages[&answer].clone()
                };
                self.add(&chat, &words, message);
            }
            Step::Show { chat, message } => {
                let leaf = self.newest_leaf(&chat, &message);
                self.chats.get_mut(&chat).expect("a chat").head = Some(leaf);
            }
            Step::DeleteBranch { chat, message } => self.delete(&chat, &message, None),
            Step::DeleteTurn { chat, message } => {
                let known = &self.chats[&chat];
                let branch = known.branch();
                let is_question = |label: &String| !known.messages[label].is_answer;
                let at = branch
                    .iter()
                    .position(|label| *label == message)
                    .expect("on the branch");
                let first = branch[..=at].iter().rposition(is_question).unwrap_or(0);
                let next = branch[first + 1..].iter().position(is_question);
                let end = next.map(|next| branch[first + next].clone());
                self.delete(&chat, &branch[first], end);
            }
            Step::Fork { chat, message, title } => {
                let known = &self.chats[&chat];
                let upto = Chat {
                    head: Some(message),
                    ..known.clone()
                };
                let branch = upto.branch();
                let copy = Chat {
                    title,
                    project: known.project.clone(),
                    draft: "[]".into(),
                    head: upto.head,
                    messages: branch
                        .iter()
                        .map(|label| (label.clone(), known.messages[label].clone()))
                        .collect(),
                    ..Chat::default()
                };
                self.order.insert(NEW.into(), branch);
                self.chats.insert(NEW.into(), copy);
            }
            Step::Forget { chat, message, summary } => {
                self.chats
                    .get_mut(&chat)
                    .expect("a chat")
                    .messages
                    .get_mut(&message)
                    .expect("a message")
                    .compaction_mark = Some(CompactionMark { summary });
            }
            Step::Trash { chat } => self.chats.get_mut(&chat).expect("a chat").deleted = true,
            Step::Restore { chat } => self.restore(&chat),
            Step::Purge { chat } => {
                self.chats.remove(&chat);
                self.deleted_branches.remove(&chat);
                self.order.remove(&chat);
            }
            Step::Move { chat, project } => self.chats.get_mut(&chat).expect("a chat").project = project,
            Step::Archive { chat, archived } => self.chats.get_mut(&chat).expect("a chat").archived = archived,
            Step::Rename { chat, title } => self.chats.get_mut(&chat).expect("a chat").title = title,
            Step::Pin { chat, pinned } => self.chats.get_mut(&chat).expect("a chat").pinned = pinned,
            Step::Draft { chat, words } => self.chats.get_mut(&chat).expect("a chat").draft = draft(&words),
            Step::Tidy => {}
        }
    }

    fn change_streaming(&mut self, chat: &str, change: impl FnOnce(&mut Message)) {
        let chat = self.chats.get_mut(chat).expect("a chat");
        let label = chat.streaming().expect("a running answer").clone();
        change(chat.messages.get_mut(&label).expect("a message"));
    }

    fn delete(&mut self, chat: &str, root: &str, end: Option<String>) {
        let known = self.chats[chat].clone();
        let after: Vec<String> = match &end {
            Some(end) => self.order[chat]
                .iter()
                .filter(|label| known.messages[*label].parent.as_ref() == Some(end))
                .cloned()
                .collect(),
            None => Vec::new(),
        };
        let parent = known.messages[root].parent.clone();
        let siblings: Vec<&String> = self.order[chat]
            .iter()
            .filter(|label| known.messages[*label].parent == parent)
            .collect();
        let at = siblings
            .iter()
            .position(|label| *label == root)
            .expect("a sibling of itself");
        let beside = if at > 0 {
            Some(siblings[at - 1])
        } else {
            siblings.get(at + 1).copied()
        }
        .cloned();
        let gone = known.below(root, end.as_deref());

        let trash = Chat {
            title: known.title.clone(),
            draft: "[]".into(),
            deleted: true,
            messages: gone
                .iter()
                .map(|label| (label.clone(), known.messages[label].clone()))
                .collect(),
            ..Chat::default()
        };
        let order: Vec<String> = self.order[chat]
            .iter()
            .filter(|label| gone.contains(*label))
            .cloned()
            .collect();
        self.order
            .get_mut(chat)
            .expect("an order")
            .retain(|label| !gone.contains(label));
        self.chats.insert(NEW.into(), trash);
        self.order.insert(NEW.into(), order);
        self.chats
            .get_mut(NEW)
            .expect("a chat")
            .messages
            .get_mut(root)
            .expect("a message")
            .parent = None;
        let leaf = self.newest_leaf(NEW, root);
        self.chats.get_mut(NEW).expect("a chat").head = Some(leaf);

        let left = self.chats.get_mut(chat).expect("a chat");
        left.messages.retain(|label, _| !gone.contains(label));
        for label in &after {
            left.messages
                .get_mut(label)
                .expect("a message")
                .parent
                .clone_from(&parent);
        }
        if let (Some(end), Some(parent)) = (&end, &parent) {
            let mark = known.messages[end].compaction_mark.clone();
            let before = left.messages.get_mut(parent).expect("a message");
            before.compaction_mark = before.compaction_mark.take().or(mark);
        }
        if known.head.as_ref().is_some_and(|head| gone.contains(head)) {
            let head = match beside {
                Some(beside) => Some(self.newest_leaf(chat, &beside)),
                None => parent.clone(),
            };
            self.chats.get_mut(chat).expect("a chat").head = head;
        }
        let deleted = DeletedBranch {
            chat: chat.to_owned(),
            root: root.to_owned(),
            parent,
            end,
            after,
            head: known.head,
        };
        self.deleted_branches.insert(NEW.into(), deleted);
    }

    fn restore(&mut self, chat: &str) {
        let Some(deleted) = self.deleted_branches.remove(chat).filter(|_| self.chats[chat].deleted) else {
            self.chats.get_mut(chat).expect("a chat").deleted = false;
            return;
        };
        let origin = self.chats.get(&deleted.chat).filter(|origin| !origin.deleted);
        let there = |origin: &&Chat| {
            deleted
                .parent
                .as_ref()
                .is_none_or(|parent| origin.messages.contains_key(parent))
        };
        let Some(mut origin) = origin.filter(there).cloned() else {
            self.chats.get_mut(chat).expect("a chat").deleted = false;
            return;
        };
        let mut back = self.chats.remove(chat).expect("a chat");
        back.messages
            .get_mut(&deleted.root)
            .expect("a message")
            .parent
            .clone_from(&deleted.parent);
        if let Some(end) = &deleted.end {
            for label in &deleted.after {
                if let Some(message) = origin
                    .messages
                    .get_mut(label)
                    .filter(|message| message.parent == deleted.parent)
                {
                    message.parent = Some(end.clone());
                }
            }
            let mark = back.messages[end].compaction_mark.clone();
            if let Some(before) = deleted
                .parent
                .as_ref()
                .and_then(|parent| origin.messages.get_mut(parent))
            {
                if mark.is_some() && before.compaction_mark == mark {
                    before.compaction_mark = None;
                }
            }
        }
        let idle = origin.streaming().is_none();
        origin.messages.extend(back.messages);
        if idle
            && deleted
                .head
                .as_ref()
                .is_some_and(|head| origin.messages.contains_key(head))
        {
            origin.head = deleted.head;
        }
        let mut order = self.order.remove(chat).expect("an order");
        let known = self.order.get_mut(&deleted.chat).expect("an order");
        known.append(&mut order);
        known.sort_by_key(|label| number(label));
        self.chats.insert(deleted.chat, origin);
    }

    /// Gives the new chat its id.
    pub(super) fn name_new(&mut self, id: &str) {
        if let Some(chat) = self.chats.remove(NEW) {
            self.chats.insert(id.to_owned(), chat);
            let order = self.order.remove(NEW).unwrap_or_default();
            self.order.insert(id.to_owned(), order);
            if let Some(deleted) = self.deleted_branches.remove(NEW) {
                self.deleted_branches.insert(id.to_owned(), deleted);
            }
        }
    }
}

/// Labels are a letter and the number of their step, so their numbers tell their age; a question is older than its
/// answer.
fn number(label: &str) -> (u64, bool) {
    (label[1..].parse().expect("a number"), label.starts_with('m'))
}

fn draft(words: &str) -> String {
    serde_json::to_string(&[Content::text(words)]).expect("JSON")
}
