//! A repository: its commits and its description.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use serde_json::{json, Map, Value};
use sha1::{Digest, Sha1};

use crate::content::{safetensors_head, Content, File};

/// The access to a repository.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Access {
    Everyone,
    /// Listed for everyone; its files are for admitted tokens only.
    Gated,
    /// Not found without an admitted token.
    Private,
}

#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) sha: String,
    pub(crate) files: BTreeMap<String, Arc<File>>,
    /// Additional entries of the listing without a file, verbatim.
    pub(crate) entries: Vec<Value>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) id: String,
    pub(crate) commits: Vec<Commit>,
    pub(crate) access: Access,
    pub(crate) renamed_to: Option<String>,
    /// Fields of the description that replace the real ones.
    pub(crate) fields: Map<String, Value>,
    /// Fields of a file's entry in the listing that replace the real ones.
    pub(crate) listed: BTreeMap<String, Map<String, Value>>,
}

impl State {
    /// The commit of a branch or of a commit's name.
    pub(crate) fn commit(&self, revision: &str) -> Option<&Commit> {
        match revision {
            "main" | "refs/heads/main" => self.commits.last(),
            sha => self.commits.iter().find(|commit| commit.sha == sha),
        }
    }

    pub(crate) fn head(&self) -> &Commit {
        self.commits.last().expect("a repository begins with a commit")
    }

    /// The head's name is a hash of its content, so the same files give the same commit in every run.
    fn name_head(&mut self) {
        let mut hash = Sha1::new_with_prefix(format!("{} {}", self.id, self.commits.len()));
        let head = self.commits.last_mut().expect("a repository begins with a commit");
        for (path, file) in &head.files {
            hash.update(path.as_bytes());
            hash.update(file.content.len().to_le_bytes());
            hash.update(file.content.read(0..4096));
        }
        head.sha = format!("{:x}", hash.finalize());
    }

    pub(crate) fn put(&mut self, files: impl IntoIterator<Item = (String, Arc<File>)>) {
        self.commits
            .last_mut()
            .expect("a repository begins with a commit")
            .files
            .extend(files);
        self.name_head();
    }

    /// Adds a commit in which this file has other bytes of the same length.
    pub(crate) fn change(&mut self, path: &str, everywhere: bool) {
        let Some(file) = self.head().files.get(path).cloned() else {
            return;
        };
        let content = match &file.content {
            Content::Generated { size, head, .. } => {
                Content::generated(*size, 7_000 + self.commits.len() as u64, head.clone())
            }
            Content::Memory(bytes) => {
                // Only the end differs, so that a header at the beginning stays valid.
                let mut bytes = bytes.to_vec();
                let half = bytes.len() / 2;
                bytes[half..].iter_mut().for_each(|byte| *byte ^= 1);
                Content::Memory(bytes.into())
            }
        };
        let changed = Arc::new(File::new(content, file.large));
        let mut next = self.head().clone();
        next.files.insert(path.to_owned(), changed.clone());
        if everywhere {
            for commit in &mut self.commits {
                commit.files.insert(path.to_owned(), changed.clone());
            }
        }
        self.commits.push(next);
        self.name_head();
    }
}

/// A repository of an [`crate::Imitation`]. Clones are the same repository, which can change while it is served.
#[derive(Clone, Debug)]
pub struct Repository(pub(crate) Arc<Mutex<State>>);

