use std::io::{IsTerminal, Read};

use anyhow::{bail, Context, Result};
use api::{Endpoint, KeySource};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::app::App;
use crate::output;

/// The variable with the key of `add`, unless standard input has it.
const KEY: &str = "PONDER_ENDPOINT_KEY";

/// `ponder endpoints`.
#[derive(Args)]
pub struct EndpointsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add a server; its models are then called endpoint:NAME/MODEL
    Add(AddArgs),
    /// List the servers and their models
    List(ListArgs),
    /// Remove a server and its key
    Remove {
        /// Its name
        name: String,
    },
}

#[derive(Args)]
struct AddArgs {
    /// Its name: a word
    name: String,
    /// Its address, such as http://127.0.0.1:8080/v1
    url: String,
    /// Read a key from standard input and keep it in the keychain; without this, from PONDER_ENDPOINT_KEY if that is
    /// set
    #[arg(long)]
    key: bool,
}

#[derive(Args)]
struct ListArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl EndpointsArgs {
    /// True if the command prints JSON.
    pub fn json(&self) -> bool {
        matches!(&self.command, Command::List(args) if args.json)
    }
}

/// Adds, lists or removes endpoints.
///
/// # Errors
/// When the name or the address cannot be used, or the history or the keychain refuses.
pub async fn run(args: EndpointsArgs) -> Result<()> {
    match args.command {
        Command::Add(args) => add(args).await,
        Command::List(args) => list(args).await,
        Command::Remove { name } => remove(&name).await,
    }
}

async fn add(args: AddArgs) -> Result<()> {
    let mut endpoint = remote::endpoint(&args.name, &args.url).map_err(protocol::Error::from)?;
    let key = read_key(args.key)?;
    let app = App::open().await?;
    remote::check_name_is_free(&app.remote.endpoints(), &endpoint.name).map_err(protocol::Error::from)?;
    if let Some(key) = key {
        let stored = app.remote.store_first_key(&mut endpoint, &key).await;
        stored.map_err(protocol::Error::from)?;
    }
    let name = endpoint.name.clone();
    let added = format!("{name} is added: {} ({})\n", endpoint.base_url, mark(&endpoint));
    let info = remote::info(&endpoint);
    // Read after the keychain has answered, because another process may change the list meanwhile.
    let mut endpoints = app.chat.settings().endpoints().await?;
    remote::check_name_is_free(&endpoints, &name).map_err(protocol::Error::from)?;
    endpoints.push(endpoint);
    app.chat.settings().set_endpoints(&endpoints).await?;
    output::text(&added)?;
    if info.address.unencrypted && info.key != KeySource::None {
        eprintln!(
            "warning: {name} is reached by plain http, so whoever is on the way can read its key; use https, or a tunnel to this computer"
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
        eprintln!("Type or paste the key, then press Enter and Ctrl+D:");
    }
    let mut key = String::new();
    std::io::stdin()
        .read_to_string(&mut key)
        .context("standard input is not text")?;
    if key.trim().is_empty() {
        bail!("there is no key on standard input");
    }
    Ok(Some(key.trim().to_owned()))
}

async fn list(args: ListArgs) -> Result<()> {
    let app = App::open().await?;
    let listed = app.remote.models().await;
    if args.json {
        return Ok(output::line(&json!({"endpoints": listed}))?);
    }
    if listed.is_empty() {
        let none = "There are no endpoints; `ponder endpoints add` adds one.\n";
        return Ok(output::text(none)?);
    }
    for each in &listed {
        let endpoint = &each.endpoint;
        let (name, url, mark) = (&endpoint.name, &endpoint.base_url, mark(endpoint));
        output::text(&format!("{name}  {url}  ({mark})\n"))?;
        if let Some(problem) = &each.problem {
            output::text(&format!("  does not answer: {problem}\n"))?;
        }
        for model in &each.models {
            output::text(&format!("  {}\n", model.reference))?;
        }
    }
    Ok(())
}

async fn remove(name: &str) -> Result<()> {
    let app = App::open().await?;
    if app.remote.endpoint(name).is_none() {
        return Err(protocol::Error::from(remote::Error::NoEndpoint(name.into())).into());
    }
    // The endpoint is removed even if the keychain does not answer.
    if let Err(error) = app.remote.forget_key(name).await {
        eprintln!("(its key stays in the keychain: {error})");
    }
    let mut endpoints = app.chat.settings().endpoints().await?;
    endpoints.retain(|endpoint| endpoint.name != name);
    app.chat.settings().set_endpoints(&endpoints).await?;
    Ok(output::text(&format!("{name} is removed.\n"))?)
}

/// The place that text goes to, for people.
pub fn mark(endpoint: &Endpoint) -> &'static str {
    if remote::info(endpoint).address.leaves_computer {
        "what you write leaves this computer"
    } else {
        "on this computer"
    }
}
