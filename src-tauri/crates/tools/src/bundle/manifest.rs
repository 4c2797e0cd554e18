//! The manifest of a bundle, as far as a server is started by it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Error;

/// Fields at most, arguments and variables.
const MOST: usize = 100;

/// Bytes of a text at most; a longer one for people is cut, a longer one for the program refused.
const LONGEST: usize = 4 << 10;

/// The systems that a server is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program of Node.
    Node,
    /// A program of Python.
    Python,
    /// A program of its own.
    Binary,
}

/// The manifest of a bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Its name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its author, as it says itself.
    pub author: String,
    /// Its words about itself.
    pub description: String,
    /// The systems that it is made for.
    pub kind: Kind,
    /// The program that is started, with placeholders.
    pub command: String,
    /// Its arguments, with placeholders.
    pub args: Vec<String>,
    /// Variables of its environment, with placeholders.
    pub env: BTreeMap<String, String>,
    /// The fields that a person fills in.
    pub fields: Vec<Field>,
    /// The names of its tools, as it says itself.
    pub tools: Vec<String>,
}

/// The fields that a person fills in.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The name by which placeholders know it.
    pub key: String,
    /// Its name for people.
    pub title: String,
    /// The bundle's words about it.
    pub description: String,
    /// The values that it takes.
    pub kind: FieldKind,
    /// The server does not start without it.
    pub required: bool,
    /// It is kept in the keychain.
    pub sensitive: bool,
    /// It takes several values.
    pub multiple: bool,
    /// The values that it has at first, with placeholders of folders.
    pub default: Vec<String>,
    /// The least and the largest number.
    pub range: (Option<f64>, Option<f64>),
}

/// The values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Any text.
    Text,
    /// A number.
    Number,
    /// On or off.
    Switch,
    /// A folder.
    Folder,
    /// A file.
    File,
}

impl Manifest {
    /// Reads a manifest for this platform: `darwin`, `linux` or `win32`.
    ///
    /// # Errors
    /// [`Error::Manifest`] with what is missing or cannot be.
    pub fn read(bytes: &[u8], platform: &str) -> Result<Self, Error> {
        let manifest: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| refusal(format!("it is no JSON object ({error})")))?;
        let shown = |name: &str| shown(manifest.get(name));
        let compatibility = manifest.get("compatibility");
        let platforms = compatibility.and_then(|known| known.get("platforms")?.as_array());
        if platforms.is_some_and(|platforms| !platforms.iter().any(|known| known == platform)) {
            return Err(refusal("the server is not made for this system".to_owned()));
        }
        let server = manifest.get("server").and_then(Value::as_object);
        let server = server.ok_or_else(|| refusal("it has no “server”".to_owned()))?;
        let kind = match server.get("type").and_then(Value::as_str) {
            Some("node") => Kind::Node,
            Some("python" | "uv") => Kind::Python,
            Some("binary") => Kind::Binary,
            Some(other) => return Err(refusal(format!("Ponder knows no servers of the type “{other}”"))),
            None => return Err(refusal("its server has no “type”".to_owned())),
        };
        let entry_point = server.get("entry_point").and_then(Value::as_str).unwrap_or_default();
        let config = server.get("mcp_config");
        let overrides = config.and_then(|config| config.get("platform_overrides")?.get(platform));
        let of = |name: &str| overrides.and_then(|own| own.get(name)).or_else(|| config?.get(name));
        let (command, args) = match of("command") {
            Some(command) => (exact(command, "command")?, texts(of("args"), "args")?),
            None => started_by(kind, entry_point)?,
        };
        let mut env = BTreeMap::new();
        for variables in [
            config.and_then(|config| config.get("env")),
            overrides.and_then(|own| own.get("env")),
        ] {
            env.extend(variables_of(variables)?);
        }
        let name = match shown("display_name") {
            name if name.is_empty() => shown("name"),
            name => name,
        };
        if name.is_empty() {
            return Err(refusal("it has no name".to_owned()));
        }
        let tools = manifest.get("tools").and_then(Value::as_array).into_iter().flatten();
        Ok(Self {
            name,
            version: shown("version"),
            author: author(manifest.get("author")),
            description: shown("description"),
            kind,
            command,
            args,
            env,
            fields: fields(manifest.get("user_config"))?,
            tools: tools
                .filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned()))
                .take(MOST)
                .collect(),
        })
    }
}

