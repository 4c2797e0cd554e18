//! The list of requests: the last thousand, in memory and on disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use api::{OutboundRequest, Purpose};
use files::{append_private, make_private_folder, write_private, Durability};
use tokio::sync::watch;

/// How many requests the list holds.
pub(crate) const MOST_REQUESTS: usize = 1000;
/// How much of the list a crash can lose.
const WRITTEN_EVERY: Duration = Duration::from_millis(500);
/// The file holds a line for each change; it is rewritten with one line for each request when it is larger than
/// this.
const LARGEST_FILE: u64 = 1 << 20;

/// All requests of this data folder. Clones share it.
#[derive(Clone)]
pub(crate) struct RequestList(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    file: Option<PathBuf>,
    state: Mutex<State>,
    wake: Condvar,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    known: BTreeMap<u64, OutboundRequest>,
    running: Vec<Arc<Running>>,
    unwritten: Vec<u64>,
    last_number: u64,
    ended: bool,
}

/// A request that is on its way.
struct Running {
    number: u64,
    began: Instant,
    received: AtomicU64,
    written: AtomicU64,
}

/// The entry of a request that is on its way, for whoever sends it. Dropping it marks the request as over.
pub(crate) struct RequestEntry {
    shared: Arc<Shared>,
    running: Arc<Running>,
}

impl RequestList {
    /// The list of this data folder; without a folder it lives in memory alone.
    pub(crate) fn open(folder: Option<&Path>) -> Self {
        let file = folder.map(|folder| folder.join("requests.jsonl"));
        let known = file.as_deref().map(read).unwrap_or_default();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                last_number: known.keys().next_back().copied().unwrap_or_default(),
                known,
                ..State::default()
            }),
            file,
            wake: Condvar::new(),
            changes: watch::Sender::new(0),
        });
        let spawn = |shared: Arc<Shared>| {
            let thread = std::thread::Builder::new().name("requests".into());
            let spawned = thread.spawn(move || shared.write_until_the_end());
            spawned
                .map_err(|error| tracing::warn!(%error, "requests stay in memory"))
                .ok()
        };
        let writer = shared.file.is_some().then(|| spawn(Arc::clone(&shared))).flatten();
        Self(Arc::new(Inner {
            shared,
            writer: Mutex::new(writer),
        }))
    }

    /// Adds a request that begins.
    pub(crate) fn begin(&self, host: String, purpose: Purpose, method: &str) -> RequestEntry {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Microseconds keep the numbers of two processes on one folder distinct.
        let number = u64::try_from(since.as_micros())
            .unwrap_or(u64::MAX)
            .max(state.last_number + 1);
        state.last_number = number;
        state.known.insert(
            number,
            OutboundRequest {
                number,
                at: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                host,
                purpose,
                method: method.to_owned(),
                status: None,
                sent: 0,
                received: 0,
                milliseconds: 0,
                failure: None,
                over: false,
            },
        );
        let running = Arc::new(Running {
            number,
            began: Instant::now(),
            received: AtomicU64::new(0),
            written: AtomicU64::new(0),
        });
        state.running.push(Arc::clone(&running));
        state.changed(number);
        drop(state);
        shared.tell();
        RequestEntry {
            shared: Arc::clone(shared),
            running,
        }
    }

    /// The last thousand, the newest last, those of other processes on this folder included.
    pub(crate) fn all(&self) -> Vec<OutboundRequest> {
        let shared = &self.0.shared;
        let mut all = shared.file.as_deref().map(read).unwrap_or_default();
        let mut state = shared.lock();
        state.count();
        all.extend(state.known.iter().map(|(number, request)| (*number, request.clone())));
        while all.len() > MOST_REQUESTS {
            all.pop_first();
        }
        all.into_values().collect()
    }

    /// Changes with the list, and at least twice a second while bytes arrive.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.0.shared.changes.subscribe()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.wake.notify_all();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // It ends because of `ended`; a panic in it would have been printed already.
            let _ = writer.join();
        }
    }
}

