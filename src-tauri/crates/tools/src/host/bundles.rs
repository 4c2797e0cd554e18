//! Servers in files (`.mcpb`): looked into, unfolded into the data folder when they are added, removed with their server.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use api::{BundleField, BundleFieldKind, BundleValue, ServerVariable, ToolBundle};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::file::MOST_SERVERS;
use super::grants::keychain;
use super::servers::secret_name;
use super::setup::command_line;
use super::state::OpenedBundle;
use super::Tools;
use crate::bundle::{
    fill, unpack, BundleCommand, Contents, Entry, Error as BundleError, Field, FieldKind, Manifest, MAX_BYTES,
};
use crate::configuration::{Server, Setting, Transport, Variable};
use crate::error::{Error, Result};
use crate::stdio::find;
use crate::visible::visible;

/// Characters of a name at most.
const LONGEST_NAME: usize = 60;

/// The platform, as manifests call it.
const PLATFORM: &str = match cfg!(target_os = "macos") {
    true => "darwin",
    false => "linux",
};

impl Tools {
    /// Looks into a bundle. Nothing of it is written and nothing runs.
    ///
    /// # Errors
    /// [`Error::Bundle`] with what is wrong with it, and [`Error::BundleFile`] if it cannot be read.
    pub async fn look_into_bundle(&self, path: PathBuf) -> Result<ToolBundle> {
        let (hash, contents, manifest) = read_bundle(path.clone(), false).await?;
        let missing = self.missing_program(&manifest).await;
        let shown = shown(&hash, &contents.entries, &manifest, &self.folder_of(&hash), missing);
        self.state().bundle = Some(OpenedBundle { hash, path });
        Ok(shown)
    }

    /// Adds the server of the bundle that was looked at, with what a person filled in; it is off. Sensitive values go to
    /// the keychain. Returns its id.
    ///
    /// # Errors
    /// [`Error::Bundle`] for values that do not fit and another file than was shown, and those of [`Tools::add`];
    /// nothing is added then.
    pub async fn add_bundle(&self, hash: &str, name: &str, values: Vec<BundleValue>) -> Result<String> {
        let looked_at = self.state().bundle.clone().filter(|looked_at| looked_at.hash == hash);
        let path = looked_at
            .ok_or(Error::BadSetup("this bundle was not looked at; choose it again"))?
            .path;
        let (now, contents, manifest) = read_bundle(path, true).await?;
        if now != hash {
            return Err(Error::BadSetup("the file changed meanwhile; choose it again"));
        }
        let name: String = match name.trim() {
            "" => manifest.name.as_str(),
            name => name,
        }
        .chars()
        .take(LONGEST_NAME)
        .collect();
        self.check_name(&name)?;
        let folder = self.folder_of(hash);
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let values = values.into_iter().map(|value| (value.key, value.values)).collect();
        let mut filled = fill(&manifest, &folder, &home, &values).map_err(Error::Bundle)?;
        filled.command = self.command_of_bundle(filled.command).await;
        let unfolding = Unfolding {
            folder,
            starts: PathBuf::from(&filled.command),
        };
        let written = tokio::task::spawn_blocking(move || unfolding.write(&contents)).await;
        written
            .unwrap_or_else(|_| Err(std::io::Error::other("it broke down")))
            .map_err(Error::BundleFile)?;
        let added = self.add_unfolded(name, filled, hash).await;
        if added.is_err() {
            self.remove_unused(hash).await;
        }
        added
    }

    async fn add_unfolded(&self, name: String, filled: BundleCommand, hash: &str) -> Result<String> {
        let id = Uuid::now_v7().simple().to_string();
        let (mut env, mut secrets) = (Vec::new(), Vec::new());
        for (name, value) in filled.env {
            let is_secret = filled.secret.contains(&name) || Variable::looks_secret(&name, &value);
            let value = match is_secret {
                true => {
                    secrets.push((secret_name(&id, &name), value));
                    Setting::Secret
                }
                false => Setting::Plain(value),
            };
            env.push(Variable { name, value });
        }
        let transport = Transport::Stdio {
            command: filled.command,
            args: filled.args,
            env,
        };
        let server = Server::new(id.clone(), name, transport);
        self.with_keychain(move |chain| {
            let mut secrets = secrets.iter();
            secrets.try_for_each(|(name, secret)| chain.set(name, secret).map_err(keychain))
        })
        .await?;
        self.0.file.change(|configuration| {
            if configuration.servers.len() >= MOST_SERVERS {
                return Err(Error::TooMany(MOST_SERVERS));
            }
            configuration.bundles.insert(server.id.clone(), hash.to_owned());
            configuration.servers.push(server);
            Ok(())
        })?;
        self.changed();
        Ok(id)
    }

    /// Removes the files of a bundle that no server is of.
    pub(super) async fn remove_unused(&self, hash: &str) {
        let used = self
            .0
            .file
            .get()
            .map(|configuration| configuration.bundles.values().any(|other| other == hash));
        // A file of servers that cannot be read may name it.
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if used.unwrap_or(true) || !is_hash {
            return;
        }
        let folder = self.folder_of(hash);
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
        tracing::debug!(?removed, "the files of a bundle were removed");
    }

    fn folder_of(&self, hash: &str) -> PathBuf {
        self.0.bundles.join(hash)
    }

    /// The program that a bundle needs and this computer does not have.
    async fn missing_program(&self, manifest: &Manifest) -> Option<String> {
        let command = &manifest.command;
        if command.contains("${") {
            return None;
        }
        let (path, found) = (
            self.0.servers.path().await,
            self.command_of_bundle(command.clone()).await,
        );
        find(&found, &path).is_none().then(|| visible(command))
    }

