//! The models that are loaded at the same time, each with a batch of its own, stepped in turn.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use checkpoint::check_folder;
use checkpoint::memory::Workload;
use mlx::device::{device, Device};
use mlx::memory;
use protocol::{FolderSource, Priority, Reason};

use crate::backend::backend;
use crate::error::{catch_panic, Error, Result};
use crate::loaded::LoadedModel;
use crate::schedule::limits::RETRY;
use crate::schedule::pace::ChatShare;
use crate::schedule::scheduler::{OtherModels, PreemptionCandidate, PreemptionOrder, Scheduler};
use crate::state::EngineState;

/// The context that a model has to have room for next to others, in tokens.
const CONTEXT_BESIDE: u32 = 16_384;

/// The context that a model has to have room for alone, in tokens.
const CONTEXT_ALONE: u32 = 1024;

/// The condition for loading a model.
pub enum LoadPlan {
    /// These, which do not answer.
    Evict(Vec<FolderSource>),
    /// The answers of these have to end first.
    WaitFor(Vec<FolderSource>),
}

/// The loaded models with their batches.
pub struct LoadedModels {
    /// The one used least recently comes first.
    schedulers: Vec<Scheduler>,
    /// How often models without a chat answer step while another model has one.
    chat_share: ChatShare,
    /// The time at which preempted answers are tried again.
    retry: Instant,
    /// The time after which a model that was not used is freed; [`Duration::MAX`]: never.
    unload_after: Duration,
    shared: Arc<EngineState>,
}

impl LoadedModels {
    /// None is loaded.
    pub fn new(shared: Arc<EngineState>) -> Self {
        Self {
            schedulers: Vec::new(),
            chat_share: ChatShare::new(),
            retry: Instant::now(),
            unload_after: Duration::MAX,
            shared,
        }
    }

    /// The models, the one used last at the end.
    pub fn iter(&self) -> impl Iterator<Item = &Rc<LoadedModel>> {
        self.schedulers.iter().map(Scheduler::loaded)
    }

    /// A model whose warm-up is not over.
    pub fn cold(&self) -> Option<&Rc<LoadedModel>> {
        self.iter().find(|loaded| loaded.is_cold())
    }

    /// The batch of a model, if it is loaded.
    pub fn find(&self, source: &FolderSource) -> Option<&Scheduler> {
        self.schedulers
            .iter()
            .find(|scheduler| scheduler.loaded().files.is_of(source))
    }

    /// A loaded model with the weights of this one, whatever adapter either has.
    pub fn with_weights_of(&self, source: &FolderSource) -> Option<Rc<LoadedModel>> {
        self.iter().find(|loaded| loaded.files.has_weights_of(source)).cloned()
    }

    /// The batch of a model that is used now.
    pub fn touch(&mut self, source: &FolderSource) -> Option<&mut Scheduler> {
        let at = self
            .schedulers
            .iter()
            .position(|scheduler| scheduler.loaded().files.is_of(source))?;
        if at + 1 < self.schedulers.len() {
            let used = self.schedulers.remove(at);
            self.schedulers.push(used);
            self.publish();
        }
        let used = self.schedulers.last_mut()?;
        used.last_used = Instant::now();
        Some(used)
    }

    /// Adds a model that was loaded.
    pub fn add(&mut self, loaded: Rc<LoadedModel>) {
        self.schedulers.push(Scheduler::new(loaded, self.shared.options()));
        self.publish();
    }

    /// True if a model answers, embeds, or drafts the answer of another one.
    fn works(&self, scheduler: &Scheduler) -> bool {
        let drafts = |other: &Scheduler| other.is_drafted_by(scheduler.loaded());
        !scheduler.is_empty() || self.schedulers.iter().any(drafts)
    }

    /// True if a model of this reference answers.
    pub fn answers(&self, reference: &str) -> bool {
        let mut named = self
            .schedulers
            .iter()
            .filter(|scheduler| scheduler.loaded().info.reference == reference);
        named.any(|scheduler| self.works(scheduler))
    }

    /// True if a model of this reference is loaded and does not answer.
    pub fn is_idle(&self, reference: &str) -> bool {
        self.iter().any(|loaded| loaded.info.reference == reference) && !self.answers(reference)
    }

