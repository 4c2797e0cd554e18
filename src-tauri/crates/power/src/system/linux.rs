//! Linux: pressure stall information (PSI) and the platform's power profile.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use api::Slowdown;
use rustix::event::{poll, PollFd, PollFlags};
use sysinfo::System;
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver};

use crate::pressure::MemoryPressure;

const PRESSURE: &str = "/proc/pressure/memory";

/// Triggers of the kernel: microseconds of stalling within a window. Unprivileged programs may only use windows of
/// multiples of two seconds.
const TRIGGERS: [(MemoryPressure, &str); 2] = [
    // Some tasks stalled 15 % of the time.
    (MemoryPressure::Warning, "some 300000 2000000"),
    // All tasks stalled 10 % of the time.
    (MemoryPressure::Critical, "full 200000 2000000"),
];

/// One part of so many of all memory. While more of it is available, programs stall for files that the kernel reads
/// again, and nothing that the app gives back would help them.
const PLENTY: u64 = 5;

/// The firmware's power profile, on computers that have one.
const PROFILE: &str = "/sys/firmware/acpi/platform_profile";

pub fn memory_pressure() -> io::Result<UnboundedReceiver<MemoryPressure>> {
    let triggers = TRIGGERS
        .map(|(pressure, trigger)| Ok((pressure, open_trigger(Path::new(PRESSURE), trigger)?)))
        .into_iter()
        .collect::<io::Result<Vec<_>>>()?;
    let (tell, pressure) = unbounded_channel();
    std::thread::Builder::new()
        .name("memory-pressure".into())
        .spawn(move || {
            let heard = listen(&triggers, |pressure| {
                let plentiful = System::new().is_ok_and(|mut system| {
                    system.refresh_memory();
                    is_plentiful(system.available_memory(), system.total_memory())
                });
                plentiful || tell.send(pressure).is_ok()
            });
            if let Err(error) = heard {
                tracing::warn!(%error, "the system no longer tells when memory gets short");
            }
        })?;
    Ok(pressure)
}

/// Asks the kernel to tell; it does as long as the file is open.
fn open_trigger(path: &Path, trigger: &str) -> io::Result<File> {
    let mut file = File::options().read(true).write(true).open(path)?;
    // The kernel puts the end of the text over its last byte.
    file.write_all(format!("{trigger}\0").as_bytes())?;
    Ok(file)
}

/// Waits for the kernel and passes on the highest pressure that it reports, until the receiver is dropped.
fn listen(triggers: &[(MemoryPressure, File)], tell: impl Fn(MemoryPressure) -> bool) -> io::Result<()> {
    loop {
        let mut waiting: Vec<PollFd<'_>> = triggers
            .iter()
            .map(|(_, file)| PollFd::new(file, PollFlags::PRI))
            .collect();
        match poll(&mut waiting, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        if waiting.iter().any(|fd| fd.revents().contains(PollFlags::ERR)) {
            return Err(io::Error::other("the kernel gave the trigger up"));
        }
        let told = waiting
            .iter()
            .zip(triggers)
            .filter(|(fd, _)| fd.revents().contains(PollFlags::PRI));
        let worst = told.map(|(_, (pressure, _))| *pressure).max();
        if worst.is_some_and(|pressure| !tell(pressure)) {
            return Ok(());
        }
    }
}

/// True if so much memory is available that none is short.
fn is_plentiful(available: u64, total: u64) -> bool {
    available > total / PLENTY
}

/// The kernel counts how often cores were too hot since the start, and not whether one is now; so heat is never told
/// here.
pub fn slowdown() -> Option<Slowdown> {
    saves_power(Path::new(PROFILE)).then_some(Slowdown::LowPower)
}

fn saves_power(profile: &Path) -> bool {
    fs::read_to_string(profile).is_ok_and(|profile| profile.trim() == "low-power")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_every_trigger_where_it_knows_pressure() {
        if !Path::new(PRESSURE).exists() {
            println!("report: no memory pressure here: skipped");
            return;
        }
        for (pressure, trigger) in TRIGGERS {
            open_trigger(Path::new(PRESSURE), trigger).unwrap_or_else(|error| panic!("{pressure:?}: {error}"));
        }
        let refused = open_trigger(Path::new(PRESSURE), "some 300000 1").unwrap_err();
        assert_eq!(
            refused.kind(),
            io::ErrorKind::InvalidInput,
            "a window of a microsecond is none"
        );
        assert!(crate::memory_pressure().is_some());
    }

    #[test]
    fn a_stall_beside_much_available_memory_is_no_shortage() {
        const GIB: u64 = 1 << 30;
        assert!(is_plentiful(22 * GIB, 24 * GIB));
        assert!(!is_plentiful(3 * GIB, 24 * GIB));
        assert!(!is_plentiful(0, 0), "a kernel that says nothing");
    }

    #[test]
    fn only_the_profile_that_saves_power_slows_down() {
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path().join("platform_profile");
        assert!(!saves_power(&profile), "computers without one");
        for (text, slow) in [("low-power\n", true), ("balanced\n", false), ("performance\n", false)] {
            fs::write(&profile, text).unwrap();
            assert_eq!(saves_power(&profile), slow, "{text}");
        }
    }
}
