//! The part of a branch that the model sees: after the last compaction mark, with a summary of the rest.

use api::{ChatSettings, StoredMessage};

/// Stands before a summary in the instructions.
const SUMMARY: &str = "Summary of the earlier conversation:";

/// The instructions for a branch, with what stands in place of what the model does not remember, and the part that it
/// does.
pub(crate) fn after_mark<'a>(settings: &ChatSettings, branch: &'a [StoredMessage]) -> (String, &'a [StoredMessage]) {
    let cut = branch.iter().rposition(|message| message.compaction_mark.is_some());
    let rest = &branch[cut.map_or(0, |cut| cut + 1)..];
    let summary = summary_of(settings, branch).trim();
    let instructions = match (settings.system_prompt.trim(), summary) {
        (_, "") => settings.system_prompt.clone(),
        ("", summary) => format!("{SUMMARY}\n{summary}"),
        (instructions, summary) => format!("{instructions}\n\n{SUMMARY}\n{summary}"),
    };
    (instructions, rest)
}

/// The summary of the part of a branch that the model does not see.
pub(crate) fn summary_of<'a>(settings: &'a ChatSettings, branch: &'a [StoredMessage]) -> &'a str {
    let cut = branch.iter().rev().find_map(|message| message.compaction_mark.as_ref());
    cut.and_then(|cut| cut.summary.as_deref())
        .unwrap_or(&settings.carried_summary)
}

#[cfg(test)]
mod tests {
    use api::CompactionMark;
    use protocol::Role;

    use super::*;

    fn settings(system_prompt: &str, carried_summary: &str) -> ChatSettings {
        ChatSettings {
            system_prompt: system_prompt.into(),
            carried_summary: carried_summary.into(),
            ..ChatSettings::default()
        }
    }

    #[test]
    fn the_last_mark_of_a_branch_counts_and_a_carried_summary_stays_until_another_is_made() {
        let mut branch: Vec<StoredMessage> = [Role::User, Role::Assistant, Role::User, Role::Assistant]
            .map(StoredMessage::new)
            .into();
        let told = |branch: &[StoredMessage], settings: &ChatSettings| {
            let (instructions, rest) = after_mark(settings, branch);
            (instructions, rest.len())
        };
        assert_eq!(
            told(&branch, &settings(" Be short. ", "")),
            (" Be short. ".to_owned(), 4)
        );
        assert_eq!(told(&branch, &settings("", "Cats.")), (format!("{SUMMARY}\nCats."), 4));
        branch[1].compaction_mark = Some(CompactionMark { summary: None });
        assert_eq!(
            told(&branch, &settings("A", "Cats.")),
            (format!("A\n\n{SUMMARY}\nCats."), 2)
        );
        branch[3].compaction_mark = Some(CompactionMark {
            summary: Some("Dogs.".into()),
        });
        assert_eq!(
            told(&branch, &settings("A", "Cats.")),
            (format!("A\n\n{SUMMARY}\nDogs."), 0)
        );
    }
}
