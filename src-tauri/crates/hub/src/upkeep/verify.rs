//! Reading all files of a model again and comparing them with what the hub says they are.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use api::{ModelPlace, Verification, VerifyProgress, WrongFile};
use tokio_util::sync::CancellationToken;

use crate::cache;
use crate::cache::digest::Digest;
use crate::cache::RemoteFile;
use crate::cache::{Commit, Etag, Repository, RepositoryId};
use crate::error::Error;
use crate::local::hf_tree;
use crate::local::integrity::{self, Fault};
use crate::local::model_folder::ModelFolder;
use crate::local::scan::{is_model, FoundModel};

/// How much is read at once, in bytes.
const READ: usize = 1 << 20;
/// Bytes between two reports of the progress.
const REPORT_EVERY: u64 = 8 << 20;
/// Where `hf download --local-dir` notes what it fetched.
const NOTES: &str = ".cache/huggingface/download";

/// What a verification found, for a person and for the repair.
#[derive(Debug, Clone)]
pub struct Verified {
    /// For a person.
    pub verification: Verification,
    /// The model's place in a cache; `None` for folders.
    pub(crate) repository: Option<(Repository, Commit)>,
}

/// A file that is compared.
struct Compared {
    path: String,
    full: PathBuf,
    bytes: u64,
    etag: Option<Etag>,
}

impl ModelFolder {
    /// Reads all files of a model and compares them: with the hashes that the cache names its blobs by, with the hub's `listed` files
    /// if they are given (else with the list that huggingface_hub kept), and, if there are no hashes, with what the files say about themselves. Nothing is changed. Blocks
    /// as long as reading takes; holds 1 MiB.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NoModelFolder`], [`Error::Stopped`]; a file that cannot be read is wrong, and no error.
    pub fn verify(
        &self,
        reference: &str,
        listed: Option<&[RemoteFile]>,
        stop: &CancellationToken,
        progress: &mut dyn FnMut(VerifyProgress),
    ) -> Result<Verified, Error> {
        let found = self.locate(reference)?;
        let repository = repository_of(&found);
        let folder = found.source.path.clone();
        // Otherwise every file below it would be read.
        if found.place == ModelPlace::OwnFolder && !is_model(&folder) {
            return Err(Error::NoModelFolder { path: folder });
        }
        let mut wrong: BTreeMap<String, String> = BTreeMap::new();
        let files = match &repository {
            Some((repository, commit)) => in_snapshot(repository, commit, &mut wrong),
            None => in_folder(&folder),
        };
        let kept = listed.is_none().then(|| hf_tree::listed(&folder)).flatten();
        let files = against(listed.or(kept.as_deref()).unwrap_or_default(), files, &mut wrong);

        let total = files
            .iter()
            .filter(|file| file.etag.is_some())
            .map(|file| file.bytes)
            .sum();
        let mut told = VerifyProgress {
            total,
            ..VerifyProgress::default()
        };
        let mut unknown = Vec::new();
        for file in &files {
            let Some(etag) = &file.etag else {
                unknown.push(file.path.clone());
                continue;
            };
            told.path.clone_from(&file.path);
            progress(told.clone());
            match hash(file, etag, stop, &mut told, progress)? {
                Ok(digits) if digits == etag.as_str() => {}
                Ok(_) => drop(wrong.insert(file.path.clone(), "its content is not what the hub has".into())),
                Err(error) => drop(wrong.insert(file.path.clone(), format!("it cannot be read ({error})"))),
            }
        }
        progress(told.clone());
        for Fault { path, reason } in integrity::faults(&folder) {
            // A file with the right hash that is odd all the same was made so: fetching it again would change nothing.
            let known_right = files.iter().any(|file| file.path == path && file.etag.is_some());
            if !known_right || reason == "is missing" {
                wrong.entry(path).or_insert(format!("it {reason}"));
            }
        }
        unknown.retain(|path| !wrong.contains_key(path));
        Ok(Verified {
            verification: Verification {
                reference: reference.into(),
                commit: found.source.revision.clone(),
                files: u32::try_from(files.len() - unknown.len()).unwrap_or(u32::MAX),
                bytes: told.done,
                wrong: wrong
                    .into_iter()
                    .map(|(path, reason)| WrongFile { path, reason })
                    .collect(),
                unknown,
            },
            repository,
        })
    }
}

