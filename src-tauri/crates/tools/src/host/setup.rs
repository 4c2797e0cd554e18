//! Servers as a person sets them up: added, found in the configuration of other programs, switched on, removed.

use std::path::PathBuf;

use api::{FoundServer, ServerVariable, ToolRule, ToolSetup};
use protocol::ToolRef;
use url::Url;
use uuid::Uuid;

use super::file::MOST_SERVERS;
use super::grants::keychain;
use super::servers::secret_name;
use super::{Tools, OWN_NAME};
use crate::builtin;
use crate::configuration::{is_address, Server, Setting, Transport, Variable};
use crate::error::{Error, Result};
use crate::http::check_header;
use crate::import::{self, Found, Imported};
use crate::oauth::SignInStore;

/// Characters of a name at most.
const LONGEST_NAME: usize = 60;

/// Bytes of a command line at most.
const LONGEST_COMMAND: usize = 16 << 10;

/// Bytes of another program's configuration at most.
const LONGEST_FILE: u64 = 1 << 20;

/// A server as a person wrote it.
pub(super) struct ParsedSetup {
    pub(super) name: String,
    pub(super) transport: Transport,
    /// Values for the keychain, by their names in it.
    pub(super) secrets: Vec<(String, String)>,
}

impl Tools {
    /// Adds a server, which is off. Secrets go to the keychain. Returns its id.
    ///
    /// # Errors
    /// For a name that is taken, and a command that is none; nothing is added then.
    pub async fn add(&self, setup: ToolSetup) -> Result<String> {
        let id = Uuid::now_v7().simple().to_string();
        let ParsedSetup {
            name,
            transport,
            secrets,
        } = self.read_setup(&id, setup, |_| false)?;
        self.check_name(&name)?;
        let server = Server::new(id.clone(), name, transport);
        self.with_keychain(move |chain| {
            secrets
                .iter()
                .try_for_each(|(name, secret)| chain.set(name, secret).map_err(keychain))
        })
        .await?;
        self.0.file.change(|configuration| {
            if configuration.servers.len() >= MOST_SERVERS {
                return Err(Error::TooMany(MOST_SERVERS));
            }
            configuration.servers.push(server);
            Ok(())
        })?;
        self.changed();
        Ok(id)
    }

    /// Reads a server as a person wrote it. `keeps` says of a part that its secret is in the keychain already.
    pub(super) fn read_setup(
        &self,
        id: &str,
        setup: ToolSetup,
        keeps: impl Fn(&ServerVariable) -> bool,
    ) -> Result<ParsedSetup> {
        let line = setup.command.trim();
        if line.len() > LONGEST_COMMAND {
            return Err(Error::BadSetup("it is too long"));
        }
        let (transport, given) = match is_address(line) {
            true => {
                let url = address(line)?;
                let name = url.host_str().unwrap_or_default().to_owned();
                let url = url.into();
                let headers = Vec::new();
                (Transport::Http { url, headers }, name)
            }
            false => {
                let (command, args) = command_of(line)?;
                let name = name_of(&command, &args);
                let env = Vec::new();
                (Transport::Stdio { command, args, env }, name)
            }
        };
        let name = match setup.name.trim() {
            "" => given.trim_start_matches("mcp.").trim_start_matches("www."),
            name => name,
        };
        let name: String = name.chars().take(LONGEST_NAME).collect();
        let (mut parts, mut secrets) = (Vec::new(), Vec::new());
        for part in setup.parts {
            let kept = keeps(&part);
            let ServerVariable { name, value } = part;
            // A secret that was found elsewhere, which no window is told.
            let value = match value.filter(|value| !value.is_empty()) {
                Some(value) => value,
                None if kept => String::new(),
                None => self.found_secret(line, &name).unwrap_or_default(),
            };
            if let Some(problem) = problem_of(&transport, &name, &value) {
                return Err(Error::BadSetup(problem));
            }
            let secret = Variable::looks_secret(&name, &value);
            if secret {
                secrets.push((secret_name(id, &name), value.clone()));
            }
            let value = match kept || secret {
                true => Setting::Secret,
                false => Setting::Plain(value),
            };
            parts.push(Variable { name, value });
        }
        let transport = match transport {
            Transport::Stdio { command, args, .. } => Transport::Stdio {
                command,
                args,
                env: parts,
            },
            Transport::Http { url, .. } => Transport::Http { url, headers: parts },
        };
        Ok(ParsedSetup {
            name,
            transport,
            secrets,
        })
    }

