use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver};

use crate::output;

/// The time of one wait for the terminal; the next reader of the terminal waits no longer for it.
const WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The key that ends a thought while an answer is written: Enter at a terminal. Nothing is read before it is pressed,
/// so that the next reader of the terminal misses no word. Dropping it ends the listening.
pub struct EnterKey {
    presses: Option<UnboundedReceiver<()>>,
    dropped: Arc<AtomicBool>,
}

impl EnterKey {
    /// Listens if standard input is a terminal.
    pub fn new() -> Self {
        let dropped = Arc::new(AtomicBool::new(false));
        let (press, presses) = unbounded_channel();
        let seen = dropped.clone();
        if !io::stdin().is_terminal() {
            return Self { presses: None, dropped };
        }
        std::thread::spawn(move || {
            while let Ok(waiting) = line_is_waiting() {
                if seen.load(Ordering::Acquire) {
                    return;
                }
                // A terminal gives whole lines, so reading one does not wait. None of them is the end of input.
                if waiting && !(matches!(io::stdin().read_line(&mut String::new()), Ok(1..)) && press.send(()).is_ok())
                {
                    return;
                }
            }
        });
        let presses = Some(presses);
        Self { presses, dropped }
    }

    /// Waits until it is pressed; for ever if nobody can.
    pub async fn pressed(&mut self) {
        if let Some(presses) = &mut self.presses {
            if presses.recv().await.is_some() {
                return;
            }
            self.presses = None;
        }
        std::future::pending().await
    }

    /// Tells of the key, if somebody can press it.
    pub fn hint(&self) {
        if self.presses.is_some() {
            eprintln!(
                "{}",
                output::Stream::Err.soft("(Press Enter to answer now, or Ctrl+C to stop)")
            );
        }
    }
}

impl Drop for EnterKey {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Release);
    }
}

fn line_is_waiting() -> rustix::io::Result<bool> {
    let stdin = io::stdin();
    match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&WAIT)) {
        Ok(ready) => Ok(ready > 0),
        // A signal that is not for this thread.
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}