/// The command of a server that names only its file.
fn started_by(kind: Kind, entry_point: &str) -> Result<(String, Vec<String>), Error> {
    if entry_point.is_empty() {
        return Err(refusal("it does not say which program starts the server".to_owned()));
    }
    let file = format!("${{__dirname}}/{entry_point}");
    Ok(match kind {
        Kind::Node => ("node".to_owned(), vec![file]),
        Kind::Python => ("python".to_owned(), vec![file]),
        Kind::Binary => (file, Vec::new()),
    })
}

fn variables_of(variables: Option<&Value>) -> Result<BTreeMap<String, String>, Error> {
    let Some(variables) = variables.filter(|variables| !variables.is_null()) else {
        return Ok(BTreeMap::new());
    };
    let map = variables.as_object().filter(|map| map.len() <= MOST);
    let map = map.ok_or_else(|| refusal("its “env” is no object, or a very long one".to_owned()))?;
    let mut read = BTreeMap::new();
    for (name, value) in map {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(refusal(
                "a variable in its “env” has no name, or an impossible one".to_owned(),
            ));
        }
        let value = match value {
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            other => exact(other, name)?,
        };
        read.insert(name.clone(), value);
    }
    Ok(read)
}

fn texts(list: Option<&Value>, name: &str) -> Result<Vec<String>, Error> {
    match list {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MOST => list.iter().map(|text| exact(text, name)).collect(),
        Some(_) => Err(refusal(format!("its “{name}” is no list, or a very long one"))),
    }
}

/// A text for the program.
fn exact(text: &Value, name: &str) -> Result<String, Error> {
    let text = text
        .as_str()
        .filter(|text| text.len() <= LONGEST && !text.contains('\0'));
    let text = text.ok_or_else(|| refusal(format!("its “{name}” is no text, or an impossible one")));
    text.map(str::to_owned)
}

/// A text for people.
fn shown(text: Option<&Value>) -> String {
    let text = text.and_then(Value::as_str).unwrap_or_default().trim();
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}

fn author(author: Option<&Value>) -> String {
    let Some(Value::Object(author)) = author else {
        return shown(author);
    };
    let parts = ["name", "email", "url"].map(|name| shown(author.get(name)));
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

fn fields(config: Option<&Value>) -> Result<Vec<Field>, Error> {
    let Some(config) = config.filter(|config| !config.is_null()) else {
        return Ok(Vec::new());
    };
    let config = config.as_object().filter(|config| config.len() <= MOST);
    let config = config.ok_or_else(|| refusal("its “user_config” is no object, or a very long one".to_owned()))?;
    config.iter().map(|(key, field)| read_field(key, field)).collect()
}

fn read_field(key: &str, field: &Value) -> Result<Field, Error> {
    let kind = match field.get("type").and_then(Value::as_str) {
        Some("string") => FieldKind::Text,
        Some("number") => FieldKind::Number,
        Some("boolean") => FieldKind::Switch,
        Some("directory") => FieldKind::Folder,
        Some("file") => FieldKind::File,
        _ => return Err(refusal(format!("its field “{key}” has no type that Ponder knows"))),
    };
    let is = |name: &str| field.get(name).and_then(Value::as_bool).unwrap_or(false);
    let number = |name: &str| field.get(name).and_then(Value::as_f64);
    let default = match field.get("default") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => values.iter().take(MOST).map(plain).collect::<Result<_, _>>()?,
        Some(value) => vec![plain(value)?],
    };
    let title = match shown(field.get("title")) {
        title if title.is_empty() => key.to_owned(),
        title => title,
    };
    Ok(Field {
        key: key.to_owned(),
        title,
        description: shown(field.get("description")),
        kind,
        required: is("required"),
        sensitive: is("sensitive"),
        multiple: is("multiple"),
        default,
        range: (number("min"), number("max")),
    })
}

fn plain(value: &Value) -> Result<String, Error> {
    match value {
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        other => exact(other, "default"),
    }
}