    /// The command that starts when a server is switched on: what a person has to see before.
    ///
    /// # Errors
    /// [`Error::NoServer`].
    pub fn command_of(&self, id: &str) -> Result<(String, String)> {
        let server = self.server(id)?;
        Ok((server.name.clone(), server.command_line()))
    }

    /// The id of the server with this name or id.
    ///
    /// # Errors
    /// [`Error::NoServer`].
    pub fn id_of_server(&self, name: &str) -> Result<String> {
        if name.eq_ignore_ascii_case(OWN_NAME) {
            return Ok(builtin::SERVER.to_owned());
        }
        let servers = self.0.file.get()?.servers;
        let named = servers.iter().find(|server| server.name == name || server.id == name);
        let id = named.map(|server| server.id.clone());
        id.ok_or_else(|| Error::NoServer(name.to_owned()))
    }

    /// Switches a server on, if its command is still the one that the person saw.
    ///
    /// # Errors
    /// [`Error::NoServer`], [`Error::BadSetup`] for another command, and [`Error::File`].
    pub fn switch_on(&self, id: &str, seen: &str) -> Result<()> {
        self.0.file.change(|configuration| {
            let server = configuration.servers.iter_mut().find(|server| server.id == id);
            let server = server.ok_or_else(|| Error::NoServer(id.to_owned()))?;
            if server.command_line() != seen {
                return Err(Error::BadSetup("its command changed meanwhile; look at it again"));
            }
            server.enabled = true;
            Ok(())
        })?;
        self.changed();
        Ok(())
    }

    /// Switches a server off and ends it.
    ///
    /// # Errors
    /// [`Error::NoServer`] and [`Error::File`].
    pub fn switch_off(&self, id: &str) -> Result<()> {
        self.0.file.change(|configuration| {
            let server = configuration.servers.iter_mut().find(|server| server.id == id);
            server.ok_or_else(|| Error::NoServer(id.to_owned()))?.enabled = false;
            Ok(())
        })?;
        self.0.sign_ins.end(id);
        self.0.servers.stop(id);
        self.changed();
        Ok(())
    }

    /// Removes a server with its rules and secrets. Its tools have to be allowed again if it is added again.
    ///
    /// # Errors
    /// [`Error::NoServer`], [`Error::File`] and [`Error::Keychain`].
    pub async fn remove(&self, id: &str) -> Result<()> {
        if id == builtin::SERVER {
            return Err(Error::BuiltIn);
        }
        let server = self.server(id)?;
        let bundle = self.0.file.change(|configuration| {
            configuration.servers.retain(|server| server.id != id);
            configuration.rules.remove(id);
            Ok(configuration.bundles.remove(id))
        })?;
        self.0.sign_ins.end(id);
        self.0.servers.stop(id);
        self.changed();
        if let Some(bundle) = bundle {
            self.remove_unused(&bundle).await;
        }
        if server.signed_in {
            SignInStore::of(self.0.keychain.clone(), id).forget().await?;
        }
        let (Transport::Stdio { env: variables, .. } | Transport::Http { headers: variables, .. }) = server.transport;
        let secrets = variables
            .into_iter()
            .filter(|variable| variable.value == Setting::Secret);
        let names: Vec<String> = secrets.map(|variable| secret_name(id, &variable.name)).collect();
        self.with_keychain(move |chain| names.iter().try_for_each(|name| chain.forget(name).map_err(keychain)))
            .await
    }

