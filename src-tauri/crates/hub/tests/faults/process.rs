//! Faults of the process and the disk: a kill, no space, no permission, another program at work.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hub_imitation::{Dice, Fault, Imitation, Repository, Times};

use crate::table::{look, Ended, Fetches, Run, MODEL};

/// Long enough for any fetch of Pebble, with all its waits.
const PATIENCE: Duration = Duration::from_secs(90);
/// Set in a process with a namespace of its own, in which it may mount.
const INSIDE: &str = "PONDER_TEST_MAY_MOUNT";

/// Starts one fetch in a process of its own.
pub type Start<'a> = &'a (dyn Fn(&str, &Path) -> Command + Sync);

/// A hub slow enough for a fault in the middle: Pebble takes half a second.
fn slow_hub() -> (Imitation, Repository) {
    let hub = Imitation::start();
    let repository = hub.repository(MODEL).pebble();
    let drip = Fault::Drip {
        bytes: 64_000,
        pause: Duration::from_millis(2),
    };
    hub.fault("model.safetensors", drip, Times::Always);
    (hub, repository)
}

/// A cache in a temporary folder, which also has room for the programs' own data.
fn place() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let cache = root.path().join("hub");
    (root, cache)
}

/// The command line, if it was built next to the tests.
pub fn ponder() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let built = test.parent()?.parent()?.join("ponder");
    if !built.is_file() {
        println!(
            "skipped: {} is not built; `cargo build --workspace --bins` or `./dev test` builds it",
            built.display()
        );
        return None;
    }
    Some(built)
}

fn wait(child: &mut Child) -> Result<(), String> {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return if status.success() {
                Ok(())
            } else {
                Err(format!("it ended with {status}"))
            };
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    Err("it did not end".to_owned())
}

/// A fetch by a process of its own each time.
pub struct Process<'a>(pub Start<'a>);

impl Fetches for Process<'_> {
    fn fetch(&self, endpoint: &str, cache: &Path) -> Result<(), String> {
        let mut child = (self.0)(endpoint, cache).spawn().map_err(|error| error.to_string())?;
        wait(&mut child)
    }
}

/// Kills a fetch in the middle of the weights, then fetches again. The second figure is the bytes the next try had to
/// ask for.
pub fn killed(start: Start, seed: u64) -> (Run, u64) {
    let mut dice = Dice::new(seed);
    let (hub, repository) = slow_hub();
    let (_root, cache) = place();
    let size = repository.bytes("model.safetensors").expect("a file has bytes").len() as u64;
    // The moments reach past the last byte: those of the last hash and the last rename count too.
    let moment = dice.below(size + 400_000);
    let mut child = start(&hub.endpoint(), &cache).spawn().expect("it starts");
    let started = Instant::now();
    while hub.sent() < moment && started.elapsed() < PATIENCE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_micros(500));
    }
    std::thread::sleep(Duration::from_micros(dice.below(20_000)));
    let killed = child.kill().is_ok();
    let status = child.wait().expect("it has ended");
    let first = if status.success() {
        Ok(())
    } else {
        Err(format!("killed: {killed}"))
    };
    let took = started.elapsed();
    hub.clear_faults();
    let left = look(&cache, &repository);
    let sent = hub.sent();
    let second = Process(start).fetch(&hub.endpoint(), &cache);
    let again = hub.sent() - sent;
    let repaired = look(&cache, &repository);
    let run = Run {
        first,
        took,
        left,
        second,
        repaired,
    };
    (run, again)
}

/// Two programs fetch the same model into the same folder, the second a moment later.
pub fn two(first: &dyn Fetches, second: &dyn Fetches, seed: u64) -> Run {
    let mut dice = Dice::new(seed);
    let (hub, repository) = slow_hub();
    let (_root, cache) = place();
    let head_start = Duration::from_millis(dice.below(400));
    let started = Instant::now();
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(|| first.fetch(&hub.endpoint(), &cache));
        std::thread::sleep(head_start);
        let other = second.fetch(&hub.endpoint(), &cache);
        (one.join().expect("it does not panic"), other)
    });
    let took = started.elapsed();
    hub.clear_faults();
    let left = look(&cache, &repository);
    let again = first
        .fetch(&hub.endpoint(), &cache)
        .and(second.fetch(&hub.endpoint(), &cache));
    let repaired = look(&cache, &repository);
    Run {
        first: one.and(other),
        took,
        left,
        second: again,
        repaired,
    }
}

