//! The prefix cache: frozen copies of read prompts, stored for the next request with the same beginning.
//!
//! A chat's next prompt begins with most of this one, but rarely with all that is in the cache: templates drop old
//! reasoning, an answer is regenerated, a question is edited, another branch is shown. Sliding windows and recurrent
//! states cannot go back, so copies are taken where later prompts are likely to differ, for example before the last
//! question (see `prompt`'s boundaries), and the next sequence continues from the longest copy that is a prefix of its
//! prompt. A copy whose layers can all be trimmed serves any shorter prefix too, and makes the copies of those
//! superfluous.
//!
//! Correctness does not depend on where copies are taken: what is reused was read from exactly the same token ids, with
//! keys kept in the same number of bits, by the same loaded model, which owns the cache; images are compared by their
//! hash, because their tokens are alike ([`Prefix`]).
//!
//! The blocks of full attention are shared, so that a conversation costs its keys once, and every copy its windows and
//! states. All living bytes are counted, each once; above the budget the least recently used copy goes, and so does one
//! that nothing continued for half an hour. While a sequence runs, its working buffers hold the same keys once more:
//! attention needs them in one piece.
//!
//! Spilling to disk can come in here: a [`Block`] never changes and is cut at multiples of 256 positions, so it can be
//! written as one safetensors file named by a hash of the model's revision, the number of bits and all ids up to its
//! end, and read again when a prompt's ids give that name. Eviction would then write instead of drop, under a second
//! budget.

use std::time::{Duration, Instant};

use mlx::memory;
use protocol::KvBits;

use crate::cache::kv_buffer::BLOCK;
use crate::cache::{Block, ByteCounter, Cache, FrozenCache};
use crate::error::Result;
use crate::sequence::prefix::{common_prefix, ImageKey, Prefix};

/// Overrides the budget in bytes.
const BUDGET_VARIABLE: &str = "PONDER_PREFIX_CACHE_BYTES";

/// The divisor of the memory that the weights leave, which gives the share of copies.
const BUDGET_SHARE: u64 = 4;

/// The time after which a copy goes that nothing continued: a chat is still known after a break, and a computer that
/// answered many programs gets its memory back.
const UNUSED: Duration = Duration::from_secs(30 * 60);

/// Prefixes shorter than this are read again: that costs less than a copy.
const MIN_TOKENS: usize = 8;

/// A sequence as it was after some tokens.
struct Entry {
    tokens: Vec<u32>,
    images: Vec<ImageKey>,
    kv_bits: Option<KvBits>,
    layers: Vec<FrozenCache>,
    /// The time at which it was created or last continued from, in the order of events.
    last_used: u64,
    /// The same as a time.
    used_at: Instant,
}

impl Entry {
    fn used(&mut self, clock: u64) {
        (self.last_used, self.used_at) = (clock, Instant::now());
    }

    fn prefix(&self) -> Prefix<'_> {
        Prefix {
            tokens: &self.tokens,
            images: &self.images,
        }
    }

    /// True if it holds everything that was read of this, and can be cut to it.
    fn serves(&self, read: Prefix<'_>) -> bool {
        common_prefix(self.prefix(), read) == read.tokens.len() && self.can_trim_to(read.tokens.len())
    }

    fn can_trim_to(&self, positions: usize) -> bool {
        positions <= self.tokens.len() && self.layers.iter().all(|layer| layer.can_trim_to(positions))
    }

    /// Makes it take at most `budget` bytes by keeping only a prefix; returns whether that can be done.
    fn shrink_to(&mut self, budget: u64) -> bool {
        let blocks = self.layers.iter().flat_map(FrozenCache::blocks);
        let bytes = blocks.map(|block| block.bytes()).sum::<u64>() + bytes_of(&self.tokens);
        if bytes <= budget {
            return true;
        }
        let positions = (u128::from(budget) * self.tokens.len() as u128 / u128::from(bytes)) as usize / BLOCK as usize
            * BLOCK as usize;
        self.tokens.truncate(positions);
        positions > 0 && self.layers.iter_mut().all(|layer| layer.trim(positions))
    }
}

fn bytes_of(tokens: &[u32]) -> u64 {
    size_of_val(tokens) as u64
}

/// The budget in bytes: `PONDER_PREFIX_CACHE_BYTES`, or the requested number, or a quarter of the bytes that MLX's
/// memory limit leaves after the weights that are resident now.
fn budget(asked: Option<u64>) -> Result<u64> {
    let variable = std::env::var(BUDGET_VARIABLE).ok().and_then(|bytes| bytes.parse().ok());
    match variable.or(asked) {
        Some(bytes) => Ok(bytes),
        None => Ok(memory::limit()?.saturating_sub(memory::figures()?.active) / BUDGET_SHARE),
    }
}

/// The copies of one loaded model.
pub struct PrefixCache {
    entries: Vec<Entry>,
    counter: ByteCounter,
    budget: u64,
    clock: u64,
}

impl PrefixCache {
    /// An empty cache with this budget, or that of this computer.
    pub fn new(asked: Option<u64>) -> Result<Self> {
        Ok(Self::with_budget(budget(asked)?))
    }

    /// An empty cache that keeps at most `budget` bytes.
    pub fn with_budget(budget: u64) -> Self {
        Self {
            entries: Vec::new(),
            counter: ByteCounter::default(),
            budget,
            clock: 0,
        }
    }

