//! Names from the network or from another program's folder, checked before they become a path.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::error::Error;

/// Limit of one part of a path, in bytes, on every file system in use.
const LONGEST_PART: usize = 255;
/// Limit of a path inside a repository, in bytes.
const LONGEST_PATH: usize = 1024;
/// Limit of nested folders.
const DEEPEST: usize = 32;
/// Limit of files of a repository.
pub const MOST_FILES: usize = 10_000;

/// True if this system takes `README` and `readme` for the same file, and `é` of one character and of two.
const NAMES_ARE_FOLDED: bool = cfg!(target_os = "macos");

/// The error for a refused name.
pub(crate) fn refused_name(what: &'static str, name: &str, reason: &str) -> Error {
    // A hostile name may be long and contain line breaks; the message has neither.
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    let cut = if name.chars().nth(80).is_some() { "…" } else { "" };
    Error::Name {
        what,
        name: format!("{shown}{cut}"),
        reason: reason.into(),
    }
}

/// True for characters that make a name look like another: control characters and those that change the writing
/// direction.
fn deceives(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The reason why this is no path of a file inside a folder; `None` if it is one. Parts are separated by `/`.
fn fault_of_path(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("it is empty");
    }
    if path.len() > LONGEST_PATH {
        return Some("it is longer than 1,024 bytes");
    }
    if path.chars().any(deceives) {
        return Some("it holds a line break or another control character");
    }
    if path.contains('\\') {
        return Some("it holds a backslash");
    }
    if path.starts_with('/') {
        return Some("it is absolute");
    }
    let start = path.as_bytes();
    if start.len() > 1 && start[0].is_ascii_alphabetic() && start[1] == b':' {
        return Some("it begins with a drive letter");
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.len() > DEEPEST {
        return Some("it is more than 32 folders deep");
    }
    parts.into_iter().find_map(|part| match part {
        "" => Some("it has an empty part"),
        "." | ".." => Some("it leads out of its folder"),
        _ if part.len() > LONGEST_PART => Some("a part of it is longer than 255 bytes"),
        _ => None,
    })
}

/// A checked string as a type of its own.
macro_rules! checked {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked! {
    /// The relative path of a file inside a repository, with `/` between its parts. It cannot lead out of the folder it
    /// is joined to.
    FilePath
}
checked! {
    /// The id of a model repository: `owner/name`, or `name` alone for a few old ones.
    RepositoryId
}
checked! {
    /// A branch, a tag, a pull request such as `refs/pr/1`, or a commit.
    Revision
}
checked! {
    /// A commit: 40 hexadecimal digits, lower case.
    Commit
}
checked! {
    /// The name of a blob: the SHA-256 of a large file (64 hexadecimal digits) or the git blob hash of a small one
    /// (40).
    Etag
}

impl FilePath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`Error::Name`] with the reason.
    pub fn new(path: &str) -> Result<Self, Error> {
        match fault_of_path(path) {
            Some(reason) => Err(refused_name("file", path, reason)),
            None => Ok(Self(path.into())),
        }
    }

    /// The file's own name.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The path below `folder`.
    pub fn under(&self, folder: &Path) -> PathBuf {
        self.0.split('/').fold(folder.to_owned(), |path, part| path.join(part))
    }

    /// The number of folders above it in the repository.
    pub fn depth(&self) -> usize {
        self.0.matches('/').count()
    }
}

impl RepositoryId {
    /// Checks an id by the hub's rule.
    ///
    /// # Errors
    /// [`Error::Name`] with the reason.
    pub fn new(id: &str) -> Result<Self, Error> {
        let wrong = |reason| Err(refused_name("repository", id, reason));
        // The hub's ids, `/` included, are at most 96 characters after the owner's name.
        if id.is_empty() || id.len() > 2 * 96 + 1 {
            return wrong("an id is owner/name, each of at most 96 characters");
        }
        let (owner, name) = id.split_once('/').unwrap_or(("", id));
        if id.contains('/') && owner.is_empty() || name.contains('/') {
            return wrong("an id is owner/name");
        }
        for part in [owner, name]
            .into_iter()
            .filter(|part| !part.is_empty() || id.contains('/'))
        {
            if part.is_empty() || part.len() > 96 {
                return wrong("an id is owner/name, each of at most 96 characters");
            }
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if !part.chars().all(allowed) {
                return wrong("an id holds letters, digits, `-`, `_` and `.` alone");
            }
            if part.starts_with(['-', '.']) || part.ends_with(['-', '.']) || part.contains("..") {
                return wrong("an id neither begins nor ends with `-` or `.`, and holds no `..`");
            }
        }
        // The cache writes `--` for the `/`.
        if owner.contains("--") || owner.is_empty() && name.contains("--") {
            return wrong("an owner's name holds no `--`");
        }
        Ok(Self(id.into()))
    }

