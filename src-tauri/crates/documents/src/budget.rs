//! Other people's code on files from anywhere: bounded in time and stack, and a panic makes its file a broken one.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::kind::DocumentKind;

/// How long a file may be read. A thousand pages take about two seconds.
const TIME: Duration = Duration::from_secs(20);

/// How long it may take beyond that to notice that the time is over; after it, the thread is left to itself.
const GRACE: Duration = Duration::from_secs(5);

/// Threads that were left to themselves and still run, and how many there may be: each holds its file and a core.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);
const MOST_ABANDONED: usize = 2;

/// Enough for what parsers of nested objects need below their own limits of depth.
const STACK: usize = 64 << 20;

/// The time that reading a file may still take.
#[derive(Debug)]
pub(crate) struct Budget {
    kind: DocumentKind,
    ends: Instant,
}

impl Budget {
    /// Fails if the time is over. Asked once for every few thousand steps.
    pub(crate) fn check(&self) -> Result<()> {
        match Instant::now() < self.ends {
            true => Ok(()),
            false => Err(too_slow(self.kind)),
        }
    }
}

fn too_slow(kind: DocumentKind) -> Error {
    Error::broken(kind, "reading it takes too long")
}

/// Reads a file on a thread of its own.
///
/// # Errors
/// Those of `work`; `Broken` if it panics or does not end; `Waiting` if two files before it did not end yet.
pub(crate) fn run<T: Send + 'static>(
    kind: DocumentKind,
    work: impl FnOnce(&Budget) -> Result<T> + Send + 'static,
) -> Result<T> {
    within(TIME, GRACE, &ABANDONED, kind, work)
}

fn within<T: Send + 'static>(
    time: Duration,
    grace: Duration,
    abandoned: &'static AtomicUsize,
    kind: DocumentKind,
    work: impl FnOnce(&Budget) -> Result<T> + Send + 'static,
) -> Result<T> {
    if abandoned.load(Ordering::SeqCst) >= MOST_ABANDONED {
        return Err(Error::Waiting);
    }
    // Without a buffer, so that a thread hears whether it was waited for.
    let (sender, answer) = mpsc::sync_channel(0);
    let budget = Budget {
        kind,
        ends: Instant::now() + time,
    };
    let contradicts = move || Error::broken(kind, "its contents contradict each other");
    let thread = thread::Builder::new()
        .name("document".into())
        .stack_size(STACK)
        .spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(|| work(&budget)));
            // A panic with an error of ours is how a reader without a way to fail is ended.
            let done = done
                .unwrap_or_else(|panic| Err(panic.downcast::<Error>().map_or_else(|_| contradicts(), |error| *error)));
            if sender.send(done).is_err() {
                abandoned.fetch_sub(1, Ordering::SeqCst);
            }
        });
    if thread.is_err() {
        return Err(Error::broken(kind, "this computer has no thread free for it"));
    }
    answer.recv_timeout(time + grace).unwrap_or_else(|gone| match gone {
        RecvTimeoutError::Timeout => {
            // Before the receiver goes, whose end the thread hears.
            abandoned.fetch_add(1, Ordering::SeqCst);
            Err(too_slow(kind))
        }
        RecvTimeoutError::Disconnected => Err(contradicts()),
    })
}

/// Ends a reader that cannot return an error.
pub(crate) fn end(error: Error) -> ! {
    // Without the hook: nothing is wrong with the program.
    std::panic::resume_unwind(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_panics_makes_its_file_a_broken_one() {
        let panicked: Result<()> = run(DocumentKind::Pdf, |_| {
            std::panic::resume_unwind(Box::new("index out of range"))
        });
        assert_eq!(
            panicked,
            Err(Error::broken(DocumentKind::Pdf, "its contents contradict each other"))
        );
        let ended: Result<()> = run(DocumentKind::Pdf, |_| end(Error::too_much_text()));
        assert_eq!(ended, Err(Error::too_much_text()));
    }

    #[test]
    fn two_files_that_do_not_end_keep_others_out_until_one_ends() {
        static LEFT: AtomicUsize = AtomicUsize::new(0);
        let (ends, waits) = mpsc::channel::<()>();
        let waits = std::sync::Arc::new(std::sync::Mutex::new(waits));
        let short = Duration::from_millis(20);
        let read = |waits: Option<std::sync::Arc<std::sync::Mutex<mpsc::Receiver<()>>>>| {
            let time = if waits.is_some() { short } else { TIME };
            within(time, Duration::ZERO, &LEFT, DocumentKind::Pdf, move |_| {
                if let Some(waits) = waits {
                    let _ = waits.lock().unwrap().recv();
                }
                Ok(())
            })
        };
        assert_eq!(read(None), Ok(()));
        for _ in 0..2 {
            assert_eq!(read(Some(waits.clone())), Err(too_slow(DocumentKind::Pdf)));
        }
        assert_eq!(read(None), Err(Error::Waiting));
        assert_eq!(read(Some(waits.clone())), Err(Error::Waiting));
        ends.send(()).unwrap();
        while LEFT.load(Ordering::SeqCst) == 2 {
            thread::yield_now();
        }
        assert_eq!(read(None), Ok(()));
    }

    #[test]
    fn time_that_is_over_is_an_error() {
        let budget = Budget {
            kind: DocumentKind::Html,
            ends: Instant::now(),
        };
        assert_eq!(budget.check(), Err(too_slow(DocumentKind::Html)));
    }
}