/// A small file system, unmounted when dropped.
pub struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    /// `None` if this process may not mount.
    pub fn of(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "ponder-test"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        mounted.is_ok_and(|status| status.success()).then_some(Self { folder })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Forbids or allows writing.
    fn read_only(&self, read_only: bool) {
        let options = if read_only { "remount,ro" } else { "remount,rw" };
        let status = Command::new("mount").args(["-o", options]).arg(self.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "it can be mounted again");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// True if this process may mount. If only a process with a namespace of its own may, the named test runs again in one,
/// and this process has nothing left to do.
pub fn may_mount(test: &str) -> bool {
    if Disk::of(1 << 20).is_some() {
        return true;
    }
    if std::env::var_os(INSIDE).is_some() {
        println!("skipped: {test}: a file system can be mounted neither here nor in a name space of its own");
        return false;
    }
    let test_program = std::env::current_exe().expect("this program has a path");
    let status = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(test_program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) if status.code() == Some(101) => panic!("{test} failed in a name space of its own"),
        _ => println!("skipped: {test}: this system gives no name space in which a small disk could be mounted"),
    }
    false
}

/// The disk fills up in the middle, and is cleared for the next try.
pub fn full(fetcher: &dyn Fetches, seed: u64) -> Option<Run> {
    let mut dice = Dice::new(seed);
    let disk = Disk::of(40 << 20)?;
    let (hub, repository) = slow_hub();
    let (cache, filler) = (disk.path().join("hub"), disk.path().join("filler"));
    fs::create_dir_all(&cache).expect("folders are made");
    let moment = dice.below(14_000_000);
    let started = Instant::now();
    let first = std::thread::scope(|scope| {
        let filling = scope.spawn(|| {
            while hub.sent() < moment && started.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(1));
            }
            // Ends when the disk is full.
            let _ = fs::write(&filler, vec![1; 40 << 20]);
        });
        let first = fetcher.fetch(&hub.endpoint(), &cache);
        filling.join().expect("it does not panic");
        first
    });
    let took = started.elapsed();
    hub.clear_faults();
    let left = look(&cache, &repository);
    fs::remove_file(&filler).expect("room is made");
    let second = fetcher.fetch(&hub.endpoint(), &cache);
    let repaired = look(&cache, &repository);
    Some(Run {
        first,
        took,
        left,
        second,
        repaired,
    })
}

/// The cache is read-only from the start or from some moment on; for the next try it is writable.
pub fn read_only(fetcher: &dyn Fetches, seed: u64) -> Option<Run> {
    let mut dice = Dice::new(seed);
    let (hub, repository) = slow_hub();
    let first;
    let (left, second, repaired);
    let started = Instant::now();
    if writes_where_it_may_not() {
        let disk = Disk::of(40 << 20)?;
        let cache = disk.path().join("hub");
        fs::create_dir_all(&cache).expect("folders are made");
        disk.read_only(true);
        first = fetcher.fetch(&hub.endpoint(), &cache);
        disk.read_only(false);
        hub.clear_faults();
        left = look(&cache, &repository);
        second = fetcher.fetch(&hub.endpoint(), &cache);
        repaired = look(&cache, &repository);
    } else {
        let (_root, cache) = place();
        let model = cache.join("models--ponder--pebble");
        // The read-only folder differs between runs.
        let forbidden = [
            cache.clone(),
            model.clone(),
            model.join("blobs"),
            model.join("snapshots"),
        ][dice.below(4) as usize]
            .clone();
        fs::create_dir_all(&forbidden).expect("folders are made");
        fs::set_permissions(&forbidden, fs::Permissions::from_mode(0o555)).expect("it is ours");
        first = fetcher.fetch(&hub.endpoint(), &cache);
        fs::set_permissions(&forbidden, fs::Permissions::from_mode(0o755)).expect("it is ours");
        hub.clear_faults();
        left = look(&cache, &repository);
        second = fetcher.fetch(&hub.endpoint(), &cache);
        repaired = look(&cache, &repository);
    }
    Some(Run {
        first,
        took: started.elapsed(),
        left,
        second,
        repaired,
    })
}

/// True if permissions do not stop this process from writing, as they do not stop root.
pub fn writes_where_it_may_not() -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).expect("it is ours");
    let wrote = fs::write(folder.path().join("file"), "").is_ok();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    wrote
}

/// No file may exceed a few MB, as under a quota; the process's limit stands in for it.
pub fn limited(start: Start, megabytes: u64) -> Run {
    let (hub, repository) = slow_hub();
    let (_root, cache) = place();
    let plain = start(&hub.endpoint(), &cache);
    let mut command = Command::new("sh");
    // The signal is ignored, so that the write fails instead of ending the process.
    command
        .args(["-c", "trap '' XFSZ; ulimit -f $1; shift; exec \"$@\"", "sh"])
        .arg((megabytes * 2048).to_string())
        .arg(plain.get_program())
        .args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let started = Instant::now();
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr)
        .trim()
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned();
    let first = if output.status.success() { Ok(()) } else { Err(said) };
    let took = started.elapsed();
    hub.clear_faults();
    let left = look(&cache, &repository);
    let second = Process(start).fetch(&hub.endpoint(), &cache);
    let repaired = look(&cache, &repository);
    Run {
        first,
        took,
        left,
        second,
        repaired,
    }
}

/// Counts runs and prints them as a row of the table.
pub fn row(name: &str, runs: impl Iterator<Item = Run>) -> Ended {
    let (mut ended, mut count) = (Ended::default(), 0);
    for run in runs {
        ended.count(run);
        count += 1;
    }
    println!("report: {}", ended.line(name, count));
    for (said, count) in &ended.said {
        println!("  {count} x {said}");
    }
    ended
}
