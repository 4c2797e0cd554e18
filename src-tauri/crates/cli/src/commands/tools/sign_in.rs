use std::io::{IsTerminal, Read};

use anyhow::{ensure, Context, Result};
use api::ToolClient;
use clap::Args;
use serde_json::json;
use tools::host::Tools;
use tools::oauth::Browser;

use super::named::server_named;
use crate::output::{self, visible_line};

/// Bytes of a client secret on standard input at most.
const LONGEST: u64 = 64 << 10;

#[derive(Args)]
pub struct SignInArgs {
    /// Name of the server
    name: String,
    /// Client id, for a server that lets no program register itself
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Read the client secret from standard input
    #[arg(long, requires = "client_id")]
    client_secret: bool,
}

/// Prints the page at which somebody signs in, and waits until a browser comes back from it.
///
/// # Errors
/// When the server cannot be asked, or nobody signs in.
pub async fn sign_in(tools: &Tools, args: SignInArgs, json: bool) -> Result<()> {
    let server = server_named(tools, &args.name).await?;
    let client = match args.client_id {
        Some(id) => Some(ToolClient {
            id,
            secret: match args.client_secret {
                true => read_secret()?,
                false => String::new(),
            },
        }),
        None => None,
    };
    // It is asked first, because its refusal names the permissions that it wants.
    let _refused = tools.start(&server.id).await;
    let browser = Browser {
        open: Box::new(|page| {
            Box::pin(async move {
                eprintln!(
                    "Open this page in a browser on this computer:\n{}",
                    visible_line(&page, usize::MAX)
                );
                true
            })
        }),
        done: "You are signed in. You can close this page and go back to the terminal.".to_owned(),
        refused: "You are not signed in. You can close this page and go back to the terminal.".to_owned(),
    };
    let signed_in = tools.sign_in(&server.id, client, browser).await;
    ensure!(
        signed_in.map_err(protocol::Error::from)?,
        "another sign-in took its place"
    );
    let name = server.name;
    let text = format!("You are signed in to {name}.");
    Ok(output::report(json, &json!({"signed_in": name}), &text)?)
}

fn read_secret() -> Result<String> {
    if std::io::stdin().is_terminal() {
        eprintln!("Paste the client secret, then press Enter and Ctrl+D:");
    }
    let mut text = String::new();
    let input = std::io::stdin().take(LONGEST).read_to_string(&mut text);
    input.context("standard input is not text")?;
    ensure!(!text.trim().is_empty(), "standard input has no client secret");
    Ok(text.trim().to_owned())
}

/// Forgets the tokens of a server.
///
/// # Errors
/// When there is no such server, or the keychain refuses.
pub async fn sign_out(tools: &Tools, name: &str, json: bool) -> Result<()> {
    let server = server_named(tools, name).await?;
    tools.sign_out(&server.id).await.map_err(protocol::Error::from)?;
    let name = server.name;
    let text = format!("Ponder has no permission from {name} any more.");
    Ok(output::report(json, &json!({"signed_out": name}), &text)?)
}