    /// How much of a sequence, at most `most` tokens, need not be read again, and the copy that tells.
    fn longest(&self, sequence: Prefix<'_>, most: usize, kv_bits: Option<KvBits>) -> Option<(usize, usize)> {
        let usable = |entry: &Entry| {
            let same = common_prefix(entry.prefix(), sequence.first(most));
            (entry.kv_bits == kv_bits && same >= MIN_TOKENS && entry.can_trim_to(same)).then_some(same)
        };
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| Some((usable(entry)?, index)))
            .max()
    }

    /// How much of a sequence, at most `most` tokens, need not be read again.
    pub fn known<'a>(&self, sequence: impl Into<Prefix<'a>>, most: usize, kv_bits: Option<KvBits>) -> usize {
        self.longest(sequence.into(), most, kv_bits)
            .map_or(0, |(positions, _)| positions)
    }

    /// Caches that have read the longest known prefix of a sequence, at most `most` tokens, and its length.
    pub fn lookup<'a>(
        &mut self,
        sequence: impl Into<Prefix<'a>>,
        most: usize,
        kv_bits: Option<KvBits>,
    ) -> Result<Option<(usize, Vec<Cache>)>> {
        let Some((positions, index)) = self.longest(sequence.into(), most, kv_bits) else {
            return Ok(None);
        };
        self.clock += 1;
        let entry = &mut self.entries[index];
        entry.used(self.clock);
        let caches = entry
            .layers
            .iter()
            .map(|layer| layer.thaw(positions))
            .collect::<mlx::Result<_>>()?;
        Ok(Some((positions, caches)))
    }

    /// Keeps a copy of `caches`, which have read this and nothing else.
    pub fn insert<'a>(
        &mut self,
        read: impl Into<Prefix<'a>>,
        kv_bits: Option<KvBits>,
        caches: &mut [Cache],
    ) -> Result<()> {
        let read: Prefix<'_> = read.into();
        let tokens = read.tokens;
        if tokens.len() < MIN_TOKENS || self.budget == 0 {
            return Ok(());
        }
        self.clock += 1;
        let known = self
            .entries
            .iter_mut()
            .find(|entry| entry.kv_bits == kv_bits && entry.serves(read));
        if let Some(known) = known {
            known.used(self.clock);
            return Ok(());
        }
        let layers = caches
            .iter_mut()
            .map(|cache| cache.freeze(&self.counter))
            .collect::<mlx::Result<Vec<_>>>()?;
        Block::materialize(layers.iter().flat_map(FrozenCache::blocks))?;
        let mut new = Entry {
            tokens: tokens.to_vec(),
            images: read
                .images
                .iter()
                .filter(|image| image.run.start < tokens.len())
                .cloned()
                .collect(),
            kv_bits,
            layers,
            last_used: self.clock,
            used_at: Instant::now(),
        };
        if !new.shrink_to(self.budget) {
            return Ok(());
        }
        self.entries
            .retain(|old| old.kv_bits != kv_bits || !new.serves(old.prefix()));
        self.entries.push(new);
        self.evict();
        Ok(())
    }

    /// Keeps at most so much as was asked for from now on, or as suits this computer.
    pub fn limit(&mut self, asked: Option<u64>) -> Result<()> {
        self.set_budget(budget(asked)?);
        Ok(())
    }

    /// Keeps at most `bytes` from now on.
    pub fn set_budget(&mut self, bytes: u64) {
        self.budget = bytes;
        self.entries.retain_mut(|entry| entry.shrink_to(bytes));
        self.evict();
    }

    /// Drops the least recently used entries until the budget is kept. The newest fits by itself; if the running
    /// sequence alone holds more, dropping it would free nothing.
    fn evict(&mut self) {
        while self.bytes() > self.budget && self.entries.len() > 1 {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.last_used);
            let Some((index, _)) = oldest else { return };
            self.entries.swap_remove(index);
        }
    }

    /// The time at which a copy will have been unused for its time, if nothing continues it before.
    pub fn expiry(&self) -> Option<Instant> {
        self.entries.iter().map(|entry| entry.used_at + UNUSED).min()
    }

    /// Drops the copies that nothing continued for their time; returns whether there were any.
    pub fn drop_unused(&mut self, now: Instant) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.used_at + UNUSED > now);
        self.entries.len() < before
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The living bytes of all copies and of the ids they are found by.
    pub fn bytes(&self) -> u64 {
        self.counter.bytes() + self.entries.iter().map(|entry| bytes_of(&entry.tokens)).sum::<u64>()
    }

    /// How many tensors the copies hold, those that several share counted once.
    #[cfg(feature = "test-support")]
    pub fn tensors(&self) -> usize {
        let blocks = self
            .entries
            .iter()
            .flat_map(|entry| &entry.layers)
            .flat_map(FrozenCache::blocks);
        let mut seen = std::collections::HashSet::new();
        blocks
            .filter(|block| seen.insert(std::rc::Rc::as_ptr(block)))
            .map(|block| block.tensors().len())
            .sum()
    }

    /// How many tokens each copy has read, in rising order.
    #[cfg(test)]
    fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> = self.entries.iter().map(|entry| entry.tokens.len()).collect();
        lengths.sort_unstable();
        lengths
    }
}

#[cfg(test)]
#[path = "prefix_cache_tests.rs"]
mod tests;