impl Repository {
    pub(crate) fn new(id: &str) -> Self {
        let mut state = State {
            id: id.to_owned(),
            commits: vec![Commit {
                sha: String::new(),
                files: BTreeMap::new(),
                entries: Vec::new(),
            }],
            access: Access::Everyone,
            renamed_to: None,
            fields: Map::new(),
            listed: BTreeMap::new(),
        };
        state.name_head();
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(self, change: impl FnOnce(&mut State)) -> Self {
        change(&mut self.state());
        self
    }

    /// Adds a file to the newest commit: a large one if its name is that of weights or it has 10 MB and more.
    pub fn file(self, path: &str, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let large = path.ends_with(".safetensors") || bytes.len() >= 10_000_000;
        self.with(|state| state.put([(path.to_owned(), Arc::new(File::new(Content::Memory(bytes), large)))]))
    }

    /// Adds a large file with these bytes and any name.
    pub fn large_file(self, path: &str, bytes: impl Into<Bytes>) -> Self {
        let file = File::new(Content::Memory(bytes.into()), true);
        self.with(|state| state.put([(path.to_owned(), Arc::new(file))]))
    }

    /// Adds a large file of `size` bytes that are generated from `seed` on request. Weights hold one tensor,
    /// `weights.SEED`.
    pub fn generated(self, path: &str, size: u64, seed: u64) -> Self {
        let head = if path.ends_with(".safetensors") && size > 1_000 {
            safetensors_head(size, &format!("weights.{seed}"))
        } else {
            Bytes::new()
        };
        let file = File::new(Content::generated(size, seed, head), true);
        self.with(|state| state.put([(path.to_owned(), Arc::new(file))]))
    }

    /// Adds many small files.
    pub fn files<'a>(self, files: impl IntoIterator<Item = (String, &'a str)>) -> Self {
        let files = files.into_iter().map(|(path, text)| {
            let content = Content::Memory(Bytes::copy_from_slice(text.as_bytes()));
            (path, Arc::new(File::new(content, false)))
        });
        self.with(|state| state.put(files))
    }

    /// Adds the files of a folder, without those of its subfolders.
    pub fn folder(self, folder: &Path) -> Self {
        let mut repository = self;
        let entries = std::fs::read_dir(folder).expect("the folder can be read");
        for path in entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_file())
        {
            let name = path
                .file_name()
                .expect("a file has a name")
                .to_string_lossy()
                .into_owned();
            repository = repository.file(&name, std::fs::read(&path).expect("the file can be read"));
        }
        repository
    }

    /// Adds Pebble's files (22 MB), hashed once for all repositories of the process.
    pub fn pebble(self) -> Self {
        static PEBBLE: OnceLock<Vec<(String, Arc<File>)>> = OnceLock::new();
        let files = PEBBLE.get_or_init(|| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src-tauri/pebble/model");
            let repository = Repository::new("pebble").folder(&folder);
            let files = repository.state().head().files.clone();
            files.into_iter().collect()
        });
        self.with(|state| state.put(files.iter().cloned()))
            .field("pipeline_tag", json!("text-generation"))
            .field("library_name", json!("mlx"))
            .field(
                "tags",
                json!(["mlx", "safetensors", "text-generation", "license:apache-2.0"]),
            )
    }

    /// Removes a file from the newest commit.
    pub fn without(self, path: &str) -> Self {
        self.with(|state| {
            state
                .commits
                .last_mut()
                .expect("a repository begins with a commit")
                .files
                .remove(path);
            state.name_head();
        })
    }

    /// Begins a new commit for further changes; the old one is still served under its name.
    pub fn new_commit(self) -> Self {
        self.with(|state| {
            let next = state.head().clone();
            state.commits.push(next);
            state.name_head();
        })
    }

    /// Adds a commit in which this file has new bytes.
    pub fn change(self, path: &str) -> Self {
        self.with(|state| state.change(path, false))
    }

    /// Replaces a field of the description: downloads, likes, lastModified, tags, cardData, ….
    pub fn field(self, name: &str, value: Value) -> Self {
        self.with(|state| {
            state.fields.insert(name.to_owned(), value);
        })
    }

    /// Replaces a field of a file's entry in the listing: size, oid, lfs, path.
    pub fn listed(self, path: &str, name: &str, value: Value) -> Self {
        self.with(|state| {
            state
                .listed
                .entry(path.to_owned())
                .or_default()
                .insert(name.to_owned(), value);
        })
    }

    /// Adds an entry to the listing without a file, verbatim.
    pub fn entry(self, entry: Value) -> Self {
        self.with(|state| {
            let head = state.commits.last_mut().expect("a repository begins with a commit");
            head.entries.push(entry);
        })
    }

    /// Gates the repository: everyone sees it, and only admitted tokens ([`crate::Imitation::let_in`]) get its files.
    pub fn gated(self) -> Self {
        self.with(|state| state.access = Access::Gated)
    }

    /// Makes the repository visible to admitted tokens only.
    pub fn private(self) -> Self {
        self.with(|state| state.access = Access::Private)
    }

    /// Redirects requests for it to another name.
    pub fn renamed_to(self, id: &str) -> Self {
        self.with(|state| state.renamed_to = Some(id.to_owned()))
    }

    /// The newest commit's name.
    pub fn commit(&self) -> String {
        self.state().head().sha.clone()
    }

    /// The bytes of a file in the newest commit.
    pub fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let file = self.state().head().files.get(path).cloned()?;
        Some(file.content.read(0..file.content.len()))
    }

    /// A file's entity tag on the hub: SHA-256 of a large file, git's SHA-1 of a small one.
    pub fn etag(&self, path: &str) -> Option<String> {
        let file = self.state().head().files.get(path).cloned()?;
        Some(file.etag().to_owned())
    }

    /// The paths of the newest commit's files.
    pub fn paths(&self) -> Vec<String> {
        self.state().head().files.keys().cloned().collect()
    }
}
