//! The guard of this computer's memory. The engine asks it before it loads a model and before each chunk of a prompt.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use checkpoint::memory::Backend;
use protocol::{FolderSource, MemoryGuard, Reason};

use super::{check_before_load, check_beside_others, is_load_forced, size, Measured, Memory};

/// Reads the system's memory at each call, and stores measured peaks in the app's data folder.
#[derive(Debug, Clone)]
pub struct SystemMemoryGuard {
    data_dir: PathBuf,
    /// Folders of models that are loaded whatever they need; clones share them.
    allowed: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl SystemMemoryGuard {
    /// A guard that stores measured peaks in this data folder.
    pub fn new(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            allowed: Arc::default(),
        }
    }

    /// Lets the model in this folder be loaded whatever it needs, until this process ends.
    pub fn allow(&self, folder: &Path) {
        self.allowed().insert(folder.to_owned());
    }

    fn check_load(&self, model: &FolderSource, known: Option<(Backend, Memory)>, kept: u64) -> protocol::Result<()> {
        match known {
            _ if kept == 0 && self.allowed().contains(&model.path) => Ok(()),
            Some((backend, memory)) if kept == 0 => check_before_load(&model.path, None, backend, &memory),
            Some((backend, memory)) => check_beside_others(&model.path, backend, &memory, kept),
            None => Ok(()),
        }
    }

    fn allowed(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryGuard for SystemMemoryGuard {
    fn before_load(&self, model: &FolderSource, device: &str, kept: u64, freed: u64) -> protocol::Result<()> {
        self.check_load(model, known(device, freed), kept)
    }

    fn before_chunk(&self, bytes: u64, device: &str, held: u64) -> protocol::Result<()> {
        match known(device, 0) {
            Some((_, memory)) => check_before_chunk(bytes, &memory, held),
            None => Ok(()),
        }
    }

    fn record_peak(&self, model: &FolderSource, bytes: u64) {
        // A command that stores nothing must not create the data folder.
        if !self.data_dir.is_dir() {
            return;
        }
        let kept = Measured::in_folder(&self.data_dir).record(&model.reference, model.revision.as_deref(), bytes);
        if let Err(error) = kept {
            tracing::warn!("the memory that {} took was not stored: {error}", model.reference);
        }
    }
}

/// The device and its memory, of which the engine will free `freed` bytes. `None` for a card, whose own memory the
/// driver knows and MLX asks for, and for an unknown device.
fn known(device: &str, freed: u64) -> Option<(Backend, Memory)> {
    let backend = Backend::named(device).filter(|backend| *backend != Backend::Cuda)?;
    Some((backend, Memory::now(backend, freed).ok()?))
}

/// Refuses a chunk if not even half of its predicted memory is available. The prediction is exact to a tenth, but MLX
/// waits for results to be freed when memory runs out.
fn check_before_chunk(bytes: u64, memory: &Memory, held: u64) -> protocol::Result<()> {
    let most = memory.most_to_be_had().min(memory.total.saturating_sub(held));
    if bytes / 2 <= most || is_load_forced() {
        return Ok(());
    }
    Err(protocol::Error::because(
        Reason::PromptMemory,
        format!(
            "reading on takes about {} of memory and only {} are free, so the answer was not begun; nothing is lost: close other \
             programs, keep keys in fewer bits, or begin a shorter chat",
            size(bytes),
            size(most)
        ),
    )
    .with("needed", bytes)
    .with("free", most))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_the_user_allows_is_loaded_whatever_it_needs() {
        let pebble = FolderSource {
            reference: "pebble".into(),
            path: concat!(env!("CARGO_MANIFEST_DIR"), "/../../pebble/model").into(),
            revision: None,
            adapter: None,
        };
        let little = Memory {
            total: 10_000_000,
            free: 10_000_000,
            swap: 0,
        };
        let guard = SystemMemoryGuard::new(Path::new("/nowhere"));
        let load = |kept| guard.check_load(&pebble, Some((Backend::Cpu, little)), kept);
        assert_eq!(load(0).unwrap_err().reason, Some(Reason::ModelMemory));
        guard.clone().allow(&pebble.path);
        assert_eq!(load(0), Ok(()));
        // Next to another model it still has to fit, because that one can be unloaded first.
        assert_eq!(load(1).unwrap_err().reason, Some(Reason::MemoryBesideLoaded));
    }

    #[test]
    fn reading_stops_where_the_memory_clearly_ends_and_nowhere_else() {
        let memory = Memory {
            total: 1_000_000,
            free: 300_000,
            swap: 100_000,
        };
        let most = memory.most_to_be_had();
        assert_eq!(check_before_chunk(2 * most, &memory, 0), Ok(()));
        let error = check_before_chunk(2 * most + 2, &memory, 0).unwrap_err();
        assert_eq!(error.reason, Some(Reason::PromptMemory));
        assert!(error.message.contains("nothing is lost"), "{error}");
        // Memory that the engine holds is not available, even if the system reports it as free.
        assert!(check_before_chunk(400_000, &memory, 900_000).is_err());
        assert_eq!(
            SystemMemoryGuard::new(Path::new("/")).before_chunk(u64::MAX, "cuda", 0),
            Ok(())
        );
    }

    #[test]
    fn what_a_model_took_is_kept_where_there_is_a_data_folder() {
        let folder = tempfile::tempdir().unwrap();
        let model = FolderSource {
            reference: "a/b".into(),
            path: folder.path().to_owned(),
            revision: Some("1".into()),
            adapter: None,
        };
        SystemMemoryGuard::new(folder.path()).record_peak(&model, 5);
        assert_eq!(Measured::in_folder(folder.path()).of("a/b", Some("1")), Some(5));
        let missing = folder.path().join("missing");
        SystemMemoryGuard::new(&missing).record_peak(&model, 5);
        assert!(!missing.exists());
    }
}
