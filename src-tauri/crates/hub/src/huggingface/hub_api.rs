//! The calls to the hub's HTTP interface: a repository, its list of files, the text of small ones.
//!
//! Every response is read with a limit on its size, and every name in it is checked before use.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use net::{Net, Purpose, Response};
use serde_json::Value;

use crate::cache::{
    checked_listing, refused_name, Commit, Etag, FilePath, RemoteFile, RepoFiles, RepositoryId, Revision, MOST_FILES,
};
use crate::error::Error;

/// Time for the head of a response, unless [`HubApi::set_answer_timeout`] sets another.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit of a description or of one page of a list, in bytes. A list of 10,000 files has 2 MB.
const LARGEST_ANSWER: u64 = 16 << 20;
/// A petabyte, so that the sum of a list does not overflow.
const LARGEST_FILE: u64 = 1 << 50;
/// The hub sends 1,000 files a page; this ends a list whose pages have fewer than a hundred.
const MOST_PAGES: usize = MOST_FILES / 100;

/// All files, without their last commits.
const TREE_QUERY: &str = "recursive=true&expand=false";

/// A client of the hub's interface. Clones share the time limit.
#[derive(Debug, Clone)]
pub struct HubApi {
    net: Net,
    /// In milliseconds.
    answer_timeout: Arc<AtomicU64>,
}

impl HubApi {
    pub(crate) fn new(net: Net) -> Self {
        let api = Self {
            net,
            answer_timeout: Arc::default(),
        };
        api.set_answer_timeout(ANSWER_TIMEOUT);
        api
    }

    pub(crate) fn net(&self) -> &Net {
        &self.net
    }

    /// The hub's host, for messages.
    pub(crate) fn host(&self) -> String {
        self.net.endpoint().host()
    }

    /// Sets the time that the hub has for the head of a response.
    pub(crate) fn set_answer_timeout(&self, timeout: Duration) {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.answer_timeout.store(millis, Ordering::Relaxed);
    }

    /// The hub's description of a model at a revision. Its id may differ from the one that was asked for, because a
    /// renamed model is found under its old id.
    pub(crate) async fn model_info(
        &self,
        id: &RepositoryId,
        revision: &Revision,
        purpose: Purpose,
    ) -> Result<Value, Error> {
        let at_revision = ["revision", revision.as_str()];
        let below: &[&str] = if *revision == Revision::main() {
            &[]
        } else {
            &at_revision
        };
        let answer = self.get(&self.address(id, below), id, purpose).await?;
        Ok(answer.json_capped(LARGEST_ANSWER).await?)
    }

    /// The commit that a revision names now.
    ///
    /// # Errors
    /// [`Error::NotOnHub`], [`Error::Gated`], and whatever keeps the hub from answering.
    pub(crate) async fn commit_of(
        &self,
        id: &RepositoryId,
        revision: &Revision,
        purpose: Purpose,
    ) -> Result<Commit, Error> {
        if let Some(commit) = revision.commit() {
            return Ok(commit);
        }
        let info = self.model_info(id, revision, purpose).await?;
        Commit::new(info["sha"].as_str().unwrap_or_default())
    }

