//! Memory pressure, heat and power as the system reports them, and holding off its sleep. Nothing here polls: the
//! system calls back, or a caller asks.

mod awake;
mod pressure;
mod system;

use api::Slowdown;
pub use awake::KeepAwake;
pub use pressure::MemoryPressure;
use tokio::sync::mpsc::UnboundedReceiver;

/// Tells whenever memory has become short, again and again while it stays so; `None` if this system does not tell.
pub fn memory_pressure() -> Option<UnboundedReceiver<MemoryPressure>> {
    system::memory_pressure()
        .inspect_err(|error| tracing::info!(%error, "the system does not tell when memory gets short"))
        .ok()
}

/// The reason why this computer is slowed down now, as far as the system reports one.
pub fn slowdown() -> Option<Slowdown> {
    system::slowdown()
}
