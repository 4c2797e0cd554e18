//! The commands of `ponder`, a file each.

mod ask;
mod chat;
mod docs;
mod embed;
mod endpoints;
mod fit;
#[cfg(test)]
mod help;
mod history;
mod manual;
mod mcp;
mod models;
mod serve;
mod tools;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

/// Examples below the help of `ponder`.
const EXAMPLES: &str = r#"Examples:
  ponder ask "What is 347 + 589?"
  ponder pull mlx-community/Qwen3-4B-4bit
  ponder chat -m mlx-community/Qwen3-4B-4bit

Exit codes: 0 success, 1 failure, 2 usage error, 3 response cut off, 130 stopped by Ctrl+C

Run 'ponder <command> --help' for examples."#;

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
    /// Send one message and print the response
    #[command(after_help = ask::EXAMPLES)]
    Ask(ask::AskArgs),
    /// Chat in the terminal, with the same history as the app
    #[command(after_help = chat::EXAMPLES)]
    Chat(chat::ChatArgs),
    /// Read, search and ask folders of documents
    #[command(after_help = docs::EXAMPLES)]
    Docs(docs::DocsArgs),
    /// Turn text into vectors with an embedding model
    #[command(after_help = embed::EXAMPLES)]
    Embed(embed::EmbedArgs),
    /// List and manage the models on this computer
    #[command(alias = "list", after_help = models::EXAMPLES)]
    Models(models::ModelsArgs),
    /// Download a model from Hugging Face
    #[command(after_help = models::PULL_EXAMPLES)]
    Pull(models::PullArgs),
    /// Check a model's files against Hugging Face
    #[command(after_help = models::VERIFY_EXAMPLES)]
    Verify(models::VerifyArgs),
    /// Download damaged or missing files again
    #[command(after_help = models::REPAIR_EXAMPLES)]
    Repair(models::VerifyArgs),
    /// Remove a model from this computer
    #[command(alias = "rm", after_help = models::REMOVE_EXAMPLES)]
    Remove(models::RemoveArgs),
    /// Copy a model into Ponder, also from Ollama and LM Studio
    #[command(after_help = models::IMPORT_EXAMPLES)]
    Import(models::ImportArgs),
    /// Write a quantized copy of a model, which needs less memory
    #[command(after_help = models::QUANTIZE_EXAMPLES)]
    Quantize(models::QuantizeArgs),
    /// Show how much memory a model needs
    #[command(after_help = fit::EXAMPLES)]
    Fit(fit::FitArgs),
    /// Add, list and remove endpoints with an OpenAI-compatible API
    #[command(after_help = endpoints::EXAMPLES)]
    Endpoints(endpoints::EndpointsArgs),
    /// Add, list and remove MCP servers with tools for models
    #[command(after_help = tools::EXAMPLES)]
    Tools(tools::ToolsArgs),
    /// List, search, export and import chats
    #[command(visible_alias = "chats", after_help = history::EXAMPLES)]
    History(history::HistoryArgs),
    /// Run a local server with OpenAI-, Anthropic- and Ollama-compatible APIs
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::ServeArgs),
    /// Offer local models to other programs as an MCP server
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(mcp::McpArgs),
    /// Print completions for a shell
    #[command(after_help = manual::EXAMPLES)]
    Completions(manual::CompletionsArgs),
    /// Write the manual pages
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
            Command::Quantize(args) => args.json,
            Command::Fit(args) => args.json,
            Command::Endpoints(args) => args.json,
            Command::Docs(args) => args.json,
            Command::Tools(args) => args.json,
            Command::History(args) => args.json,
            Command::Serve(args) => args.json,
            Command::Chat(_) | Command::Mcp(_) | Command::Completions(_) | Command::Manual(_) => false,
        }
    }

    /// Runs the command.
    ///
    /// # Errors
    /// When the command fails.
    pub async fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Ask(args) => return ask::run(args).await,
            Command::Docs(args) => return docs::run(args).await,
            Command::Quantize(args) => return models::quantize(args).await,
            Command::Import(args) => return models::import(args).await,
            Command::Models(args) => return models::run(args).await,
            Command::Chat(args) => chat::run(args).await,
            Command::Embed(args) => embed::run(args).await,
            Command::Pull(args) => models::pull(args).await,
            Command::Verify(args) => models::verify(args).await,
            Command::Repair(args) => models::repair(args).await,
            Command::Remove(args) => models::remove(args).await,
            Command::Fit(args) => fit::run(args).await,
            Command::Endpoints(args) => endpoints::run(args).await,
            Command::Tools(args) => tools::run(args).await,
            Command::History(args) => history::run(args).await,
            Command::Serve(args) => serve::run(args).await,
            Command::Mcp(args) => mcp::run(args).await,
            Command::Completions(args) => manual::completions(&args, &Self::command()),
            Command::Manual(args) => manual::pages(&args, &Self::command()),
        }?;
        Ok(ExitCode::SUCCESS)
    }
}
