//! Faults on the way, and when they happen.

use std::time::Duration;

/// A fault. Unless noted otherwise it happens to the response with a file's bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The connection is reset after this many bytes of the body. Elsewhere: before any response.
    Cut {
        /// Bytes of the response before it.
        after: u64,
    },
    /// The response ends cleanly after this many bytes, and its length says so.
    Short {
        /// Bytes of a piece, or in total.
        bytes: u64,
    },
    /// The response announces all bytes, and the connection is closed after this many.
    Broken {
        /// Bytes of a piece, or in total.
        bytes: u64,
    },
    /// The byte at this offset of the file is wrong. Happens to responses that contain the offset.
    Corrupt {
        /// An offset in the file.
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
    /// A 200 with a login page instead of the file, as in a hotel.
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
    /// A 206 whose `Content-Range` and bytes begin this much later than requested. Happens to requests for a range.
    RangeShifted {
        /// Bytes.
        by: u64,
    },
    /// Small pieces with pauses between them.
    Drip {
        /// Bytes of a piece, or in total.
        bytes: u64,
        /// The pause before each piece.
        pause: Duration,
    },
    /// Nothing more comes after this many bytes, and the connection stays open. Elsewhere: no response comes at all.
    Stall {
        /// Bytes of the response before it.
        after: u64,
    },
    /// After this many bytes the repository gets a new commit in which the file has other content, and the connection
    /// is reset. The old commit is still served.
    NewCommit {
        /// Bytes of the response before it.
        after: u64,
    },
    /// As `NewCommit`, and the old commit's addresses serve the new content too, as a mirror that ignores revisions
    /// does.
    Overwritten {
        /// Bytes of the response before it.
        after: u64,
    },
}

/// The number of times that a fault happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Times {
    /// The next time only.
    Once,
    /// The next `n` times.
    N(u32),
    /// Until [`crate::Imitation::clear_faults`].
    Always,
}

/// The responses that a fault happens to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultTarget {
    /// Search, description and listing.
    Api,
    /// The resolve address on the hub: its headers for a small file, the redirect for a large one.
    Resolve,
    /// The response with a file's bytes: from the hub for small files, from the other origin for large ones.
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

/// The part of a request that decides about faults.
pub(crate) struct Asked<'a> {
    pub(crate) target: FaultTarget,
    pub(crate) repository: &'a str,
    pub(crate) path: &'a str,
    /// The first requested byte and the one after the last, if there was a range.
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

    /// Takes the fault that happens to this request from the plan.
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

    /// True if a planned fault has not happened as often as it should.
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
