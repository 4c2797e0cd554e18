mod bundle;
mod chats;
mod import;
mod list;
mod named;
mod own;
mod servers;
mod sign_in;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{bail, Context, Result};
use api::{ServerVariable, ToolRule};
use clap::{Args, Subcommand, ValueEnum};
use net::{Net, SystemKeychain};
use serde_json::json;
use tools::host::Tools;
use tools::stdio::Guard;

use self::own::SearchEngineArgs;
use self::servers::AddArgs;
use self::sign_in::SignInArgs;
use crate::output;

use self::named::tool_named;

pub(super) use named::{allowed_named, tools_named};

/// Examples below the help of `ponder tools`.
pub const EXAMPLES: &str = r#"Examples:
  ponder tools add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents
  ponder tools enable files
  ponder ask --use-tools files "Which files are in my documents?""#;

/// `ponder tools`.
#[derive(Args)]
pub struct ToolsArgs {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// List servers and their tools
    List {
        /// Start the servers that are on, to list their tools
        #[arg(long)]
        start: bool,
    },
    /// Add an MCP server, a program on this computer or an address, switched off
    Add(AddArgs),
    /// Add MCP servers of a configuration or a bundle (.mcpb), switched off
    Import {
        /// JSON file, for example claude_desktop_config.json (- for standard input), or bundle
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Fill in a field of a bundle (repeatable)
        #[arg(long, value_name = "FIELD=VALUE", value_parser = servers::variable)]
        set: Vec<ServerVariable>,
        /// Read this field from standard input, into the keychain (repeatable, one line each)
        #[arg(long, value_name = "FIELD")]
        secret: Vec<String>,
    },
    /// Show a server's command and switch it on, or one of Ponder's tools
    Enable {
        /// Name of the server, or ponder/fetch_page
        name: String,
        /// Switch it on without asking
        #[arg(long, short)]
        yes: bool,
    },
    /// Switch a server, or a tool of Ponder's own that reaches the internet, off
    Disable {
        /// Name of the server, or ponder/fetch_page
        name: String,
    },
    /// Sign in to a server at an address, in a browser
    SignIn(SignInArgs),
    /// Forget the permission that signing in to a server gave
    SignOut {
        /// Name of the server
        name: String,
    },
    /// Remove a server with its rules and secrets
    Remove {
        /// Name of the server
        name: String,
    },
    /// Start a server and print its standard error
    Log {
        /// Name of the server
        name: String,
    },
    /// Choose the search engine, with its key from standard input
    SearchEngine(SearchEngineArgs),
    /// Withdraw the permission for a tool in all chats
    Revoke {
        /// The tool
        #[arg(value_name = "SERVER/TOOL")]
        tool: String,
    },
    /// Ask about each call of a tool, or deny them all
    Rule {
        /// The tool
        #[arg(value_name = "SERVER/TOOL")]
        tool: String,
        /// New rule (none removes it)
        #[arg(value_name = "ask|deny|none", hide_possible_values = true)]
        rule: RuleArg,
    },
}

/// The value of `ponder tools rule`.
#[derive(Clone, Copy, ValueEnum)]
enum RuleArg {
    Ask,
    Deny,
    None,
}

/// The servers and tools of this computer. Nobody is asked about a call here.
///
/// # Errors
/// When this computer names no place for Ponder's data.
pub(super) fn open() -> Result<Tools> {
    let guard = Guard::of_this_program().context("the servers of tools cannot be used")?;
    let data_dir = hub::data_dir()?;
    let net = Net::open(net::Settings::of_this_computer(&data_dir));
    let (keychain, chats) = (Arc::new(SystemKeychain), Arc::new(chats::StoredChats));
    Ok(Tools::open(&data_dir, net, keychain, chats, guard, false))
}

/// Lists and changes the servers of tools.
///
/// # Errors
/// When a server does not exist or does not start, or its file or the keychain refuses.
pub async fn run(args: ToolsArgs) -> Result<()> {
    let tools = open()?;
    let done = carry_out(&tools, args.command, args.json).await;
    tools.shut_down();
    done
}

async fn carry_out(tools: &Tools, command: Command, json: bool) -> Result<()> {
    match command {
        Command::List { start } => list::list(tools, start, json).await,
        Command::Add(added) => servers::add(tools, added, json).await,
        Command::Import { file, mut set, secret } if bundle::is_bundle(&file) => {
            set.extend(servers::read_secrets(secret)?);
            bundle::import(tools, &file, set, json).await
        }
        Command::Import { set, secret, .. } if !set.is_empty() || !secret.is_empty() => {
            bail!("--set and --secret fill in the fields of a bundle (.mcpb), and this is none")
        }
        Command::Import { file, .. } => import::import(tools, &file, json).await,
        Command::Enable { name, .. } if own::switch(tools, &name, true, json)? => Ok(()),
        Command::Disable { name } if own::switch(tools, &name, false, json)? => Ok(()),
        Command::SearchEngine(args) => own::choose_engine(tools, args, json).await,
        Command::Enable { name, yes } => servers::enable(tools, &name, yes, json).await,
        Command::Disable { name } => servers::disable(tools, &name, json),
        Command::SignIn(args) => sign_in::sign_in(tools, args, json).await,
        Command::SignOut { name } => sign_in::sign_out(tools, &name, json).await,
        Command::Remove { name } => servers::remove(tools, &name, json).await,
        Command::Log { name } => servers::log(tools, &name, json).await,
        Command::Revoke { tool } => revoke(tools, &tool, json).await,
        Command::Rule { tool, rule } => set_rule(tools, &tool, rule, json),
    }
}

async fn revoke(tools: &Tools, name: &str, json: bool) -> Result<()> {
    let tool = tool_named(tools, name)?;
    tools.revoke(&tool, None).await.map_err(protocol::Error::from)?;
    let text = format!("{name} is no longer allowed in all chats.");
    Ok(output::report(json, &json!({"revoked": name}), &text)?)
}

fn set_rule(tools: &Tools, name: &str, rule: RuleArg, json: bool) -> Result<()> {
    let tool = tool_named(tools, name)?;
    let (rule, text) = match rule {
        RuleArg::Ask => (Some(ToolRule::Ask), format!("Each call of {name} is asked about.")),
        RuleArg::Deny => (Some(ToolRule::Deny), format!("No call of {name} runs.")),
        RuleArg::None => (None, format!("{name} has no rule.")),
    };
    tools.set_rule(&tool, rule).map_err(protocol::Error::from)?;
    Ok(output::report(json, &json!({"tool": name, "rule": rule}), &text)?)
}
