//! `ponder history repair`: what is left of a damaged history, and a new file in its place once somebody said yes.

use std::io::{stdin, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{bail, Result};
use api::{HistoryContents, HistoryDamage, HistoryRemedy};
use clap::Args;
use serde_json::json;

use super::day;
use crate::app::{history_file, App};
use crate::input::confirmed;
use crate::output;

/// The arguments of `ponder history repair`.
#[derive(Args)]
pub struct RepairArgs {
    /// Recover the missing chats from this damaged file
    file: Option<PathBuf>,
    /// Use only the newest backup
    #[arg(long, conflicts_with = "file")]
    backup: bool,
    /// Repair without asking
    #[arg(long, short)]
    yes: bool,
}

/// Shows what is left of a damaged history, asks, and puts it in its place.
///
/// # Errors
/// When nobody said yes, nothing can be read, or another program has the history open.
pub async fn run(args: RepairArgs, json: bool) -> Result<()> {
    if let Some(file) = args.file {
        return add_from(&file, json).await;
    }
    let path = history_file()?;
    if !path.exists() || !chat::history_is_damaged(&path).await? {
        return Ok(output::report(
            json,
            &json!({"damaged": false}),
            "The history is not damaged.",
        )?);
    }
    let damage = chat::examine_history(&path).await?;
    if !json {
        output::text(&told(&damage))?;
    }
    let (remedy, contents) = match (args.backup, damage.backup) {
        (true, Some(backup)) => (HistoryRemedy::Backup, backup.contents),
        (true, None) => bail!("there is no usable backup. Nothing was changed"),
        (false, _) => (HistoryRemedy::Everything, damage.together),
    };
    if !args.yes && !agreed(&contents)? {
        if json {
            output::line(&json!({"damaged": true, "damage": damage}))?;
        }
        bail!("nothing was changed. Run 'ponder history repair --yes' to repair the history");
    }
    let done = chat::repair_history(&path, remedy).await?;
    let text = format!(
        "Repaired. The history has {}. The damaged file was kept as {}. To try it again, run 'ponder history repair FILE'.",
        counted(&done.contents),
        done.set_aside
    );
    let told = json!({"damaged": true, "damage": damage, "repaired": done});
    Ok(output::report(json, &told, &text)?)
}

async fn add_from(file: &Path, json: bool) -> Result<()> {
    let app = App::open().await?;
    let added = app.chat.library().add_from(file).await;
    app.chat.shut_down().await;
    let added = added?;
    let text = format!("Recovered {}.", counted(&added));
    Ok(output::report(json, &json!({"added": added}), &text)?)
}

/// Asks on the terminal; without one nobody agrees.
fn agreed(contents: &HistoryContents) -> Result<bool> {
    if !stdin().is_terminal() {
        return Ok(false);
    }
    let question = format!("Repair the history with {}? [y/N] ", counted(contents));
    Ok(confirmed(&question)?)
}

fn told(damage: &HistoryDamage) -> String {
    let mut text = format!(
        "The history is damaged. It had {}, and {} can be recovered.\n",
        output::plural(damage.known_chats, "chat"),
        counted(&damage.readable)
    );
    if let Some(backup) = damage.backup {
        text += &format!(
            "The newest backup, of {}, has {}. Together they have {}.\n",
            day(backup.made_at),
            counted(&backup.contents),
            counted(&damage.together)
        );
    }
    text
}

fn counted(contents: &HistoryContents) -> String {
    format!(
        "{} with {}",
        output::plural(contents.chats, "chat"),
        output::plural(contents.messages, "message")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_chat_is_told_of_as_one() {
        let one = HistoryContents { chats: 1, messages: 1 };
        let damage = HistoryDamage {
            known_chats: 1,
            readable: one,
            backup: None,
            together: one,
        };
        assert_eq!(
            told(&damage),
            "The history is damaged. It had 1 chat, and 1 chat with 1 message can be recovered.\n"
        );
    }
}
