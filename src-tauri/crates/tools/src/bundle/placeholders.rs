//! The values of a manifest's placeholders: the folder of the bundle, folders of the person, and what
//! the person filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::manifest::{Field, FieldKind, Manifest};
use super::Error;

/// Values of a field at most, and bytes of one.
const MOST_VALUES: usize = 50;
const LONGEST_VALUE: usize = 4 << 10;

/// The values that a person gave, by the field's key.
pub type Values = BTreeMap<String, Vec<String>>;

/// A server's command without placeholders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BundleCommand {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables of its environment.
    pub env: BTreeMap<String, String>,
    /// The variables that hold something sensitive.
    pub secret: BTreeSet<String>,
}

/// The value of a placeholder.
enum Value {
    /// Texts, of which only a whole argument takes several.
    Texts(Vec<String>),
    /// It is sensitive.
    Secret(String),
    /// Nothing was filled in.
    Nothing,
}

/// Fills in the placeholders of a manifest, whose bundle lies in this folder.
///
/// # Errors
/// [`Error::Value`] for a value that is missing or is none of its field; [`Error::Manifest`] for a placeholder that
/// stands for nothing, and a sensitive value among the arguments, which every program could read.
pub fn fill(manifest: &Manifest, folder: &Path, home: &Path, values: &Values) -> Result<BundleCommand, Error> {
    let known = known(manifest, folder, home, values)?;
    let mut filled = BundleCommand::default();
    let (command, is_secret) = filled_text(&manifest.command, &known)?;
    let command = command.filter(|command| !command.trim().is_empty() && !is_secret);
    filled.command = command.ok_or_else(|| Error::Manifest("its command is empty or sensitive".to_owned()))?;
    for arg in &manifest.args {
        if let Some(Value::Texts(several)) = whole(arg).and_then(|name| known.get(name)) {
            filled.args.extend(several.iter().cloned());
            continue;
        }
        match filled_text(arg, &known)? {
            (_, true) => {
                let reason = format!("it passes a secret as the argument “{arg}”, which every program here can read");
                return Err(Error::Manifest(reason));
            }
            (Some(arg), false) => filled.args.push(arg),
            (None, false) => {}
        }
    }
    for (name, value) in &manifest.env {
        let (value, is_secret) = filled_text(value, &known)?;
        if let Some(value) = value {
            filled.env.insert(name.clone(), value);
            if is_secret {
                filled.secret.insert(name.clone());
            }
        }
    }
    Ok(filled)
}

fn known(manifest: &Manifest, folder: &Path, home: &Path, values: &Values) -> Result<BTreeMap<String, Value>, Error> {
    let (folders, mut known) = (folders(folder, home), self::folders(folder, home));
    for field in &manifest.fields {
        let mut given: Vec<String> = match values.get(&field.key) {
            Some(given) => given.clone(),
            None => Vec::new(),
        };
        given.retain(|value| !value.is_empty());
        if given.is_empty() {
            for value in &field.default {
                // Defaults name folders, and never what was filled in elsewhere.
                given.extend(filled_text(value, &folders)?.0);
            }
        }
        check(field, &given)?;
        let value = match (given.len(), field.sensitive) {
            (0, _) => Value::Nothing,
            (_, true) => Value::Secret(given.join(",")),
            (_, false) => Value::Texts(given),
        };
        known.insert(format!("user_config.{}", field.key), value);
    }
    Ok(known)
}

/// The folder of the bundle and those of the person.
fn folders(folder: &Path, home: &Path) -> BTreeMap<String, Value> {
    let text = |path: &Path| Value::Texts(vec![path.display().to_string()]);
    BTreeMap::from([
        ("__dirname".to_owned(), text(folder)),
        ("HOME".to_owned(), text(home)),
        ("DESKTOP".to_owned(), text(&home.join("Desktop"))),
        ("DOCUMENTS".to_owned(), text(&home.join("Documents"))),
        ("DOWNLOADS".to_owned(), text(&home.join("Downloads"))),
        ("pathSeparator".to_owned(), text(Path::new("/"))),
        ("/".to_owned(), text(Path::new("/"))),
    ])
}

fn check(field: &Field, given: &[String]) -> Result<(), Error> {
    let refused = |reason: &str| {
        Err(Error::Value {
            field: field.title.clone(),
            reason: reason.to_owned(),
        })
    };
    if given.is_empty() && field.required {
        return refused("this has to be filled in");
    }
    if given.len() > 1 && !field.multiple || given.len() > MOST_VALUES {
        return refused("there are too many values");
    }
    for value in given {
        if value.len() > LONGEST_VALUE || value.contains('\0') {
            return refused("this value is too long, or an impossible one");
        }
        match field.kind {
            FieldKind::Text => {}
            FieldKind::Number => {
                let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
                let (least, most) = field.range;
                let fits =
                    |number: f64| least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most);
                if !number.is_some_and(fits) {
                    return refused("this is no number, or one that is too small or too large");
                }
            }
            FieldKind::Switch if value != "true" && value != "false" => return refused("this is either on or off"),
            FieldKind::Switch => {}
            FieldKind::Folder | FieldKind::File if !Path::new(value).is_absolute() => {
                return refused("a whole path is needed, from the first slash on");
            }
            FieldKind::Folder if !Path::new(value).is_dir() => return refused("there is no such folder"),
            FieldKind::File if !Path::new(value).is_file() => return refused("there is no such file"),
            FieldKind::Folder | FieldKind::File => {}
        }
    }
    Ok(())
}

/// The name of the placeholder that a text consists of.
fn whole(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("${")?.strip_suffix('}')?;
    (!inside.contains('}')).then_some(inside)
}

