//! The program of the tests is the program of the processes, too: it takes the role first.

use std::fs;
use std::net::TcpStream;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use sandbox::{take_role, Error, Task};

type Reply = Result<String, String>;

const TIME: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(2);

static TURN: Task<String, String> = Task::new("turn", TIME, |text, bytes| {
    (text.chars().rev().collect(), bytes.into_iter().rev().collect())
});
static PROCESS: Task<(), u32> = Task::new("process", TIME, |(), _| (std::process::id(), Vec::new()));
static ABORT: Task<(), ()> = Task::new("abort", TIME, |(), _| std::process::abort());
static OVERFLOW: Task<u64, u64> = Task::new("overflow", TIME, |depth, _| (recurse(depth), Vec::new()));
static PANIC: Task<(), ()> = Task::new("panic", TIME, |(), _| panic!("a bug"));
static HANG: Task<(), ()> = Task::new("hang", SHORT, |(), _| loop {
    std::hint::black_box(());
});
static MEMORY: Task<(), usize> = Task::new("memory", TIME, |(), _| {
    let held: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 256 << 20]).collect();
    (held.len(), Vec::new())
});
static GROW: Task<(), u32> = Task::new("grow", TIME, |(), _| {
    std::mem::forget(vec![1_u8; 200 << 20]);
    (std::process::id(), Vec::new())
});
static OPEN: Task<String, Reply> = Task::new("open", TIME, |path, _| {
    (
        fs::read(path)
            .map(|bytes| format!("{} bytes", bytes.len()))
            .map_err(|error| error.to_string()),
        Vec::new(),
    )
});
static WRITE: Task<String, Reply> = Task::new("write", TIME, |path, _| {
    (
        fs::write(path, "x")
            .map(|()| "written".into())
            .map_err(|error| error.to_string()),
        Vec::new(),
    )
});
static CONNECT: Task<String, Reply> = Task::new("connect", TIME, |address, _| {
    (
        TcpStream::connect(address)
            .map(|_| "connected".into())
            .map_err(|error| error.to_string()),
        Vec::new(),
    )
});
static START: Task<(), Reply> = Task::new("start", TIME, |(), _| {
    (
        Command::new("/bin/true")
            .status()
            .map(|status| status.to_string())
            .map_err(|error| error.to_string()),
        Vec::new(),
    )
});
static THREAD: Task<(), u32> = Task::new("thread", TIME, |(), _| {
    let stack = thread::Builder::new().stack_size(64 << 20);
    (
        stack.spawn(|| 7).expect("a thread").join().expect("its value"),
        Vec::new(),
    )
});
static ENVIRONMENT: Task<(), Vec<String>> = Task::new("environment", TIME, |(), _| {
    (std::env::vars().map(|(name, _)| name).collect(), Vec::new())
});

fn recurse(depth: u64) -> u64 {
    let here = std::hint::black_box([depth; 64]);
    if depth == 0 {
        0
    } else {
        recurse(depth - 1) + here[0]
    }
}

fn main() -> ExitCode {
    let tasks: [&dyn sandbox::Work; 14] = [
        &TURN,
        &GROW,
        &PROCESS,
        &ABORT,
        &OVERFLOW,
        &PANIC,
        &HANG,
        &MEMORY,
        &OPEN,
        &WRITE,
        &CONNECT,
        &START,
        &THREAD,
        &ENVIRONMENT,
    ];
    if let Some(end) = take_role(&[&tasks]) {
        return end;
    }
    let tests: [(&str, fn()); 9] = [
        (
            "work_is_done_in_one_process_after_another",
            work_is_done_in_another_process,
        ),
        ("a_process_that_ends_is_an_error_of_its_work_alone", ends),
        ("work_beyond_its_time_is_ended", hangs),
        ("work_beyond_its_memory_is_ended", takes_memory),
        ("a_process_that_grew_serves_no_more", grows),
        ("no_file_network_or_program_is_reached", reaches_nothing),
        ("threads_with_large_stacks_start", threads),
        ("two_work_at_once_and_others_wait", together),
        ("secrets_of_the_environment_stay_outside", environment),
    ];
    println!("\nrunning {} tests", tests.len());
    for (name, test) in tests {
        test();
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed", tests.len());
    ExitCode::SUCCESS
}

fn work_is_done_in_another_process() {
    let (text, bytes) = TURN.run("drop".into(), vec![1, 2, 3]).expect("an answer");
    assert_eq!((text.as_str(), bytes.as_slice()), ("pord", [3, 2, 1].as_slice()));
    let large = vec![5; 40 << 20];
    assert_eq!(TURN.run(String::new(), large.clone()).expect("an answer").1, large);
    let first = PROCESS.run((), Vec::new()).expect("an answer").0;
    assert_ne!(first, std::process::id());
    assert_eq!(
        PROCESS.run((), Vec::new()).expect("an answer").0,
        first,
        "it serves again"
    );
}

fn ends() {
    assert!(matches!(ABORT.run((), Vec::new()), Err(Error::Ended)));
    assert!(matches!(OVERFLOW.run(u64::MAX, Vec::new()), Err(Error::Ended)));
    assert!(matches!(PANIC.run((), Vec::new()), Err(Error::Ended)));
    work_is_done_in_another_process();
}

fn hangs() {
    let begun = Instant::now();
    assert!(matches!(HANG.run((), Vec::new()), Err(Error::TimedOut)));
    assert!(begun.elapsed() >= SHORT);
    work_is_done_in_another_process();
}

fn takes_memory() {
    assert!(matches!(MEMORY.run((), Vec::new()), Err(Error::Ended)));
    work_is_done_in_another_process();
}

fn grows() {
    let grown = GROW.run((), Vec::new()).expect("an answer").0;
    assert_ne!(PROCESS.run((), Vec::new()).expect("an answer").0, grown);
}

fn reaches_nothing() {
    let reply = |task: &Task<String, Reply>, input: &str| task.run(input.to_owned(), Vec::new()).expect("an answer").0;
    let mine = tempfile::NamedTempFile::new().expect("a file");
    let path = mine.path().display().to_string();
    for file in [path.as_str(), "/etc/passwd", "/proc/self/environ"] {
        assert!(reply(&OPEN, file).is_err(), "{file} was read");
    }
    assert!(reply(&WRITE, &path).is_err());
    assert!(reply(&WRITE, &format!("{path}-new")).is_err());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    assert!(reply(&CONNECT, &address).is_err());
    assert!(START.run((), Vec::new()).expect("an answer").0.is_err());
}

fn threads() {
    assert_eq!(THREAD.run((), Vec::new()).expect("an answer").0, 7);
}

fn together() {
    let begun = Instant::now();
    thread::scope(|scope| {
        let hung: Vec<_> = (0..3).map(|_| scope.spawn(|| HANG.run((), Vec::new()))).collect();
        for hung in hung {
            assert!(matches!(hung.join().expect("joined"), Err(Error::TimedOut)));
        }
    });
    // Three of which two ran at once: the third waited for one of them.
    assert!(begun.elapsed() >= 2 * SHORT);
    work_is_done_in_another_process();
}

fn environment() {
    std::env::set_var("PONDER_API_KEY", "secret");
    // A process of before has the environment of before, so the ones that rest are ended.
    assert!(matches!(ABORT.run((), Vec::new()), Err(Error::Ended)));
    let names = ENVIRONMENT.run((), Vec::new()).expect("an answer").0;
    let kept = |name: &String| ["LD_LIBRARY_PATH", "HOME", "OPENBLAS_NUM_THREADS"].contains(&name.as_str());
    assert!(names.iter().all(kept), "{names:?}");
}
