//! The states of an answer.

use std::mem;

use crate::sequence::sampler::Sampler;
use crate::sequence::Sequence;

/// The stage that an answer is at.
pub enum State {
    /// Its prompt is being read.
    Prefilling(Caches),
    /// Its prompt has been read, and tokens follow.
    Decoding(Decoding),
    /// It neither reads nor takes part in steps for now.
    Preempted(Preempted),
}

/// An answer whose prompt has been read.
pub struct Decoding {
    caches: Caches,
    /// True after a step failed that it took part in: it decodes alone until a token of it is known, which shows
    /// whether the failure was its own.
    isolated: bool,
}

/// The state that a preempted answer resumes.
pub enum Preempted {
    /// It was reading its prompt.
    Prefilling(Caches),
    /// Its prompt had been read.
    Decoding(Decoding),
}

/// The model's memory of an answer's tokens.
pub enum Caches {
    /// There is none: nothing has been read, a step failed, or it was dropped for the sake of its bytes. Only in the
    /// last case the sampler is kept, because its draws and penalties depend on all the tokens that it has seen.
    Empty(Option<Sampler>),
    /// The caches with their sampler.
    Filled(Box<Sequence>),
}

impl Default for Caches {
    fn default() -> Self {
        Self::Empty(None)
    }
}

impl State {
    /// True if it reads or takes part in steps.
    pub fn is_active(&self) -> bool {
        !matches!(self, Self::Preempted(_))
    }

    /// True if its prompt has been read, whether or not it is preempted.
    pub fn has_read_prompt(&self) -> bool {
        matches!(self, Self::Decoding(_) | Self::Preempted(Preempted::Decoding(_)))
    }

    /// True if it has to decode alone until a token of it is known.
    pub fn is_isolated(&self) -> bool {
        match self {
            Self::Decoding(decoding) | Self::Preempted(Preempted::Decoding(decoding)) => decoding.isolated,
            Self::Prefilling(_) | Self::Preempted(Preempted::Prefilling(_)) => false,
        }
    }

    /// Its sequence, if something has been read and is still held.
    pub fn sequence(&self) -> Option<&Sequence> {
        match self.caches() {
            Caches::Filled(sequence) => Some(sequence),
            Caches::Empty(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn sequence_mut(&mut self) -> Option<&mut Sequence> {
        match self.caches_mut() {
            Caches::Filled(sequence) => Some(sequence),
            Caches::Empty(_) => None,
        }
    }

    /// Takes the sampler that was kept when the caches were dropped.
    pub fn take_sampler(&mut self) -> Option<Sampler> {
        match self.caches_mut() {
            Caches::Empty(sampler) => sampler.take(),
            Caches::Filled(_) => None,
        }
    }

    /// Continues with this sequence.
    pub fn fill(&mut self, sequence: Sequence) {
        *self.caches_mut() = Caches::Filled(Box::new(sequence));
    }

    /// Drops the caches and keeps the sampler; returns how many tokens the caches held, if there were any.
    pub fn drop_caches(&mut self) -> Option<usize> {
        let caches = self.caches_mut();
        match mem::take(caches) {
            Caches::Filled(sequence) => {
                let held = sequence.state.offset();
                *caches = Caches::Empty(Some(sequence.into_sampler()));
                Some(held)
            }
            empty => {
                *caches = empty;
                None
            }
        }
    }

    /// The prompt has been read.
    pub fn begin_decoding(&mut self) {
        if let Self::Prefilling(caches) = self {
            let caches = mem::take(caches);
            *self = Self::Decoding(Decoding {
                caches,
                isolated: false,
            });
        }
    }

    /// Drops caches and sampler after a failed step, and isolates it.
    pub fn isolate(&mut self) {
        *self.caches_mut() = Caches::default();
        if let Self::Decoding(decoding) | Self::Preempted(Preempted::Decoding(decoding)) = self {
            decoding.isolated = true;
        }
    }

    /// A token of it is known.
    pub fn end_isolation(&mut self) {
        if let Self::Decoding(decoding) | Self::Preempted(Preempted::Decoding(decoding)) = self {
            decoding.isolated = false;
        }
    }

    /// Preempts it until [`resume`](Self::resume).
    pub fn preempt(&mut self) {
        *self = match mem::take(self) {
            Self::Prefilling(caches) => Self::Preempted(Preempted::Prefilling(caches)),
            Self::Decoding(decoding) => Self::Preempted(Preempted::Decoding(decoding)),
            preempted => preempted,
        };
    }

    /// Lets it go on after it was preempted.
    pub fn resume(&mut self) {
        *self = match mem::take(self) {
            Self::Preempted(Preempted::Prefilling(caches)) => Self::Prefilling(caches),
            Self::Preempted(Preempted::Decoding(decoding)) => Self::Decoding(decoding),
            active => active,
        };
    }

    fn caches(&self) -> &Caches {
        match self {
            Self::Prefilling(caches) | Self::Preempted(Preempted::Prefilling(caches)) => caches,
            Self::Decoding(decoding) | Self::Preempted(Preempted::Decoding(decoding)) => &decoding.caches,
        }
    }

    fn caches_mut(&mut self) -> &mut Caches {
        match self {
            Self::Prefilling(caches) | Self::Preempted(Preempted::Prefilling(caches)) => caches,
            Self::Decoding(decoding) | Self::Preempted(Preempted::Decoding(decoding)) => &mut decoding.caches,
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::Prefilling(Caches::default())
    }
}
