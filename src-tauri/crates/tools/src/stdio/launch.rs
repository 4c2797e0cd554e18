//! The start of a server.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use super::guard::ROLE;

/// Variables of Ponder's own environment that a server gets: those that MCP's TypeScript SDK passes on, and the language.
/// Nothing else, because keys of other programs stand in an environment.
const PASSED_ON: [&str; 9] = [
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER",
];

/// Lines of standard error in the sentence of an error.
const SAID: usize = 8;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No such program is where programs are looked for.
    #[error("no program “{command}” was found in {}", looked_in.join(", "))]
    NotFound {
        /// The program.
        command: String,
        /// The folders.
        looked_in: Vec<String>,
    },
    /// The system refused.
    #[error("the program could not be started: {0}")]
    System(std::io::Error),
    /// It ended before it was ready.
    #[error("the program ended before it was ready{}", said(.0))]
    Ended(Vec<String>),
    /// It said nothing.
    #[error("the program said nothing for {} s{}", .0.as_secs(), said(.1))]
    Silent(Duration, Vec<String>),
    /// It refused to begin, or is no server of tools.
    #[error("the program does not answer as a server of tools: {reason}{}", said(.lines))]
    NoServer {
        /// Why.
        reason: String,
        /// Its last words.
        lines: Vec<String>,
    },
}

impl StartError {
    /// The last lines of its standard error.
    pub fn lines(self) -> Vec<String> {
        match self {
            Self::Ended(lines) | Self::Silent(_, lines) | Self::NoServer { lines, .. } => lines,
            Self::NotFound { .. } | Self::System(_) => Vec::new(),
        }
    }
}

fn said(lines: &[String]) -> String {
    let last = &lines[lines.len().saturating_sub(SAID)..];
    match last {
        [] => String::new(),
        last => format!("; it said: {}", last.join("\n")),
    }
}

/// How a guard is started.
#[derive(Debug, Clone)]
pub struct Guard {
    program: PathBuf,
}

impl Guard {
    /// By this program, whose `main` calls [`super::take_role`].
    ///
    /// # Errors
    /// If the system does not tell which program this is.
    pub fn of_this_program() -> std::io::Result<Self> {
        std::env::current_exe().map(Self::of)
    }

    /// By another program, whose `main` calls [`super::take_role`].
    pub fn of(program: PathBuf) -> Self {
        Self { program }
    }
}

/// A server that is to be started, with its secrets.
#[derive(Clone)]
pub struct Launch {
    /// The program, as it was configured.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables for it; a `PATH` of its own stands above the person's.
    pub env: BTreeMap<String, String>,
    /// The person's own search path, as a terminal has it.
    pub path: OsString,
}

impl Launch {
    /// Starts it behind a guard.
    pub(crate) fn start(&self, guard: &Guard) -> Result<Child, StartError> {
        let path = self.env.get("PATH").map_or_else(|| self.path.clone(), OsString::from);
        let program = find(&self.command, &path).ok_or_else(|| StartError::NotFound {
            command: self.command.clone(),
            looked_in: std::env::split_paths(&path)
                .map(|folder| folder.display().to_string())
                .collect(),
        })?;
        let mut command = Command::new(&guard.program);
        command.arg(ROLE).arg(program).args(&self.args).env_clear();
        // The guard's own libraries, in a development build.
        let kept = PASSED_ON
            .into_iter()
            .chain(cfg!(debug_assertions).then_some("LD_LIBRARY_PATH"));
        command.envs(kept.filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.env("PATH", &path).envs(&self.env);
        // Ctrl-C in a terminal ends Ponder, and Ponder's end ends the guard, which ends the server first.
        command
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().map_err(StartError::System)
    }
}

/// The file of a program, by its own name or in the folders of a search path.
pub fn find(command: &str, path: &OsString) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let command = match (command.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(command),
    };
    if command.is_absolute() {
        return is_program(&command).then_some(command);
    }
    // A relative path would depend on where Ponder was started.
    if command.components().count() != 1 {
        return None;
    }
    let mut files = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&command));
    files.find(|file| is_program(file))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