impl RequestEntry {
    /// Bytes of the body arrived.
    pub(crate) fn received(&self, bytes: usize) {
        self.running.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of the request were handed over.
    pub(crate) fn sent(&self, bytes: u64) {
        self.change(|request| request.sent += bytes);
    }

    /// The answer's status.
    pub(crate) fn answered(&self, status: u16) {
        self.change(|request| request.status = Some(status));
    }

    /// Why it failed.
    pub(crate) fn failed(&self, why: impl Into<protocol::Error>) {
        let why = why.into();
        self.change(|request| request.failure = Some(why));
    }

    fn change(&self, act: impl FnOnce(&mut OutboundRequest)) {
        let mut state = self.shared.lock();
        let number = self.running.number;
        if let Some(request) = state.known.get_mut(&number) {
            act(request);
        }
        state.changed(number);
        drop(state);
        self.shared.tell();
    }
}

impl Drop for RequestEntry {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.count();
        let number = self.running.number;
        state.running.retain(|running| running.number != number);
        if let Some(request) = state.known.get_mut(&number) {
            request.over = true;
        }
        state.changed(number);
        // Only what is over may go: a request that runs longer than a thousand others stays until it ends.
        while state.known.len() > MOST_REQUESTS {
            let Some(oldest) = state
                .known
                .iter()
                .find(|(_, request)| request.over)
                .map(|(number, _)| *number)
            else {
                break;
            };
            state.known.remove(&oldest);
        }
        drop(state);
        self.shared.tell();
    }
}

impl State {
    fn changed(&mut self, number: u64) {
        if self.unwritten.last() != Some(&number) {
            self.unwritten.push(number);
        }
    }

    /// Brings the counts of what is running into the list, and says whether any moved since it was last written.
    fn count(&mut self) -> bool {
        let mut moved = false;
        for running in &self.running {
            let received = running.received.load(Ordering::Relaxed);
            if let Some(request) = self.known.get_mut(&running.number) {
                request.received = received;
                request.milliseconds = u64::try_from(running.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            }
            if running.written.swap(received, Ordering::Relaxed) != received {
                self.unwritten.push(running.number);
                moved = true;
            }
        }
        moved
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count += 1);
        self.wake.notify_all();
    }

    fn write_until_the_end(&self) {
        let Some(file) = &self.file else { return };
        let mut complained = false;
        loop {
            let mut state = self.lock();
            while !state.ended && state.unwritten.is_empty() && state.running.is_empty() {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            // Changes of the next moments are written together.
            let until = Instant::now() + WRITTEN_EVERY;
            while !state.ended && Instant::now() < until {
                let left = until.saturating_duration_since(Instant::now());
                state = self
                    .wake
                    .wait_timeout(state, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
            let moved = state.count();
            let mut numbers = std::mem::take(&mut state.unwritten);
            numbers.sort_unstable();
            numbers.dedup();
            let mut lines = Vec::new();
            for request in numbers.iter().filter_map(|number| state.known.get(number)) {
                if serde_json::to_writer(&mut lines, request).is_ok() {
                    lines.push(b'\n');
                }
            }
            let ended = state.ended;
            drop(state);
            if moved {
                self.changes.send_modify(|count| *count += 1);
            }
            if let (Err(error), false) = (append(file, &lines), complained) {
                tracing::warn!(%error, "the list of requests cannot be written");
                complained = true;
            }
            if ended {
                return;
            }
        }
    }
}

/// The requests in the file: the last line of each. Truncated lines are skipped.
fn read(file: &Path) -> BTreeMap<u64, OutboundRequest> {
    let text = fs::read(file).unwrap_or_default();
    let mut known: BTreeMap<u64, OutboundRequest> = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<OutboundRequest>(line).ok())
        .map(|request| (request.number, request))
        .collect();
    while known.len() > MOST_REQUESTS {
        known.pop_first();
    }
    known
}

/// Appends lines under a lock, so that one process can rewrite the file while another appends to it.
fn append(file: &Path, lines: &[u8]) -> std::io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        make_private_folder(folder)?;
    }
    let lock = append_private(&file.with_extension("lock"))?;
    lock.lock()?;
    let mut out = append_private(file)?;
    out.write_all(lines)?;
    if out.metadata()?.len() > LARGEST_FILE {
        let mut whole = Vec::new();
        for request in read(file).into_values() {
            serde_json::to_writer(&mut whole, &request)?;
            whole.push(b'\n');
        }
        write_private(file, &whole, Durability::ProcessCrash)?;
    }
    Ok(())
}