    /// Sets the time after which each model that was not used is freed; [`Duration::MAX`]: never.
    pub fn unload_after(&mut self, idle: Duration) {
        self.unload_after = idle;
    }

    /// Sets the time for which a model stays after its last use, if there is one to be set.
    pub fn keep_alive(&mut self, source: &FolderSource, time: Option<Duration>) {
        let Some(time) = time else { return };
        if let Some(scheduler) = self.touch(source) {
            scheduler.keep_alive = time;
        }
    }

    /// The models that do not answer, each with the time at which it will have been idle for its time.
    pub fn unload_times(&self) -> impl Iterator<Item = (&FolderSource, Instant)> {
        let idle = self.schedulers.iter().filter(|scheduler| !self.works(scheduler));
        idle.filter_map(|scheduler| {
            Some((
                &scheduler.loaded().files.source,
                scheduler.unload_at(self.unload_after)?,
            ))
        })
    }

    /// The models that answer.
    pub fn answering(&self) -> Vec<FolderSource> {
        let busy = self.schedulers.iter().filter(|scheduler| self.works(scheduler));
        busy.map(|scheduler| scheduler.loaded().files.source.clone()).collect()
    }

    /// The number of admitted answers.
    pub fn running(&self) -> usize {
        self.schedulers.iter().map(Scheduler::len).sum()
    }

    /// Mean seconds of an answer of the model used last.
    pub fn mean_seconds(&self) -> f64 {
        self.schedulers.last().map_or(1.0, Scheduler::mean_seconds)
    }

    /// The number of preempted answers.
    pub fn preempted(&self) -> usize {
        self.schedulers.iter().map(Scheduler::preempted).sum()
    }

    /// The number of answers of programs in excess of the slots after those of chats. One always goes on.
    fn slots_over(&self, slots: usize) -> isize {
        let counts = self.schedulers.iter().map(Scheduler::active_counts);
        let (chats, programs) = counts.fold((0, 0), |sum, made| (sum.0 + made.0, sum.1 + made.1));
        programs as isize - slots.saturating_sub(chats).max(1) as isize
    }

    /// True if there is a slot for one more answer of a program; preempted ones come first.
    pub fn takes_programs(&self, slots: usize) -> bool {
        self.preempted() == 0 && self.slots_over(slots) < 0
    }

    /// Preempts the youngest answers of programs while more answers run than there are slots.
    pub fn preempt_to_slots(&mut self, slots: usize) {
        while self.slots_over(slots) > 0 {
            let firsts = self.schedulers.iter().enumerate();
            let Some((first, at)) = firsts
                .filter_map(|(at, scheduler)| Some((scheduler.first_to_preempt()?, at)))
                .max()
            else {
                return;
            };
            self.schedulers[at].preempt(first);
        }
    }

    /// Lets preempted answers go on, the oldest first, while there are slots and memory for them, or nothing else runs.
    pub fn resume(&mut self, slots: usize) {
        while self.preempted() > 0 {
            let idle = self.running() == self.preempted();
            if !idle && (self.slots_over(slots) >= 0 || Instant::now() < self.retry) {
                return;
            }
            let firsts = self.schedulers.iter().enumerate();
            let first = firsts
                .filter_map(|(at, scheduler)| Some((scheduler.first_to_resume()?, at)))
                .min();
            let Some(((first, bytes), at)) = first else { return };
            if !idle && !self.fits(bytes) {
                self.retry = Instant::now() + RETRY;
                return;
            }
            self.schedulers[at].resume(first);
        }
    }

    /// True if there is memory for `more` bytes in addition to those that the answers will take, by the plans for all
    /// of them.
    pub fn fits(&self, more: u64) -> bool {
        self.fits_after(more, 0)
    }

    fn fits_after(&self, more: u64, freed: u64) -> bool {
        let Some(guard) = self.shared.memory_guard() else {
            return true;
        };
        let growth: u64 = self.schedulers.iter().map(Scheduler::cache_growth).sum();
        let held = catch_panic(|| Ok(memory::figures()?)).map_or(0, |figures| figures.active);
        let all = more.saturating_add(growth).saturating_sub(freed);
        guard.before_chunk(all, device().name(), held).is_ok()
    }

