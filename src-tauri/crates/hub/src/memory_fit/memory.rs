//! This computer's memory.

use checkpoint::memory::Backend;
use sysinfo::System;

use crate::error::Error;

/// The variable that limits the memory for models, in bytes.
const LIMIT: &str = "PONDER_MEMORY_LIMIT";

/// Memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The limit for a model.
    pub total: u64,
    /// Free now or at once, such as caches of files.
    pub free: u64,
    /// Free swap space.
    pub swap: u64,
}

impl Memory {
    /// The memory of this computer now. The `engine_bytes` of a loaded model count as free, because it is unloaded
    /// before the next one is loaded.
    ///
    /// # Errors
    /// [`Error::MemoryUnknown`] if the system does not say.
    pub fn now(backend: Backend, engine_bytes: u64) -> Result<Self, Error> {
        let mut system = System::new().map_err(|error| Error::MemoryUnknown(error.to_string()))?;
        system.refresh_memory();
        let (mut total, mut free, mut swap) = (system.total_memory(), system.available_memory(), system.free_swap());
        // A container may use less than its computer has.
        if let Some(limits) = system.cgroup_limits().filter(|limits| limits.total_memory < total) {
            (total, free, swap) = (
                limits.total_memory,
                free.min(limits.free_memory),
                swap.min(limits.free_swap),
            );
        }
        if let Some(limit) = std::env::var(LIMIT).ok().and_then(|limit| limit.parse().ok()) {
            total = total.min(limit);
        }
        Ok(Self {
            total: ceiling(backend, total),
            free: free.saturating_add(engine_bytes).min(total),
            swap,
        })
    }

    /// The limit that leaves room for other programs, in bytes.
    pub fn comfortable(&self) -> u64 {
        (self.total / 5 * 4).min(self.free)
    }

    /// The most that a model could get, in bytes. macOS compresses and swaps unused memory on demand; elsewhere only
    /// free memory and swap count.
    pub fn most_to_be_had(&self) -> u64 {
        match cfg!(target_os = "macos") {
            true => self.total,
            false => self.total.min(self.free.saturating_add(self.swap)),
        }
    }
}

/// The share of all memory that a model may use. Apple's GPUs keep a part for the system: Metal's
/// `recommendedMaxWorkingSetSize` is two thirds of the memory up to 32 GB (10.67 of 16, as llama.cpp logs it on an M1)
/// and three quarters above (48 of 64).
fn ceiling(backend: Backend, total: u64) -> u64 {
    /// Below this size the system keeps a third.
    const LARGE: u64 = 36 << 30;
    match backend {
        Backend::Metal if total < LARGE => total / 3 * 2,
        Backend::Metal => total / 4 * 3,
        Backend::Cpu | Backend::Cuda => total,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn this_computer_has_memory_and_apples_gpus_leave_a_part_of_it() {
        let now = Memory::now(Backend::Cpu, 0).unwrap();
        assert!(now.total > 1 << 28 && now.free > 0 && now.free <= now.total, "{now:?}");
        assert!(now.comfortable() < now.total && now.most_to_be_had() <= now.total);
        assert_eq!(Memory::now(Backend::Cpu, u64::MAX).unwrap().free, now.total);
        assert_eq!(
            (ceiling(Backend::Metal, 15 << 30), ceiling(Backend::Metal, 64 << 30)),
            (10 << 30, 48 << 30)
        );
    }
}
