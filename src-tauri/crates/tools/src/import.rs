//! Servers out of the configuration of another program: Claude Desktop, Claude Code, VS Code, Cursor, LM Studio, or a
//! piece of such a file out of a README.

use std::collections::BTreeMap;

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};

use crate::configuration::{Setting, Transport, Variable};

/// Bytes of a text at most.
const LONGEST: usize = 1 << 20;

/// Servers of a text at most.
const MOST_SERVERS: usize = 100;

/// Why nothing could be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no JSON, also not with comments.
    #[error("this is not the JSON of a configuration: {0}")]
    NotJson(String),
    /// It is longer than any configuration.
    #[error("this is longer than {} kB, which no configuration is", LONGEST >> 10)]
    TooLong,
    /// No server stands in it.
    #[error("no server stands in this: Ponder looks for \"mcpServers\", \"servers\", or a \"command\" or a \"url\"")]
    NoServer,
}

/// A server as it was found. It is off until a person has seen it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// How it is reached, without secrets.
    pub transport: Transport,
    /// Values for the keychain, by variable or header.
    pub secrets: BTreeMap<String, String>,
    /// Placeholders that a person has to fill in, such as `${input:token}`, with what the file says of them.
    pub missing: BTreeMap<String, String>,
}

/// The servers that stand in a text.
#[derive(Debug, Default, PartialEq)]
pub struct Imported {
    /// The servers, in order.
    pub servers: Vec<Found>,
    /// Why others were left out, a sentence each.
    pub problems: Vec<String>,
}

/// Reads a configuration.
///
/// # Errors
/// [`Error`] if no server can be found at all; one that cannot be read is a problem of its own.
pub fn read(text: &str) -> Result<Imported, Error> {
    if text.len() > LONGEST {
        return Err(Error::TooLong);
    }
    let whole = parse(text)?;
    let (servers, inputs) = servers(&whole).ok_or(Error::NoServer)?;
    let mut imported = Imported::default();
    for (name, server) in servers.into_iter().take(MOST_SERVERS) {
        match found(&name, server, &inputs) {
            Ok(found) => imported.servers.push(found),
            Err(problem) => imported.problems.push(format!("“{name}” was left out: {problem}")),
        }
    }
    Ok(imported)
}

/// The value of a text, or of a text in braces, as READMEs print pieces of a file.
fn parse(text: &str) -> Result<Value, Error> {
    let options = ParseOptions::default();
    let read = |text: &str| jsonc_parser::parse_to_serde_value::<Value>(text, &options);
    let text = text.trim().trim_end_matches(',');
    let error = match read(text) {
        Ok(value @ Value::Object(_)) => return Ok(value),
        Ok(_) => "it is no object".to_owned(),
        Err(error) => error.to_string(),
    };
    match read(&format!("{{{text}}}")) {
        Ok(value @ Value::Object(_)) => Ok(value),
        _ => Err(Error::NotJson(error)),
    }
}

type Named<'a> = Vec<(String, &'a Value)>;

/// The servers by their names, and what VS Code asks for by id.
fn servers(whole: &Value) -> Option<(Named<'_>, BTreeMap<String, String>)> {
    // VS Code's settings have them one level down.
    for whole in [Some(whole), whole.get("mcp")].into_iter().flatten() {
        let inputs = whole.get("inputs").and_then(Value::as_array).into_iter().flatten();
        let inputs = inputs.filter_map(|input| {
            let text = |name: &str| input.get(name).and_then(Value::as_str);
            Some((
                text("id")?.to_owned(),
                text("description").unwrap_or_default().to_owned(),
            ))
        });
        for key in ["mcpServers", "servers"] {
            if let Some(map) = whole.get(key).and_then(Value::as_object) {
                return Some((named(map), inputs.collect()));
            }
        }
    }
    let map = whole.as_object()?;
    if is_server(whole) {
        return Some((vec![("server".to_owned(), whole)], BTreeMap::new()));
    }
    let all = map.values().all(is_server) && !map.is_empty();
    all.then(|| (named(map), BTreeMap::new()))
}

fn named(map: &Map<String, Value>) -> Named<'_> {
    map.iter().map(|(name, value)| (name.clone(), value)).collect()
}

fn is_server(value: &Value) -> bool {
    ["command", "url", "serverUrl"]
        .iter()
        .any(|key| value.get(key).is_some_and(Value::is_string))
}

fn found(name: &str, server: &Value, inputs: &BTreeMap<String, String>) -> Result<Found, String> {
    let text = |key: &str| server.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut missing = BTreeMap::new();
    let mut secrets = BTreeMap::new();
    let mut variables = |key: &str, missing: &mut BTreeMap<String, String>| -> Result<Vec<Variable>, String> {
        let Some(map) = server.get(key).filter(|value| !value.is_null()) else {
            return Ok(Vec::new());
        };
        let map = map.as_object().ok_or_else(|| format!("its “{key}” is not an object"))?;
        let mut variables = Vec::new();
        for (name, value) in map {
            let value = match value {
                Value::String(value) => filled(value, inputs, missing),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => return Err(format!("“{name}” in its “{key}” is not a text")),
            };
            let value = match Variable::looks_secret(name, &value) {
                true => {
                    secrets.insert(name.clone(), value);
                    Setting::Secret
                }
                false => Setting::Plain(value),
            };
            let name = name.clone();
            variables.push(Variable { name, value });
        }
        Ok(variables)
    };
    let transport = match (text("command"), text("url").or_else(|| text("serverUrl"))) {
        (Some(command), _) if !command.trim().is_empty() => {
            let args = match server.get("args") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(args)) => args
                    .iter()
                    .map(|arg| Some(filled(arg.as_str()?, inputs, &mut missing)))
                    .collect::<Option<_>>()
                    .ok_or("its “args” are not all texts")?,
                Some(_) => return Err("its “args” are not a list".to_owned()),
            };
            Transport::Stdio {
                command: filled(&command, inputs, &mut missing),
                args,
                env: variables("env", &mut missing)?,
            }
        }
        (None, Some(url)) => Transport::Http {
            url: filled(&url, inputs, &mut missing),
            headers: variables("headers", &mut missing)?,
        },
        _ => return Err("it has neither a “command” nor a “url”".to_owned()),
    };
    Ok(Found {
        name: name.to_owned(),
        transport,
        secrets,
        missing,
    })
}

