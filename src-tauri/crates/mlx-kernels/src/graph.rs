//! A recorded step on the card: its launches as one CUDA graph, with the memory that they write.
//!
//! Reason for unsafe code: kernels are launched with addresses that only their arguments know the meaning of. All
//! memory of a graph lives as long as it does, constants are held, and caches are bound by whoever owns them.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::sys::{
    cuLaunchKernelEx, CUgraphInstantiate_flags, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchConfig, CUstreamCaptureMode,
};
use cudarc::driver::{
    result, CudaContext, CudaEvent, CudaFunction, CudaGraph, CudaSlice, CudaStream, DevicePtr, DriverError,
    PinnedHostSlice,
};
use cudarc::nvrtc::Ptx;
use mlx::recording::{CachePlace, CacheShape, Launched, NextToken, Origin, RecordedStep, RowSampler};
use mlx::tensor::{eval, Tensor};
use mlx::{Error, Result};
use sha2::{Digest, Sha256};

use crate::addresses::addresses;
use crate::compiler::{Module, FUNCTION};
use crate::recorder::{
    Argument, Buffer, Launch, Recorder, FIXED, OFFSETS, PLACES, PLACE_BYTES, POSITIONS, SAMPLERS, SAMPLER_BYTES, TOKENS,
};

/// Steps whose tokens are kept: one that is computed while the one before it is read.
const KEPT: usize = 2;
/// Addresses of buffers are multiples of this.
const ALIGNMENT: usize = 256;

/// The card as this thread uses it.
struct Card {
    context: Arc<CudaContext>,
    /// All recorded steps of a thread follow each other.
    stream: Arc<CudaStream>,
    functions: RefCell<HashMap<String, CudaFunction>>,
    /// True if launches may overlap: from Hopper on.
    overlaps: bool,
    /// True if there may be steps that are not finished.
    busy: Cell<bool>,
}

thread_local! {
    static CARD: RefCell<Option<Rc<Card>>> = const { RefCell::new(None) };
}

fn card() -> Result<Rc<Card>> {
    if let Some(card) = CARD.with_borrow(Clone::clone) {
        return Ok(card);
    }
    let context = CudaContext::new(0).map_err(failed)?;
    // SAFETY: there is one stream, so nothing has to wait for another.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().map_err(failed)?;
    let overlaps = context.compute_capability().map_err(failed)?.0 >= 9;
    let card = Rc::new(Card {
        context,
        stream,
        functions: RefCell::default(),
        overlaps,
        busy: Cell::new(false),
    });
    CARD.set(Some(card.clone()));
    Ok(card)
}

/// The context of the card, which is MLX's.
pub fn context() -> Result<Arc<CudaContext>> {
    Ok(card()?.context.clone())
}

/// Waits for the recorded steps of this thread.
pub fn wait() {
    if let Some(card) = CARD.with_borrow(Clone::clone) {
        card.wait();
    }
}

/// Forgets the card of this thread.
pub fn clear() {
    wait();
    CARD.take();
}

/// An error of the driver.
pub fn failed(error: DriverError) -> Error {
    Error::Failed(format!("CUDA failed: {error}"))
}

impl Card {
    /// Waits for all that was begun.
    fn wait(&self) {
        if self.busy.replace(false) {
            if let Err(error) = self.stream.synchronize() {
                tracing::warn!(%error, "recorded steps cannot be waited for");
            }
        }
    }

    fn function(&self, module: &Module) -> Result<CudaFunction> {
        if let Some(known) = self.functions.borrow().get(module.name()) {
            return Ok(known.clone());
        }
        let binary = Ptx::from_binary(module.binary()?);
        let loaded = self.context.load_module(binary).map_err(failed)?;
        let function = loaded.load_function(FUNCTION).map_err(failed)?;
        self.functions
            .borrow_mut()
            .insert(module.name().to_owned(), function.clone());
        Ok(function)
    }
}

/// A recorded step.
pub struct Graph {
    name: String,
    card: Rc<Card>,
    rows: usize,
    caches: Vec<CacheShape>,
    graph: CudaGraph,
    /// The addresses of the buffers that every step has.
    fixed: [u64; FIXED.len()],
    /// The tokens of the last steps, and when they are there.
    tokens: Vec<(PinnedHostSlice<u32>, CudaEvent)>,
    /// How many steps were begun.
    steps: u64,
    /// `None` if the step chooses no tokens.
    logits: Option<Tensor>,
    /// The tensors whose places are known to the card.
    bound: Vec<u64>,
    _memory: CudaSlice<u8>,
    _constants: Vec<Tensor>,
}

