mod messages;
mod own_tools;
mod serve;
mod stdio;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::input::ModelArg;

/// Examples below the help of `ponder mcp`.
pub const EXAMPLES: &str = "Examples:
  ponder mcp serve
  ponder mcp serve -m mlx-community/Qwen3-4B-4bit
  ponder mcp serve --allow-chats";

/// `ponder mcp`.
#[derive(Args)]
pub struct McpArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve over standard input and output, for the settings of an MCP client
    Serve(ServeArgs),
}

/// `ponder mcp serve`.
#[derive(Args)]
pub struct ServeArgs {
    #[command(flatten)]
    model: ModelArg,
    /// Let the client search your chats
    #[arg(long)]
    allow_chats: bool,
}

/// Serves until standard input ends.
///
/// # Errors
/// When this computer names no place for Ponder's data, or standard output is closed.
pub async fn run(args: McpArgs) -> Result<()> {
    let Command::Serve(args) = args.command;
    serve::serve(own_tools::OwnTools::new(args).await?).await
}
