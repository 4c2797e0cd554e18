//! The list of chats as windows keep it: they are told what of it has changed, because a long one is heavy and changes
//! with every answer.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use api::{ChatList, ChatSummary};

/// The number of snapshots that are kept: windows have the last one or the one before.
const SNAPSHOTS: usize = 3;

/// The last states of the list.
#[derive(Default)]
pub(super) struct ListSnapshots {
    last: VecDeque<(u64, Arc<Vec<ChatSummary>>)>,
    made: u64,
}

impl ListSnapshots {
    /// Notes the present chats; what has changed since a snapshot.
    pub(super) fn list(&mut self, chats: Vec<ChatSummary>, since: Option<u64>) -> ChatList {
        let now = match self.last.back() {
            Some((_, last)) if **last == chats => last.clone(),
            _ => {
                self.made += 1;
                let now = Arc::new(chats);
                self.last.push_back((self.made, now.clone()));
                now
            }
        };
        let before = self.last.iter().find(|(snapshot, _)| Some(*snapshot) == since);
        let list = ChatList {
            snapshot: self.made,
            whole: before.is_none(),
            chats: Vec::new(),
            gone: Vec::new(),
        };
        let list = match before {
            Some((snapshot, _)) if *snapshot == self.made => list,
            Some((_, before)) => changes(list, before, &now),
            None => ChatList {
                chats: now.to_vec(),
                ..list
            },
        };
        if self.last.len() > SNAPSHOTS {
            self.last.pop_front();
        }
        list
    }
}

/// The list with what differs between two of its states.
fn changes(mut list: ChatList, before: &[ChatSummary], now: &[ChatSummary]) -> ChatList {
    let mut left: HashMap<&str, &ChatSummary> = before.iter().map(|chat| (chat.id.as_str(), chat)).collect();
    let changed = now.iter().filter(|chat| left.remove(chat.id.as_str()) != Some(*chat));
    list.chats = changed.cloned().collect();
    list.gone = left.into_keys().map(str::to_owned).collect();
    list.gone.sort_unstable();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(id: &str, revision: i64) -> ChatSummary {
        ChatSummary {
            id: id.into(),
            title: String::new(),
            created_at: 0,
            updated_at: 0,
            pinned: false,
            running: false,
            unread: false,
            has_draft: false,
            revision,
            archived: false,
            project: None,
        }
    }

    #[test]
    fn who_has_a_snapshot_is_told_what_has_changed_and_everybody_else_all() {
        let mut snapshots = ListSnapshots::default();
        let many: Vec<ChatSummary> = (0..5000).map(|number| chat(&number.to_string(), 0)).collect();
        let first = snapshots.list(many.clone(), None);
        assert_eq!((first.whole, first.chats.len()), (true, 5000));
        let same = snapshots.list(many.clone(), Some(first.snapshot));
        assert_eq!(
            (same.snapshot, same.whole, same.chats, same.gone),
            (first.snapshot, false, vec![], vec![])
        );

        let mut changed = many.clone();
        changed[7].revision = 1;
        changed.remove(9);
        changed.insert(0, chat("new", 0));
        let second = snapshots.list(changed.clone(), Some(first.snapshot));
        assert_eq!(second.chats, [chat("new", 0), chat("7", 1)]);
        assert_eq!((second.whole, second.gone), (false, vec!["9".to_owned()]));
        // Another window, which has the one before.
        let other = snapshots.list(changed.clone(), Some(first.snapshot));
        assert_eq!((other.snapshot, other.chats.len()), (second.snapshot, 2));
        // One that has been asleep, or has a snapshot of another start of the app.
        for revision in 2..6 {
            changed[0].revision = revision;
            snapshots.list(changed.clone(), None);
        }
        for unknown in [Some(first.snapshot), Some(77), None] {
            let all = snapshots.list(changed.clone(), unknown);
            assert_eq!((all.whole, all.chats.len(), all.gone.len()), (true, 5000, 0));
        }
    }
}
