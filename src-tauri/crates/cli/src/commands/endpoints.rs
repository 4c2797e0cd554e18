use std::io::{IsTerminal, Read};

use anyhow::{bail, Context, Result};
use api::{Endpoint, KeySource};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::app::App;
use crate::output;

/// The variable with the key of `add`, unless standard input has it.
const KEY: &str = "PONDER_ENDPOINT_KEY";

/// Examples below the help of `ponder endpoints`.
pub const EXAMPLES: &str = r#"Examples:
  ponder endpoints add lab http://192.168.1.5:8000/v1
  ponder endpoints add lab https://lab.example/v1 --key < key.txt
  ponder ask -m endpoint:lab/MODEL "Hello""#;

/// `ponder endpoints`.
#[derive(Args)]
pub struct EndpointsArgs {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Add an endpoint, whose models are then named endpoint:NAME/MODEL
    Add(AddArgs),
    /// List endpoints and their models
    List,
    /// Remove an endpoint and its API key
    Remove {
        /// Name of the endpoint
        name: String,
    },
}

#[derive(Args)]
struct AddArgs {
    /// Name of the endpoint, one word
    name: String,
    /// Base URL, for example http://127.0.0.1:8080/v1
    url: String,
    /// Read the API key from standard input instead of PONDER_ENDPOINT_KEY
    #[arg(long)]
    key: bool,
    /// Send the API key to another computer without encryption
    #[arg(long)]
    unencrypted_key: bool,
    /// Let its models be told your personal notes and passages of your chats
    #[arg(long)]
    personal: bool,
}

/// Adds, lists or removes endpoints.
///
/// # Errors
/// When the name or the address cannot be used, or the history or the keychain refuses.
pub async fn run(args: EndpointsArgs) -> Result<()> {
    match args.command {
        Command::Add(added) => add(added, args.json).await,
        Command::List => list(args.json).await,
        Command::Remove { name } => remove(&name, args.json).await,
    }
}

async fn add(args: AddArgs, json: bool) -> Result<()> {
    let mut endpoint = remote::endpoint(&args.name, &args.url).map_err(protocol::Error::from)?;
    endpoint.unencrypted_key = args.unencrypted_key;
    endpoint.personal = args.personal;
    let key = read_key(args.key)?;
    let app = App::open().await?;
    remote::check_name_is_free(&app.remote.endpoints(), &endpoint.name).map_err(protocol::Error::from)?;
    if let Some(key) = key {
        let stored = app.remote.store_first_key(&mut endpoint, &key).await;
        stored.map_err(protocol::Error::from)?;
    }
    let name = endpoint.name.clone();
    let mut added = format!("Added {name}: {} ({}).", endpoint.base_url, mark(&endpoint));
    let info = remote::info(&endpoint);
    if info.address.leaves_computer {
        added += &format!(" Messages and images are sent to {name}.");
    }
    let told = json!({"added": endpoint});
    // Read after the keychain has answered, because another process may change the list meanwhile.
    let mut endpoints = app.chat.settings().endpoints().await?;
    remote::check_name_is_free(&endpoints, &name).map_err(protocol::Error::from)?;
    endpoints.push(endpoint);
    app.chat.settings().set_endpoints(&endpoints).await?;
    output::report(json, &told, &added)?;
    if info.address.unencrypted && info.key != KeySource::None {
        let sent = if info.key_held_back {
            ". Its key is not sent, unless it is added with --unencrypted-key"
        } else {
            ""
        };
        eprintln!(
            "ponder: {name} is not encrypted, so anyone on the network path can read its key and your messages{sent}. Use https or a tunnel"
        );
    }
    Ok(())
}

/// A key is never an argument, because every program on this computer can read those.
fn read_key(from_input: bool) -> Result<Option<String>> {
    if !from_input {
        return Ok(std::env::var(KEY).ok().filter(|key| !key.trim().is_empty()));
    }
    if std::io::stdin().is_terminal() {
        eprintln!("Paste the API key, then press Enter and Ctrl+D:");
    }
    let mut key = String::new();
    std::io::stdin()
        .read_to_string(&mut key)
        .context("standard input is not text")?;
    if key.trim().is_empty() {
        bail!("there is no API key on standard input");
    }
    Ok(Some(key.trim().to_owned()))
}

async fn list(json: bool) -> Result<()> {
    let app = App::open().await?;
    let listed = app.remote.models().await;
    if json {
        return Ok(output::line(&json!({"endpoints": listed}))?);
    }
    if listed.is_empty() {
        let none = "No endpoints. Add one with 'ponder endpoints add'.\n";
        return Ok(output::text(none)?);
    }
    for each in &listed {
        let endpoint = &each.endpoint;
        let (name, url, mark) = (&endpoint.name, &endpoint.base_url, mark(endpoint));
        output::text(&format!("{name}  {url}  ({mark})\n"))?;
        if let Some(problem) = &each.problem {
            let problem = output::without_numbers(&problem.to_string());
            output::text(&format!("  unavailable: {problem}\n"))?;
        }
        for model in &each.models {
            output::text(&format!("  {}\n", model.reference))?;
        }
    }
    Ok(())
}

async fn remove(name: &str, json: bool) -> Result<()> {
    let app = App::open().await?;
    if app.remote.endpoint(name).is_none() {
        return Err(protocol::Error::from(remote::Error::NoEndpoint(name.into())).into());
    }
    // The endpoint is removed even if the keychain does not answer.
    if let Err(error) = app.remote.forget_key(name).await {
        eprintln!("(its API key cannot be deleted from the keychain: {error})");
    }
    let mut endpoints = app.chat.settings().endpoints().await?;
    endpoints.retain(|endpoint| endpoint.name != name);
    app.chat.settings().set_endpoints(&endpoints).await?;
    let text = format!("Removed {name}.");
    Ok(output::report(json, &json!({"removed": name}), &text)?)
}

/// The place that text goes to, for people.
pub fn mark(endpoint: &Endpoint) -> &'static str {
    if remote::info(endpoint).address.leaves_computer {
        "remote"
    } else {
        "on this computer"
    }
}
