//! Reading prompts: chunks of tokens, and images among them. Answers that run go on between chunks and between the
//! layers of a vision encoder.

use std::time::{Duration, Instant};

use mlx::memory::clear_after_chunk;
use mlx::tensor::{eval, Tensor};
use protocol::Priority;

use super::{Running, Scheduler};
use crate::answer::generation::{Chunk, ImageEncoding};
use crate::cache::max_composed;
use crate::error::{catch_panic, Result};
use crate::schedule::limits::PREFILL_PATIENCE;
use crate::schedule::pace::PLANNED;
use crate::sequence::prefix::common_prefix;
use crate::sequence::LoopEnd;

/// A prompt waits for another one that is being read if that saves reading this many tokens.
const MIN_SHARED: usize = 64;

impl Scheduler {
    /// Limits the time that a token of a running answer waits.
    #[cfg(feature = "test-support")]
    pub fn set_gaps(&mut self, gap: Duration) {
        self.gaps = [gap; 2];
    }

    /// The answer that reads the next chunk: a running answer that has a few tokens to read, then the one that has
    /// waited too long, then by class. A prompt that shares much with one that is being read lets that one go first.
    fn next_reader(&mut self) -> Option<u64> {
        let readers: Vec<&Running> = self
            .running
            .iter()
            .filter(|running| running.generation.reading())
            .collect();
        let few = |running: &&&Running| running.generation.decoding() && running.generation.unread() <= MIN_SHARED;
        if let Some(running) = readers.iter().find(few) {
            return Some(running.id);
        }
        let late = readers.iter().min_by_key(|running| running.generation.last_chunk());
        let late = late.filter(|running| running.generation.last_chunk().elapsed() > PREFILL_PATIENCE);
        let next = late.or(readers.first())?;
        let (id, generation) = (next.id, &next.generation);
        if generation.read().is_some() {
            return Some(id);
        }
        // Not begun: another answer may be about to read the same.
        let (prefix, kv_bits) = (generation.prefix(), generation.request().kv_bits);
        let most = prefix.tokens.len() - 1;
        let known = self.loaded.prefix_cache.borrow().known(prefix, most, kv_bits);
        let best = readers
            .iter()
            .filter(|other| other.generation.read().is_some() && other.generation.request().kv_bits == kv_bits)
            .map(|other| (common_prefix(prefix.first(most), other.generation.prefix()), other.id))
            .max();
        let Some((shared, other)) = best.filter(|(shared, _)| *shared >= known + MIN_SHARED) else {
            return Some(id);
        };
        let other = self.running.iter_mut().find(|running| running.id == other)?;
        if other.generation.read().is_some_and(|read| read < shared) {
            other.generation.stop_at(shared);
            return Some(other.id);
        }
        let (other, stored) = (other.id, catch_panic(|| other.generation.store()));
        if let Err(error) = stored {
            self.end(other, Err(error));
        }
        Some(id)
    }

    /// Reads one chunk of the prompt whose turn it is, while answers of other models decode in this class.
    pub(super) fn prefill(&mut self, beside: Option<Priority>) {
        let Some(id) = self.next_reader() else { return };
        let decoding = |running: &&Running| running.id != id && running.generation.decoding();
        let first = self
            .running
            .iter()
            .find(decoding)
            .map(|running| running.generation.priority());
        let gap_of = |priority| self.gaps[usize::from(priority != Priority::Chat)];
        let (gap, own_gap) = (first.into_iter().chain(beside).min().map(gap_of), first.map(gap_of));
        let most = self.pace.chunk(gap);
        self.last_step = None;
        let start = Instant::now();
        let Some(running) = self.running.iter_mut().find(|running| running.id == id) else {
            return;
        };
        let generation = &mut running.generation;
        let most = match gap {
            Some(_) => most.min(max_composed(generation.read().unwrap_or(0))),
            None => most,
        };
        let read = catch_panic(|| {
            let read = generation.prefill_chunk(most)?;
            if gap.is_none() && matches!(read, Chunk::Read(1..)) {
                clear_after_chunk()?;
            }
            Ok(read)
        });
        let ends = running.generation.decoding() && running.generation.full();
        let outcome = match read {
            Ok(Chunk::Read(read)) => {
                self.pace.record_chunk(read, start.elapsed());
                if ends {
                    self.end(id, Ok(LoopEnd::Limit));
                }
                Ok(())
            }
            Ok(Chunk::EncodeImage(encoding)) => catch_panic(|| self.encode_image(&encoding, own_gap)),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => {}
            Err(error) if self.preempt_for_chat(id, &error) => {}
            Err(error) => self.end(id, Err(error)),
        }
    }

    /// Lets the vision encoder encode an image. If `gap` is the longest time that answers of this model may wait, they
    /// step between two layers as often as that asks for; a layer is the least that they wait for.
    ///
    /// # Errors
    /// If the image cannot be prepared, or MLX fails. What fails in a step is no error of the encoding.
    fn encode_image(&mut self, encoding: &ImageEncoding, gap: Option<Duration>) -> Result<()> {
        let (mut stepped, mut begun) = (Instant::now(), Instant::now());
        encoding.run(&mut |states: &Tensor| {
            let Some(gap) = gap else { return Ok(()) };
            // The time of a layer is known once it is computed.
            eval([states])?;
            if stepped.elapsed() + begun.elapsed() >= gap.mul_f64(PLANNED) {
                self.step_between_layers();
                stepped = Instant::now();
            }
            begun = Instant::now();
            Ok(())
        })
    }

    fn step_between_layers(&mut self) {
        // Its time has layers in it, so that nothing is learnt from it.
        self.last_step = None;
        let steps = &self.loaded.steps_between_layers;
        steps.set(steps.get() + 1);
        if let Err(error) = catch_panic(|| self.step()) {
            self.step_failed(error);
        }
        self.last_step = None;
    }
}
