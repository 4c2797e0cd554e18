//! Frozen copies of what a model has read, kept for the next request that begins alike.
//!
//! A chat's next prompt begins with most of this one, but rarely with all that is in the cache: templates drop old
//! reasoning, an answer is made anew, a question is edited, another branch is looked at. Sliding windows and recurrent
//! states cannot go back, so copies are taken where prompts part (see `prompt`'s boundaries), and the longest one that is a
//! beginning of the new prompt is gone on from. A copy whose layers can all be cut serves any shorter beginning too, and
//! makes the copies inside of it superfluous.
//!
//! Correctness does not depend on where copies are taken: what is reused was read from exactly the same token ids, with
//! keys kept in the same number of bits, by the same loaded model, which owns the store. Media will join the ids as hashes.
//!
//! The blocks of full attention are shared, so that a conversation costs its keys once, and every copy its windows and
//! states. All living bytes are counted, each once; above the budget the copy that was used longest ago goes. While a
//! sequence runs, its working buffers hold the same keys once more: attention wants them in one piece.
//!
//! Spilling to disk can come in here: a [`Block`] never changes and is cut at multiples of 256 positions, so it can be
//! written as one safetensors file named by a hash of the model's revision, the number of bits and all ids up to its end,
//! and read again when a prompt's ids give that name. Eviction would then write instead of drop, under a second budget.

use protocol::KvBits;

use crate::cache::growing::BLOCK;
use crate::cache::{Block, Cache, Frozen, Ledger};
use crate::error::Result;
use crate::memory;

/// Overrides the budget in bytes.
const BUDGET: &str = "PONDER_SNAPSHOT_BYTES";

/// The share of the memory left beside the weights that copies may take, one part in so many.
const SHARE: u64 = 4;

/// Beginnings shorter than this are read anew: that costs less than a copy.
const SHORTEST: usize = 8;

/// A sequence as it was after some tokens.
struct Snapshot {
    tokens: Vec<u32>,
    kv_bits: Option<KvBits>,
    layers: Vec<Frozen>,
    /// When it was made or gone on from, in the order of events.
    used: u64,
}

impl Snapshot {
    fn reaches(&self, positions: usize) -> bool {
        positions <= self.tokens.len() && self.layers.iter().all(|layer| layer.reaches(positions))
    }

    /// Makes it take at most so many bytes, by keeping its beginning alone; the result is whether that can be done.
    fn fit(&mut self, budget: u64) -> bool {
        let blocks = self.layers.iter().flat_map(Frozen::blocks);
        let bytes = blocks.map(|block| block.bytes()).sum::<u64>() + bytes_of(&self.tokens);
        if bytes <= budget {
            return true;
        }
        let positions = (u128::from(budget) * self.tokens.len() as u128 / u128::from(bytes)) as usize / BLOCK as usize * BLOCK as usize;
        self.tokens.truncate(positions);
        positions > 0 && self.layers.iter_mut().all(|layer| layer.shorten(positions))
    }
}

fn bytes_of(tokens: &[u32]) -> u64 {
    size_of_val(tokens) as u64
}

/// The copies of one loaded model.
pub struct Snapshots {
    kept: Vec<Snapshot>,
    ledger: Ledger,
    budget: u64,
    clock: u64,
}

impl Snapshots {
    /// An empty store with the budget of this computer: a quarter of what MLX's memory limit leaves beside the weights that
    /// are resident now, or what `PONDER_SNAPSHOT_BYTES` says.
    pub fn new() -> Result<Self> {
        let asked = std::env::var(BUDGET).ok().and_then(|bytes| bytes.parse().ok());
        let budget = match asked {
            Some(bytes) => bytes,
            None => memory::limit()?.saturating_sub(memory::figures()?.active) / SHARE,
        };
        Ok(Self::with_budget(budget))
    }

    /// An empty store that keeps at most so many bytes.
    pub fn with_budget(budget: u64) -> Self {
        Self {
            kept: Vec::new(),
            ledger: Ledger::default(),
            budget,
            clock: 0,
        }
    }

