use std::io::{IsTerminal, Read};

use anyhow::{ensure, Context, Result};
use api::{ServerVariable, ToolServer, ToolSetup};
use clap::Args;
use protocol::{Error, ErrorCode};
use serde_json::json;
use tools::configuration::{is_address, Variable};
use tools::host::Tools;

use super::list::command;
use super::named::server_named;
use crate::input::confirmed;
use crate::output::{self, visible_line};

/// Bytes of the secrets on standard input at most.
const LONGEST: u64 = 1 << 20;

#[derive(Args)]
pub struct AddArgs {
    /// Name of the server
    name: String,
    /// Set a variable of its environment, or a header of an address (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<ServerVariable>,
    /// Read this variable from standard input, into the keychain (repeatable, one line each)
    #[arg(long, value_name = "NAME")]
    secret: Vec<String>,
    /// Program and its arguments, or an address, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Parses `NAME=VALUE`. What looks like a secret is refused, because every program on this computer can read arguments.
pub fn variable(text: &str) -> std::result::Result<ServerVariable, String> {
    let (name, value) = text.split_once('=').ok_or("it has no =")?;
    if Variable::looks_secret(name, value) {
        return Err(format!(
            "it looks like a secret, which other programs could read here. Use --secret {name}"
        ));
    }
    Ok(ServerVariable {
        name: name.to_owned(),
        value: Some(value.to_owned()),
    })
}

/// Adds a server, which is off.
///
/// # Errors
/// When its name is taken, its command is none, or the keychain refuses.
pub async fn add(tools: &Tools, args: AddArgs, json: bool) -> Result<()> {
    let line = match &args.command[..] {
        [address] if is_address(address) => address.clone(),
        words => shlex::try_join(words.iter().map(String::as_str)).context("the command cannot be used")?,
    };
    let mut parts = args.env;
    parts.extend(read_secrets(args.secret)?);
    let setup = ToolSetup {
        name: args.name,
        command: line,
        parts,
    };
    let id = tools.add(setup).await.map_err(protocol::Error::from)?;
    let added = server_named(tools, &id).await?;
    let name = &added.name;
    let text = format!(
        "Added {name}: {}. It is off. 'ponder tools enable {name}' switches it on.",
        command(&added)
    );
    Ok(output::report(json, &json!({"added": added}), &text)?)
}

/// Secrets on standard input: the whole of it for one, a line each for several.
pub fn read_secrets(names: Vec<String>) -> Result<Vec<ServerVariable>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    if std::io::stdin().is_terminal() {
        eprintln!(
            "Paste {}, then press Enter and Ctrl+D:",
            names.join(", a new line for ")
        );
    }
    let mut text = String::new();
    let input = std::io::stdin().take(LONGEST).read_to_string(&mut text);
    input.context("standard input is not text")?;
    let values: Vec<&str> = match names.len() {
        1 => vec![text.trim()],
        _ => text.lines().map(str::trim).filter(|line| !line.is_empty()).collect(),
    };
    ensure!(
        values.len() == names.len() && values.iter().all(|value| !value.is_empty()),
        "standard input has {} instead of {}",
        output::plural(values.iter().filter(|value| !value.is_empty()).count() as u64, "secret"),
        names.len()
    );
    let parts = names.into_iter().zip(values).map(|(name, value)| {
        // Others would be written to a file.
        ensure!(
            Variable::looks_secret(&name, value),
            "{name} is not kept as a secret, because neither its name nor its value looks like one. Use --env"
        );
        Ok(ServerVariable {
            name,
            value: Some(value.to_owned()),
        })
    });
    parts.collect()
}

/// Switches a server on once the person has seen its command.
///
/// # Errors
/// When there is no such server, or nobody said yes.
pub async fn enable(tools: &Tools, name: &str, yes: bool, json: bool) -> Result<()> {
    let server = changeable(tools, name).await?;
    let (_, seen) = tools.command_of(&server.id).map_err(protocol::Error::from)?;
    let there = is_address(&server.command);
    let (name, command) = (&server.name, command(&server));
    if !yes {
        let asked = !json && std::io::stdin().is_terminal();
        if !asked {
            let does = if there { "connect to" } else { "start" };
            let message = format!("enabling {name} lets Ponder {does} {command}. Add --yes to confirm");
            return Err(Error::new(ErrorCode::BadRequest, message).into());
        }
        let about = match there {
            true => "is a server that gets the calls that you allow",
            false => "is a program that runs with your rights, outside of Ponder",
        };
        let question = format!("{name} {about}:\n  {command}\nSwitch it on? [y/N] ");
        if !confirmed(&question)? {
            return Err(Error::new(ErrorCode::Stopped, "nothing was changed").into());
        }
    }
    tools.switch_on(&server.id, &seen).map_err(protocol::Error::from)?;
    let text = format!("{name} is on: {command}");
    Ok(output::report(
        json,
        &json!({"enabled": name, "command": server.command}),
        &text,
    )?)
}

/// Switches a server off.
///
/// # Errors
/// When there is no such server.
pub fn disable(tools: &Tools, name: &str, json: bool) -> Result<()> {
    let id = tools.id_of_server(name).map_err(protocol::Error::from)?;
    ensure!(id != tools::builtin::SERVER, OWN);
    tools.switch_off(&id).map_err(protocol::Error::from)?;
    let text = format!("{name} is off.");
    Ok(output::report(json, &json!({"disabled": name}), &text)?)
}

/// Removes a server.
///
/// # Errors
/// When there is no such server, or the keychain keeps its secrets.
pub async fn remove(tools: &Tools, name: &str, json: bool) -> Result<()> {
    let server = changeable(tools, name).await?;
    tools.remove(&server.id).await.map_err(protocol::Error::from)?;
    let name = server.name;
    Ok(output::report(
        json,
        &json!({"removed": name}),
        &format!("Removed {name}."),
    )?)
}

/// Starts a server and prints what it said on standard error until it was ready.
///
/// # Errors
/// When there is no such server, or why it did not start, with its last lines.
pub async fn log(tools: &Tools, name: &str, json: bool) -> Result<()> {
    let server = super::named::started(tools, name).await?;
    let lines: Vec<String> = tools
        .log(&server.id)
        .iter()
        .map(|line| visible_line(line, usize::MAX))
        .collect();
    if json {
        return Ok(output::line(&json!({"log": lines}))?);
    }
    lines.iter().try_for_each(|line| output::text(&format!("{line}\n")))?;
    let count = output::plural(server.tools.len() as u64, "tool");
    eprintln!("({} is ready and has {count})", server.name);
    Ok(())
}

/// Ponder's own tools belong to no server that could be changed.
const OWN: &str = "Ponder's own tools are always there. 'ponder tools rule' can deny one, and 'ponder tools enable ponder/fetch_page' \
                   switches one on that reaches the internet";

async fn changeable(tools: &Tools, name: &str) -> Result<ToolServer> {
    let server = server_named(tools, name).await?;
    ensure!(!server.builtin, OWN);
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_an_argument() {
        let plain = variable("MODE=a=b").unwrap();
        assert_eq!((plain.name.as_str(), plain.value.as_deref()), ("MODE", Some("a=b")));
        assert!(variable("MODE").unwrap_err().contains('='));
        for secret in ["API_KEY=1", "VALUE=sk-abc"] {
            assert!(variable(secret).unwrap_err().contains("--secret"), "{secret}");
        }
    }
}
