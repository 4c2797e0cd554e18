//! The fault table: faults between a hub and a disk, tried many times at random moments, and the end of each try.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hub_imitation::{Dice, Fault, FaultTarget, Imitation, OnDisk, Origin, Repository, Times};

/// The repository that every run fetches.
pub const MODEL: &str = "ponder/pebble";
const WEIGHTS: &str = "model.safetensors";
/// Runs at the same time; most of a run is waiting.
const AT_ONCE: usize = 4;

/// A program that fetches a model.
pub trait Fetches: Sync {
    /// Fetches [`MODEL`] from this hub into this cache; `Err` is the message for the user.
    fn fetch(&self, endpoint: &str, cache: &Path) -> Result<(), String>;
}

/// A fault, planned anew for each run.
pub struct Row {
    pub name: &'static str,
    plan: fn(&Imitation, &mut Dice),
    /// The change of the hub while the fetch runs.
    meanwhile: Option<fn(&Imitation, &mut Dice)>,
    /// The endpoint, if it is not the hub's.
    endpoint: Option<&'static str>,
}

impl Row {
    const fn plain(name: &'static str, plan: fn(&Imitation, &mut Dice)) -> Self {
        Self {
            name,
            plan,
            meanwhile: None,
            endpoint: None,
        }
    }
}

/// Once, a few times, or until it is cleared.
fn some_times(dice: &mut Dice) -> Times {
    match dice.below(4) {
        0 | 1 => Times::Once,
        2 => Times::N(3),
        _ => Times::Always,
    }
}

fn size() -> u64 {
    static SIZE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *SIZE.get_or_init(|| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pebble/model/model.safetensors");
        std::fs::metadata(folder).expect("Pebble is there").len()
    })
}

fn on_weights(hub: &Imitation, dice: &mut Dice, fault: impl FnOnce(&mut Dice) -> Fault) {
    let fault = fault(dice);
    let times = some_times(dice);
    hub.fault(WEIGHTS, fault, times);
}

fn status(code: u16, retry_after: Option<u64>) -> Fault {
    Fault::Status { code, retry_after }
}

/// A request for a range comes after a broken one at the latest.
fn on_ranges(hub: &Imitation, dice: &mut Dice, fault: Fault) {
    hub.fault(
        WEIGHTS,
        Fault::Broken {
            bytes: dice.below(size()),
        },
        Times::Once,
    );
    let times = some_times(dice);
    hub.fault(WEIGHTS, fault, times);
}