    /// Ends a server and starts it anew.
    ///
    /// # Errors
    /// Why it does not run.
    pub async fn restart(&self, id: &str) -> Result<()> {
        let server = self.server(id)?;
        self.0.servers.stop(id);
        let running = self.0.servers.running(&server).await;
        running.map(drop).map_err(|reason| Error::NotRunning {
            server: server.name,
            reason,
        })
    }

    /// The last lines of a server's standard error.
    pub fn log(&self, id: &str) -> Vec<String> {
        self.0.servers.log(id)
    }

    /// Stores a person's word about a tool; `None` takes it back.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn set_rule(&self, tool: &ToolRef, rule: Option<ToolRule>) -> Result<()> {
        self.0.file.change(|configuration| {
            let rules = configuration.rules.entry(tool.server.clone()).or_default();
            match rule {
                None => rules.remove(&tool.tool),
                Some(rule) => rules.insert(tool.tool.clone(), rule),
            };
            configuration.rules.retain(|_, rules| !rules.is_empty());
            Ok(())
        })?;
        self.changed();
        Ok(())
    }

    /// The servers that stand in a configuration.
    ///
    /// # Errors
    /// [`Error::Import`] if none does.
    pub fn read_configuration(&self, text: &str) -> Result<Vec<FoundServer>> {
        let imported = import::read(text)?;
        Ok(self.remember("", imported))
    }

    /// The servers in the configurations of other programs on this computer.
    pub async fn found(&self) -> Vec<FoundServer> {
        let read = tokio::task::spawn_blocking(|| {
            let files = configurations().into_iter();
            let texts = files.filter_map(|(from, path)| Some((from, read_file(&path)?)));
            let read = texts.filter_map(|(from, text)| Some((from, import::read(&text).ok()?)));
            read.collect::<Vec<_>>()
        });
        let mut found = Vec::new();
        for (from, imported) in read.await.unwrap_or_default() {
            found.extend(self.remember(from, imported));
        }
        found
    }

    /// Keeps secrets until their servers are added, and shows the rest; what cannot be read is shown with its reason.
    fn remember(&self, from: &str, imported: Imported) -> Vec<FoundServer> {
        let left_out = imported.problems.into_iter().map(|problem| FoundServer {
            from: from.to_owned(),
            setup: ToolSetup {
                name: String::new(),
                command: String::new(),
                parts: Vec::new(),
            },
            problem: Some(problem),
        });
        let servers = imported.servers.iter().map(|found| shown(from, found));
        let shown = servers.chain(left_out).collect();
        let mut state = self.state();
        state.found.extend(imported.servers);
        let surplus = state.found.len().saturating_sub(MOST_SERVERS * 4);
        state.found.drain(..surplus);
        shown
    }

    fn found_secret(&self, command: &str, variable: &str) -> Option<String> {
        let state = self.state();
        let mut found = state.found.iter().rev();
        let found = found.find(|found| line_of(&found.transport) == command && found.secrets.contains_key(variable));
        found.and_then(|found| found.secrets.get(variable).cloned())
    }

    pub(super) fn check_name(&self, name: &str) -> Result<()> {
        let taken = self.0.file.get()?.servers.iter().any(|server| server.name == name);
        match taken || name.eq_ignore_ascii_case(OWN_NAME) {
            true => Err(Error::NameTaken(name.to_owned())),
            false => Ok(()),
        }
    }

    pub(super) async fn with_keychain<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn net::Keychain) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let chain = self.0.keychain.clone();
        let done = tokio::task::spawn_blocking(move || work(&*chain)).await;
        done.unwrap_or_else(|_| Err(Error::Keychain("it broke down".to_owned())))
    }
}

