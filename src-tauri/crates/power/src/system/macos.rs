//! macOS: libdispatch tells of the memory, NSProcessInfo of power and heat.

use std::io;

use api::Slowdown;
use block2::RcBlock;
use dispatch2::{
    _dispatch_source_type_memorypressure, dispatch_source_memorypressure_flags_t as Flags, DispatchObject,
    DispatchSource,
};
use objc2_foundation::{NSProcessInfo, NSProcessInfoThermalState};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver};

use crate::pressure::MemoryPressure;

pub fn memory_pressure() -> io::Result<UnboundedReceiver<MemoryPressure>> {
    let (tell, pressure) = unbounded_channel();
    let mask = (Flags::DISPATCH_MEMORYPRESSURE_WARN.0 | Flags::DISPATCH_MEMORYPRESSURE_CRITICAL.0) as usize;
    // SAFETY: the type is the system's own constant, of which only the address is taken; it wants handle 0 and flags of
    // this kind.
    let source = unsafe {
        DispatchSource::new(
            (&raw const _dispatch_source_type_memorypressure).cast_mut(),
            0,
            mask,
            None,
        )
    };
    let told = source.clone();
    let handler = RcBlock::new(move || {
        let critical = told.data() & Flags::DISPATCH_MEMORYPRESSURE_CRITICAL.0 as usize != 0;
        let pressure = match critical {
            true => MemoryPressure::Critical,
            false => MemoryPressure::Warning,
        };
        if tell.send(pressure).is_err() {
            told.cancel();
        }
    });
    // SAFETY: the source keeps a copy of the block, and what the block holds may be used on any thread.
    unsafe { source.set_event_handler_with_block(RcBlock::as_ptr(&handler)) };
    // Its handler holds it, so that it stays.
    source.activate();
    Ok(pressure)
}

pub fn slowdown() -> Option<Slowdown> {
    let process = NSProcessInfo::processInfo();
    // In a serious state the system slows the processors down.
    if process.thermalState().0 >= NSProcessInfoThermalState::Serious.0 {
        return Some(Slowdown::Heat);
    }
    process.isLowPowerModeEnabled().then_some(Slowdown::LowPower)
}