    /// All files of a repository at a revision, with sizes and hashes.
    ///
    /// # Errors
    /// [`Error::Name`] and [`Error::TooManyFiles`] for lists that no honest model has; as [`HubApi::commit_of`].
    pub(crate) async fn repo_files(
        &self,
        id: &RepositoryId,
        revision: &Revision,
        purpose: Purpose,
    ) -> Result<RepoFiles, Error> {
        let commit = self.commit_of(id, revision, purpose).await?;
        let address = self.address(id, &["tree", commit.as_str()]);
        let mut found: Vec<(String, u64, Etag)> = Vec::new();
        let mut cursors = HashSet::new();
        let mut query = TREE_QUERY.to_owned();
        for _ in 0..MOST_PAGES {
            let answer = self.get(&format!("{address}?{query}"), id, purpose).await?;
            let next = next_cursor(&answer);
            let page: Vec<Value> = answer.json_capped(LARGEST_ANSWER).await?;
            for entry in page.iter().filter(|entry| entry["type"] != "directory") {
                found.push(listed(entry)?);
            }
            if found.len() > MOST_FILES {
                return Err(Error::TooManyFiles(MOST_FILES));
            }
            let Some(cursor) = next.filter(|cursor| cursors.insert(cursor.clone())) else {
                let paths = checked_listing(found.iter().map(|(path, ..)| path.as_str()))?;
                let file = |(path, (_, bytes, etag))| RemoteFile { path, bytes, etag };
                let files = paths.into_iter().zip(found).map(file).collect();
                return Ok(RepoFiles { commit, files });
            };
            query = url::form_urlencoded::Serializer::new(TREE_QUERY.to_owned())
                .append_pair("cursor", &cursor)
                .finish();
        }
        Err(Error::TooManyFiles(MOST_FILES))
    }

    /// The address of a file at a commit.
    pub(crate) fn file_address(&self, id: &RepositoryId, commit: &Commit, path: &FilePath) -> String {
        let mut parts: Vec<&str> = id.as_str().split('/').collect();
        parts.extend(["resolve", commit.as_str()]);
        parts.extend(path.as_str().split('/'));
        self.net.endpoint().at(&parts)
    }

    /// The text of a small file at a commit.
    ///
    /// # Errors
    /// As [`HubApi::commit_of`], and for a file larger than `limit` bytes.
    pub(crate) async fn text(
        &self,
        id: &RepositoryId,
        commit: &Commit,
        path: &FilePath,
        limit: u64,
        purpose: Purpose,
    ) -> Result<String, Error> {
        let answer = self.get(&self.file_address(id, commit, path), id, purpose).await?;
        Ok(answer.text_capped(limit).await?)
    }

    /// The address of a model in the hub's interface, and of what is below it.
    fn address(&self, id: &RepositoryId, below: &[&str]) -> String {
        let mut parts = vec!["api", "models"];
        parts.extend(id.as_str().split('/'));
        parts.extend(below);
        self.net.endpoint().at(&parts)
    }

    async fn get(&self, address: &str, id: &RepositoryId, purpose: Purpose) -> Result<Response, Error> {
        let timeout = Duration::from_millis(self.answer_timeout.load(Ordering::Relaxed));
        let request = self.net.get(address, purpose).head_timeout(timeout);
        checked(request.send().await?, id)
    }
}

/// The response if it is a success, else an error that names the model.
pub(crate) fn checked(answer: Response, id: &RepositoryId) -> Result<Response, Error> {
    let endpoint_host = answer.host();
    answer.error_for_status().map_err(|error| match error {
        net::Error::Gated { with_token } => Error::Gated {
            id: id.to_string(),
            host: endpoint_host,
            with_token,
        },
        net::Error::Unauthorised { with_token: false, .. } => Error::NotOnHub(id.to_string()),
        net::Error::NotFound { what, .. } if what.is_empty() || what == "such model" => Error::NotOnHub(id.to_string()),
        other => other.into(),
    })
}

/// The cursor of the next page. The rest of the address is ignored, because that of a mirror names another host.
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
    let refused = |reason: &str| refused_name("file", path, reason);
    if entry["type"] != "file" {
        return Err(refused("it is neither a file nor a folder"));
    }
    let large = &entry["lfs"];
    let described = if large.is_object() { large } else { entry };
    let (size, hash) = (&described["size"], &described["oid"]);
    let unknown = || refused("the hub does not say how large it is");
    let size = size.as_u64().ok_or_else(unknown)?;
    if size > LARGEST_FILE {
        return Err(refused("it is larger than any file"));
    }
    let etag = Etag::new(hash.as_str().unwrap_or_default())?;
    if etag.is_sha256() != large.is_object() {
        return Err(refused("the hub says another kind of hash than such a file has"));
    }
    Ok((path.to_owned(), size, etag))
}