impl Server {
    /// The program with its arguments as a shell would take them, or the address.
    pub fn command_line(&self) -> String {
        line_of(&self.transport)
    }
}

fn line_of(transport: &Transport) -> String {
    match transport {
        Transport::Stdio { command, args, .. } => command_line(command, args),
        Transport::Http { url, .. } => url.clone(),
    }
}

/// The address of a server.
fn address(line: &str) -> Result<Url> {
    let mut url = Url::parse(line).map_err(|_| Error::BadSetup("it is no address"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::BadSetup(
            "an address has no name and password in front of it; set a header instead",
        ));
    }
    url.set_fragment(None);
    Ok(url)
}

/// The program and the arguments of a command line.
fn command_of(line: &str) -> Result<(String, Vec<String>)> {
    let words = shlex::split(line).ok_or(Error::BadSetup("its quotation marks do not match"))?;
    let mut words = words.into_iter();
    let command = words.next().ok_or(Error::BadSetup("it has no command"))?;
    Ok((command, words.collect()))
}

/// Why a variable of a program, or a header of an address, cannot be set, if it cannot.
fn problem_of(transport: &Transport, name: &str, value: &str) -> Option<&'static str> {
    match transport {
        Transport::Http { .. } => check_header(name, value),
        Transport::Stdio { .. } => {
            (name.is_empty() || name.contains(['=', '\0'])).then_some("a variable has no name, or an impossible one")
        }
    }
}

pub(super) fn command_line(command: &str, args: &[String]) -> String {
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    // Only a NUL cannot be written, which no program takes.
    shlex::try_join(words).unwrap_or_default()
}

/// A name out of the command: the package of `npx -y @scope/server-x` is `x`.
fn name_of(command: &str, args: &[String]) -> String {
    let package = args.iter().find(|arg| !arg.starts_with('-')).map(String::as_str);
    let fetcher = ["npx", "uvx", "bunx", "pipx"]
        .iter()
        .any(|name| command.ends_with(name));
    let word = package.filter(|_| fetcher).unwrap_or(command);
    let last = word.rsplit('/').next().unwrap_or(word);
    let plain = last.trim_start_matches("mcp-").trim_start_matches("server-");
    plain.split('@').next().unwrap_or(plain).to_owned()
}

fn shown(from: &str, found: &Found) -> FoundServer {
    let (Transport::Stdio { env: parts, .. } | Transport::Http { headers: parts, .. }) = &found.transport;
    let parts = parts.iter().map(|variable| ServerVariable {
        name: variable.name.clone(),
        value: match &variable.value {
            Setting::Plain(value) => Some(value.clone()),
            Setting::Secret => None,
        },
    });
    let missing: Vec<String> = found
        .missing
        .iter()
        .map(|(name, about)| match about.is_empty() {
            true => name.clone(),
            false => format!("{name} ({about})"),
        })
        .collect();
    FoundServer {
        from: from.to_owned(),
        setup: ToolSetup {
            name: found.name.clone(),
            command: line_of(&found.transport),
            parts: parts.collect(),
        },
        problem: (!missing.is_empty()).then(|| missing.join(", ")),
    }
}

/// The files in which other programs keep their servers.
fn configurations() -> Vec<(&'static str, PathBuf)> {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else {
        return Vec::new();
    };
    let support = match cfg!(target_os = "macos") {
        true => home.join("Library/Application Support"),
        false => home.join(".config"),
    };
    vec![
        ("Claude Desktop", support.join("Claude/claude_desktop_config.json")),
        ("Claude Code", home.join(".claude.json")),
        ("VS Code", support.join("Code/User/mcp.json")),
        ("Cursor", home.join(".cursor/mcp.json")),
        ("LM Studio", home.join(".lmstudio/mcp.json")),
    ]
}

fn read_file(path: &PathBuf) -> Option<String> {
    let small = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LONGEST_FILE);
    small.then(|| std::fs::read_to_string(path).ok()).flatten()
}
