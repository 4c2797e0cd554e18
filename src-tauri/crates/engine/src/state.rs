//! The state of the worker that other threads see.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mlx::device::Device;
use mlx::memory;
use protocol::{ComputeDevice, EngineActivity, MemoryFigures, MemoryGuard, ModelInfo};
use tokio::sync::{oneshot, watch};

use crate::error::{catch_panic, Result};
use crate::kernels::processor;
use crate::options::EngineOptions;

/// The state of the worker that other threads see.
#[derive(Debug, Default)]
pub struct EngineState {
    loaded: Mutex<Vec<ModelInfo>>,
    /// The activity that followers of the engine receive.
    activity: watch::Sender<EngineActivity>,
    /// Set when the engine is being dropped: the running job ends, waiting ones do not start.
    closing: AtomicBool,
    /// How many prefetches are waiting or at work.
    prefetches: watch::Sender<usize>,
    /// How many chunks prefetches have read so far.
    prefetched_chunks: AtomicUsize,
    /// The number of times that the worker woke up without a command.
    wakeups: AtomicUsize,
    /// Open queries for the memory. Each is kept alive by its command in the queue, so that it fails if the worker is
    /// gone.
    memory_queries: Mutex<Vec<Weak<MemoryQuery>>>,
    /// The options of the host.
    options: EngineOptions,
    /// The number of answers of programs that run at the same time; 0: as many as suits the device.
    max_sequences: AtomicUsize,
    /// The bytes that the prefix cache of each model may hold, if that was set.
    prefix_cache: Mutex<Option<u64>>,
    /// The device that computes.
    device: Mutex<ComputeDevice>,
    /// True if there is a graphics card.
    has_card: AtomicBool,
    /// Held while a schema is compiled: one at a time, so that cores are left for answers.
    schema_check: Mutex<()>,
}

/// Takes the answer about the memory, once.
pub type MemoryQuery = Mutex<Option<oneshot::Sender<Result<MemoryFigures>>>>;

impl EngineState {
    /// Nothing is loaded, and no request waits.
    pub fn new(options: EngineOptions) -> Self {
        Self {
            device: Mutex::new(options.device.unwrap_or_default()),
            options,
            ..Self::default()
        }
    }

    /// The guard of this computer's memory.
    pub fn memory_guard(&self) -> Option<&dyn MemoryGuard> {
        self.options.memory_guard.as_deref()
    }

    /// Refuses a schema that no answer can follow. Takes seconds for some.
    ///
    /// # Errors
    /// If the schema uses a keyword that cannot be honored.
    pub fn check_schema(&self, schema: &serde_json::Value) -> Result<()> {
        let _turn = self.schema_check.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(constraint::check(schema)?)
    }

    /// The folder for what is found out once for this computer.
    pub fn cache_dir(&self) -> Option<&Path> {
        self.options.cache_dir.as_deref()
    }

    /// Names MLX its compiled Metal kernels, if they come with the app.
    pub fn use_metal_library(&self) {
        #[cfg(target_os = "macos")]
        if let Some(Err(error)) = self
            .options
            .metal_library
            .as_deref()
            .map(mlx::device::use_metal_library)
        {
            tracing::error!(%error, "the app's Metal kernels cannot be used");
        }
    }

    /// The options that the host started the engine with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// The number of answers of programs that run at the same time, if that was set.
    pub fn max_sequences(&self) -> Option<usize> {
        Some(self.max_sequences.load(Ordering::Relaxed)).filter(|most| *most > 0)
    }

    /// Sets the number of answers of programs that run at the same time; 0: as many as suits the device.
    pub fn set_max_sequences(&self, most: usize) {
        self.max_sequences.store(most, Ordering::Relaxed);
    }

    /// The bytes that the prefix cache of each model may hold, if that was set.
    pub fn prefix_cache(&self) -> Option<u64> {
        *self.prefix_cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the bytes that the prefix cache of each model that is loaded from now on may hold; returns whether that is
    /// a change.
    pub fn set_prefix_cache(&self, bytes: Option<u64>) -> bool {
        let mut known = self.prefix_cache.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *known, bytes) != bytes
    }

