//! The cost of a rendering: work, counted in bytes that are read, and bytes that are built. minijinja counts
//! instructions only, and an instruction may read megabytes.
//!
//! The counts belong to the thread, because values are asked for items where no state of minijinja is at hand.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use minijinja::value::Value;
use minijinja::{Error, ErrorKind};

use super::limits::Scope;

/// The longest text; more than any context holds.
pub(super) const LONGEST: usize = 16 << 20;
/// The weight of a list item, in bytes.
pub(super) const ITEM: usize = 32;

/// Bytes that any rendering may build, with those for each byte of the conversation, and the most.
const BUILT: usize = 64 << 20;
const BUILT_PER_BYTE: usize = 64;
const BUILT_AT_MOST: usize = 512 << 20;
/// Instructions that any rendering may take, with those for each byte, and the most: about a second.
const FUEL: u64 = 2_000_000;
const FUEL_PER_BYTE: u64 = 20;
const FUEL_AT_MOST: u64 = 20_000_000;
/// How often the conversation one value may hold; a list that holds a list twice grows without being copied.
const TIMES: usize = 4;

/// The work of a step that reads next to nothing.
const STEP: u64 = 64;
/// Work between two looks at the clock: a tenth of a millisecond at most.
const UNTIL_LOOK: u64 = 1 << 16;
/// More work than this in one step takes longer than any deadline.
const LONGEST_STEP: u64 = 8 << 30;

/// The reason that a rendering was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It took too long, or built too much.
    Endless,
    /// Nobody waits for it.
    Cancelled,
}

struct Meter {
    unlooked: Cell<u64>,
    built: Cell<usize>,
    may_build: Cell<usize>,
    heaviest: Cell<usize>,
    stopped: Cell<Option<Stop>>,
    scope: RefCell<Option<Scope>>,
}

thread_local! {
    static METER: Meter = const {
        Meter {
            unlooked: Cell::new(0),
            built: Cell::new(0),
            may_build: Cell::new(usize::MAX),
            heaviest: Cell::new(usize::MAX),
            stopped: Cell::new(None),
            scope: RefCell::new(None),
        }
    };
}

/// A rendering that is being counted.
pub(super) struct Counting(());

impl Counting {
    /// Begins for variables of this weight; gives the instructions that the rendering may take too.
    pub(super) fn begin(weight: usize) -> (Self, u64) {
        METER.with(|meter| {
            meter.unlooked.set(0);
            meter.built.set(0);
            meter
                .may_build
                .set((BUILT + BUILT_PER_BYTE.saturating_mul(weight)).min(BUILT_AT_MOST));
            meter.heaviest.set(LONGEST + TIMES.saturating_mul(weight));
            meter.stopped.set(None);
            *meter.scope.borrow_mut() = Some(Scope::current());
        });
        let fuel = FUEL + FUEL_PER_BYTE.saturating_mul(weight as u64);
        (Self(()), fuel.min(FUEL_AT_MOST))
    }

    /// The reason that it was stopped, if it was.
    pub(super) fn stopped(&self) -> Option<Stop> {
        METER.with(|meter| meter.stopped.get())
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        METER.with(|meter| {
            meter.scope.borrow_mut().take();
            meter.may_build.set(usize::MAX);
            meter.heaviest.set(usize::MAX);
        });
    }
}

impl Meter {
    #[inline]
    fn work(&self, bytes: u64) -> Result<(), Error> {
        let unlooked = self.unlooked.get().saturating_add(bytes);
        self.unlooked.set(unlooked);
        match unlooked < UNTIL_LOOK {
            true => Ok(()),
            false => self.look(bytes),
        }
    }

    #[cold]
    fn look(&self, bytes: u64) -> Result<(), Error> {
        let scope = self.scope.borrow();
        let Some(scope) = &*scope else {
            self.unlooked.set(0);
            return Ok(());
        };
        if self.stopped.get().is_none() {
            if scope.is_cancelled() {
                self.stopped.set(Some(Stop::Cancelled));
            } else if bytes > LONGEST_STEP || Instant::now() >= scope.deadline {
                self.stopped.set(Some(Stop::Endless));
            } else {
                self.unlooked.set(0);
                return Ok(());
            }
        }
        // A count after the end finds it ended, without a look.
        self.unlooked.set(UNTIL_LOOK);
        Err(endless())
    }
}

#[cold]
fn endless() -> Error {
    Error::new(
        ErrorKind::OutOfFuel,
        "the template runs longer, or builds more, than any model's does",
    )
}

/// Counts bytes that are read.
///
/// # Errors
/// If the time is over, or nobody waits any more.
pub(super) fn work(bytes: usize) -> Result<(), Error> {
    METER.with(|meter| meter.work(STEP.saturating_add(bytes as u64)))
}

/// Counts a step, where no error can be returned: an error in the place of a value ends the rendering.
#[inline]
pub(super) fn step(bytes: usize) -> Option<Value> {
    METER.with(|meter| meter.work(STEP.saturating_add(bytes as u64)).err().map(Value::from))
}

/// Counts bytes that are built.
///
/// # Errors
/// If they are too many, or the time is over.
pub(super) fn charge(bytes: usize) -> Result<(), Error> {
    too_long(bytes)?;
    METER.with(|meter| {
        let built = meter.built.get().saturating_add(bytes);
        meter.built.set(built);
        if built > meter.may_build.get() {
            meter.stopped.set(Some(Stop::Endless));
            return Err(endless());
        }
        meter.work(STEP.saturating_add(bytes as u64))
    })
}

/// An error if a text of this many bytes is longer than any model reads.
pub(super) fn too_long(bytes: usize) -> Result<(), Error> {
    match bytes > LONGEST {
        true => Err(endless()),
        false => Ok(()),
    }
}

/// An error if one value holds more than any template puts together.
pub(super) fn too_heavy(weight: usize) -> Result<(), Error> {
    match METER.with(|meter| weight > meter.heaviest.get()) {
        true => Err(endless()),
        false => Ok(()),
    }
}

/// A text that was counted.
pub(super) fn charged(text: String) -> Result<Value, Error> {
    charge(text.len())?;
    Ok(text.into())
}
