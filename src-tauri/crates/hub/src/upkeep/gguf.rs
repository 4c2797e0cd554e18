//! Importing a GGUF file: a folder as the hub has it, written a stretch of rows at a time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use api::VerifyProgress;
use checkpoint::conversion::Shard;
use checkpoint::gguf::{Changed, GgufFile, GgufImport, Loss};
use checkpoint::{check_folder, WEIGHT_INDEX};
use files::DraftFolder;
use protocol::FolderSource;
use serde_json::{json, Value};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::cache::FilePath;
use crate::error::Error;
use crate::local::model_folder::ModelFolder;

/// Bytes that stay free on the disk.
const MARGIN: u64 = 64 << 20;

/// The file of an imported folder that says what it was made of.
const ORIGIN: &str = "gguf.json";

/// The most bytes of that file.
const LONGEST_ORIGIN: u64 = 1 << 16;

/// Bytes at the beginning, the middle and the end of a file that tell it from others.
const SAMPLE: u64 = 1 << 20;

/// A model that was imported.
#[derive(Debug, Clone)]
pub struct GgufImported {
    /// The new folder.
    pub model: FolderSource,
    /// Bytes of the GGUF files.
    pub source_bytes: u64,
    /// Bytes of the new weights.
    pub bytes: u64,
    /// The changes, format by format.
    pub formats: Vec<FormatChange>,
    /// True if a vision part was left out.
    pub text_only: bool,
}

/// The change of the tensors of a format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FormatChange {
    /// Its name in llama.cpp.
    pub format: &'static str,
    /// Bits of a number in the new folder; `None` for plain numbers.
    pub bits: Option<u32>,
    /// How many tensors have it.
    pub tensors: u64,
    /// The largest error by the largest number of its tensor, over all tensors.
    pub worst: f64,
    /// The mean error by the mean size of numbers.
    pub mean: f64,
}

impl ModelFolder {
    /// Makes a model of a GGUF file, or of several that are one, among the imported ones. `name` is that of the new
    /// folder; of one that is taken, the next is free. The folder appears when all of it is on the disk. Nothing of the
    /// original is changed. Blocks as long as that takes.
    ///
    /// # Errors
    /// [`Error::NoModel`] with the reason, [`Error::NoRoom`], [`Error::Stopped`], [`Error::Write`]; after each of them
    /// nothing new is left.
    pub fn import_gguf(
        &self,
        file: &Path,
        name: &str,
        stop: &CancellationToken,
        progress: &mut dyn FnMut(VerifyProgress),
    ) -> Result<GgufImported, Error> {
        let no_model = |reason: String| Error::NoModel {
            path: file.to_owned(),
            reason,
        };
        let import = GgufImport::plan(file).map_err(|reason| no_model(reason.to_string()))?;
        let fingerprint = fingerprint(&import.file).map_err(|source| Error::read(file, source))?;
        let models = self.import_folder()?;
        if let Some(same) = imported_before(&models, &fingerprint) {
            return Err(no_model(format!("it was imported already, as {}", same.display())));
        }
        FilePath::new(name)?;
        if name.contains('/') {
            return Err(no_model(format!("{name:?} is no name of a folder")));
        }
        let target = free_name(&models, name);
        check_space(&models, &import)?;
        let draft = DraftFolder::create(&target).map_err(|source| Error::write(&target, source))?;
        let folder = draft.path();
        for (name, value) in &import.others {
            write_json(&folder.join(name), value)?;
        }
        let origin = json!({"file": import.file.name(), "bytes": import.file.bytes, "fingerprint": fingerprint});
        write_json(&folder.join(ORIGIN), &origin)?;
        let formats = write_weights(&import, folder, stop, progress)?;
        write_json(&folder.join(WEIGHT_INDEX), &import.index)?;
        // Last, because a folder without it is no model.
        write_json(&folder.join("config.json"), &import.config)?;
        check_folder(folder).map_err(|reason| no_model(reason.to_string()))?;
        draft.finish().map_err(|source| Error::write(&target, source))?;
        let path = target.canonicalize().unwrap_or(target);
        Ok(GgufImported {
            model: FolderSource {
                reference: path.to_string_lossy().into_owned(),
                path,
                revision: None,
                adapter: None,
            },
            source_bytes: import.file.bytes,
            bytes: import.bytes(),
            formats,
            text_only: import.text_only,
        })
    }
}

impl ModelFolder {
    /// True if a model was made of this GGUF file, of which a little is read.
    pub fn has_imported(&self, file: &Path) -> bool {
        let known = || {
            let read = GgufFile::open(file).ok()?;
            imported_before(&self.import_folder().ok()?, &fingerprint(&read).ok()?)
        };
        known().is_some()
    }
}