    /// The device that computes, or soon will.
    pub fn device(&self) -> ComputeDevice {
        *self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the device that computes, unless the host chose one for good; returns whether that is a change.
    pub fn set_device(&self, device: ComputeDevice) -> bool {
        let mut known = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        self.options.device.is_none() && std::mem::replace(&mut *known, device) != device
    }

    /// True if there is a graphics card, whether it computes or not.
    pub fn has_card(&self) -> bool {
        self.has_card.load(Ordering::Acquire)
    }

    /// Says whether there is a graphics card.
    pub fn set_has_card(&self, has_card: bool) {
        self.has_card.store(has_card, Ordering::Release);
    }

    /// The loaded models.
    pub fn loaded(&self) -> Vec<ModelInfo> {
        let mut models = self.lock().clone();
        for model in models.iter_mut().filter(|model| model.device == Device::Cpu.name()) {
            model.processor = processor();
        }
        models
    }

    /// Says which models are loaded from now on.
    pub fn set_loaded(&self, models: Vec<ModelInfo>) {
        let loaded = models.iter().map(|model| model.reference.clone()).collect();
        *self.lock() = models;
        self.activity.send_modify(|activity| activity.loaded = loaded);
    }

    /// Sets whether a request waits for the worker, and the number of answers of programs that run at the same time.
    pub fn set_activity(&self, busy: bool, slots: usize) {
        self.activity.send_if_modified(|activity| {
            let before = (activity.busy, activity.slots);
            (activity.busy, activity.slots) = (busy, slots);
            before != (busy, slots)
        });
    }

    /// The activity of the engine, and each change of it.
    pub fn follow(&self) -> watch::Receiver<EngineActivity> {
        self.activity.subscribe()
    }

    /// True if something is being prefetched, or will be.
    #[cfg(feature = "bench")]
    pub fn prefetching(&self) -> bool {
        *self.prefetches.borrow() > 0
    }

    /// Waits until nothing is being prefetched.
    #[cfg(feature = "bench")]
    pub async fn prefetched(&self) {
        // Fails if the sender is gone, which `self` holds.
        let _ = self.prefetches.subscribe().wait_for(|pending| *pending == 0).await;
    }

    /// How many chunks prefetches have read so far.
    #[cfg(feature = "test-support")]
    pub fn prefetched_chunks(&self) -> usize {
        self.prefetched_chunks.load(Ordering::Acquire)
    }

    /// Counts a wake-up of the worker without a command.
    pub fn count_wakeup(&self) {
        self.wakeups.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of times that the worker woke up without a command.
    #[cfg(feature = "test-support")]
    pub fn wakeups(&self) -> usize {
        self.wakeups.load(Ordering::Relaxed)
    }

    /// Asks the worker to end soon.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// True if the engine is being dropped.
    pub fn closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Asks for the memory; the answer fails if the query is dropped unanswered.
    pub fn query_memory(&self) -> (Arc<MemoryQuery>, oneshot::Receiver<Result<MemoryFigures>>) {
        let (sender, answer) = oneshot::channel();
        let query = Arc::new(Mutex::new(Some(sender)));
        self.memory_queries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::downgrade(&query));
        (query, answer)
    }

    /// Answers all queries for the memory; called on the worker's thread.
    pub fn answer_memory_queries(&self) {
        let queries = std::mem::take(&mut *self.memory_queries.lock().unwrap_or_else(PoisonError::into_inner));
        for query in queries.iter().filter_map(Weak::upgrade) {
            if let Some(sender) = query.lock().unwrap_or_else(PoisonError::into_inner).take() {
                // The receiver may be gone.
                let _ = sender.send(catch_panic(memory_figures));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ModelInfo>> {
        // Nothing that can panic runs under this lock, so a poisoned value is still consistent.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn memory_figures() -> Result<MemoryFigures> {
    let memory::Figures { active, peak, cache } = memory::figures()?;
    Ok(MemoryFigures { active, peak, cache })
}

/// Counts as one prefetch as long as it lives.
pub struct PendingPrefetch(Arc<EngineState>);

impl PendingPrefetch {
    /// One more prefetch.
    pub fn new(shared: &Arc<EngineState>) -> Self {
        shared.prefetches.send_modify(|pending| *pending += 1);
        Self(shared.clone())
    }

    /// A chunk has been read.
    pub fn count_chunk(&self) {
        self.0.prefetched_chunks.fetch_add(1, Ordering::Release);
    }
}

impl Drop for PendingPrefetch {
    fn drop(&mut self) {
        self.0.prefetches.send_modify(|pending| *pending -= 1);
    }
}
