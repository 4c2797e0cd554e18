//! Names that come from the network or from another program's folder, checked before any of them becomes a path.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::Error;

/// Most bytes of one part of a path: what every file system in use allows.
const LONGEST_PART: usize = 255;
/// Most bytes of a path inside a repository.
const LONGEST_PATH: usize = 1024;
/// Most folders a file may lie in.
const DEEPEST: usize = 32;
/// Most files of a repository that is still a model.
pub const MOST_FILES: usize = 10_000;

/// Whether this system takes `README` and `readme` for the same file.
const CASE_IS_IGNORED: bool = cfg!(any(target_os = "macos", target_os = "windows"));

/// The error for a name that is refused.
pub(crate) fn bad(what: &'static str, name: &str, reason: &str) -> Error {
    // A hostile name may be long and may hold line breaks; what is shown holds neither.
    let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    let cut = if name.chars().nth(80).is_some() { "…" } else { "" };
    Error::Name {
        what,
        name: format!("{shown}{cut}"),
        reason: reason.into(),
    }
}

/// Characters that make a name read as another one than it is: control characters and those that turn the writing direction.
fn deceives(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Why this is no path of a file inside a folder, with `/` between its parts.
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

/// A checked text with a name of its own.
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
    /// The path of a file inside a repository, relative, with `/` between its parts; it cannot lead out of the folder it is joined to.
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
    /// The name of a blob: the SHA-256 of a large file (64 hexadecimal digits) or the git blob hash of a small one (40).
    Etag
}

impl FilePath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`Error::Name`] with the reason.
    pub fn new(path: &str) -> Result<Self, Error> {
        match fault_of_path(path) {
            Some(reason) => Err(bad("file", path, reason)),
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

    /// How many folders deep it is in the repository.
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
        let wrong = |reason| Err(bad("repository", id, reason));
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
            if !part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            {
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

    /// The id that a folder of the cache is named after; `None` for folders of anything but a model.
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
            return Err(bad("revision", revision, reason));
        }
        // What ends so is another program's half-written file, and what begins so an option of git.
        if revision.starts_with('-')
            || revision.ends_with(".lock")
            || revision.contains([' ', '?', '*', '[', '~', '^', ':'])
        {
            return Err(bad("revision", revision, "no branch or tag may be called so"));
        }
        Ok(Self(revision.into()))
    }

    /// The default branch.
    pub fn main() -> Self {
        Self("main".into())
    }

    /// The commit, if it names one.
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
        if hexadecimal(commit, 40) {
            Ok(Self(commit.into()))
        } else {
            Err(bad("commit", commit, "a commit is 40 hexadecimal digits"))
        }
    }
}

impl Etag {
    /// Checks a blob's name; quotes and the mark of a weak tag, as in an `ETag` header, are removed.
    ///
    /// # Errors
    /// [`Error::Name`] with the reason.
    pub fn new(etag: &str) -> Result<Self, Error> {
        let bare = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
        if hexadecimal(bare, 64) || hexadecimal(bare, 40) {
            Ok(Self(bare.into()))
        } else {
            Err(bad("file hash", etag, "a hash is 40 or 64 hexadecimal digits"))
        }
    }

    /// Whether it is the SHA-256 of the content; else it is the git blob hash.
    pub fn is_sha256(&self) -> bool {
        self.0.len() == 64
    }
}

/// Checks the file list of a repository as a whole: every name by itself, none twice, none both a file and a folder, not too many.
///
/// # Errors
/// [`Error::Name`] for the first that is refused, [`Error::TooManyFiles`].
pub fn checked_listing<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Vec<FilePath>, Error> {
    checked_listing_where(paths, CASE_IS_IGNORED)
}

/// [`checked_listing`] on a system that tells upper from lower case or not.
///
/// # Errors
/// As [`checked_listing`].
pub fn checked_listing_where<'a>(
    paths: impl IntoIterator<Item = &'a str>,
    case_is_ignored: bool,
) -> Result<Vec<FilePath>, Error> {
    let key = |path: &str| {
        if case_is_ignored {
            path.to_lowercase()
        } else {
            path.to_owned()
        }
    };
    let mut checked: Vec<FilePath> = Vec::new();
    let mut files: HashMap<String, usize> = HashMap::new();
    let mut folders: HashSet<String> = HashSet::new();
    for path in paths {
        if checked.len() == MOST_FILES {
            return Err(Error::TooManyFiles { most: MOST_FILES });
        }
        let path = FilePath::new(path)?;
        if let Some(other) = files.insert(key(path.as_str()), checked.len()) {
            let reason = if checked[other] == path {
                "it is listed twice".to_owned()
            } else {
                format!("this computer cannot distinguish it from {}", checked[other])
            };
            return Err(bad("file", path.as_str(), &reason));
        }
        for (end, _) in path.as_str().match_indices('/') {
            folders.insert(key(&path.as_str()[..end]));
        }
        checked.push(path);
    }
    match checked.iter().find(|path| folders.contains(&key(path.as_str()))) {
        Some(both) => Err(bad("file", both.as_str(), "it is a file and a folder at once")),
        None => Ok(checked),
    }
}