    /// The id in the name of a folder of the cache; `None` for folders of anything but a model.
    pub fn of_folder(folder: &str) -> Option<Self> {
        let id = folder.strip_prefix("models--")?;
        let id = id
            .split_once("--")
            .map_or_else(|| id.to_owned(), |(owner, name)| format!("{owner}/{name}"));
        Self::new(&id).ok()
    }

    /// The name of its folder in the cache.
    pub fn folder(&self) -> String {
        hf_hub::Repo::model(self.0.clone()).folder_name()
    }
}

impl Revision {
    /// Checks a revision's name.
    ///
    /// # Errors
    /// [`Error::Name`] with the reason.
    pub fn new(revision: &str) -> Result<Self, Error> {
        if let Some(reason) = fault_of_path(revision) {
            return Err(refused_name("revision", revision, reason));
        }
        // `.lock` is the ending of another program's unfinished file, and `-` begins an option of git.
        if revision.starts_with('-')
            || revision.ends_with(".lock")
            || revision.contains([' ', '?', '*', '[', '~', '^', ':'])
        {
            return Err(refused_name("revision", revision, "no branch or tag may be called so"));
        }
        Ok(Self(revision.into()))
    }

    /// The default branch.
    pub fn main() -> Self {
        Self("main".into())
    }

    /// The commit, if the revision is one.
    pub fn commit(&self) -> Option<Commit> {
        Commit::new(&self.0).ok()
    }
}

fn hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Commit {
    /// Checks a commit.
    ///
    /// # Errors
    /// [`Error::Name`] with the reason.
    pub fn new(commit: &str) -> Result<Self, Error> {
        match hexadecimal(commit, 40) {
            true => Ok(Self(commit.into())),
            false => Err(refused_name("commit", commit, "a commit is 40 hexadecimal digits")),
        }
    }
}

impl Etag {
    /// Checks a blob's name. Quotes and the mark of a weak tag, as in an `ETag` header, are removed.
    ///
    /// # Errors
    /// [`Error::Name`] with the reason.
    pub fn new(etag: &str) -> Result<Self, Error> {
        let bare = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
        match hexadecimal(bare, 64) || hexadecimal(bare, 40) {
            true => Ok(Self(bare.into())),
            false => Err(refused_name("file hash", etag, "a hash is 40 or 64 hexadecimal digits")),
        }
    }

    /// True for the SHA-256 of the content; else it is the git blob hash.
    pub fn is_sha256(&self) -> bool {
        self.0.len() == 64
    }
}

/// Checks the file list of a repository: each name by itself, none twice, none both a file and a folder, not too many.
///
/// # Errors
/// [`Error::Name`] for the first refused name, [`Error::TooManyFiles`].
pub fn checked_listing<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Vec<FilePath>, Error> {
    checked_listing_where(paths, NAMES_ARE_FOLDED)
}

/// [`checked_listing`] with the given handling of case and of Unicode's forms, for tests.
///
/// # Errors
/// As [`checked_listing`].
pub fn checked_listing_where<'a>(
    paths: impl IntoIterator<Item = &'a str>,
    names_are_folded: bool,
) -> Result<Vec<FilePath>, Error> {
    let nfc = ComposingNormalizerBorrowed::new_nfc();
    let key = |path: &str| match names_are_folded {
        // A small letter may be written in a form of its own.
        true => nfc.normalize(&nfc.normalize(path).to_lowercase()).into_owned(),
        false => path.to_owned(),
    };
    let mut checked: Vec<FilePath> = Vec::new();
    let mut files: HashMap<String, usize> = HashMap::new();
    let mut folders: HashSet<String> = HashSet::new();
    for path in paths {
        if checked.len() == MOST_FILES {
            return Err(Error::TooManyFiles(MOST_FILES));
        }
        let path = FilePath::new(path)?;
        if let Some(other) = files.insert(key(path.as_str()), checked.len()) {
            let reason = if checked[other] == path {
                "it is listed twice".to_owned()
            } else {
                format!("this computer cannot distinguish it from {}", checked[other])
            };
            return Err(refused_name("file", path.as_str(), &reason));
        }
        for (end, _) in path.as_str().match_indices('/') {
            folders.insert(key(&path.as_str()[..end]));
        }
        checked.push(path);
    }
    match checked.iter().find(|path| folders.contains(&key(path.as_str()))) {
        Some(both) => Err(refused_name("file", both.as_str(), "it is a file and a folder at once")),
        None => Ok(checked),
    }
}