impl Graph {
    /// The graph of what was recorded, which writes `logits`, if there are any.
    pub fn new(mut recorder: Recorder, logits: Option<&Tensor>) -> Result<Self> {
        let (card, rows) = (card()?, recorder.rows.count());
        let last = match logits.map(Tensor::origin) {
            Some(Origin::Launch(launched)) if logits.is_some_and(|logits| is_whole(launched, logits, &recorder)) => {
                Some(launched.buffer)
            }
            Some(_) => return Err(Error::Unsupported("logits that no recorded launch writes".into())),
            None => None,
        };
        // Those that MLX's samplers read lie in memory of MLX's.
        let logits = logits
            .map(|logits| Tensor::zeros(logits.shape(), logits.dtype()))
            .transpose()?;
        eval(&logits)?;
        recorder.buffers[PLACES].bytes = recorder.caches.len() * rows * PLACE_BYTES;
        let (offsets, size) = layout(
            &recorder.buffers,
            &recorder.launches.iter().map(used).collect::<Vec<_>>(),
        );
        let memory = card.stream.alloc_zeros::<u8>(size).map_err(failed)?;
        let start = memory.device_ptr(&card.stream).0;
        let constants = recorder.constants.iter().chain(&logits);
        let constants_at = addresses(&constants.collect::<Vec<_>>())?;
        let logits_at = constants_at.last().copied().unwrap_or(0);
        let at = |argument: &Argument| match argument {
            Argument::Constant(number) => constants_at[*number].to_ne_bytes().to_vec(),
            Argument::Buffer(buffer, offset) if Some(*buffer) == last => {
                (logits_at + *offset as u64).to_ne_bytes().to_vec()
            }
            Argument::Buffer(buffer, offset) => (start + (offsets[*buffer] + offset) as u64).to_ne_bytes().to_vec(),
            Argument::Bytes(bytes) => bytes.clone(),
        };
        let mut launches = Vec::with_capacity(recorder.launches.len());
        for launch in &recorder.launches {
            let arguments: Vec<Vec<u8>> = launch.arguments.iter().map(at).collect();
            launches.push((card.function(&launch.module)?, arguments, launch.grid));
        }
        let graph = capture(&card, launches)?;
        let tokens = (0..KEPT).map(|_| {
            // SAFETY: the numbers are written before they are read.
            let numbers = unsafe { card.context.alloc_pinned_with_flags(rows, 0) }?;
            Ok((numbers, card.context.new_event(None)?))
        });
        let tokens = tokens
            .collect::<std::result::Result<_, DriverError>>()
            .map_err(failed)?;
        tracing::debug!(
            launches = recorder.launches.len(),
            rows,
            bytes = size,
            "recorded a step"
        );
        Ok(Self {
            name: name_of(&recorder.launches),
            rows,
            caches: recorder.caches,
            graph,
            fixed: FIXED.map(|buffer| start + offsets[buffer] as u64),
            tokens,
            steps: 0,
            logits,
            bound: Vec::new(),
            _memory: memory,
            _constants: recorder.constants,
            card,
        })
    }

    fn upload(&self, buffer: usize, bytes: &[u8]) -> Result<()> {
        let to = self.fixed[buffer];
        // SAFETY: the buffer has as many bytes, and memory that is not pinned is read before this returns.
        unsafe { result::memcpy_htod_async(to, bytes, self.card.stream.cu_stream()) }.map_err(failed)
    }
}

/// True if a tensor is all of the buffer that a launch writes.
fn is_whole(launched: Launched, tensor: &Tensor, recorder: &Recorder) -> bool {
    launched == Launched::new(launched.buffer, tensor.shape())
        && recorder.buffers[launched.buffer].bytes == tensor.nbytes()
}

/// A sampler as the kernel takes it.
fn sampler_bytes(sampler: &RowSampler) -> [u8; SAMPLER_BYTES] {
    let words = [
        sampler.inverse_temperature.to_bits(),
        sampler.top_p.to_bits(),
        // A logarithm of a part is not above 0.
        sampler.log_min_p.unwrap_or(1.0).to_bits(),
        sampler.top_k,
        sampler.key.0[0],
        sampler.key.0[1],
    ];
    let mut bytes = [0; SAMPLER_BYTES];
    bytes
        .iter_mut()
        .zip(words.iter().flat_map(|word| word.to_ne_bytes()))
        .for_each(|(to, byte)| *to = byte);
    bytes
}