/// The place of a model in a cache.
pub(crate) fn repository_of(found: &FoundModel) -> Option<(Repository, Commit)> {
    if found.place != ModelPlace::Cache {
        return None;
    }
    let commit = Commit::new(found.source.revision.as_deref()?).ok()?;
    let folder = found.source.path.parent()?.parent()?;
    let id = RepositoryId::of_folder(folder.file_name()?.to_str()?)?;
    Some((cache::Cache::at(folder.parent()?).repository(&id), commit))
}

fn in_snapshot(repository: &Repository, commit: &Commit, wrong: &mut BTreeMap<String, String>) -> Vec<Compared> {
    let snapshot = repository.snapshot(commit);
    let mut files = Vec::new();
    for file in repository.files(commit) {
        match file.bytes {
            Some(bytes) => files.push(Compared {
                full: file.path.under(&snapshot),
                path: file.path.to_string(),
                bytes,
                etag: file.etag,
            }),
            None => drop(wrong.insert(file.path.to_string(), "it is missing".into())),
        }
    }
    files
}

fn in_folder(folder: &Path) -> Vec<Compared> {
    let mut files = Vec::new();
    cache::walk(folder, 4, &mut |path, full| {
        let hidden = path.split('/').any(|part| part.starts_with('.'));
        let meta = fs::metadata(full).ok().filter(|meta| meta.is_file() && !hidden);
        if let Some(meta) = meta {
            files.push(Compared {
                path: path.into(),
                full: full.into(),
                bytes: meta.len(),
                etag: noted(folder, path, &meta),
            });
        }
    });
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// The hash that `hf download --local-dir` noted; `None` if it noted none, or if the file was changed on purpose since.
fn noted(folder: &Path, path: &str, file: &fs::Metadata) -> Option<Etag> {
    let text = fs::read_to_string(folder.join(NOTES).join(format!("{path}.metadata"))).ok()?;
    let mut lines = text.lines();
    let (etag, at) = (lines.nth(1)?, lines.next()?.parse::<f64>().ok()?);
    let changed = file
        .modified()
        .ok()?
        .duration_since(std::time::UNIX_EPOCH)
        .ok()?
        .as_secs_f64();
    // The same second of grace as huggingface_hub gives.
    (changed - 1.0 <= at).then(|| Etag::new(etag).ok()).flatten()
}

/// Takes the hub's hashes over, and notes which of the hub's files are missing or of another size.
fn against(listed: &[RemoteFile], files: Vec<Compared>, wrong: &mut BTreeMap<String, String>) -> Vec<Compared> {
    let by_path: BTreeMap<&str, &RemoteFile> = listed.iter().map(|file| (file.path.as_str(), file)).collect();
    for path in by_path.keys().filter(|path| hf_tree::essential(path)) {
        if !files.iter().any(|file| file.path == *path) {
            wrong.entry((*path).to_owned()).or_insert("it is missing".into());
        }
    }
    files
        .into_iter()
        .filter_map(|mut file| {
            if let Some(remote) = by_path.get(file.path.as_str()) {
                if remote.bytes != file.bytes {
                    wrong.insert(
                        file.path,
                        format!("it has {} bytes instead of {}", file.bytes, remote.bytes),
                    );
                    return None;
                }
                file.etag = Some(remote.etag.clone());
            }
            Some(file)
        })
        .collect()
}

/// The digits of a file's hash, or why it cannot be read.
fn hash(
    file: &Compared,
    etag: &Etag,
    stop: &CancellationToken,
    told: &mut VerifyProgress,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<std::io::Result<String>, Error> {
    let end = told.done + file.bytes;
    let mut digest = Digest::new(etag, file.bytes);
    let mut buffer = vec![0; READ];
    let mut word = told.done + REPORT_EVERY;
    let mut source = match File::open(&file.full) {
        Ok(source) => source,
        Err(error) => return Ok(Err(error)),
    };
    loop {
        if stop.is_cancelled() {
            return Err(Error::Stopped);
        }
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                digest.update(&buffer[..read]);
                told.done = (told.done + read as u64).min(end);
                if told.done >= word {
                    word = told.done + REPORT_EVERY;
                    progress(told.clone());
                }
            }
            Err(error) => {
                told.done = end;
                return Ok(Err(error));
            }
        }
    }
    told.done = end;
    Ok(Ok(digest.finish()))
}
