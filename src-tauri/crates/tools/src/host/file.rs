//! The file of servers and rules: `tools.json` in the data folder. No secret stands in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use api::ToolRule;
use files::Durability;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::builtin::{Builtin, SearchEngine};
use crate::catalog::ToolRef;
use crate::configuration::Server;
use crate::consent::{Rule, Rules};
use crate::error::{Error, Result};

/// The name of the file.
const NAME: &str = "tools.json";

/// Bytes of the file at most.
const LONGEST: u64 = 4 << 20;

/// Servers at most.
pub const MOST_SERVERS: usize = 100;

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Configuration {
    /// The servers, in the order in which they were added.
    pub servers: Vec<Server>,
    /// A person's words about tools: by server, then by tool.
    pub rules: BTreeMap<String, BTreeMap<String, ToolRule>>,
    /// Those of Ponder's own tools that reach the internet and were switched on.
    pub switched_on: BTreeSet<String>,
    /// The search engine.
    pub search_engine: Option<SearchEngine>,
    /// The hashes of the bundles that servers are of, by server.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bundles: BTreeMap<String, String>,
}

impl Configuration {
    /// The server with this id.
    pub fn server(&self, id: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.id == id)
    }

    /// True if one of Ponder's own tools may be offered and run.
    pub fn is_on(&self, own: Builtin) -> bool {
        !own.reaches_the_internet() || self.switched_on.contains(own.name())
    }

    /// A person's words about a tool. A file allows nothing.
    pub fn rules(&self, tool: &ToolRef) -> Rules {
        let rule = self.rules.get(&tool.server).and_then(|rules| rules.get(&tool.tool));
        Rules {
            tool: rule.map(|rule| match rule {
                ToolRule::Ask => Rule::Ask,
                ToolRule::Deny => Rule::Deny,
            }),
            server: None,
        }
    }
}

/// The file. Another process may write it, so that it is read again when it changed.
#[derive(Debug)]
pub struct ConfigurationFile {
    path: PathBuf,
    read: Mutex<Option<(Stamp, Configuration)>>,
}

/// Tells two versions of a file apart.
type Stamp = Option<(SystemTime, u64)>;

impl ConfigurationFile {
    /// The one in this data folder, which is not read yet.
    pub fn new(data_dir: &Path) -> Self {
        Self {
            path: data_dir.join(NAME),
            read: Mutex::default(),
        }
    }

    /// Its content; empty if there is no file.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be read or is not what Ponder wrote.
    pub fn get(&self) -> Result<Configuration> {
        let stamp = self.stamp();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, configuration)) = &*read {
            if *known == stamp {
                return Ok(configuration.clone());
            }
        }
        let configuration: Configuration = match stamp {
            None => Configuration::default(),
            Some((_, bytes)) if bytes > LONGEST => return Err(self.error("it is too large")),
            Some(_) => {
                let bytes = std::fs::read(&self.path).map_err(|error| self.error(error))?;
                // An object first: serde takes a list for a struct, too.
                let object: Map<String, Value> = serde_json::from_slice(&bytes).map_err(|error| self.error(error))?;
                serde_json::from_value(object.into()).map_err(|error| self.error(error))?
            }
        };
        *read = Some((stamp, configuration.clone()));
        Ok(configuration)
    }

    /// Changes its content; the change may refuse.
    ///
    /// # Errors
    /// Those of the change, and [`Error::File`]; nothing is changed then.
    pub fn change<T>(&self, change: impl FnOnce(&mut Configuration) -> Result<T>) -> Result<T> {
        let mut configuration = self.get()?;
        let before = configuration.clone();
        let changed = change(&mut configuration)?;
        if configuration != before {
            let bytes = serde_json::to_vec_pretty(&configuration).map_err(|error| self.error(error))?;
            files::write_private(&self.path, &bytes, Durability::PowerLoss).map_err(|error| self.error(error))?;
        }
        Ok(changed)
    }

    fn stamp(&self) -> Stamp {
        let metadata = std::fs::metadata(&self.path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    fn error(&self, reason: impl ToString) -> Error {
        Error::File {
            path: self.path.display().to_string(),
            reason: reason.to_string(),
        }
    }
}