/// A short text that tells files from others without reading them whole.
fn fingerprint(file: &GgufFile) -> io::Result<String> {
    let mut hash = Sha256::new();
    for path in &file.paths {
        let mut part = File::open(path)?;
        let bytes = part.metadata()?.len();
        hash.update(bytes.to_le_bytes());
        for start in [0, bytes / 2, bytes.saturating_sub(SAMPLE)] {
            part.seek(SeekFrom::Start(start))?;
            let mut sample = Vec::new();
            (&part).take(SAMPLE).read_to_end(&mut sample)?;
            hash.update(&sample);
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The imported folder that was made of the same files.
fn imported_before(models: &Path, fingerprint: &str) -> Option<PathBuf> {
    let same = |folder: &PathBuf| {
        let file = File::open(folder.join(ORIGIN)).ok()?;
        let mut text = String::new();
        file.take(LONGEST_ORIGIN).read_to_string(&mut text).ok()?;
        let origin: Value = serde_json::from_str(&text).ok()?;
        (origin["fingerprint"] == fingerprint && folder.join("config.json").is_file()).then_some(())
    };
    let entries = fs::read_dir(models).ok()?.flatten();
    let mut folders = entries
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path());
    folders.find(|folder| same(folder).is_some())
}

fn free_name(models: &Path, name: &str) -> PathBuf {
    let names = (2..).map(|number| format!("{name} {number}"));
    let paths = [name.to_owned()].into_iter().chain(names).map(|name| models.join(name));
    let mut free = paths.skip_while(|path| fs::symlink_metadata(path).is_ok());
    free.next().unwrap_or_else(|| models.join(name))
}

fn check_space(models: &Path, import: &GgufImport) -> Result<(), Error> {
    let others: usize = import.others.iter().map(|(_, value)| value.to_string().len()).sum();
    let needed = import.bytes() + others as u64 + MARGIN;
    match files::free_space(models) {
        Ok(free) if free < needed => Err(Error::NoRoom {
            path: models.to_owned(),
            needed,
            free,
        }),
        // If the file system does not say, writing decides.
        _ => Ok(()),
    }
}

fn write_json(path: &Path, value: &Value) -> Result<(), Error> {
    let failed = |source| Error::write(path, source);
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(format!("{value}\n").as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)
}

fn write_weights(
    import: &GgufImport,
    folder: &Path,
    stop: &CancellationToken,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<Vec<FormatChange>, Error> {
    let mut told = VerifyProgress {
        total: import.source_bytes(),
        ..VerifyProgress::default()
    };
    let mut tell = |tensor: &str, bytes: u64| {
        told.done += bytes;
        if told.path != tensor {
            tensor.clone_into(&mut told.path);
        }
        progress(told.clone());
        match stop.is_cancelled() {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    };
    let mut formats: BTreeMap<&'static str, (FormatChange, Loss)> = BTreeMap::new();
    for shard in &import.shards {
        let path = folder.join(&shard.name);
        for changed in write_shard(import, shard, &path, &mut tell)? {
            let first = FormatChange {
                format: changed.kind.name(),
                bits: changed.bits,
                tensors: 0,
                worst: 0.0,
                mean: 0.0,
            };
            let (format, loss) = formats.entry(first.format).or_insert((first, Loss::default()));
            *loss = loss.with(changed.loss);
            *format = FormatChange {
                tensors: format.tensors + 1,
                worst: loss.worst(),
                mean: loss.mean(),
                ..*format
            };
        }
    }
    Ok(formats.into_values().map(|(format, _)| format).collect())
}

fn write_shard(
    import: &GgufImport,
    shard: &Shard,
    path: &Path,
    tell: &mut dyn FnMut(&str, u64) -> Result<(), Error>,
) -> Result<Vec<Changed>, Error> {
    let failed = |source: io::Error| Error::write(path, source);
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(&shard.header).map_err(failed)?;
    let mut changes = Vec::new();
    for (index, offsets) in &shard.targets {
        let mut places = offsets.clone();
        let name = &import.targets[*index].name;
        let changed = import.read::<Error>(*index, |parts, bytes| {
            for (place, part) in places.iter_mut().zip([&parts.weight, &parts.scales, &parts.biases]) {
                file.seek(SeekFrom::Start(*place)).map_err(failed)?;
                file.write_all(part).map_err(failed)?;
                *place += part.len() as u64;
            }
            tell(name, bytes)
        })?;
        changes.push(changed);
    }
    file.sync_all().map_err(failed)?;
    Ok(changes)
}
