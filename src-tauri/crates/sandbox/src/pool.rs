//! The processes of a program.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::Result;
use crate::frame::Frame;
use crate::process::{Failure, Process};

/// The number of processes: a second one, so that a file that takes its whole time holds up nobody.
const PROCESSES: usize = 2;

static POOL: OnceLock<Pool> = OnceLock::new();

/// Says that this program has the role: from now on, its tasks run in processes of it.
pub(crate) fn enable() {
    POOL.get_or_init(|| Pool {
        places: Mutex::new(Places {
            idle: Vec::new(),
            free: PROCESSES,
        }),
        freed: Condvar::new(),
    });
}

/// The processes, if this program has any.
pub(crate) fn pool() -> Option<&'static Pool> {
    POOL.get()
}

pub(crate) struct Pool {
    places: Mutex<Places>,
    freed: Condvar,
}

struct Places {
    idle: Vec<Process>,
    /// Places without work.
    free: usize,
}

impl Pool {
    /// Waits for a place, and for the answer.
    pub(crate) fn answer(&self, request: &Frame, time: Duration) -> Result<Frame> {
        let mut places = self
            .freed
            .wait_while(self.places(), |places| places.free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        places.free -= 1;
        let idle = places.idle.pop();
        drop(places);
        let place = Place { pool: self, kept: None };
        place.answer(idle, request, time)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken, given back at the end with the process that it keeps.
struct Place<'a> {
    pool: &'a Pool,
    kept: Option<Process>,
}

impl Place<'_> {
    fn answer(mut self, idle: Option<Process>, request: &Frame, time: Duration) -> Result<Frame> {
        if let Some(mut process) = idle {
            match process.answer(request, time) {
                Ok(answer) => {
                    self.kept = Some(process);
                    return Ok(answer);
                }
                // It ended by itself after a time without work, just before this request.
                Err(Failure::Rested) => {}
                Err(Failure::Failed(error)) => return Err(error),
            }
        }
        let mut process = Process::start()?;
        let answer = process.answer(request, time)?;
        self.kept = Some(process);
        Ok(answer)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let kept = self.kept.take().filter(|process| !process.is_large());
        let mut places = self.pool.places();
        places.free += 1;
        places.idle.extend(kept);
        self.pool.freed.notify_one();
    }
}
