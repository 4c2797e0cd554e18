//! The threads of work that needs no MLX: templates, tokenizers, the headers of images. Were it done on the worker's
//! thread, every running answer would wait for a slow template or a huge message.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mlx::memory;
use prompt::RenderLimits;
use protocol::{CancelFlag, CancelOnDrop, Priority};
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::error::{catch_panic, Error, Result};

/// Enough for one that is slow and the others; more would take cores from answers.
const THREADS: usize = 2;

/// A task that takes longer had a template or a text that filled the memory, most of which the C library would keep.
const SLOW: Duration = Duration::from_secs(1);

/// Does tasks by class and in the order in which they came, on at most [`THREADS`] threads, which end when there is
/// nothing to do. Tasks of programs have one of them at a time, so that none of a chat waits for theirs. Clones share
/// the threads.
#[derive(Clone, Default)]
pub struct Pool(Arc<Mutex<Tasks>>);

type Task = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Tasks {
    waiting: BTreeMap<(Priority, u64), Task>,
    /// The number of tasks that have come.
    come: u64,
    threads: usize,
    /// True while a thread does a program's.
    of_program: bool,
}

impl Tasks {
    /// The next task that may be done now, with its class.
    fn next(&mut self) -> Option<(Priority, Task)> {
        let first = self.waiting.first_entry()?;
        let (priority, _) = *first.key();
        if priority != Priority::Chat && self.of_program {
            return None;
        }
        self.of_program |= priority != Priority::Chat;
        Some((priority, first.remove()))
    }
}

impl Pool {
    /// Lets a thread do this. If there is none, the task is dropped, and whoever waits for it learns of that.
    pub fn run(&self, priority: Priority, task: impl FnOnce() + Send + 'static) {
        let mut tasks = self.tasks();
        tasks.come += 1;
        let place = (priority, tasks.come);
        tasks.waiting.insert(place, Box::new(task));
        if tasks.threads == THREADS {
            return;
        }
        tasks.threads += 1;
        let pool = self.clone();
        let thread = std::thread::Builder::new().name("prepare".into());
        if let Err(error) = thread.spawn(move || pool.work()) {
            tracing::warn!(%error, "no thread could be started to prepare requests");
            tasks.threads -= 1;
            tasks.waiting.remove(&place);
        }
    }

