//! The threads that compute: one for each core that this process may use, of which the caller is one.
//!
//! Between two operations of a step lie microseconds, so that threads wait for the next one awake for a moment and
//! sleep afterwards. A thread that comes late finds the parts taken and is not waited for.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;

/// Set while a job takes threads. The bits above the count of threads that work at it number the jobs.
const OPEN: u64 = 1 << 63;
const JOB: u64 = 1 << 32;
const WORKING: u64 = JOB - 1;

/// How often a thread looks for work before it sleeps: some tens of microseconds.
const LOOKS: u32 = 2000;

/// Looks between which the core is offered to other threads: MLX describes the next operations meanwhile.
const PATIENCE: u32 = 16;

/// A moment between two looks.
fn pause(look: u32) {
    match look % PATIENCE == PATIENCE - 1 {
        true => thread::yield_now(),
        false => spin_loop(),
    }
}

type Part<'a> = dyn Fn(usize) + Sync + 'a;

/// A job: what is called, with how many numbers, and by how many threads.
#[derive(Clone, Copy)]
struct Job {
    part: *const Part<'static>,
    parts: usize,
    threads: usize,
}

/// A counter in a line of the cache of its own.
#[repr(align(64))]
#[derive(Default)]
struct Next(AtomicUsize);

struct Shared {
    state: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    /// The part that is taken next of those of each thread.
    next: Vec<Next>,
    /// Threads that take part; the others rest.
    threads: AtomicUsize,
    asleep: AtomicUsize,
    bed: Mutex<()>,
    awake: Condvar,
    /// Told when more threads may take part.
    more: Condvar,
}

// SAFETY: `job` is written only while it is closed and no thread works at it, and read only by threads that are counted
// as working.
unsafe impl Sync for Shared {}
// SAFETY: as above; the function it points to may be called from any thread.
unsafe impl Send for Shared {}

/// Threads that share the parts of one job at a time.
pub struct Pool {
    shared: Arc<Shared>,
    /// How many were started, the caller among them.
    started: Mutex<usize>,
    /// One job at a time.
    caller: Mutex<()>,
}

impl Pool {
    /// That of this process.
    pub fn get() -> &'static Self {
        static POOL: OnceLock<Pool> = OnceLock::new();
        POOL.get_or_init(|| {
            let pool = Pool::new(allowed());
            pool.set_threads(suitable());
            pool
        })
    }

    /// The number of threads that suits this computer.
    pub fn suitable() -> usize {
        suitable()
    }

    /// Lets so many threads take part from the next job on, the caller of [`Pool::run`] among them, and at most as many as
    /// the pool was made for.
    pub fn set_threads(&self, wanted: usize) {
        let wanted = wanted.clamp(1, self.shared.next.len());
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        while *started < wanted {
            let (shared, index) = (self.shared.clone(), *started);
            let named = thread::Builder::new().name(format!("ponder-cpu-{index}"));
            if named.spawn(move || shared.serve(index)).is_err() {
                break;
            }
            *started += 1;
        }
        let _bed = self.shared.bed.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.threads.store(wanted.min(*started), Ordering::SeqCst);
        self.shared.more.notify_all();
    }

    /// A pool for so many threads at most, of which only the caller of [`Pool::run`] takes part at first.
    fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            next: (0..threads).map(|_| Next::default()).collect(),
            threads: AtomicUsize::new(1),
            asleep: AtomicUsize::new(0),
            bed: Mutex::new(()),
            awake: Condvar::new(),
            more: Condvar::new(),
        });
        Self {
            shared,
            started: Mutex::new(1),
            caller: Mutex::new(()),
        }
    }

    /// How many threads take part.
    pub fn threads(&self) -> usize {
        self.shared.threads.load(Ordering::Relaxed)
    }

    /// Calls `part` with every number below `parts`, on all threads, and returns when all calls have.
    pub fn run(&self, parts: usize, part: &Part<'_>) {
        let threads = self.threads();
        if parts <= 1 || threads == 1 {
            (0..parts).for_each(part);
            return;
        }
        let _alone = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &*self.shared;
        // SAFETY: the job is closed and left by all threads before this function returns, so that the lifetime holds.
        let part = unsafe { std::mem::transmute::<&Part<'_>, &'static Part<'static>>(part) };
        let job = Job { part, parts, threads };
        // SAFETY: the job is closed and nobody works at it, so no thread reads this.
        unsafe { *shared.job.get() = Some(job) };
        for (thread, next) in shared.next.iter().enumerate().take(threads) {
            next.0.store(job.first(thread), Ordering::Relaxed);
        }
        let number = (shared.state.load(Ordering::Relaxed) & !OPEN & !WORKING).wrapping_add(JOB);
        shared.state.store(OPEN | number & !OPEN, Ordering::SeqCst);
        if shared.asleep.load(Ordering::SeqCst) > 0 {
            let _bed = shared.bed.lock().unwrap_or_else(PoisonError::into_inner);
            shared.awake.notify_all();
        }
        let closed = Closing(shared);
        shared.work(job, 0);
        drop(closed);
    }
}

