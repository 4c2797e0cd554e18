use std::io::IsTerminal;

use anyhow::Result;
use api::Removal;
use clap::Args;
use protocol::ErrorCode;
use serde_json::json;

use super::reference::absolute;
use super::size::size;
use crate::app::App;
use crate::input::confirmed;
use crate::{app, output};

/// Examples below the help of `ponder remove`.
pub const EXAMPLES: &str = "Examples:
  ponder remove mlx-community/Qwen3-4B-4bit
  ponder remove --yes mlx-community/Qwen3-4B-4bit@COMMIT";

/// `ponder remove`.
#[derive(Args)]
pub struct RemoveArgs {
    /// Hugging Face ID (all commits), ID@COMMIT (one commit) or model folder
    #[arg(value_name = "MODEL")]
    reference: String,
    /// Remove without asking
    #[arg(long, short)]
    yes: bool,
    /// Also delete the files of a model in a folder of your own
    #[arg(long)]
    own_files_too: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Removes a model, after asking.
///
/// # Errors
/// When it stays.
pub async fn remove(args: RemoveArgs) -> Result<()> {
    let app = App::open().await?;
    let hub = app::hub_of(app.models.clone())?;
    let reference = app::reference_of(&app.models, &absolute(&args.reference));
    let told = hub.removals().plan(&reference, app.chat.models()).await?;
    if let Some(refused) = told.refused.as_ref().filter(|_| !args.own_files_too) {
        return Err(refused.clone().into());
    }
    if !args.yes {
        let asked = !args.json && std::io::stdin().is_terminal();
        if !asked {
            let freed = size(told.bytes_freed);
            let message = format!("removing {reference} frees {freed}. Add --yes to confirm");
            return Err(protocol::Error::new(ErrorCode::BadRequest, message).into());
        }
        if !confirmed(&question(&told))? {
            return Err(protocol::Error::new(ErrorCode::Stopped, "nothing was removed").into());
        }
    }
    let removal = hub.removals().remove(&reference, args.own_files_too, app.chat.models());
    let done = removal.await?;
    if args.json {
        output::line(
            &json!({"type": "removed", "model": reference, "bytes_freed": done.bytes_freed, "shared_bytes": done.shared_bytes,
            "chats": told.chats, "chat_titles": told.chat_titles}),
        )?;
    } else {
        let chats = users(&told).map_or(String::new(), |chats| {
            format!(". It wrote the last response in {chats}, which stays readable")
        });
        let freed = size(done.bytes_freed);
        output::text(&format!("Removed {reference} (freed {freed}){chats}\n"))?;
    }
    Ok(())
}

fn question(told: &Removal) -> String {
    let shared = match told.shared_bytes {
        0 => String::new(),
        bytes => format!(" ({} is shared with other versions and stays)", size(bytes)),
    };
    let chats = users(told).map(|chats| format!("It wrote the last response in {chats}, which stays readable."));
    let chats = chats.unwrap_or_else(|| "No chat uses it.".to_owned());
    let (reference, freed) = (&told.reference, size(told.bytes_freed));
    format!("Remove {reference}? This frees {freed}{shared}. {chats} [y/N] ")
}

/// The chats whose last response is this model's, such as `2 chats (“Boats”, “Names”)`; `None` without any.
fn users(told: &Removal) -> Option<String> {
    const NAMED: usize = 5;
    if told.chats == 0 {
        return None;
    }
    let named = told.chat_titles.iter().filter(|title| !title.is_empty()).take(NAMED);
    let quoted = |title: &String| format!("“{}”", title.replace(char::is_control, " "));
    let mut titles: Vec<String> = named.map(quoted).collect();
    let more = (told.chats as usize).saturating_sub(titles.len());
    if more > 0 && !titles.is_empty() {
        titles.push(format!("{more} more"));
    }
    let count = match told.chats {
        1 => "1 chat".to_owned(),
        chats => format!("{chats} chats"),
    };
    Some(match titles.is_empty() {
        true => count,
        false => format!("{count} ({})", titles.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chats_that_a_model_responded_in_are_named_before_it_goes() {
        let told = |chats: u32, titles: &[&str]| Removal {
            reference: "owner/model".into(),
            chats,
            chat_titles: titles.iter().map(|title| (*title).to_owned()).collect(),
            ..Removal::default()
        };
        assert_eq!(users(&told(0, &[])), None);
        assert_eq!(users(&told(1, &["A boat"])).as_deref(), Some("1 chat (“A boat”)"));
        assert_eq!(users(&told(1, &[""])).as_deref(), Some("1 chat"));
        let many = told(7, &["a", "b\u{1b}[2J", "c", "d", "e", "f", "g"]);
        assert_eq!(
            users(&many).as_deref(),
            Some("7 chats (“a”, “b [2J”, “c”, “d”, “e”, 2 more)")
        );
        assert!(question(&many).contains("last response in 7 chats"));
        assert!(question(&told(0, &[])).contains("No chat"));
    }
}
