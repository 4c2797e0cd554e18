//! Importing a folder with a model into Ponder's own folder of models.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use api::VerifyProgress;
use checkpoint::check_folder;
use protocol::FolderSource;
use tokio_util::sync::CancellationToken;

use crate::cache::{walk, FilePath, MOST_FILES};
use crate::error::Error;
use crate::local::integrity::faults;
use crate::local::model_folder::ModelFolder;

/// Bytes that are copied at once.
const COPY: usize = 1 << 20;
/// Limit of files that are always copied, in bytes, because people edit small files in place.
const LINKED: u64 = 16 << 20;
/// The fault of a copy whose original had none.
const CHANGED: &str = "after it was copied; the folder changed meanwhile";

/// Endings of files that no model is loaded from: other formats of weights, programs, archives.
const LEFT_OUT: [&str; 12] = [
    "bin", "pth", "pt", "gguf", "onnx", "h5", "msgpack", "py", "ckpt", "zip", "tar", "gz",
];

impl ModelFolder {
    /// The folder beside imported models for one made of `source`: its name with `ending`. It need not exist.
    ///
    /// # Errors
    /// As [`ModelFolder::import`], if this computer names no place for the app's data.
    pub fn new_folder(&self, source: &Path, ending: &str) -> Result<PathBuf, Error> {
        let name = format!("{}-{ending}", name_of(source));
        Ok(self.import_folder()?.join(name))
    }

    /// Copies a model from a folder after checking it. On the same disk, large files become hard links. Nothing in the
    /// folder is changed. Blocks as long as copying takes.
    ///
    /// # Errors
    /// [`Error::NoModel`] with the reason, [`Error::Stopped`], [`Error::Write`]; after each of them nothing new is
    /// left.
    pub fn import(
        &self,
        folder: &Path,
        stop: &CancellationToken,
        progress: &mut dyn FnMut(VerifyProgress),
    ) -> Result<FolderSource, Error> {
        let no_model = |reason: String| Error::NoModel {
            path: folder.to_owned(),
            reason,
        };
        let from = folder.canonicalize().map_err(|error| no_model(error.to_string()))?;
        if !from.is_dir() {
            return Err(no_model("it is no folder".into()));
        }
        if let Some(fault) = faults(&from).first() {
            return Err(no_model(format!("{} {}", fault.path, fault.reason)));
        }
        check_folder(&from).map_err(|reason| no_model(reason.to_string()))?;

        let models = self.import_folder()?;
        fs::create_dir_all(&models).map_err(|source| Error::write(&models, source))?;
        let models = models.canonicalize().map_err(|source| Error::write(&models, source))?;
        if from.starts_with(&models) || models.starts_with(&from) {
            return Err(no_model("it is where imported models are already".into()));
        }
        let files = wanted(&from).map_err(no_model)?;
        let draft = models.join(format!(".ponder-import-{}", uuid::Uuid::now_v7().simple()));
        let made = copy_all(&files, &draft, stop, progress).and_then(|()| settle(&draft, &models, &name_of(&from)));
        match made {
            Ok(path) => Ok(FolderSource {
                reference: path.to_string_lossy().into_owned(),
                path,
                revision: None,
                adapter: None,
            }),
            Err(error) => {
                // Only links and copies are deleted.
                let _ = fs::remove_dir_all(&draft);
                Err(error)
            }
        }
    }
}

struct Wanted {
    path: FilePath,
    from: PathBuf,
    bytes: u64,
}

/// The files to import, links followed.
fn wanted(folder: &Path) -> Result<Vec<Wanted>, String> {
    let mut files = Vec::new();
    let mut wrong = None;
    walk(folder, 4, &mut |path, full| {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let ending = ending.to_ascii_lowercase();
        if path.split('/').any(|part| part.starts_with('.')) || LEFT_OUT.contains(&ending.as_str()) {
            return;
        }
        let Ok(from) = full.canonicalize() else {
            wrong = Some(format!("{path} is a link to nothing"));
            return;
        };
        match (FilePath::new(path), fs::metadata(&from)) {
            (Ok(path), Ok(meta)) if meta.is_file() => files.push(Wanted {
                path,
                from,
                bytes: meta.len(),
            }),
            (Err(error), _) => wrong = Some(error.to_string()),
            _ => {}
        }
    });
    if files.len() > MOST_FILES {
        wrong = Some(format!("it has more than {MOST_FILES} files"));
    }
    wrong.map_or(Ok(files), Err)
}

fn copy_all(
    files: &[Wanted],
    draft: &Path,
    stop: &CancellationToken,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<(), Error> {
    let mut told = VerifyProgress {
        total: files.iter().map(|file| file.bytes).sum(),
        ..VerifyProgress::default()
    };
    for file in files {
        let to = file.path.under(draft);
        let failed = |source: io::Error| Error::write(&to, source);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        told.path = file.path.to_string();
        progress(told.clone());
        let end = told.done + file.bytes;
        // A hard link costs nothing; on another disk, or without hard links, the content is copied.
        if file.bytes <= LINKED || fs::hard_link(&file.from, &to).is_err() {
            copy(&file.from, &to, stop, |read| {
                told.done = (told.done + read).min(end);
                progress(told.clone());
            })
            .map_err(failed)?;
        }
        if stop.is_cancelled() {
            return Err(Error::Stopped);
        }
        told.done = end;
    }
    progress(told);
    Ok(())
}

/// Copies until the end or until canceled.
fn copy(from: &Path, to: &Path, stop: &CancellationToken, mut read: impl FnMut(u64)) -> io::Result<()> {
    let (mut source, mut target) = (File::open(from)?, File::create_new(to)?);
    let mut buffer = vec![0; COPY];
    while !stop.is_cancelled() {
        match source.read(&mut buffer)? {
            0 => return target.sync_all(),
            count => {
                target.write_all(&buffer[..count])?;
                read(count as u64);
            }
        }
    }
    Ok(())
}

/// Gives the copy its name, after checking it once more.
fn settle(draft: &Path, models: &Path, name: &str) -> Result<PathBuf, Error> {
    if let Some(fault) = faults(draft).first() {
        return Err(Error::NoModel {
            path: draft.to_owned(),
            reason: format!("{} {} {CHANGED}", fault.path, fault.reason),
        });
    }
    let mut path = models.join(name);
    for number in 2.. {
        if fs::symlink_metadata(&path).is_err() {
            break;
        }
        path = models.join(format!("{name} {number}"));
    }
    fs::rename(draft, &path).map_err(|source| Error::write(&path, source))?;
    Ok(path)
}

/// The name of the copy: the folder's name, or the repository's for a snapshot of the cache.
fn name_of(folder: &Path) -> String {
    let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let snapshots = folder.parent().filter(|parent| parent.ends_with("snapshots"));
    let repository = snapshots.and_then(Path::parent).and_then(named);
    let repository = repository.and_then(|name| Some(name.strip_prefix("models--")?.replace("--", "-")));
    let name = repository.or_else(|| named(folder)).unwrap_or_default();
    let name = name.trim_start_matches('.');
    match FilePath::new(name) {
        Ok(_) => name.to_owned(),
        Err(_) => "model".to_owned(),
    }
}
