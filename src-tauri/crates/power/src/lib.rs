//! What the system says of its memory, its heat and its power, and how its sleep is held off. Nothing here looks again and again: the
//! system calls, or somebody asks.

mod awake;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(target_os = "macos", path = "macos.rs")]
mod system;

pub use awake::KeepAwake;
use protocol::Slowdown;
use tokio::sync::mpsc::UnboundedReceiver;

/// How short the computer's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryPressure {
    /// Programs wait for memory now and then; what is kept only to be faster should go.
    Warning,
    /// Nothing gets on for want of memory; whatever can be read again should go.
    Critical,
}

/// Tells whenever memory has become short, again and again while it stays so; `None` if this system does not tell.
pub fn memory_pressure() -> Option<UnboundedReceiver<MemoryPressure>> {
    system::memory_pressure()
        .inspect_err(|error| tracing::info!(%error, "the system does not tell when memory gets short"))
        .ok()
}

/// What slows this computer down at the moment, as far as the system tells.
pub fn slowdown() -> Option<Slowdown> {
    system::slowdown()
}
