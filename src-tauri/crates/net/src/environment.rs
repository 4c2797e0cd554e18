//! The environment variables of Hugging Face's own programs, which count here too.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;

use directories::BaseDirs;

/// The environment variables. They may hold a token, so this has no `Debug`.
#[derive(Clone, Default)]
pub struct Environment {
    variables: HashMap<String, String>,
    home: Option<PathBuf>,
}

impl Environment {
    /// The environment of this process.
    pub fn of_this_process() -> Self {
        Self {
            variables: env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            home: BaseDirs::new().map(|dirs| dirs.home_dir().to_owned()),
        }
    }

    /// An environment of these variables, for tests. It has no home folder unless `HOME` is one of them.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let variables: HashMap<String, String> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Self {
            home: variables.get("HOME").map(PathBuf::from),
            variables,
        }
    }

    /// A variable that is set to something other than blanks.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(|value| value.trim())
            .filter(|value| !value.is_empty())
    }

    /// True if a variable is set to yes, as huggingface_hub reads it.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| ["1", "ON", "YES", "TRUE"].contains(&value.to_uppercase().as_str()))
    }

    /// True if any proxy variable is set.
    pub(crate) fn names_a_proxy(&self) -> bool {
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
            .iter()
            .any(|name| self.get(name).or_else(|| self.get(&name.to_lowercase())).is_some())
    }

    /// The token file of Hugging Face's programs: `HF_TOKEN_PATH` (and true) if set, else `HF_HOME/token` (and false).
    pub(crate) fn token_file(&self) -> Option<(PathBuf, bool)> {
        if let Some(path) = self.get("HF_TOKEN_PATH") {
            return Some((self.expanded(path), true));
        }
        let home = match (self.get("HF_HOME"), self.get("XDG_CACHE_HOME")) {
            (Some(home), _) => self.expanded(home),
            (None, Some(cache)) => self.expanded(cache).join("huggingface"),
            (None, None) => self.home.as_ref()?.join(".cache/huggingface"),
        };
        Some((home.join("token"), false))
    }

    fn expanded(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        }
    }
}
