//! A server of tools as a person set it up.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Transport {
    /// A program of this computer, spoken to by its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        #[serde(default)]
        args: Vec<String>,
        /// Variables of its environment.
        #[serde(default)]
        env: Vec<Variable>,
    },
    /// An address, spoken to by HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers of every request.
        #[serde(default)]
        headers: Vec<Variable>,
    },
}

/// A variable of the environment or a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Setting,
}

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// As it is.
    Plain(String),
    /// In the keychain. The configuration knows only that there is one.
    Secret,
}

/// A server of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its id; no later server gets it again.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// A person saw the command or the address and switched it on. Nothing starts before.
    #[serde(default)]
    pub enabled: bool,
    /// A person signed in to it. The tokens are in the keychain.
    #[serde(default)]
    pub signed_in: bool,
    /// The folders that a person chose for it, which it is told of (*roots*).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<PathBuf>,
}

/// True for an address, as opposed to a command line.
pub fn is_address(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.starts_with("http://") || line.starts_with("https://")
}

impl Server {
    /// A server that is off: nobody saw its command, signed in or gave it folders.
    pub fn new(id: String, name: String, transport: Transport) -> Self {
        Self {
            id,
            name,
            transport,
            enabled: false,
            signed_in: false,
            roots: Vec::new(),
        }
    }

    /// The part that a consent to one of its tools binds to: how it is reached, not how it is called.
    pub fn binding(&self) -> Value {
        match self.roots.as_slice() {
            [] => json!({ "id": self.id, "transport": self.transport }),
            roots => json!({ "id": self.id, "transport": self.transport, "roots": roots }),
        }
    }
}

impl Variable {
    /// True if the value looks like something that nobody else should read.
    pub fn looks_secret(name: &str, value: &str) -> bool {
        const BEGINNINGS: [&str; 8] = ["sk-", "ghp_", "github_pat_", "xox", "hf_", "glpat-", "Bearer ", "eyJ"];
        let has_password = || value.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
        let begins = || BEGINNINGS.iter().any(|begin| value.starts_with(begin));
        !value.is_empty() && (Self::is_named_like_a_secret(name) || begins() || has_password())
    }

    /// True if what has this name should be read by nobody else.
    pub fn is_named_like_a_secret(name: &str) -> bool {
        const MARKS: [&str; 9] = [
            "key",
            "token",
            "secret",
            "password",
            "passwd",
            "authorization",
            "credential",
            "credentials",
            "cookie",
        ];
        let name = name.to_lowercase();
        let mut words = name.split(|character: char| !character.is_alphanumeric());
        words.any(|word| word == "pat" || MARKS.iter().any(|mark| word.ends_with(mark)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name_and_by_value() {
        for (name, value) in [
            ("GITHUB_TOKEN", "abc"),
            ("api_key", "1"),
            ("GITHUB_PAT", "1"),
            ("authToken", "1"),
            ("Authorization", "Basic abc"),
            ("VALUE", "sk-abc"),
            ("DATABASE", "postgres://me:pass@host/db"),
        ] {
            assert!(Variable::looks_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("PATH", "/usr/bin"),
            ("TOKEN", ""),
            ("MEMORY_FILE_PATH", "/home/me/memory.json"),
            ("KEYBOARD", "us"),
            ("URL", "https://example.org/"),
            ("MODE", "fast"),
        ] {
            assert!(!Variable::looks_secret(name, value), "{name}");
        }
    }

    #[test]
    fn the_name_is_no_part_of_what_a_consent_binds_to() {
        let server = |name: &str, argument: &str| Server {
            id: "7".to_owned(),
            name: name.to_owned(),
            transport: Transport::Stdio {
                command: "npx".to_owned(),
                args: vec![argument.to_owned()],
                env: Vec::new(),
            },
            enabled: true,
            signed_in: false,
            roots: Vec::new(),
        };
        assert_eq!(server("a", "x").binding(), server("b", "x").binding());
        assert_ne!(server("a", "x").binding(), server("a", "y").binding());
        let with_root = Server {
            roots: vec!["/home/me/notes".into()],
            ..server("a", "x")
        };
        assert_ne!(with_root.binding(), server("a", "x").binding());
    }
}
