//! Which process writes an answer, and whether it still does.

use std::fmt;

use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System};

/// A heartbeat older than this many milliseconds says nothing any more.
pub(crate) const HEARTBEAT_LASTS: i64 = 10_000;

/// Start times are computed from the clock, which may be set by a little meanwhile; seconds.
const START_TOLERANCE: u64 = 2;

/// A process, told apart from later ones with the same number by its start. Written as `pid:start@host`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriterProcess {
    pid: u32,
    /// Unix seconds.
    started: u64,
    host: String,
}

impl WriterProcess {
    /// This process.
    pub(crate) fn this_process() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            started: start_of(pid).ok().flatten().unwrap_or(0),
            host: host(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (process, host) = text.split_once('@')?;
        let (pid, started) = process.split_once(':')?;
        Some(Self {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
            host: host.to_owned(),
        })
    }
}

impl fmt::Display for WriterProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.pid, self.started, self.host)
    }
}

/// True if the other process that is called `owner` still writes its answer at the time `now`.
///
/// On this computer the process table decides, whatever the heartbeat says: a computer that slept wakes up with old
/// heartbeats and living processes. Elsewhere (a home folder on the network) only the heartbeat can be asked.
pub(crate) fn is_alive(owner: &str, heartbeat: i64, now: i64) -> bool {
    let fresh = now - heartbeat < HEARTBEAT_LASTS;
    match WriterProcess::parse(owner) {
        Some(owner) if owner.host == host() => match start_of(owner.pid) {
            Ok(None) => false,
            Ok(Some(started)) => started.abs_diff(owner.started) <= START_TOLERANCE || fresh,
            Err(_) => fresh,
        },
        _ => fresh,
    }
}

/// When a process began, in Unix seconds; `None` if there is no such process.
fn start_of(pid: u32) -> Result<Option<u64>, sysinfo::Error> {
    let pid = Pid::from_u32(pid);
    let mut system = System::new()?;
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, ProcessRefreshKind::nothing());
    // A killed process stays in the table until its parent has asked for it.
    let living = system
        .process(pid)
        .filter(|process| !matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead));
    Ok(living.map(|process| process.start_time()))
}

fn host() -> String {
    System::host_name().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_recognises_itself_however_old_its_heartbeat() {
        let owner = WriterProcess::this_process();
        assert_eq!(WriterProcess::parse(&owner.to_string()), Some(owner.clone()));
        assert!(is_alive(&owner.to_string(), 0, 1_000_000));
    }

    #[test]
    fn a_process_that_is_gone_is_dead_however_fresh_its_heartbeat() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let owner = WriterProcess {
            pid: child.id(),
            started: start_of(child.id()).unwrap().unwrap(),
            host: host(),
        }
        .to_string();
        assert!(is_alive(&owner, 0, 1_000_000));
        child.kill().unwrap();
        // Before the parent has waited for it the child is a zombie, which counts as dead.
        for _ in 0..100 {
            if !is_alive(&owner, 1_000_000, 1_000_000) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(!is_alive(&owner, 1_000_000, 1_000_000));
        child.wait().unwrap();
        assert!(!is_alive(&owner, 1_000_000, 1_000_000));
    }

    #[test]
    fn a_reused_number_lives_as_long_as_the_heartbeat() {
        let mut owner = WriterProcess::this_process();
        owner.started -= 1000;
        assert!(is_alive(&owner.to_string(), 995_000, 1_000_000));
        assert!(!is_alive(&owner.to_string(), 985_000, 1_000_000));
    }

    #[test]
    fn a_process_of_another_computer_lives_as_long_as_its_heartbeat() {
        let owner = WriterProcess {
            host: "somewhere-else".into(),
            ..WriterProcess::this_process()
        }
        .to_string();
        assert!(is_alive(&owner, 995_000, 1_000_000));
        assert!(!is_alive(&owner, 985_000, 1_000_000));
        assert!(!is_alive("nonsense", 985_000, 1_000_000));
    }
}