fn refusal(reason: String) -> Error {
    Error::Manifest(reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(manifest: &Value) -> Result<Manifest, Error> {
        Manifest::read(manifest.to_string().as_bytes(), "linux")
    }

    #[test]
    fn a_manifest_says_what_runs_and_what_is_filled_in() {
        let manifest = read(&json!({
            "manifest_version": "0.3", "name": "files", "display_name": "Files", "version": "1.2.0",
            "description": "Reads files.", "author": { "name": "Ada", "email": "ada@example.org" },
            "server": { "type": "node", "entry_point": "server/index.js", "mcp_config": {
                "command": "node", "args": ["${__dirname}/server/index.js", "${user_config.folders}"],
                "env": { "KEY": "${user_config.key}", "LEVEL": 3 },
                "platform_overrides": {
                    "linux": { "env": { "LEVEL": "4", "OS": "linux" } }, "win32": { "command": "node.exe" }
                }
            } },
            "tools": [{ "name": "read" }, { "title": "nameless" }],
            "user_config": {
                "folders": { "type": "directory", "title": "Folders", "multiple": true, "required": true, "default": ["${HOME}"] },
                "key": { "type": "string", "sensitive": true },
                "depth": { "type": "number", "default": 3, "min": 1, "max": 9 },
                "fast": { "type": "boolean", "default": false }
            }
        }))
        .unwrap();
        assert_eq!(
            (manifest.name.as_str(), manifest.author.as_str()),
            ("Files", "Ada, ada@example.org")
        );
        assert_eq!((manifest.command.as_str(), manifest.args.len()), ("node", 2));
        let env: Vec<(&str, &str)> = manifest
            .env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(env, [("KEY", "${user_config.key}"), ("LEVEL", "4"), ("OS", "linux")]);
        let [folders, key, depth, fast] = &manifest.fields[..] else {
            panic!("{:?}", manifest.fields)
        };
        assert!(folders.multiple && folders.required && !folders.sensitive);
        assert!(key.sensitive && key.title == "key" && key.default.is_empty());
        assert_eq!((depth.default[0].as_str(), depth.range), ("3", (Some(1.0), Some(9.0))));
        assert_eq!((fast.kind, fast.default[0].as_str()), (FieldKind::Switch, "false"));
        assert_eq!(manifest.tools, ["read"]);
    }

    #[test]
    fn a_server_that_names_only_its_file_is_started_by_its_kind() {
        for (kind, command, args) in [
            ("node", "node", vec!["${__dirname}/a/b"]),
            ("python", "python", vec!["${__dirname}/a/b"]),
            ("binary", "${__dirname}/a/b", vec![]),
        ] {
            let manifest = read(&json!({ "name": "x", "server": { "type": kind, "entry_point": "a/b" } })).unwrap();
            assert_eq!(
                (manifest.command.as_str(), manifest.args),
                (command, args.iter().map(|&arg| arg.to_owned()).collect())
            );
        }
    }

    #[test]
    fn manifests_that_cannot_be_used_say_why() {
        let server = json!({ "type": "node", "entry_point": "a" });
        for (manifest, word) in [
            (json!([]), "JSON object"),
            (json!({ "server": server }), "no name"),
            (json!({ "name": "x" }), "no “server”"),
            (json!({ "name": "x", "server": {} }), "no “type”"),
            (json!({ "name": "x", "server": { "type": "docker" } }), "docker"),
            (json!({ "name": "x", "server": { "type": "node" } }), "which program"),
            (
                json!({ "name": "x", "server": { "type": "node", "mcp_config": { "command": 7 } } }),
                "“command”",
            ),
            (
                json!({ "name": "x", "server": { "type": "node", "mcp_config": { "command": "a\u{0}b" } } }),
                "“command”",
            ),
            (
                json!({ "name": "x", "server": { "type": "node", "mcp_config": { "command": "a", "args": "b" } } }),
                "“args”",
            ),
            (
                json!({ "name": "x", "server": { "type": "node", "entry_point": "a", "mcp_config": { "env": [] } } }),
                "“env”",
            ),
            (
                json!({ "name": "x", "server": server, "user_config": { "k": { "type": "date" } } }),
                "“k”",
            ),
            (
                json!({ "name": "x", "server": server, "user_config": 7 }),
                "“user_config”",
            ),
            (
                json!({ "name": "x", "server": server, "compatibility": { "platforms": ["win32"] } }),
                "this system",
            ),
        ] {
            match read(&manifest) {
                Err(Error::Manifest(reason)) => assert!(reason.contains(word), "{manifest}: {reason}"),
                other => panic!("{manifest}: {other:?}"),
            }
        }
        assert!(Manifest::read(b"\xff{", "linux").is_err());
        assert!(Manifest::read("[".repeat(100_000).as_bytes(), "linux").is_err());
    }
}