    /// Does work that somebody waits for, with the time that templates of a request have. It ends early when its result
    /// is dropped or `ended` says so.
    pub fn submit<T: Send + 'static>(
        &self,
        priority: Priority,
        ended: impl Fn() -> bool + Send + Sync + 'static,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let (sender, result) = oneshot::channel();
        let unwanted = CancelFlag::default();
        let dropped = unwanted.clone();
        let cancelled = Arc::new(move || dropped.is_cancelled() || ended());
        self.run(priority, move || {
            let asked = cancelled.clone();
            let limits = RenderLimits::request().cancelled_by(move || asked());
            let mut done = Err(Error::Cancelled);
            if !cancelled() {
                done = catch_panic(|| limits.within(work));
            }
            // A template that was stopped with its job is no failure.
            if cancelled() {
                done = Err(Error::Cancelled);
            }
            // The receiver may be gone.
            let _ = sender.send(done);
        });
        Pending::Running(result, CancelOnDrop(unwanted))
    }

    fn work(&self) {
        let mut done = Priority::Chat;
        loop {
            let task = {
                let mut tasks = self.tasks();
                tasks.of_program &= done == Priority::Chat;
                let Some((priority, task)) = tasks.next() else {
                    tasks.threads -= 1;
                    return;
                };
                done = priority;
                task
            };
            let begun = Instant::now();
            if let Err(error) = catch_panic(|| {
                task();
                Ok(())
            }) {
                tracing::error!(%error, "a task was not done");
            }
            if begun.elapsed() > SLOW {
                memory::trim_heap();
            }
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        // Nothing that can panic runs under this lock, so a poisoned value is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of work in a [`Pool`]. Dropping it ends the work.
pub enum Pending<T> {
    /// It is waited for.
    Running(oneshot::Receiver<Result<T>>, CancelOnDrop),
    /// It is there.
    Ready(Result<T>),
}

impl<T> Pending<T> {
    /// True if the result is there.
    pub fn poll(&mut self) -> bool {
        if let Self::Running(result, _) = self {
            match result.try_recv() {
                Ok(result) => *self = Self::Ready(result),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Closed) => *self = Self::Ready(Err(Error::WorkerGone)),
            }
        }
        true
    }

    /// True as long as [`poll`](Self::poll) has not found the result.
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Running(..))
    }

    /// Takes the result, which is there once.
    ///
    /// # Errors
    /// That of the work.
    pub fn take(&mut self) -> Result<T> {
        match std::mem::replace(self, Self::Ready(Err(Error::WorkerGone))) {
            Self::Ready(result) => result,
            Self::Running(..) => Err(Error::WorkerGone),
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// That of the work.
    pub async fn wait(self) -> Result<T> {
        match self {
            Self::Running(result, _cancel) => result.await.unwrap_or(Err(Error::WorkerGone)),
            Self::Ready(result) => result,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn a_program_never_has_the_last_thread_and_tasks_keep_their_order() {
        let pool = Pool::default();
        let (go, blocked) = channel::<()>();
        let (done, order) = channel();
        let say = |name: &'static str| {
            let done = done.clone();
            move || done.send(name).unwrap()
        };
        let begun = say("a slow one has begun");
        pool.run(Priority::Api, move || {
            begun();
            blocked.recv().unwrap();
        });
        assert_eq!(order.recv_timeout(LIMIT).unwrap(), "a slow one has begun");
        pool.run(Priority::Background, say("a title"));
        pool.run(Priority::Api, say("a program"));
        pool.run(Priority::Api, say("another program"));
        pool.run(Priority::Chat, say("a chat"));
        assert_eq!(order.recv_timeout(LIMIT).unwrap(), "a chat");
        assert!(order.try_recv().is_err());
        go.send(()).unwrap();
        for name in ["a program", "another program", "a title"] {
            assert_eq!(order.recv_timeout(LIMIT).unwrap(), name);
        }
    }

    #[test]
    fn there_are_two_threads_and_a_panic_costs_none() {
        let pool = Pool::default();
        for _ in 0..THREADS {
            pool.run(Priority::Chat, || panic!("a task that panics"));
        }
        let (go, blocked) = channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let (done, begun) = channel();
        for number in 0..3 {
            let (blocked, done) = (blocked.clone(), done.clone());
            pool.run(Priority::Chat, move || {
                done.send(number).unwrap();
                blocked.lock().unwrap().recv().unwrap();
            });
        }
        let mut first = [begun.recv_timeout(LIMIT).unwrap(), begun.recv_timeout(LIMIT).unwrap()];
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        assert!(begun.recv_timeout(Duration::from_millis(50)).is_err());
        for _ in 0..3 {
            go.send(()).unwrap();
        }
        assert_eq!(begun.recv_timeout(LIMIT).unwrap(), 2);
    }

    #[test]
    fn work_ends_when_nobody_waits_for_it() {
        let pool = Pool::default();
        let (go, blocked) = channel::<()>();
        let (done, worked) = channel();
        pool.run(Priority::Api, move || blocked.recv().unwrap());
        let work = |name: &'static str| {
            let done = done.clone();
            move || {
                done.send(name).unwrap();
                Ok(())
            }
        };
        drop(pool.submit(Priority::Api, || false, work("dropped")));
        let mut ended = pool.submit(Priority::Api, || true, work("ended"));
        let mut wanted = pool.submit(Priority::Api, || false, work("wanted"));
        assert!(!wanted.poll() && wanted.is_running());
        go.send(()).unwrap();
        assert_eq!(worked.recv_timeout(LIMIT).unwrap(), "wanted");
        while !wanted.poll() {
            std::thread::yield_now();
        }
        assert!(wanted.take().is_ok() && worked.try_recv().is_err());
        assert!(ended.poll() && matches!(ended.take(), Err(Error::Cancelled)));
    }
}
