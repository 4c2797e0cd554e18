//! A process that works on files: its start, one request, its end.

use std::io;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::frame::Frame;
use crate::walls;

/// The argument that gives a process its role.
pub(crate) const ROLE: &str = "read-files-of-strangers";
/// The version in the first frame: after an update, the program on disk may be another one.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long a start may take on a busy computer.
const START: Duration = Duration::from_secs(60);
/// How often its memory is looked at where no limit of the system holds.
const WATCH: Duration = Duration::from_millis(50);
/// The memory beyond which a process serves no further request, in bytes.
const LARGE: u64 = 128 << 20;
/// Variables that it keeps: where the libraries of a development build are.
const KEPT: [&str; 2] = ["LD_LIBRARY_PATH", "HOME"];

/// Why there is no answer.
pub(crate) enum Failure {
    /// The process had ended by itself, because it had had nothing to do.
    Rested,
    /// The work failed.
    Failed(Error),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Rested => Self::Ended,
            Failure::Failed(error) => error,
        }
    }
}

pub(crate) struct Process {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

impl Process {
    /// Starts one and waits until it is ready.
    ///
    /// # Errors
    /// `Start` if the system refuses it, or if it is another version.
    pub(crate) fn start() -> Result<Self> {
        let mut command = walls::command().map_err(Error::Start)?;
        command.arg(ROLE).env_clear();
        command.envs(
            KEPT.into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        // Libraries of mathematics start a thread for each processor otherwise, each with its own memory.
        command.env("OPENBLAS_NUM_THREADS", "1");
        let mut process = Self::spawn(command).map_err(Error::Start)?;
        let hello = process.exchange(None, START).map_err(|failure| match failure {
            Failure::Rested | Failure::Failed(Error::Ended) => Error::Start(io::ErrorKind::BrokenPipe.into()),
            Failure::Failed(error) => error,
        })?;
        match serde_json::from_slice::<(String, Vec<String>)>(&hello.header) {
            Ok((version, missing)) if version == VERSION => {
                walls::report(&missing);
                Ok(process)
            }
            _ => Err(Error::Start(io::Error::other("it is of another version"))),
        }
    }

    fn spawn(mut command: Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (requests, answers) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            child,
            requests,
            answers,
        })
    }

    /// True if it grew by its work: memory that a library keeps comes back when the process ends.
    pub(crate) fn is_large(&self) -> bool {
        walls::memory(&self.child) > LARGE
    }

    /// One request and its answer. After a failure the process has ended.
    pub(crate) fn answer(&mut self, request: &Frame, time: Duration) -> std::result::Result<Frame, Failure> {
        self.exchange(Some(request), time)
    }

    /// Writes and reads while another thread watches time and memory, and kills the process beyond them.
    fn exchange(&mut self, request: Option<&Frame>, time: Duration) -> std::result::Result<Frame, Failure> {
        let Self {
            child,
            requests,
            answers,
        } = self;
        let (done, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let watch = thread::Builder::new().spawn_scoped(scope, move || watch(child, &ended, time));
            let watch = watch.map_err(|error| Failure::Failed(Error::Start(error)))?;
            let written = request.map_or(Ok(()), |request| request.write(requests));
            let read = written.and_then(|()| Frame::read(answers));
            if read.is_ok() {
                drop(done);
            }
            // Without an answer, the watch ends when the process has.
            let end = watch.join().unwrap_or(End::Killed(Error::Ended));
            match (read, end) {
                (Ok(answer), _) => Ok(answer),
                (Err(_), End::Killed(error)) => Err(Failure::Failed(error)),
                (Err(_), End::Rested) => Err(Failure::Rested),
            }
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

enum End {
    Killed(Error),
    Rested,
}

/// Waits for the answer or the end of the process; kills it when its time is over or its memory too large.
fn watch(child: &mut Child, done: &mpsc::Receiver<()>, time: Duration) -> End {
    let ends = Instant::now() + time;
    loop {
        match done.recv_timeout(WATCH) {
            // The answer is there.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return End::Rested,
            Err(RecvTimeoutError::Timeout) => {}
        }
        match child.try_wait() {
            // A process that rests leaves with success, one that fails with a signal or a code.
            Ok(Some(status)) if status.success() => return End::Rested,
            Ok(Some(_)) | Err(_) => return End::Killed(Error::Ended),
            Ok(None) => {}
        }
        let error = match () {
            () if Instant::now() >= ends => Error::TimedOut,
            () if walls::memory(child) > walls::MEMORY => Error::Ended,
            () => continue,
        };
        let _ = child.kill();
        let _ = child.wait();
        return End::Killed(error);
    }
}
