use anyhow::Result;
use clap::Args;
use knowledge::Knowledge;
use protocol::Error;
use serde_json::json;

use super::named::collections_named;
use crate::output::{self, one_line};

/// Characters of a passage on a terminal at most.
const SHOWN: usize = 300;

/// `ponder docs search`.
#[derive(Args)]
pub struct SearchArgs {
    /// Words, or a whole sentence
    #[arg(value_name = "TEXT")]
    text: String,
    /// Search only this collection (repeatable)
    #[arg(long = "in", value_name = "NAME")]
    names: Vec<String>,
    /// Number of passages
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    number: usize,
}

/// Prints the passages that answer a text best.
///
/// # Errors
/// When a collection is not there, or the index cannot be read.
pub async fn search(knowledge: &Knowledge, args: SearchArgs, json: bool) -> Result<()> {
    let collections = collections_named(knowledge, &args.names).await?;
    let ids: Vec<&str> = collections.iter().map(|collection| collection.id.as_str()).collect();
    let found = knowledge
        .search(&ids, &args.text, args.number)
        .await
        .map_err(Error::from)?;
    if found.passages.is_empty() && !json {
        return Ok(output::text("No passage was found.\n")?);
    }
    for (passage, number) in found.passages.into_iter().zip(1..) {
        let quoted = knowledge::quoted(passage, number);
        if json {
            output::line(&json!(quoted))?;
            continue;
        }
        let text = one_line(quoted.text.trim(), SHOWN);
        output::text(&format!(
            "[{number}] {}\n    {text}\n",
            one_line(&quoted.place(), usize::MAX)
        ))?;
    }
    if !found.by_meaning && !json {
        eprintln!("(searched by words alone)");
    }
    Ok(())
}