/// Closes the job and waits for the threads that work at it, also if a part panics.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let mut looks = 0;
        self.0.state.fetch_and(!OPEN, Ordering::SeqCst);
        while self.0.state.load(Ordering::Acquire) & WORKING > 0 {
            pause(looks);
            looks += 1;
        }
    }
}

impl Job {
    /// The first part of a thread: each has neighbors, so that it reads on where it was in memory.
    fn first(&self, thread: usize) -> usize {
        thread * self.parts / self.threads
    }
}

impl Shared {
    /// Takes the parts of a thread, and then those that other threads have not begun.
    fn work(&self, job: Job, thread: usize) {
        for owner in (thread..job.threads).chain(0..thread.min(job.threads)) {
            let end = job.first(owner + 1);
            loop {
                let part = self.next[owner].0.fetch_add(1, Ordering::Relaxed);
                if part >= end {
                    break;
                }
                // SAFETY: the caller of `run` waits for the threads that work at its job.
                unsafe { (*job.part)(part) };
            }
        }
    }

    /// Works at every job that it is in time for.
    fn serve(&self, thread: usize) {
        let mut last = 0;
        loop {
            self.rest(thread);
            let state = self.next_job(last);
            let entered = self
                .state
                .compare_exchange(state, state + 1, Ordering::AcqRel, Ordering::Relaxed);
            if entered.is_err() {
                // Another thread entered, or the job was closed.
                continue;
            }
            last = state & !OPEN & !WORKING;
            // SAFETY: this thread is counted as working, so the job stays.
            if let Some(job) = unsafe { *self.job.get() }.filter(|job| thread < job.threads) {
                self.work(job, thread);
            }
            self.state.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits until a thread is one of those that take part.
    fn rest(&self, thread: usize) {
        let rests = || thread >= self.threads.load(Ordering::SeqCst);
        if !rests() {
            return;
        }
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        while rests() {
            bed = self.more.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The state once a job is open that is not number `last`.
    fn next_job(&self, last: u64) -> u64 {
        let new = |state: u64| state & OPEN > 0 && state & !OPEN & !WORKING != last;
        for look in 0..LOOKS {
            let state = self.state.load(Ordering::Acquire);
            if new(state) {
                return state;
            }
            pause(look);
        }
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        let state = loop {
            let state = self.state.load(Ordering::SeqCst);
            if new(state) {
                break state;
            }
            bed = self.awake.wait(bed).unwrap_or_else(PoisonError::into_inner);
        };
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        state
    }
}

/// The cores that this process may use, by the system's limits: affinity and control groups.
fn allowed() -> usize {
    let wanted = wanted().unwrap_or(1);
    thread::available_parallelism()
        .map_or(1, usize::from)
        .max(wanted)
        .min(256)
}

/// The physical ones among them, or `PONDER_THREADS`: a second thread on a core shares its arithmetic units and only
/// waits.
fn suitable() -> usize {
    let physical = || sysinfo::System::physical_core_count().unwrap_or(usize::MAX);
    wanted().unwrap_or_else(|| physical().min(allowed()))
}

fn wanted() -> Option<usize> {
    std::env::var("PONDER_THREADS").ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_done_once_by_any_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads);
            pool.set_threads(threads);
            assert_eq!(pool.threads(), threads);
            for round in 0..3000 {
                let parts = round % 40;
                let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                pool.run(parts, &|part| {
                    done[part].fetch_add(1, Ordering::Relaxed);
                });
                assert!(
                    done.iter().all(|count| count.load(Ordering::Relaxed) == 1),
                    "{threads} threads, round {round}"
                );
            }
        }
    }

    #[test]
    fn fewer_threads_do_all_parts() {
        let pool = Pool::new(4);
        for wanted in [3, 1, 4, 0, 9, 2] {
            pool.set_threads(wanted);
            assert_eq!(pool.threads(), wanted.clamp(1, 4));
            for parts in 0..200 {
                let (sum, threads) = (AtomicUsize::new(0), Mutex::new(std::collections::HashSet::new()));
                pool.run(parts, &|part| {
                    sum.fetch_add(part + 1, Ordering::Relaxed);
                    threads.lock().unwrap().insert(thread::current().id());
                });
                assert_eq!(sum.into_inner(), parts * (parts + 1) / 2);
                assert!(threads.into_inner().unwrap().len() <= pool.threads());
            }
        }
    }

    #[test]
    fn threads_that_sleep_wake_for_the_next_job() {
        let pool = Pool::new(4);
        pool.set_threads(4);
        for _ in 0..20 {
            thread::sleep(std::time::Duration::from_millis(2));
            let sum = AtomicUsize::new(0);
            pool.run(100, &|part| {
                sum.fetch_add(part, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 4950);
        }
    }
}