/// The text with defaults in place of placeholders that have them (`${NAME:-default}`); the others stay, and are noted.
fn filled(text: &str, inputs: &BTreeMap<String, String>, missing: &mut BTreeMap<String, String>) -> String {
    let (mut rest, mut filled) = (text, String::with_capacity(text.len()));
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let inside = &rest[start + 2..start + length];
        filled.push_str(&rest[..start]);
        match inside.split_once(":-") {
            Some((_, default)) if !default.contains("${") => filled.push_str(default),
            _ => {
                let whole = &rest[start..=start + length];
                let said = inside.strip_prefix("input:").and_then(|id| inputs.get(id));
                missing.insert(whole.to_owned(), said.cloned().unwrap_or_default());
                filled.push_str(whole);
            }
        }
        rest = &rest[start + length + 1..];
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let imported = read(text).unwrap();
        imported.servers.into_iter().map(|server| server.name).collect()
    }

    #[test]
    fn every_program_writes_its_own_way() {
        let desktop = r#"{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "server", "/home/me"] } } }"#;
        assert_eq!(names(desktop), ["files"]);
        let code = r#"{
            // VS Code has comments and a comma at the end.
            "inputs": [{ "type": "promptString", "id": "token", "description": "GitHub token", "password": true }],
            "servers": {
                "github": { "type": "http", "url": "https://api.example.org/mcp", "headers": { "Authorization": "Bearer ${input:token}" } },
                "local": { "type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "env": { "LEVEL": 3, "ROOT": "${ROOT:-/tmp}" } },
            },
        }"#;
        let imported = read(code).unwrap();
        assert_eq!(imported.problems, [""; 0]);
        let [github, local] = &imported.servers[..] else {
            panic!("{imported:?}")
        };
        assert_eq!(github.missing["${input:token}"], "GitHub token");
        assert_eq!(github.secrets["Authorization"], "Bearer ${input:token}");
        let Transport::Stdio { env, .. } = &local.transport else {
            panic!("{local:?}")
        };
        assert_eq!(env[1].value, Setting::Plain("/tmp".to_owned()));
        for piece in [
            r#""time": { "command": "uvx", "args": ["mcp-server-time"] },"#,
            r#"{ "time": { "command": "uvx" } }"#,
            r#""mcpServers": { "time": { "command": "uvx" } }"#,
            r#"{ "mcp": { "servers": { "time": { "serverUrl": "https://example.org" } } } }"#,
        ] {
            assert_eq!(names(piece), ["time"], "{piece}");
        }
        assert_eq!(names(r#""command": "uvx", "args": []"#), ["server"]);
    }

    #[test]
    fn secrets_leave_the_configuration() {
        let text = r#"{ "mcpServers": { "a": { "command": "x", "env": { "API_KEY": "sk-123", "MODE": "fast" } } } }"#;
        let imported = read(text).unwrap();
        let transport = serde_json::to_string(&imported.servers[0].transport).unwrap();
        assert!(
            !transport.contains("sk-123") && transport.contains("fast"),
            "{transport}"
        );
        assert_eq!(imported.servers[0].secrets["API_KEY"], "sk-123");
    }

    #[test]
    fn a_bad_server_hides_no_other() {
        let text = r#"{ "mcpServers": {
            "good": { "command": "x" }, "none": {}, "args": { "command": "x", "args": "y" }, "odd": { "command": "x", "args": [1] },
            "env": { "command": "x", "env": ["a"] }, "deep": { "command": "x", "env": { "a": {} } }, "empty": { "command": " " }
        } }"#;
        let imported = read(text).unwrap();
        assert_eq!(
            (imported.servers.len(), imported.problems.len()),
            (1, 6),
            "{imported:#?}"
        );
    }

    #[test]
    fn what_is_no_configuration_is_said_to_be_none() {
        for text in ["", "hello", "[]", "{", "7", r#""text""#] {
            assert!(matches!(read(text), Err(Error::NotJson(_) | Error::NoServer)), "{text}");
        }
        assert_eq!(read(r#"{ "a": 1 }"#), Err(Error::NoServer));
        assert_eq!(read(&" ".repeat(LONGEST + 1)), Err(Error::TooLong));
        // Nesting that would end a thread is refused by the reader.
        assert!(read(&"[".repeat(100_000)).is_err());
        // A default with a placeholder in it is not filled in.
        let mut missing = BTreeMap::new();
        filled("${A:-${B}}", &BTreeMap::new(), &mut missing);
        assert_eq!(missing.len(), 1);
        assert_eq!(filled("a${b", &BTreeMap::new(), &mut BTreeMap::new()), "a${b");
    }
}