/// A hash of all launches: their kernels, whose names have that of their source, and what they get but addresses.
fn name_of(launches: &[Launch]) -> String {
    let mut hash = Sha256::new();
    for launch in launches {
        hash.update(launch.module.name());
        let (x, y, threads) = launch.grid;
        [x, y, threads]
            .iter()
            .for_each(|number| hash.update(number.to_le_bytes()));
        for argument in &launch.arguments {
            match argument {
                Argument::Bytes(bytes) => hash.update(bytes),
                Argument::Constant(number) => hash.update(number.to_le_bytes()),
                Argument::Buffer(number, offset) => {
                    [number, offset]
                        .iter()
                        .for_each(|number| hash.update(number.to_le_bytes()));
                }
            }
        }
    }
    format!("{:.16x}", hash.finalize())
}

/// The buffers of a launch.
fn used(launch: &Launch) -> Vec<usize> {
    let buffer = |argument: &Argument| match argument {
        Argument::Buffer(buffer, _) => Some(*buffer),
        Argument::Constant(_) | Argument::Bytes(_) => None,
    };
    launch.arguments.iter().filter_map(buffer).collect()
}

/// The first byte of each buffer, and the size of all. Those that are not read any more make room for later ones of their
/// size.
fn layout(buffers: &[Buffer], uses: &[Vec<usize>]) -> (Vec<usize>, usize) {
    let mut last_use = vec![0; buffers.len()];
    for (index, used) in uses.iter().enumerate() {
        used.iter().for_each(|buffer| last_use[*buffer] = index);
    }
    let room = |bytes: usize| bytes.div_ceil(ALIGNMENT) * ALIGNMENT;
    let (mut offsets, mut free, mut end) = (vec![None; buffers.len()], Vec::<(usize, usize)>::new(), 0);
    let mut place = |buffer: usize, free: &mut Vec<(usize, usize)>| {
        let size = room(buffers[buffer].bytes);
        match free.iter().position(|(of_free, _)| *of_free == size) {
            Some(index) if !buffers[buffer].lasts => free.swap_remove(index).1,
            _ => {
                end += size;
                end - size
            }
        }
    };
    // Those that every step has are filled even if nothing reads them.
    for buffer in FIXED {
        offsets[buffer] = Some(place(buffer, &mut free));
    }
    for (index, used) in uses.iter().enumerate() {
        for buffer in used {
            if offsets[*buffer].is_none() {
                offsets[*buffer] = Some(place(*buffer, &mut free));
            }
        }
        for buffer in used {
            let ends = last_use[*buffer] == index && !buffers[*buffer].lasts;
            if let (true, Some(offset)) = (ends, offsets[*buffer]) {
                let entry = (room(buffers[*buffer].bytes), offset);
                if !free.contains(&entry) {
                    free.push(entry);
                }
            }
        }
    }
    (offsets.into_iter().map(|offset| offset.unwrap_or(0)).collect(), end)
}

type Prepared = (CudaFunction, Vec<Vec<u8>>, crate::recorder::Grid);

