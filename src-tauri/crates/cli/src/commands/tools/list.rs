use anyhow::Result;
use api::{ServerVariable, ToolRule, ToolServer, ToolServerState, ToolView, ToolsView};
use serde_json::json;
use tokio::task::JoinSet;
use tools::host::Tools;
use tools::visible::visible;

use crate::output::{self, exact_line, one_line, visible_line};

/// The longest description of a tool, in characters.
const LONGEST: usize = 100;

/// Lists servers and their tools; with `start` those of servers that are on and do not run yet.
///
/// # Errors
/// When the file of servers cannot be read, or standard output is closed.
pub async fn list(tools: &Tools, start: bool, json: bool) -> Result<()> {
    if start {
        start_all(tools).await?;
    }
    let view = tools.view().await.map_err(protocol::Error::from)?;
    if json {
        return Ok(output::line(&json!(view))?);
    }
    Ok(output::text(&text(&view))?)
}

/// Starts the servers that are on. The state of one that does not start says why.
async fn start_all(tools: &Tools) -> Result<()> {
    let view = tools.view().await.map_err(protocol::Error::from)?;
    let mut starting = JoinSet::new();
    for server in view
        .servers
        .into_iter()
        .filter(|server| server.state != ToolServerState::Off)
    {
        let tools = tools.clone();
        starting.spawn(async move { drop(tools.start(&server.id).await) });
    }
    starting.join_all().await;
    Ok(())
}

fn text(view: &ToolsView) -> String {
    let mut text: String = view.servers.iter().map(of_server).collect();
    if view.servers.iter().all(|server| server.builtin) {
        text += "No other servers. Add one with 'ponder tools add'.\n";
    }
    let granted = view.grants.iter().map(|grant| {
        let on = grant.host.iter().map(|host| format!(" on {host}")).collect::<String>();
        match grant.server_name.is_empty() {
            true => format!("{}{on}", grant.tool.tool),
            false => format!("{}/{}{on}", grant.server_name, grant.tool.tool),
        }
    });
    let granted: Vec<String> = granted.map(|name| visible_line(&name, usize::MAX)).collect();
    if !granted.is_empty() {
        text += &format!("Allowed in all chats: {}\n", granted.join(", "));
    }
    text
}

fn of_server(server: &ToolServer) -> String {
    let (state, failure) = match &server.state {
        ToolServerState::Ready | ToolServerState::Idle if server.builtin => ("built in", None),
        ToolServerState::Off => ("off", None),
        ToolServerState::Idle | ToolServerState::Starting | ToolServerState::Ready => ("on", None),
        ToolServerState::NeedsSignIn => ("needs sign-in", None),
        ToolServerState::Failed { reason } => ("on", Some(reason)),
    };
    let name = one_line(&server.name, usize::MAX);
    let mut text = match server.builtin {
        true => format!("{name}  ({state})\n"),
        false => format!("{name}  {}  ({state})\n", command(server)),
    };
    if let Some(reason) = failure {
        text += &format!("  does not run: {}\n", one_line(reason, usize::MAX));
    }
    if server.state == ToolServerState::NeedsSignIn {
        text += &format!("  'ponder tools sign-in {name}' signs in to it\n");
    }
    if server.tools.is_empty() && failure.is_none() && server.state == ToolServerState::Idle {
        text += "  Its tools are not known until it starts. --start lists them\n";
    }
    let names = server.tools.iter().map(|tool| tool.name.chars().count());
    let width = names.max().unwrap_or(0).clamp(8, 30);
    server.tools.iter().for_each(|tool| text += &of_tool(tool, width));
    for problem in &server.problems {
        text += &format!("  left out: {}\n", one_line(problem, usize::MAX));
    }
    text
}

fn of_tool(tool: &ToolView, width: usize) -> String {
    let rule = match tool.rule {
        None => "",
        Some(ToolRule::Ask) => "  (asks each time)",
        Some(ToolRule::Deny) => "  (denied)",
    };
    let first = tool.description.lines().next().unwrap_or_default();
    let (name, first) = (visible_line(&tool.name, usize::MAX), one_line(first, LONGEST));
    let off = if tool.on == Some(false) { "  (off)" } else { "" };
    format!("  {}{off}{rule}\n", format!("{name:<width$}  {first}").trim_end())
}

/// The whole command of a server on one line, with its variables before it, as a shell has them. Secrets are named and
/// not shown.
pub fn command(server: &ToolServer) -> String {
    let variable = |part: &ServerVariable| match &part.value {
        Some(value) => format!("{}={} ", part.name, shlex::try_quote(value).unwrap_or_default()),
        None => format!("{}=(secret) ", part.name),
    };
    let variables: String = server.parts.iter().map(variable).collect();
    exact_line(&(visible(&variables) + &server.command))
}

#[cfg(test)]
mod tests {
    use api::CallEffects;

    use super::*;

    fn server(state: ToolServerState) -> ToolServer {
        ToolServer {
            id: "7".into(),
            name: "files".into(),
            command: "npx server ~/a".into(),
            parts: vec![
                ServerVariable {
                    name: "API_KEY".into(),
                    value: None,
                },
                ServerVariable {
                    name: "MODE".into(),
                    value: Some("very fast".into()),
                },
            ],
            builtin: false,
            signed_in: false,
            state,
            tools: Vec::new(),
            roots: Vec::new(),
            problems: Vec::new(),
        }
    }

    #[test]
    fn a_server_is_shown_with_what_starts_and_its_state() {
        let line = "files  API_KEY=(secret) MODE='very fast' npx server ~/a";
        assert_eq!(of_server(&server(ToolServerState::Off)), format!("{line}  (off)\n"));
        let reason = "it said:\nno key".to_owned();
        assert_eq!(
            of_server(&server(ToolServerState::Failed { reason })),
            format!("{line}  (on)\n  does not run: it said: no key\n")
        );
    }

    #[test]
    fn a_server_that_wants_somebody_to_sign_in_says_how() {
        let address = ToolServer {
            command: "https://mcp.example.com/mcp".into(),
            parts: Vec::new(),
            ..server(ToolServerState::NeedsSignIn)
        };
        let expected =
            "files  https://mcp.example.com/mcp  (needs sign-in)\n  'ponder tools sign-in files' signs in to it\n";
        assert_eq!(of_server(&address), expected);
    }

    #[test]
    fn a_tool_is_a_line() {
        let tool = ToolView {
            name: "read".into(),
            title: "Read".into(),
            description: "Reads a file.\nMore about it.".into(),
            effects: CallEffects {
                read_only: true,
                destructive: false,
                open_world: false,
            },
            tokens: 9,
            rule: Some(ToolRule::Deny),
            on: None,
        };
        assert_eq!(of_tool(&tool, 8), "  read      Reads a file.  (denied)\n");
        let bare = ToolView {
            description: String::new(),
            rule: None,
            on: Some(false),
            ..tool
        };
        assert_eq!(of_tool(&bare, 8), "  read  (off)\n");
    }
}