/// All faults of a hub.
pub fn rows() -> Vec<Row> {
    vec![
        Row::plain("connection cut", |hub, dice| {
            on_weights(hub, dice, |dice| Fault::Cut {
                after: dice.below(size()),
            })
        }),
        Row::plain("closed before the promised end", |hub, dice| {
            on_weights(hub, dice, |dice| Fault::Broken {
                bytes: dice.below(size()),
            })
        }),
        Row::plain("short body", |hub, dice| {
            on_weights(hub, dice, |dice| Fault::Short {
                bytes: dice.below(size()),
            })
        }),
        Row::plain("corrupted byte", |hub, dice| {
            on_weights(hub, dice, |dice| Fault::Corrupt { at: dice.below(size()) })
        }),
        Row::plain("corrupted byte in a small file", |hub, dice| {
            let times = some_times(dice);
            hub.fault(
                "tokenizer.json",
                Fault::Corrupt {
                    at: dice.below(200_000),
                },
                times,
            );
        }),
        Row::plain("wrong ETag", |hub, dice| {
            let path = if dice.below(2) == 0 { WEIGHTS } else { "config.json" };
            let times = some_times(dice);
            hub.fault_at(FaultTarget::Resolve, None, Some(path), Fault::WrongEtag, times);
        }),
        Row::plain("new commit midway", |hub, dice| {
            hub.fault(
                WEIGHTS,
                Fault::NewCommit {
                    after: dice.below(size()),
                },
                Times::Once,
            );
        }),
        Row::plain("file overwritten midway", |hub, dice| {
            hub.fault(
                WEIGHTS,
                Fault::Overwritten {
                    after: dice.below(size()),
                },
                Times::Once,
            );
        }),
        Row::plain("CDN 403", |hub, dice| on_weights(hub, dice, |_| status(403, None))),
        Row::plain("CDN 503", |hub, dice| on_weights(hub, dice, |_| status(503, None))),
        Row::plain("429 with Retry-After", |hub, dice| {
            let place = [FaultTarget::Api, FaultTarget::Resolve, FaultTarget::Body][dice.below(3) as usize];
            let times = if dice.below(4) == 0 { Times::Always } else { Times::Once };
            hub.fault_at(place, None, None, status(429, Some(1)), times);
        }),
        Row::plain("hub 503", |hub, dice| {
            let place = [FaultTarget::Api, FaultTarget::Resolve][dice.below(2) as usize];
            let times = some_times(dice);
            hub.fault_at(place, None, None, status(503, None), times);
        }),
        Row::plain("login page", |hub, dice| {
            let place = [FaultTarget::Api, FaultTarget::Resolve, FaultTarget::Body][dice.below(3) as usize];
            let times = some_times(dice);
            hub.fault_at(place, None, None, Fault::Portal, times);
        }),
        Row::plain("200 on a range", |hub, dice| on_ranges(hub, dice, Fault::RangeIgnored)),
        Row::plain("416", |hub, dice| on_ranges(hub, dice, Fault::RangeRefused)),
        Row::plain("another range than asked", |hub, dice| {
            let by = 1 + dice.below(5_000);
            on_ranges(hub, dice, Fault::RangeShifted { by });
        }),
        Row::plain("slow drip", |hub, dice| {
            let fault = Fault::Drip {
                bytes: dice.between(60_000, 400_000),
                pause: Duration::from_millis(dice.between(3, 10)),
            };
            hub.fault(WEIGHTS, fault, Times::Always);
        }),
        Row::plain("stall", |hub, dice| {
            on_weights(hub, dice, |dice| Fault::Stall {
                after: dice.below(size()),
            })
        }),
        Row::plain("no answer", |hub, dice| {
            let place = [FaultTarget::Api, FaultTarget::Resolve, FaultTarget::Body][dice.below(3) as usize];
            let times = if dice.below(4) == 0 { Times::Always } else { Times::Once };
            hub.fault_at(place, None, None, Fault::Stall { after: 0 }, times);
        }),
        Row {
            meanwhile: Some(|hub, dice| {
                let origin = if dice.below(2) == 0 { Origin::Hub } else { Origin::Cdn };
                std::thread::sleep(Duration::from_millis(dice.below(150)));
                hub.disappear(origin);
                std::thread::sleep(Duration::from_millis(dice.below(400)));
                hub.reappear(origin);
            }),
            ..Row::plain("network away for a moment", |hub, _| {
                let drip = Fault::Drip {
                    bytes: 100_000,
                    pause: Duration::from_millis(1),
                };
                hub.fault(WEIGHTS, drip, Times::Always);
            })
        },
        Row {
            endpoint: Some("http://hub.invalid"),
            ..Row::plain("name does not resolve", |_, _| {})
        },
    ]
}

/// The ends of the runs of a row.
#[derive(Debug, Default)]
pub struct Ended {
    /// The first try ended with the model, equal to the source.
    pub verified: usize,
    /// The first try ended with an error, with nothing wrong left behind.
    pub refused: usize,
    /// The first try left wrong content, or reported success too early.
    pub wrong: usize,
    /// The next try, without a fault, did not end with the model.
    pub not_repaired: usize,
    /// The longest first try.
    pub longest: Duration,
    /// Unexpected results, and errors as the user sees them.
    pub said: BTreeMap<String, usize>,
}

/// The end of one run.
pub struct Run {
    pub first: Result<(), String>,
    pub took: Duration,
    pub left: OnDisk,
    pub second: Result<(), String>,
    pub repaired: OnDisk,
}