    /// Preempts the youngest answers of programs and drops their caches, if that makes room for `more` bytes; returns
    /// whether it does.
    pub fn make_room(&mut self, more: u64) -> bool {
        let by_scheduler = self.schedulers.iter().enumerate();
        let mut candidates: Vec<(usize, PreemptionCandidate)> = by_scheduler
            .flat_map(|(at, scheduler)| scheduler.candidates().map(move |candidate| (at, candidate)))
            .filter(|(_, candidate)| candidate.held + candidate.growth > 0)
            .collect();
        candidates.sort_by_key(|(_, candidate)| std::cmp::Reverse(candidate.order));
        let mut freed = 0;
        let enough = candidates.iter().position(|(_, candidate)| {
            freed += candidate.held + candidate.growth;
            self.fits_after(more, freed)
        });
        let Some(last) = enough else { return false };
        let preempted: Vec<(usize, PreemptionOrder)> = candidates[..=last]
            .iter()
            .map(|(at, candidate)| (*at, candidate.order))
            .collect();
        for (at, order) in preempted {
            self.schedulers[at].preempt_and_drop(order);
        }
        true
    }

    /// The number of preemptions.
    #[cfg(feature = "test-support")]
    pub fn preemptions(&self) -> impl Iterator<Item = crate::schedule::scheduler::Preemptions> + '_ {
        self.schedulers.iter().map(Scheduler::preemptions)
    }

    /// Limits the time that a token of a running answer waits.
    #[cfg(feature = "test-support")]
    pub fn set_gaps(&mut self, gap: std::time::Duration) {
        self.schedulers.iter_mut().for_each(|scheduler| scheduler.set_gaps(gap));
    }

    /// Frees the models that `which` names; called when they do not answer.
    pub fn unload(&mut self, which: impl Fn(&LoadedModel) -> bool) {
        self.schedulers.retain(|scheduler| !which(scheduler.loaded()));
        self.publish();
    }

    /// Ends the answers that were cancelled.
    pub fn end_cancelled(&mut self) {
        self.schedulers.iter_mut().for_each(Scheduler::end_cancelled);
    }

    /// Lets every model that answers make one step, and one prompt of one of them be read a little; returns whether an
    /// answer ended. While a chat answer decodes, models without one make no more steps than leave the chat its rate.
    pub fn tick(&mut self) -> bool {
        let before = self.running();
        let decoding: Vec<Option<Priority>> = self.schedulers.iter().map(Scheduler::decodes).collect();
        let others = |at: usize| (0..decoding.len()).filter(move |other| *other != at);
        let busy = self
            .schedulers
            .iter()
            .filter(|scheduler| scheduler.len() > scheduler.preempted())
            .count();
        let readers = self.schedulers.iter().map(Scheduler::reads).enumerate();
        let reader = readers
            .filter_map(|(at, reads)| Some((reads?, at)))
            .min()
            .map(|(_, at)| at);
        let chat = decoding.contains(&Some(Priority::Chat));
        let (others_join, mut joined) = (self.chat_share.others_join(), false);
        for at in 0..self.schedulers.len() {
            let scheduler = &mut self.schedulers[at];
            if scheduler.is_empty() {
                continue;
            }
            scheduler.last_used = Instant::now();
            if chat && !scheduler.serves_chat() {
                if !others_join {
                    scheduler.end_cancelled();
                    continue;
                }
                joined = true;
            }
            scheduler.tick(&OtherModels {
                alone: busy == 1,
                decoding: others(at).filter_map(|other| decoding[other]).min(),
                may_read: reader == Some(at),
            });
        }
        if chat && busy > 1 && reader.is_none() {
            self.chat_share.record(joined, Instant::now());
        } else {
            self.chat_share.pass_over();
        }
        let ended = self.running() < before;
        if ended {
            self.retry = Instant::now();
        }
        ended
    }

    /// The plan for loading a model: evicts as few models as possible, those that do not answer and were used least
    /// recently first.
    ///
    /// # Errors
    /// [`Error::MemoryShort`] if it does not fit alone.
    pub fn plan_load(&self, source: &FolderSource) -> Result<LoadPlan> {
        let (idle, busy): (Vec<&Scheduler>, Vec<&Scheduler>) =
            self.schedulers.iter().partition(|scheduler| !self.works(scheduler));
        let order: Vec<&LoadedModel> = idle
            .iter()
            .chain(&busy)
            .map(|scheduler| &**scheduler.loaded())
            .collect();
        // Without a guard it is unknown whether two fit.
        let least = if self.shared.memory_guard().is_some() {
            0
        } else {
            order.len()
        };
        for gone in least..=order.len() {
            match self.check_room(source, &order[..gone], &order[gone..]) {
                Ok(()) => {
                    let sources = order[..gone].iter().map(|loaded| loaded.files.source.clone()).collect();
                    return Ok(if gone <= idle.len() {
                        LoadPlan::Evict(sources)
                    } else {
                        LoadPlan::WaitFor(sources)
                    });
                }
                Err(error) if gone == order.len() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(LoadPlan::Evict(Vec::new()))
    }

    fn check_room(&self, source: &FolderSource, gone: &[&LoadedModel], rest: &[&LoadedModel]) -> Result<()> {
        let held = memory::figures()?;
        let freed = match rest {
            [] => held.active,
            _ => gone.iter().map(|loaded| loaded.bytes()).sum::<u64>().min(held.active),
        };
        let kept = if rest.is_empty() { 0 } else { held.active - freed };
        if let Some(guard) = self.shared.memory_guard() {
            guard
                .before_load(source, device().name(), kept, freed + held.cache)
                .map_err(Error::MemoryShort)?;
        }
        match device() {
            Device::Cuda => self.check_card(source, kept),
            Device::Cpu | Device::Metal => Ok(()),
        }
    }

    /// Refuses what does not fit into a card's memory next to `kept` bytes; only MLX knows how much that is. If a file
    /// cannot be read, the loader decides.
    fn check_card(&self, source: &FolderSource, kept: u64) -> Result<()> {
        let (context, most) = match kept {
            0 => (CONTEXT_ALONE, memory::limit()?),
            _ => (CONTEXT_BESIDE, (memory::limit()? / 5 * 4).saturating_sub(kept)),
        };
        let Ok(needed) = memory_on_card(source, context) else {
            return Ok(());
        };
        if needed <= most {
            return Ok(());
        }
        let guard = self.shared.memory_guard();
        let processor = guard.is_none_or(|guard| guard.before_load(source, Device::Cpu.name(), 0, 0).is_ok());
        let (reason, way_out) = match processor {
            true => (
                Reason::CardMemory,
                "compute on the processor (--device cpu, or in Settings > Models), or choose a smaller model or one in \
                 fewer bits",
            ),
            false => (
                Reason::CardAndMemory,
                "the computer's memory has no room for it either; choose a smaller model or one in fewer bits",
            ),
        };
        let message = format!(
            "this model needs {:.1} GB of memory even for a short chat, and the graphics card has {:.1} GB; \
             {way_out}. Nothing was loaded",
            needed as f64 / 1e9,
            most as f64 / 1e9
        );
        let error = protocol::Error::because(reason, message);
        Err(Error::MemoryShort(error.with("needed", needed).with("free", most)))
    }

    /// Tells the windows what is loaded. Weights that several models share count for the first of them.
    fn publish(&self) {
        let all: Vec<&Rc<LoadedModel>> = self.iter().collect();
        let infos = all.iter().enumerate().map(|(at, loaded)| {
            let mut info = loaded.info.clone();
            if all[..at]
                .iter()
                .any(|other| Rc::ptr_eq(&other.weights, &loaded.weights))
            {
                info.resident_bytes = loaded.adapter_bytes();
            }
            info
        });
        self.shared.set_loaded(infos.collect());
    }
}

/// The bytes that a model takes of a card's memory with this context.
fn memory_on_card(source: &FolderSource, context: u32) -> Result<u64> {
    let config = check_folder(&source.path)?;
    let files = checkpoint::weight_files(&source.path)?;
    let bytes = |name: &String| source.path.join(name).metadata().map_or(0, |file| file.len());
    let workload = Workload {
        context: context.min(config.context),
        kv_bits: None,
        backend: backend(),
        prefix_cached: true,
    };
    Ok(config.estimate_memory(files.iter().map(bytes).sum(), &workload).total())
}
