//! Reading prompts: chunks of tokens, and pictures among them. Answers that run go on between chunks and between the layers of a tower.

use std::time::{Duration, Instant};

use protocol::Priority;

use super::{Running, Scheduler};
use crate::cache::max_composed;
use crate::error::{catch_panic, Result};
use crate::generation::{Chunk, ImageEncoding};
use crate::pace::PLANNED;
use crate::sequence::{clear_after_chunk, LoopEnd};
use crate::tensor::{eval, Tensor};

impl Scheduler {
    /// Lets no token of a running answer be kept waiting for longer than this.
    #[cfg(feature = "test-support")]
    pub fn set_gaps(&mut self, gap: Duration) {
        self.gaps = [gap; 2];
    }

    /// Reads one chunk of the prompt whose turn it is, while answers of other models decode in this class.
    pub(super) fn prefill(&mut self, beside: Option<Priority>) {
        let Some(id) = self.next_reader() else { return };
        let decoding = |running: &&Running| running.id != id && running.generation.decoding();
        let first = self.running.iter().find(decoding).map(|running| running.generation.priority());
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

    /// Lets the tower encode a picture. If `gap` is what answers of this model may be kept waiting, they step between two layers as often as
    /// that asks for; a layer is the least that they wait for.
    ///
    /// # Errors
    /// If the picture cannot be prepared, or MLX fails. What fails in a step is no error of the encoding.
    fn encode_image(&mut self, encoding: &ImageEncoding, gap: Option<Duration>) -> Result<()> {
        let (mut stepped, mut begun) = (Instant::now(), Instant::now());
        encoding.run(&mut |states: &Tensor| {
            let Some(gap) = gap else { return Ok(()) };
            // What a layer takes is known once it is computed.
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
