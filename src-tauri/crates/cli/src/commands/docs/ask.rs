use anyhow::Result;
use clap::Args;
use knowledge::Knowledge;
use std::process::ExitCode;

use super::named::collections_named;
use crate::commands::ask::{run_with, AskArgs as Question, DocumentSearch};
use crate::input::ModelArg;

/// `ponder docs ask`.
#[derive(Args)]
pub struct AskArgs {
    /// Ask only this collection (repeatable)
    #[arg(long = "in", value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    pub(super) model: ModelArg,
    /// Message to send
    #[arg(value_name = "MESSAGE")]
    message: String,
}

/// Asks a model about collections.
///
/// # Errors
/// When a collection is not there, or the model cannot respond.
pub async fn ask(knowledge: &Knowledge, args: AskArgs, json: bool) -> Result<ExitCode> {
    let collections = collections_named(knowledge, &args.names).await?;
    let ids = collections.into_iter().map(|collection| collection.id).collect();
    let search = DocumentSearch::of_collections(knowledge.clone(), ids);
    run_with(Question::plain(args.model, args.message, json), Some(search)).await
}