fn capture(card: &Card, launches: Vec<Prepared>) -> Result<CudaGraph> {
    let stream = &card.stream;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stream.begin_capture(mode).map_err(failed)?;
    // Kernels wait by themselves for what they read, so that each may come while the one before it runs.
    let mut overlaps = CUlaunchAttribute {
        id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: CUlaunchAttributeValue {
            programmaticStreamSerializationAllowed: 1,
        },
    };
    let mut launch = |(function, mut arguments, (x, y, threads)): Prepared| {
        let mut pointers: Vec<*mut c_void> = arguments.iter_mut().map(|bytes| bytes.as_mut_ptr().cast()).collect();
        let config = CUlaunchConfig {
            gridDimX: x,
            gridDimY: y,
            gridDimZ: 1,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: stream.cu_stream(),
            attrs: &mut overlaps,
            numAttrs: u32::from(card.overlaps),
        };
        // SAFETY: the arguments are those that the function takes, and are copied by the call.
        unsafe {
            cuLaunchKernelEx(
                &config,
                function.cu_function(),
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
        .result()
    };
    let launched = launches.into_iter().try_for_each(&mut launch);
    let graph = stream.end_capture(CUgraphInstantiate_flags(0));
    launched.map_err(failed)?;
    let graph = graph.map_err(failed)?;
    graph.ok_or_else(|| Error::Failed("CUDA recorded nothing".into()))
}

impl RecordedStep for Graph {
    fn name(&self) -> &str {
        &self.name
    }

    fn cache_shapes(&self) -> &[CacheShape] {
        &self.caches
    }

    fn bind(&mut self, rows: &[Vec<CachePlace<'_>>]) -> Result<()> {
        let of_all = || (0..self.caches.len()).flat_map(|cache| rows.iter().filter_map(move |row| row.get(cache)));
        let ids: Vec<u64> = of_all()
            .flat_map(|place| [place.keys.id(), place.values.id()])
            .collect();
        if ids == self.bound {
            return Ok(());
        }
        self.bound.clear();
        let fits = |shape: &CacheShape, place: &CachePlace<'_>| {
            let alike = |tensor: &Tensor| {
                let &[1, heads, _, width] = tensor.shape() else {
                    return false;
                };
                (tensor.dtype(), heads, width) == (shape.dtype, shape.heads, shape.width)
            };
            alike(place.keys) && alike(place.values) && place.keys.dim(2) == place.values.dim(2)
        };
        let all_fit = self.caches.iter().enumerate().all(|(index, shape)| {
            let mut of_cache = rows.iter().map(|row| row.get(index));
            rows.len() == self.rows && of_cache.all(|place| place.is_some_and(|place| fits(shape, place)))
        });
        if !all_fit {
            return Err(Error::Unsupported("caches of another shape than were recorded".into()));
        }
        // Caches that have grown are copies, which MLX makes now, of what the step before may still write.
        self.card.wait();
        let tensors: Vec<&Tensor> = of_all().flat_map(|place| [place.keys, place.values]).collect();
        let at = addresses(&tensors)?;
        let mut bytes = Vec::with_capacity(at.len() / 2 * PLACE_BYTES);
        for (pair, tensors) in at.chunks(2).zip(tensors.chunks(2)) {
            for number in [pair[0], pair[1], tensors[0].dim(2) as u64] {
                bytes.extend(number.to_ne_bytes());
            }
        }
        self.upload(PLACES, &bytes)?;
        self.bound = ids;
        Ok(())
    }

    fn begin(&mut self, tokens: Option<&[NextToken]>, samplers: Option<&[RowSampler]>) -> Result<u64> {
        if let Some(tokens) = tokens {
            let bytes = |of: fn(&NextToken) -> u32| -> Vec<u8> {
                tokens.iter().flat_map(|token| of(token).to_ne_bytes()).collect()
            };
            self.upload(TOKENS, &bytes(|token| token.token))?;
            self.upload(OFFSETS, &bytes(|token| token.offset))?;
            self.upload(POSITIONS, &bytes(|token| token.position))?;
        }
        if let Some(samplers) = samplers {
            let bytes: Vec<u8> = samplers.iter().flat_map(sampler_bytes).collect();
            self.upload(SAMPLERS, &bytes)?;
        }
        self.card.busy.set(true);
        self.graph.launch().map_err(failed)?;
        let stream = &self.card.stream;
        let (numbers, done) = &mut self.tokens[self.steps as usize % KEPT];
        // SAFETY: whoever asked for an earlier step's tokens has them; the numbers live as long as the graph.
        unsafe {
            let to = std::slice::from_raw_parts_mut(numbers.as_mut_ptr().map_err(failed)?, self.rows);
            result::memcpy_dtoh_async(to, self.fixed[TOKENS], stream.cu_stream()).map_err(failed)?;
        }
        done.record(stream).map_err(failed)?;
        self.steps += 1;
        Ok(self.steps - 1)
    }

    fn tokens(&mut self, step: u64) -> Result<Vec<u32>> {
        if step >= self.steps || self.steps - step > KEPT as u64 {
            return Err(Error::Failed(
                "the tokens of a recorded step are not kept any more".into(),
            ));
        }
        let (numbers, done) = &self.tokens[step as usize % KEPT];
        done.synchronize().map_err(failed)?;
        Ok(numbers.as_slice().map_err(failed)?.to_vec())
    }

    fn logits(&mut self) -> Result<Tensor> {
        self.card.stream.synchronize().map_err(failed)?;
        let logits = self.logits.clone();
        logits.ok_or_else(|| Error::Failed("a step that chooses no tokens has no logits".into()))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Its memory and its graph go with it.
        self.card.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_by_launches_that_come_after() {
        let buffer = |lasts| Buffer { bytes: 300, lasts };
        let buffers = [true, true, true, true, true, false, false, false].map(buffer);
        let uses = [vec![TOKENS, 5], vec![5, 6], vec![6, 7]];
        // The last has the place of the one that no launch reads any more; those that no launch reads have their own.
        let places = vec![0, 512, 1024, 1536, 2048, 2560, 3072, 2560];
        assert_eq!(layout(&buffers, &uses), (places, 3584));
    }
}
