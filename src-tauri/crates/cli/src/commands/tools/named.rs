//! Servers and tools by the names that a person types: `files`, `files/read_file`.

use anyhow::{bail, Result};
use api::{ToolRule, ToolServer, ToolServerState};
use protocol::{Error, ErrorCode, ToolRef};
use tools::builtin::{self, Builtin};
use tools::host::Tools;

/// The server of this name, started if it is on.
///
/// # Errors
/// When there is none, it is off, or it does not start.
pub async fn started(tools: &Tools, name: &str) -> Result<ToolServer> {
    let server = server_named(tools, name).await?;
    if server.state == ToolServerState::Off {
        let name = &server.name;
        bail!("the server {name} is off. 'ponder tools enable {name}' switches it on");
    }
    tools.start(&server.id).await.map_err(protocol::Error::from)?;
    server_named(tools, name).await
}

/// The server of this name.
///
/// # Errors
/// When there is none.
pub async fn server_named(tools: &Tools, name: &str) -> Result<ToolServer> {
    let id = tools.id_of_server(name).map_err(protocol::Error::from)?;
    let servers = tools.view().await.map_err(protocol::Error::from)?.servers;
    let found = servers.into_iter().find(|server| server.id == id);
    Ok(found.ok_or_else(|| protocol::Error::from(tools::error::Error::NoServer(name.to_owned())))?)
}

/// The tool of a name `SERVER/TOOL`. Names of both may have slashes of their own, so the first place counts before
/// which a server's name ends.
///
/// # Errors
/// When there is no such server, or Ponder itself has no such tool. Those of other servers are not known until they
/// start.
pub fn tool_named(tools: &Tools, name: &str) -> Result<ToolRef> {
    let mut places = name.match_indices('/');
    let found = places.find_map(|(place, _)| {
        let server = tools.id_of_server(&name[..place]).ok()?;
        let tool = name[place + 1..].to_owned();
        Some(ToolRef { server, tool })
    });
    match found {
        Some(tool) if tool.server == builtin::SERVER && Builtin::named(&tool.tool).is_none() => {
            Err(no_tool("Ponder", &tool.tool))
        }
        Some(tool) if !tool.tool.is_empty() => Ok(tool),
        _ => {
            let message = format!("{name} names no tool. It looks like files/read_file; 'ponder tools list' shows all");
            Err(Error::new(ErrorCode::NotFound, message).into())
        }
    }
}

/// The tools of a name `SERVER` or `SERVER/TOOL`, whose server is started. Those of a whole server are without tools
/// that a rule denies.
///
/// # Errors
/// When there is no such server or tool, or the server is off or does not start.
pub async fn tools_named(tools: &Tools, name: &str) -> Result<Vec<ToolRef>> {
    if tools.id_of_server(name).is_ok() || !name.contains('/') {
        let server = started(tools, name).await?;
        let of = |tool: String| ToolRef {
            server: server.id.clone(),
            tool,
        };
        let allowed = server
            .tools
            .into_iter()
            .filter(|tool| tool.rule != Some(ToolRule::Deny) && tool.on != Some(false));
        return Ok(allowed.map(|tool| of(tool.name)).collect());
    }
    let tool = tool_named(tools, name)?;
    let server = started(tools, &tool.server).await?;
    match server.tools.iter().find(|of| of.name == tool.tool) {
        Some(of) if of.on == Some(false) => {
            bail!("{name} is off, because it reaches the internet. 'ponder tools enable {name}' switches it on")
        }
        Some(_) => Ok(vec![tool]),
        None => Err(no_tool(&server.name, &tool.tool)),
    }
}

/// The tool of `--allow`, and the host that it is allowed for: `ponder/fetch_page@example.org`.
///
/// # Errors
/// When there is no such tool, or a tool that reads pages is named without a host.
pub fn allowed_named(tools: &Tools, name: &str) -> Result<(ToolRef, Option<String>)> {
    let is_page = |tool: &ToolRef| tool.server == builtin::SERVER && tool.tool == Builtin::FetchPage.name();
    if let Some((before, host)) = name.rsplit_once('@') {
        let tool = tool_named(tools, before).ok().filter(is_page);
        if let Some(tool) = tool {
            let host = net::public_host(&format!("https://{host}/")).map_err(protocol::Error::from)?;
            return Ok((tool, Some(host)));
        }
    }
    let tool = tool_named(tools, name)?;
    if is_page(&tool) {
        bail!("{name} is allowed for one host. --allow {name}@example.org lets it read that one");
    }
    Ok((tool, None))
}

fn no_tool(server: &str, tool: &str) -> anyhow::Error {
    let (server, tool) = (server.to_owned(), tool.to_owned());
    protocol::Error::from(tools::error::Error::NoTool { server, tool }).into()
}
