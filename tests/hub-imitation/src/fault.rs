//! What can go wrong on the way, and when it does.

use std::time::Duration;

/// A fault. Unless said otherwise it happens to the answer that carries a file's bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The connection is reset after this many bytes of the answer's body. At other places than the body: before any answer.
    Cut {
        /// Bytes of the answer before it.
        after: u64,
    },
    /// The answer ends cleanly after this many bytes, and its length says so.
    Short {
        /// Bytes at once, or in all.
        bytes: u64,
    },
    /// The answer promises all bytes, and the connection is closed after this many.
    Broken {
        /// Bytes at once, or in all.
        bytes: u64,
    },
    /// The byte at this place of the file is another one. Happens to answers that hold the place.
    Corrupt {
        /// A place in the file.
        at: u64,
    },
    /// The resolve address names another entity tag than the listing. Belongs at [`FaultTarget::Resolve`].
    WrongEtag,
    /// An error status with an HTML or JSON text, and the seconds of `Retry-After`.
    Status {
        /// The status.
        code: u16,
        /// Seconds.
        retry_after: Option<u64>,
    },
    /// A 200 with a login page instead of what was asked for, as in a hotel.
    Portal,
    /// A 302 to another address. Belongs at [`FaultTarget::Api`] and [`FaultTarget::Resolve`].
    SentOn {
        /// The address.
        to: &'static str,
    },
    /// A 200 with the whole file. Happens to requests for a range.
    RangeIgnored,
    /// A 416. Happens to requests for a range.
    RangeRefused,
    /// A 206 whose `Content-Range` and bytes begin this much later than asked. Happens to requests for a range.
    RangeShifted {
        /// Bytes.
        by: u64,
    },
    /// Small pieces with pauses between them.
    Drip {
        /// Bytes at once, or in all.
        bytes: u64,
        /// The pause before each piece.
        pause: Duration,
    },
    /// Nothing more comes after this many bytes, and the connection stays open. At other places: no answer comes at all.
    Stall {
        /// Bytes of the answer before it.
        after: u64,
    },
    /// After this many bytes the repository gets a new commit in which the file has other content, and the connection is reset.
    /// The old commit is still served.
    NewCommit {
        /// Bytes of the answer before it.
        after: u64,
    },
    /// As `NewCommit`, and the old commit's addresses serve the new content too, as a mirror that forgets revisions does.
    Overwritten {
        /// Bytes of the answer before it.
        after: u64,
    },
}

/// How often a fault happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Times {
    /// The next time only.
    Once,
    /// The next so many times.
    N(u32),
    /// Until [`crate::Imitation::clear_faults`].
    Always,
}

/// Which answers a fault happens to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultTarget {
    /// Search, description and listing.
    Api,
    /// The resolve address on the hub: its headers for a small file, the redirect for a large one.
    Resolve,
    /// The answer that carries a file's bytes: from the hub for small files, from the other origin for large ones.
    Body,
}

#[derive(Debug)]
struct Planned {
    target: FaultTarget,
    repository: Option<String>,
    path: Option<String>,
    fault: Fault,
    left: Option<u32>,
}

/// The faults that are still to come, the earliest planned first.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Planned>);

/// What a request asks for, as far as faults care.
pub(crate) struct Asked<'a> {
    pub(crate) target: FaultTarget,
    pub(crate) repository: &'a str,
    pub(crate) path: &'a str,
    /// The first byte asked for and the one after the last, if there was a range.
    pub(crate) range: Option<(u64, u64)>,
    pub(crate) size: u64,
}

impl Faults {
    pub(crate) fn plan(
        &mut self,
        target: FaultTarget,
        repository: Option<&str>,
        path: Option<&str>,
        fault: Fault,
        times: Times,
    ) {
        self.0.push(Planned {
            target,
            repository: repository.map(str::to_owned),
            path: path.map(str::to_owned),
            fault,
            left: match times {
                Times::Once => Some(1),
                Times::N(count) => Some(count),
                Times::Always => None,
            },
        });
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The fault that happens to this request, which is one less to come.
    pub(crate) fn take(&mut self, asked: &Asked) -> Option<Fault> {
        let planned = self.0.iter_mut().find(|planned| {
            planned.target == asked.target
                && planned.left != Some(0)
                && planned.repository.as_deref().is_none_or(|id| id == asked.repository)
                && planned.path.as_deref().is_none_or(|path| path == asked.path)
                && happens(&planned.fault, asked)
        })?;
        if let Some(left) = &mut planned.left {
            *left -= 1;
        }
        Some(planned.fault.clone())
    }

    /// Whether something planned has not happened as often as it was to.
    pub(crate) fn waiting(&self) -> bool {
        self.0.iter().any(|planned| planned.left.is_some_and(|left| left > 0))
    }
}

fn happens(fault: &Fault, asked: &Asked) -> bool {
    match fault {
        Fault::RangeIgnored | Fault::RangeRefused | Fault::RangeShifted { .. } => asked.range.is_some(),
        Fault::Corrupt { at } => asked
            .range
            .map_or(*at < asked.size, |(from, end)| (from..end).contains(at)),
        _ => true,
    }
}
