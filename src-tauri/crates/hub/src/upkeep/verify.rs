//! Verification: hashing all files of a model and comparing them with the hub's list.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use api::{FileFault, ModelPlace, Verification, VerifyProgress, WrongFile};
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

/// Bytes between two reports of progress.
const REPORT_EVERY: u64 = 8 << 20;
/// The folder in which `hf download --local-dir` stores the hashes of its files.
const NOTES: &str = ".cache/huggingface/download";

/// The result of a verification, for the user and for a repair.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The report for the user.
    pub verification: Verification,
    /// The repository and commit in a cache; `None` for folders.
    pub(crate) repository: Option<(Repository, Commit)>,
}

/// The faults of wrong files by their paths, in kind and in words.
type WrongFiles = BTreeMap<String, (FileFault, String)>;

fn missing() -> (FileFault, String) {
    (FileFault::Missing, "it is missing".into())
}

/// A file that is compared.
struct Compared {
    path: String,
    full: PathBuf,
    bytes: u64,
    etag: Option<Etag>,
}

impl ModelFolder {
    /// Hashes all files of a model and compares them with the names of the cache's blobs, with the hub's `listed` files
    /// if given (else with the list that huggingface_hub stored), and, without hashes, checks the headers of the files.
    /// Nothing is changed. Blocks as long as reading takes; uses 1 MiB.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NoModelFolder`], [`Error::Stopped`]; a file that cannot be read is wrong, and no
    /// error.
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
        // Without this every file below the folder would be read.
        if found.place == ModelPlace::OwnFolder && !is_model(&folder) {
            return Err(Error::NoModelFolder(folder));
        }
        let mut wrong = WrongFiles::new();
        let files = match &repository {
            Some((repository, commit)) => in_snapshot(repository, commit, &mut wrong),
            None => in_folder(&folder),
        };
        let kept = listed.is_none().then(|| hf_tree::listed(&folder)).flatten();
        let files = against(listed.or(kept.as_deref()).unwrap_or_default(), files, &mut wrong);

        let hashed = files.iter().filter(|file| file.etag.is_some());
        let mut told = VerifyProgress {
            total: hashed.map(|file| file.bytes).sum(),
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
                Ok(_) => {
                    let message = "its content is not what the hub has".into();
                    wrong.insert(file.path.clone(), (FileFault::Changed, message));
                }
                Err(error) => {
                    let message = format!("it cannot be read ({error})");
                    wrong.insert(file.path.clone(), (FileFault::Unreadable, message));
                }
            }
        }
        progress(told.clone());
        for Fault { path, kind, reason } in integrity::faults(&folder) {
            // An odd file with the right hash was made so: fetching it again would change nothing.
            let known_right = files.iter().any(|file| file.path == path && file.etag.is_some());
            if !known_right || kind == FileFault::Missing {
                wrong.entry(path).or_insert((kind, format!("it {reason}")));
            }
        }
        unknown.retain(|path| !wrong.contains_key(path));
        let wrong = wrong
            .into_iter()
            .map(|(path, (fault, message))| WrongFile { path, fault, message });
        Ok(Verified {
            verification: Verification {
                reference: reference.into(),
                commit: found.source.revision.clone(),
                files: u32::try_from(files.len() - unknown.len()).unwrap_or(u32::MAX),
                bytes: told.done,
                wrong: wrong.collect(),
                unknown,
            },
            repository,
        })
    }
}

/// The repository and commit of a model in a cache.
pub(crate) fn repository_of(found: &FoundModel) -> Option<(Repository, Commit)> {
    if found.place != ModelPlace::Cache {
        return None;
    }
    let commit = Commit::new(found.source.revision.as_deref()?).ok()?;
    let folder = found.source.path.parent()?.parent()?;
    let id = RepositoryId::of_folder(folder.file_name()?.to_str()?)?;
    Some((cache::Cache::at(folder.parent()?).repository(&id), commit))
}

fn in_snapshot(repository: &Repository, commit: &Commit, wrong: &mut WrongFiles) -> Vec<Compared> {
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
            None => drop(wrong.insert(file.path.to_string(), missing())),
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

/// The hash that `hf download --local-dir` stored; `None` without one, or if the file was changed since.
fn noted(folder: &Path, path: &str, file: &fs::Metadata) -> Option<Etag> {
    let text = fs::read_to_string(folder.join(NOTES).join(format!("{path}.metadata"))).ok()?;
    let mut lines = text.lines();
    let (etag, at) = (lines.nth(1)?, lines.next()?.parse::<f64>().ok()?);
    let changed = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    // huggingface_hub allows the same second.
    (changed.as_secs_f64() - 1.0 <= at)
        .then(|| Etag::new(etag).ok())
        .flatten()
}

/// Applies the hub's hashes, and records which of its files are missing or of another size.
fn against(listed: &[RemoteFile], files: Vec<Compared>, wrong: &mut WrongFiles) -> Vec<Compared> {
    let by_path: BTreeMap<&str, &RemoteFile> = listed.iter().map(|file| (file.path.as_str(), file)).collect();
    for path in by_path.keys().filter(|path| hf_tree::essential(path)) {
        if !files.iter().any(|file| file.path == *path) {
            wrong.entry((*path).to_owned()).or_insert_with(missing);
        }
    }
    files
        .into_iter()
        .filter_map(|mut file| {
            if let Some(remote) = by_path.get(file.path.as_str()) {
                if remote.bytes != file.bytes {
                    let fault = match file.bytes < remote.bytes {
                        true => FileFault::CutShort,
                        false => FileFault::Changed,
                    };
                    let message = format!("it has {} bytes instead of {}", file.bytes, remote.bytes);
                    wrong.insert(file.path, (fault, message));
                    return None;
                }
                file.etag = Some(remote.etag.clone());
            }
            Some(file)
        })
        .collect()
}

/// The hash of a file in hexadecimal, or the error of reading it.
fn hash(
    file: &Compared,
    etag: &Etag,
    stop: &CancellationToken,
    told: &mut VerifyProgress,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<std::io::Result<String>, Error> {
    let end = told.done + file.bytes;
    let mut word = told.done + REPORT_EVERY;
    let source = match File::open(&file.full) {
        Ok(source) => source,
        Err(error) => return Ok(Err(error)),
    };
    let hashed = Digest::new(etag, file.bytes).of(source, |read| {
        told.done = (told.done + read).min(end);
        if told.done >= word {
            word = told.done + REPORT_EVERY;
            progress(told.clone());
        }
        !stop.is_cancelled()
    });
    told.done = end;
    hashed.transpose().ok_or(Error::Stopped)
}