impl Ended {
    /// Counts a run.
    pub fn count(&mut self, run: Run) {
        self.longest = self.longest.max(run.took);
        if let Err(error) = &run.first {
            // Ports, hashes and sizes differ from run to run.
            let said = error.split_whitespace().map(|word| {
                if word.bytes().any(|byte| byte.is_ascii_digit()) {
                    "…"
                } else {
                    word
                }
            });
            *self.said.entry(said.collect::<Vec<_>>().join(" ")).or_default() += 1;
        }
        if !run.left.wrong.is_empty() || (run.first.is_ok() && !run.left.complete) {
            self.wrong += 1;
            *self
                .said
                .entry(format!("WRONG {:?} {:?}", run.first, run.left))
                .or_default() += 1;
        } else if run.first.is_ok() {
            self.verified += 1;
        } else {
            self.refused += 1;
        }
        if run.second.is_err() || !run.repaired.complete || !run.repaired.wrong.is_empty() {
            self.not_repaired += 1;
            *self
                .said
                .entry(format!("NOT REPAIRED {:?} {:?}", run.second, run.repaired))
                .or_default() += 1;
        }
    }

    /// The row as it is printed.
    pub fn line(&self, name: &str, runs: usize) -> String {
        format!(
            "{name:32} {runs:4} {:9} {:7} {:6} {:12} {:8.1} s",
            self.verified,
            self.refused,
            self.wrong,
            runs - self.not_repaired,
            self.longest.as_secs_f64()
        )
    }
}

/// The names of the columns.
pub const HEAD: &str = "fault                            runs  verified  error    wrong  then right    longest";

/// Checks the files that a fetch left.
pub fn look(cache: &Path, repository: &Repository) -> OnDisk {
    OnDisk::look(cache, repository, |_| true)
}

fn run(row: &Row, fetcher: &dyn Fetches, seed: u64) -> Run {
    let mut dice = Dice::new(seed);
    let hub = Imitation::start();
    let repository = hub.repository(MODEL).pebble();
    let cache = tempfile::tempdir().expect("a temporary folder");
    (row.plan)(&hub, &mut dice);
    let endpoint = row.endpoint.map_or_else(|| hub.endpoint(), str::to_owned);
    let started = Instant::now();
    let first = std::thread::scope(|scope| {
        if let Some(meanwhile) = row.meanwhile {
            let (hub, dice) = (&hub, &mut dice);
            scope.spawn(move || meanwhile(hub, dice));
        }
        fetcher.fetch(&endpoint, cache.path())
    });
    let took = started.elapsed();
    hub.clear_faults();
    let left = look(cache.path(), &repository);
    let second = fetcher.fetch(&hub.endpoint(), cache.path());
    let repaired = look(cache.path(), &repository);
    Run {
        first,
        took,
        left,
        second,
        repaired,
    }
}

/// Runs each row `runs` times, a few at the same time, and returns the ends in the order of the rows.
pub fn run_all(rows: &[Row], fetcher: &dyn Fetches, runs: usize, seed: u64) -> Vec<Ended> {
    let ended: Vec<Mutex<Ended>> = rows.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(row) = rows.get(number / runs) else { return };
                let run = run(row, fetcher, seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
                ended[number / runs]
                    .lock()
                    .expect("no run panics while it counts")
                    .count(run);
            });
        }
    });
    ended
        .into_iter()
        .map(|ended| ended.into_inner().expect("no run panics while it counts"))
        .collect()
}

/// Runs of each row: more of them, with fresh seeds, in a full run.
pub fn how_often(few: usize, many: usize) -> (usize, u64) {
    let seed = std::env::var("PONDER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(1);
    (if full_run() { many } else { few }, seed)
}

/// True for a full run (`PONDER_FULL`). Only then huggingface_hub goes through the same faults, for comparison: nothing
/// is asserted of it, and it waits for minutes.
pub fn full_run() -> bool {
    std::env::var_os("PONDER_FULL").is_some()
}