/// A text with values in place of its placeholders, and whether one of them is sensitive; no text if all of it stood for
/// something that was not filled in.
fn filled_text(text: &str, known: &BTreeMap<String, Value>) -> Result<(Option<String>, bool), Error> {
    let (mut rest, mut filled, mut is_secret) = (text, String::with_capacity(text.len()), false);
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        filled.push_str(&rest[..start]);
        let name = &rest[start + 2..start + length];
        match known.get(name) {
            Some(Value::Texts(texts)) => filled.push_str(&texts.join(",")),
            Some(Value::Secret(secret)) => {
                filled.push_str(secret);
                is_secret = true;
            }
            Some(Value::Nothing) if whole(text).is_some() => return Ok((None, false)),
            Some(Value::Nothing) => {}
            None => {
                return Err(Error::Manifest(format!(
                    "its placeholder “${{{name}}}” stands for nothing"
                )))
            }
        }
        rest = &rest[start + length + 1..];
    }
    Ok((Some(filled + rest), is_secret))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(config: serde_json::Value, fields: serde_json::Value) -> Manifest {
        let whole = json!({ "name": "x", "server": { "type": "node", "mcp_config": config }, "user_config": fields });
        Manifest::read(whole.to_string().as_bytes(), "linux").unwrap()
    }

    fn filled(manifest: &Manifest, values: &[(&str, &[&str])]) -> Result<BundleCommand, Error> {
        let values = values.iter().map(|(key, values)| {
            let values = values.iter().map(|&value| value.to_owned());
            ((*key).to_owned(), values.collect())
        });
        fill(
            manifest,
            Path::new("/data/bundle"),
            Path::new("/home/ada"),
            &values.collect(),
        )
    }

    #[test]
    fn placeholders_are_filled_in() {
        let manifest = manifest(
            json!({
                "command": "node",
                "args": ["${__dirname}${/}index.js", "--level=${user_config.level}", "${user_config.folders}", "${user_config.none}", "--none=${user_config.none}"],
                "env": { "KEY": "Bearer ${user_config.key}", "HOME_FOLDER": "${HOME}", "NONE": "${user_config.none}" }
            }),
            json!({
                "level": { "type": "number", "default": 3, "max": 9 },
                "folders": { "type": "directory", "multiple": true, "default": ["/", "/tmp"] },
                "key": { "type": "string", "sensitive": true, "required": true },
                "none": { "type": "string" }
            }),
        );
        let done = filled(&manifest, &[("key", &["${HOME}"])]).unwrap();
        assert_eq!(
            done.args,
            ["/data/bundle/index.js", "--level=3", "/", "/tmp", "--none="]
        );
        assert_eq!(done.env["HOME_FOLDER"], "/home/ada");
        // A person's values hold no placeholders.
        assert_eq!(
            (done.env["KEY"].as_str(), done.secret.contains("KEY")),
            ("Bearer ${HOME}", true)
        );
        assert!(!done.env.contains_key("NONE") && done.secret.len() == 1);
        let done = filled(&manifest, &[("key", &["k"]), ("folders", &["/tmp"]), ("level", &["9"])]).unwrap();
        assert_eq!(done.args, ["/data/bundle/index.js", "--level=9", "/tmp", "--none="]);
    }

    #[test]
    fn values_that_are_none_of_their_field_are_refused() {
        let manifest = manifest(
            json!({ "command": "node" }),
            json!({
                "number": { "type": "number", "min": 1, "max": 9 }, "switch": { "type": "boolean" },
                "folder": { "type": "directory" }, "file": { "type": "file" }, "text": { "type": "string" },
            }),
        );
        assert!(filled(&manifest, &[]).is_ok());
        for (key, values) in [
            ("number", &["0"][..]),
            ("number", &["10"]),
            ("number", &["NaN"]),
            ("number", &["x"]),
            ("switch", &["yes"]),
            ("folder", &["relative"]),
            ("folder", &["/no/such/folder"]),
            ("file", &["/tmp"]),
            ("text", &["a", "b"]),
            ("text", &["a\0b"]),
        ] {
            let refused = filled(&manifest, &[(key, values)]);
            assert!(
                matches!(&refused, Err(Error::Value { field, .. }) if field == key),
                "{key}: {refused:?}"
            );
        }
        let required = self::manifest(
            json!({ "command": "node" }),
            json!({ "k": { "type": "string", "required": true } }),
        );
        for values in [&[][..], &[("k", &[""][..])]] {
            assert!(matches!(filled(&required, values), Err(Error::Value { .. })));
        }
    }

    #[test]
    fn secrets_stay_out_of_arguments_and_nothing_unknown_is_passed_on() {
        let key = json!({ "key": { "type": "string", "sensitive": true, "default": "k" } });
        for config in [
            json!({ "command": "node", "args": ["--key=${user_config.key}"] }),
            json!({ "command": "node", "args": ["${user_config.key}"] }),
            json!({ "command": "${user_config.key}" }),
            json!({ "command": "node", "args": ["${user_config.other}"] }),
            json!({ "command": "node", "env": { "A": "${PATH}" } }),
            json!({ "command": "${user_config.key}" }),
        ] {
            let refused = filled(&manifest(config.clone(), key.clone()), &[]);
            assert!(matches!(refused, Err(Error::Manifest(_))), "{config}: {refused:?}");
        }
        // An end without a beginning is text.
        let plain = manifest(json!({ "command": "node", "args": ["${", "a}b", "$HOME"] }), key);
        assert_eq!(filled(&plain, &[]).unwrap().args, ["${", "a}b", "$HOME"]);
    }
}
