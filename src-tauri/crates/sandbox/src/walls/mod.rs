//! Limits of a process, by the system that it runs on.

use std::io;
use std::sync::Once;
use std::time::Duration;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{allow, command, memory, raise};

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub(crate) use macos::{allow, command, memory, raise};

/// The memory that work may take beyond that of the program: an image of 100 megapixels unfolds to 240 MB, several
/// times.
pub(crate) const MEMORY: u64 = 3 << 30;

/// Waits for a request. Returns false if none came in this time.
pub(crate) fn wait_for_input(time: Duration) -> bool {
    let stdin = io::stdin();
    let mut input = [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)];
    let time = rustix::event::Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: 0,
    };
    // An interruption is followed by a read that waits.
    !matches!(rustix::event::poll(&mut input, Some(&time)), Ok(0))
}

/// Logs the walls that this system lacks, once.
pub(crate) fn report(missing: &[String]) {
    static TOLD: Once = Once::new();
    if !missing.is_empty() {
        TOLD.call_once(|| tracing::warn!(missing = missing.join(", "), "files are read with fewer limits"));
    }
}
