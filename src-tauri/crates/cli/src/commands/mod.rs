//! The commands of `ponder`, a file each.

mod ask;
mod chat;
mod embed;
mod endpoints;
mod fit;
mod history;
mod manual;
mod models;
mod serve;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

/// Examples below the help of `ponder`.
const EXAMPLES: &str = "\
Examples:
  ponder ask \"What is 347 + 589?\"
  git diff | ponder ask \"Review this\"
  ponder ask -f report.pdf \"Sum it up.\"
  ponder pull mlx-community/Qwen3-4B-4bit
  ponder chat -m mlx-community/Qwen3-4B-4bit

Exit codes: 0 done, 1 failed, 2 misused, 3 the answer was cut, 130 stopped by Ctrl+C";

/// The arguments of `ponder`.
#[derive(Parser)]
#[command(
    name = "ponder",
    version,
    about = "Talk to language models on this computer",
    after_help = EXAMPLES,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Ponder {
    #[command(subcommand)]
    command: Command,
}

// Parsed once per process, so the size of its largest variant costs nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Subcommand)]
enum Command {
    /// Ask one question (or continue a conversation from a file) and print the answer
    Ask(ask::AskArgs),
    /// Talk in the terminal, in the same history as the window
    Chat(chat::ChatArgs),
    /// Turn texts into vectors with an embedding model
    Embed(embed::EmbedArgs),
    /// List the models on this computer, or unload one
    #[command(alias = "list")]
    Models(models::ModelsArgs),
    /// Fetch a model from the hub
    Pull(models::PullArgs),
    /// Read all files of a model again and compare them with what the hub has
    Verify(models::VerifyArgs),
    /// Fetch those files of a model again that are wrong or missing
    Repair(models::VerifyArgs),
    /// Remove a model from this computer
    #[command(alias = "rm")]
    Remove(models::RemoveArgs),
    /// Copy a folder with a model into Ponder's own
    Import(models::ImportArgs),
    /// Say whether a model fits this computer's memory
    Fit(fit::FitArgs),
    /// Add, list and remove endpoints: servers of models, on this computer or another
    Endpoints(endpoints::EndpointsArgs),
    /// List, search and export chats
    History(history::HistoryArgs),
    /// Answer other programs over HTTP, as OpenAI's and Anthropic's servers do
    Serve(serve::ServeArgs),
    /// Print completions for a shell
    Completions(manual::CompletionsArgs),
    /// Write the manual's pages; packages do
    #[command(hide = true)]
    Manual(manual::ManualArgs),
}

impl Ponder {
    /// True if the command prints JSON.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::Ask(args) => args.json,
            Command::Models(args) => args.json,
            Command::Embed(args) => args.json,
            Command::Pull(args) => args.json,
            Command::Verify(args) | Command::Repair(args) => args.json,
            Command::Remove(args) => args.json,
            Command::Import(args) => args.json,
            Command::Fit(args) => args.json,
            Command::Endpoints(args) => args.json(),
            Command::History(args) => args.json,
            Command::Serve(args) => args.json,
            Command::Chat(_) | Command::Completions(_) | Command::Manual(_) => false,
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// When the command fails.
    pub async fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Ask(args) => return ask::run(args).await,
            Command::Chat(args) => chat::run(args).await,
            Command::Embed(args) => embed::run(args).await,
            Command::Models(args) => models::run(args).await,
            Command::Pull(args) => models::pull(args).await,
            Command::Verify(args) => models::verify(args).await,
            Command::Repair(args) => models::repair(args).await,
            Command::Remove(args) => models::remove(args).await,
            Command::Import(args) => models::import(args).await,
            Command::Fit(args) => fit::run(args).await,
            Command::Endpoints(args) => endpoints::run(args).await,
            Command::History(args) => history::run(args).await,
            Command::Serve(args) => serve::run(args).await,
            Command::Completions(args) => manual::completions(&args, &Self::command()),
            Command::Manual(args) => manual::pages(&args, &Self::command()),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}
