//! The hub's interface, as far as it is used: what a repository is, which files it has, and their text.
//!
//! What comes back is read with a limit on every size, and every name in it is checked before anybody uses it.

use std::collections::HashSet;

use net::{Purpose, Response};
use serde_json::Value;

use crate::cache::{
    checked_listing, Commit, Etag, FilePath, RemoteFile, RepoFiles, RepositoryId, Revision, MOST_FILES,
};
use crate::{Error, Hub};

/// The most of a description or of a page of a list that is read, in bytes. The list of a repository of 10,000 files is 2 MB.
const LARGEST_ANSWER: u64 = 16 << 20;
/// A petabyte; so the sum of a list is a number, too.
const LARGEST_FILE: u64 = 1 << 50;
/// The hub gives 1,000 files on a page; a hub that gives fewer than a hundred is not waited for.
const MOST_PAGES: usize = MOST_FILES / 100;

impl Hub {
    /// What the hub says about a model at a revision, its true name included: one that was renamed is found under its old one.
    pub(crate) async fn model_info(
        &self,
        id: &RepositoryId,
        revision: &Revision,
        purpose: Purpose,
    ) -> Result<Value, Error> {
        let mut parts = vec!["api", "models"];
        parts.extend(id.as_str().split('/'));
        if *revision != Revision::main() {
            parts.extend(["revision", revision.as_str()]);
        }
        let address = self.net().endpoint().at(&parts);
        let answer = self
            .net()
            .get(&address, purpose)
            .head_timeout(self.answer_timeout())
            .send()
            .await?;
        Ok(checked(answer, id)?.json_capped(LARGEST_ANSWER).await?)
    }

    /// The commit that a revision names at the moment.
    ///
    /// # Errors
    /// [`Error::NotOnHub`], [`Error::Gated`], and whatever keeps the hub from answering.
    pub async fn commit_of(&self, id: &RepositoryId, revision: &Revision, purpose: Purpose) -> Result<Commit, Error> {
        if let Some(commit) = revision.commit() {
            return Ok(commit);
        }
        commit_in(&self.model_info(id, revision, purpose).await?)
    }

    /// All files of a repository at a revision, with sizes and hashes.
    ///
    /// # Errors
    /// [`Error::Name`] and [`Error::TooManyFiles`] for lists that no honest model has; as [`Hub::commit_of`].
    pub async fn repo_files(
        &self,
        id: &RepositoryId,
        revision: &Revision,
        purpose: Purpose,
    ) -> Result<RepoFiles, Error> {
        let commit = self.commit_of(id, revision, purpose).await?;
        let mut parts = vec!["api", "models"];
        parts.extend(id.as_str().split('/'));
        parts.extend(["tree", commit.as_str()]);
        let address = self.net().endpoint().at(&parts);
        let mut found: Vec<(String, u64, Etag)> = Vec::new();
        let mut cursors = HashSet::new();
        let mut query = "recursive=true&expand=false".to_owned();
        for _ in 0..MOST_PAGES {
            let answer = self
                .net()
                .get(&format!("{address}?{query}"), purpose)
                .head_timeout(self.answer_timeout())
                .send()
                .await?;
            let answer = checked(answer, id)?;
            let next = next_cursor(&answer);
            let page: Vec<Value> = answer.json_capped(LARGEST_ANSWER).await?;
            for entry in page.iter().filter(|entry| entry["type"] != "directory") {
                found.push(listed(entry)?);
            }
            if found.len() > MOST_FILES {
                return Err(Error::TooManyFiles { most: MOST_FILES });
            }
            let Some(cursor) = next.filter(|cursor| cursors.insert(cursor.clone())) else {
                let paths = checked_listing(found.iter().map(|(path, ..)| path.as_str()))?;
                let files = paths.into_iter().zip(found);
                let files = files
                    .map(|(path, (_, bytes, etag))| RemoteFile { path, bytes, etag })
                    .collect();
                return Ok(RepoFiles { commit, files });
            };
            query = url::form_urlencoded::Serializer::new("recursive=true&expand=false".to_owned())
                .append_pair("cursor", &cursor)
                .finish();
        }
        Err(Error::TooManyFiles { most: MOST_FILES })
    }

    /// The address of a file at a commit.
    pub fn file_address(&self, id: &RepositoryId, commit: &Commit, path: &FilePath) -> String {
        let mut parts: Vec<&str> = id.as_str().split('/').collect();
        parts.extend(["resolve", commit.as_str()]);
        parts.extend(path.as_str().split('/'));
        self.net().endpoint().at(&parts)
    }

    /// The text of a small file at a commit.
    ///
    /// # Errors
    /// As [`Hub::commit_of`], and a file larger than `limit` bytes.
    pub(crate) async fn text(
        &self,
        id: &RepositoryId,
        commit: &Commit,
        path: &FilePath,
        limit: u64,
        purpose: Purpose,
    ) -> Result<String, Error> {
        let address = self.file_address(id, commit, path);
        let answer = self
            .net()
            .get(&address, purpose)
            .head_timeout(self.answer_timeout())
            .send()
            .await?;
        Ok(checked(answer, id)?.text_capped(limit).await?)
    }
}

/// The commit in a description.
pub(crate) fn commit_in(info: &Value) -> Result<Commit, Error> {
    Commit::new(info["sha"].as_str().unwrap_or_default())
}

/// The response, if it is a success; else an error that names the model.
pub(crate) fn checked(answer: Response, id: &RepositoryId) -> Result<Response, Error> {
    let endpoint_host = answer.host();
    answer.error_for_status().map_err(|error| match error {
        net::Error::Gated { with_token } => Error::Gated {
            id: id.to_string(),
            host: endpoint_host,
            with_token,
        },
        net::Error::Unauthorised { with_token: false, .. } => Error::NotOnHub { id: id.to_string() },
        net::Error::NotFound { what, .. } if what.is_empty() || what == "such model" => {
            Error::NotOnHub { id: id.to_string() }
        }
        other => other.into(),
    })
}

/// The cursor of the next page. The rest of the address is not used: from a mirror it names another host.
pub(crate) fn next_cursor(answer: &Response) -> Option<String> {
    let link = answer.header("link")?;
    let next = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    let address = next.split_once('<')?.1.split_once('>')?.0;
    let query = address.split_once('?')?.1;
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "cursor")
        .map(|(_, cursor)| cursor.into_owned())
        .filter(|cursor| !cursor.is_empty())
}

fn listed(entry: &Value) -> Result<(String, u64, Etag), Error> {
    let path = entry["path"].as_str().unwrap_or_default();
    let refused = |reason: &str| crate::cache::refused("file", path, reason);
    if entry["type"] != "file" {
        return Err(refused("it is neither a file nor a folder"));
    }
    let large = &entry["lfs"];
    let (size, hash) = if large.is_object() {
        (&large["size"], &large["oid"])
    } else {
        (&entry["size"], &entry["oid"])
    };
    let size = size
        .as_u64()
        .ok_or_else(|| refused("the hub does not say how large it is"))?;
    if size > LARGEST_FILE {
        return Err(refused("it is larger than any file"));
    }
    let etag = Etag::new(hash.as_str().unwrap_or_default())?;
    if etag.is_sha256() != large.is_object() {
        return Err(refused("the hub says another kind of hash than such a file has"));
    }
    Ok((path.to_owned(), size, etag))
}