    /// The command, or what this computer calls Python.
    async fn command_of_bundle(&self, command: String) -> String {
        let path = self.0.servers.path().await;
        match command == "python" && find("python", &path).is_none() && find("python3", &path).is_some() {
            true => "python3".to_owned(),
            false => command,
        }
    }
}

/// Reads a bundle off the threads that answer windows: its hash, what is in it, and its manifest.
async fn read_bundle(path: PathBuf, whole: bool) -> Result<(String, Contents, Manifest)> {
    let read = move || {
        let meta = std::fs::metadata(&path).map_err(Error::BundleFile)?;
        if !meta.is_file() || meta.len() > MAX_BYTES {
            let reason = format!("it is no file, or larger than {} MB", MAX_BYTES >> 20);
            return Err(Error::Bundle(BundleError::Archive(reason)));
        }
        let bytes = std::fs::read(&path).map_err(Error::BundleFile)?;
        let hash = format!("{:x}", Sha256::digest(&bytes));
        let contents = unpack(bytes, whole).map_err(Error::Bundle)?;
        let manifest = Manifest::read(manifest_of(&contents, whole), PLATFORM).map_err(Error::Bundle)?;
        Ok((hash, contents, manifest))
    };
    let read = tokio::task::spawn_blocking(read).await;
    read.unwrap_or_else(|_| Err(Error::BundleFile(std::io::Error::other("it broke down"))))
}

/// The bytes of the manifest.
fn manifest_of(contents: &Contents, whole: bool) -> &[u8] {
    if !whole {
        return &contents.unfolded;
    }
    pieces(contents)
        .find(|(entry, _)| entry.path == "manifest.json")
        .map_or(&[], |(_, bytes)| bytes)
}

/// The files of a bundle with their contents.
fn pieces(contents: &Contents) -> impl Iterator<Item = (&Entry, &[u8])> {
    let mut rest = &contents.unfolded[..];
    contents.entries.iter().map(move |entry| {
        let length = usize::try_from(entry.bytes).unwrap_or(usize::MAX).min(rest.len());
        let (piece, after) = rest.split_at(length);
        rest = after;
        (entry, piece)
    })
}

/// The place that a bundle is unfolded to, and the file of it that is started, if one is.
struct Unfolding {
    folder: PathBuf,
    starts: PathBuf,
}

impl Unfolding {
    /// Writes the files beside the place and moves them there: nobody sees half of them.
    fn write(&self, contents: &Contents) -> std::io::Result<()> {
        if self.folder.is_dir() {
            return Ok(());
        }
        let parent = self.folder.parent().unwrap_or(&self.folder);
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(parent)?;
        let beside = parent.join(format!(".{}", Uuid::now_v7().simple()));
        let written = self
            .write_to(&beside, contents)
            .and_then(|()| std::fs::rename(&beside, &self.folder));
        if written.is_err() {
            // Another process may have unfolded the same one meanwhile.
            let _ = std::fs::remove_dir_all(&beside);
            if self.folder.is_dir() {
                return Ok(());
            }
        }
        written
    }

    fn write_to(&self, beside: &Path, contents: &Contents) -> std::io::Result<()> {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(beside)?;
        for (entry, bytes) in pieces(contents) {
            let file = beside.join(&entry.path);
            if let Some(parent) = file.parent() {
                private.create(parent)?;
            }
            let mode = match entry.executable || self.folder.join(&entry.path) == self.starts {
                true => 0o700,
                false => 0o600,
            };
            let mut options = OpenOptions::new();
            // A file that is there already would be another one of the same name.
            options.write(true).create_new(true).mode(mode);
            options.open(&file)?.write_all(bytes)?;
        }
        Ok(())
    }
}

fn shown(hash: &str, entries: &[Entry], manifest: &Manifest, folder: &Path, missing: Option<String>) -> ToolBundle {
    let folder = folder.display().to_string();
    let plain = |text: &str| visible(&text.replace("${__dirname}", &folder));
    let args: Vec<String> = manifest.args.iter().map(|arg| plain(arg)).collect();
    ToolBundle {
        hash: hash.to_owned(),
        name: visible(&manifest.name),
        version: visible(&manifest.version),
        author: visible(&manifest.author),
        description: visible(&manifest.description),
        command: command_line(&plain(&manifest.command), &args),
        parts: manifest
            .env
            .iter()
            .map(|(name, value)| ServerVariable {
                name: visible(name),
                value: Some(plain(value)),
            })
            .collect(),
        fields: manifest.fields.iter().map(field).collect(),
        tools: manifest.tools.iter().map(|tool| visible(tool)).collect(),
        files: u32::try_from(entries.len()).unwrap_or(u32::MAX),
        bytes: entries.iter().map(|entry| entry.bytes).sum(),
        missing,
    }
}

fn field(field: &Field) -> BundleField {
    BundleField {
        key: field.key.clone(),
        title: visible(&field.title),
        description: visible(&field.description),
        kind: match field.kind {
            FieldKind::Text => BundleFieldKind::Text,
            FieldKind::Number => BundleFieldKind::Number,
            FieldKind::Switch => BundleFieldKind::Switch,
            FieldKind::Folder => BundleFieldKind::Folder,
            FieldKind::File => BundleFieldKind::File,
        },
        required: field.required,
        sensitive: field.sensitive,
        multiple: field.multiple,
        default: field.default.iter().map(|value| visible(value)).collect(),
    }
}