    /// Caches that have read the longest known beginning of `tokens`, of at most `most` of them, and how long it is.
    pub fn resume(&mut self, tokens: &[u32], most: usize, kv_bits: Option<KvBits>) -> Result<Option<(usize, Vec<Cache>)>> {
        let usable = |snapshot: &Snapshot| {
            let same = snapshot
                .tokens
                .iter()
                .zip(&tokens[..most.min(tokens.len())])
                .take_while(|(a, b)| a == b)
                .count();
            (snapshot.kv_bits == kv_bits && same >= SHORTEST && snapshot.reaches(same)).then_some(same)
        };
        let best = self
            .kept
            .iter()
            .enumerate()
            .filter_map(|(index, snapshot)| Some((usable(snapshot)?, index)))
            .max();
        let Some((positions, index)) = best else { return Ok(None) };
        self.clock += 1;
        let snapshot = &mut self.kept[index];
        snapshot.used = self.clock;
        let caches = snapshot.layers.iter().map(|layer| layer.thaw(positions)).collect::<Result<_>>()?;
        Ok(Some((positions, caches)))
    }

    /// Keeps a copy of `caches`, which have read `tokens` and nothing else.
    pub fn keep(&mut self, tokens: &[u32], kv_bits: Option<KvBits>, caches: &mut [Cache]) -> Result<()> {
        if tokens.len() < SHORTEST || self.budget == 0 {
            return Ok(());
        }
        self.clock += 1;
        let known = self
            .kept
            .iter_mut()
            .find(|snapshot| snapshot.kv_bits == kv_bits && snapshot.tokens.starts_with(tokens) && snapshot.reaches(tokens.len()));
        if let Some(known) = known {
            known.used = self.clock;
            return Ok(());
        }
        let layers = caches
            .iter_mut()
            .map(|cache| cache.freeze(&self.ledger))
            .collect::<Result<Vec<_>>>()?;
        Block::settle(layers.iter().flat_map(Frozen::blocks))?;
        let mut new = Snapshot {
            tokens: tokens.to_vec(),
            kv_bits,
            layers,
            used: self.clock,
        };
        if !new.fit(self.budget) {
            return Ok(());
        }
        self.kept
            .retain(|old| old.kv_bits != kv_bits || !new.tokens.starts_with(&old.tokens) || !new.reaches(old.tokens.len()));
        self.kept.push(new);
        self.evict();
        Ok(())
    }

    /// Keeps at most so many bytes from now on.
    pub fn set_budget(&mut self, bytes: u64) {
        self.budget = bytes;
        self.kept.retain_mut(|snapshot| snapshot.fit(bytes));
        self.evict();
    }

    /// Drops what was used longest ago until the budget is kept. The newest fits by itself; where the running sequence alone
    /// holds more, dropping it would free nothing.
    fn evict(&mut self) {
        while self.bytes() > self.budget && self.kept.len() > 1 {
            let oldest = self.kept.iter().enumerate().min_by_key(|(_, snapshot)| snapshot.used);
            let Some((index, _)) = oldest else { return };
            self.kept.swap_remove(index);
        }
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// The living bytes of all copies and of the ids they are found by.
    pub fn bytes(&self) -> u64 {
        self.ledger.bytes() + self.kept.iter().map(|snapshot| bytes_of(&snapshot.tokens)).sum::<u64>()
    }

    /// How many tensors the copies hold, those that several share counted once.
    pub fn tensors(&self) -> usize {
        let blocks = self.kept.iter().flat_map(|snapshot| &snapshot.layers).flat_map(Frozen::blocks);
        let mut seen = std::collections::HashSet::new();
        blocks
            .filter(|block| seen.insert(std::rc::Rc::as_ptr(block)))
            .map(|block| block.tensors().len())
            .sum()
    }

    /// How many tokens each copy has read, in rising order.
    #[cfg(test)]
    fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> = self.kept.iter().map(|snapshot| snapshot.tokens.len()).collect();
        lengths.sort_unstable();
        lengths
    }
}

#[cfg(test)]
#[path = "snapshots_tests.rs"]
mod tests;
