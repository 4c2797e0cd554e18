//! Writing down the launches of a step while it is described.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mlx::recording::{self, CacheOf, CacheShape, CachedAttention, Launched, Origin, RecordedStep, StepRows, MAX_AXES};
use mlx::tensor::Tensor;
use mlx::{Dtype, Error, Result};

use crate::compiler::Module;
use crate::graph::Graph;
use crate::{cached_attention, elementwise, ends};

/// The tokens `[rows]` that a step reads, and then those that it chose.
pub const TOKENS: usize = 0;
/// How many tokens its sequence has in its caches before each, `[rows]`.
pub const OFFSETS: usize = 1;
/// The positions of the tokens, `[rows]`.
pub const POSITIONS: usize = 2;
/// Where the caches lie, `[caches, rows]` of [`PLACE_BYTES`].
pub const PLACES: usize = 3;
/// The address of keys, that of values, and how many positions there is room for.
pub const PLACE_BYTES: usize = 24;

/// The axes that MLX passes to a kernel.
const PASSED_AXES: usize = 10;

/// Blocks in both directions, and threads of a block.
pub type Grid = (u32, u32, u32);

/// What is passed to a kernel.
#[derive(Clone)]
pub enum Argument {
    /// The address of a constant.
    Constant(usize),
    /// A place in a buffer, in bytes.
    Buffer(usize, usize),
    /// The bytes themselves.
    Bytes(Vec<u8>),
}

/// One launch.
pub struct Launch {
    /// Its kernel.
    pub module: Rc<Module>,
    /// What is passed.
    pub arguments: Vec<Argument>,
    /// Its blocks and threads.
    pub grid: Grid,
}

/// Memory that launches write.
pub struct Buffer {
    /// Its size.
    pub bytes: usize,
    /// True if what it has is needed in the next step.
    pub lasts: bool,
}

/// A step that is being recorded.
pub struct Recorder {
    /// Its rows.
    pub rows: StepRows,
    /// Its launches in order.
    pub launches: Vec<Launch>,
    /// All buffers.
    pub buffers: Vec<Buffer>,
    /// Tensors that are read and never written: weights.
    pub constants: Vec<Tensor>,
    /// The attentions in order.
    pub caches: Vec<CacheShape>,
    known: HashMap<u64, usize>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

impl Recorder {
    fn new(rows: StepRows) -> Self {
        let numbers = || Buffer {
            bytes: rows.count() * size_of::<u32>(),
            lasts: true,
        };
        let places = Buffer { bytes: 0, lasts: true };
        Self {
            rows,
            launches: Vec::new(),
            buffers: vec![numbers(), numbers(), numbers(), places],
            constants: Vec::new(),
            caches: Vec::new(),
            known: HashMap::new(),
        }
    }

    fn buffer(&mut self, shape: &[i32], dtype: Dtype, lasts: bool) -> Result<Launched> {
        let numbers: usize = shape.iter().map(|length| *length as usize).product();
        self.buffers.push(Buffer {
            bytes: numbers * bytes_of(dtype)?,
            lasts,
        });
        Ok(Launched::new(self.buffers.len() - 1, shape))
    }

    fn constant(&mut self, tensor: &Tensor) -> Argument {
        let constants = &mut self.constants;
        let number = *self.known.entry(tensor.id()).or_insert_with(|| {
            constants.push(tensor.clone());
            constants.len() - 1
        });
        Argument::Constant(number)
    }

    fn input(&mut self, tensor: &Tensor) -> Result<Argument> {
        match tensor.origin() {
            Origin::Memory => Ok(self.constant(tensor)),
            Origin::Launch(launched) => {
                let offset = launched.offset * bytes_of(tensor.dtype())?;
                Ok(Argument::Buffer(launched.buffer, offset))
            }
            Origin::Described => Err(Error::Unsupported(format!(
                "a recorded launch of what MLX computes, {tensor:?}"
            ))),
        }
    }
}

/// The size of a number in bytes.
fn bytes_of(dtype: Dtype) -> Result<usize> {
    Ok(match dtype {
        Dtype::Bfloat16 | Dtype::Float16 => 2,
        Dtype::Float32 | Dtype::Int32 | Dtype::Uint32 => 4,
        Dtype::Uint8 => 1,
        other => return Err(Error::Unsupported(format!("a kernel for {other:?}"))),
    })
}

/// Records the step that `describe` describes; `None` if it cannot be.
pub fn record(
    rows: StepRows,
    describe: &mut dyn FnMut(&Tensor) -> Result<Tensor>,
) -> Result<Option<Box<dyn RecordedStep>>> {
    RECORDER.set(Some(Recorder::new(rows)));
    let described = recording::on(elementwise::elementwise, || {
        let made = describe(&numbers(TOKENS, rows.count(), Dtype::Uint32)?)?;
        Ok(match rows {
            StepRows::OfSequences(sequences) => {
                ends::likeliest(&made, sequences)?;
                Some(made)
            }
            StepRows::OfOne(_) => None,
        })
    });
    let recorder = RECORDER.take();
    match (described, recorder) {
        (Ok(logits), Some(recorder)) => Ok(Some(Box::new(Graph::new(recorder, logits.as_ref())?))),
        (Err(error @ Error::Unsupported(_)), _) => {
            tracing::debug!(%error, ?rows, "steps of this model are not recorded");
            Ok(None)
        }
        (Err(error), _) => Err(error),
        (Ok(_), None) => Ok(None),
    }
}

/// The positions of the tokens of the step that is being recorded.
pub fn positions() -> Option<Tensor> {
    let rows = RECORDER.with_borrow(|recorder| recorder.as_ref().map(|recorder| recorder.rows))?;
    let positions = || numbers(POSITIONS, rows.count(), Dtype::Int32).ok();
    recording::is_on().then(positions).flatten()
}

/// The numbers `[rows]` of a buffer that every step has.
fn numbers(buffer: usize, rows: usize, dtype: Dtype) -> Result<Tensor> {
    let shape = [rows as i32];
    Ok(Tensor::zeros(&shape, dtype)?.from_launch(Launched::new(buffer, &shape)))
}

/// Records a launch; the results are tensors that it will have written.
pub fn launch(
    module: &Rc<Module>,
    numbers: &[i32],
    inputs: &[&Tensor],
    outputs: &[(&[i32], Dtype)],
    grid: Grid,
) -> Result<Vec<Tensor>> {
    with(|recorder| {
        let mut arguments = Vec::with_capacity(inputs.len() + outputs.len() + 2);
        for (index, (shape, strides)) in module.passed().enumerate() {
            // The first input are the numbers, which come as a shape.
            let Some(tensor) = index.checked_sub(1).and_then(|index| inputs.get(index)) else {
                arguments.push(nothing());
                arguments.push(Argument::Bytes(shape_bytes(numbers)));
                continue;
            };
            arguments.push(recorder.input(tensor)?);
            if shape {
                arguments.push(Argument::Bytes(shape_bytes(tensor.shape())));
            }
            if strides {
                arguments.push(Argument::Bytes(stride_bytes(&tensor.strides())));
            }
        }
        let mut made = Vec::with_capacity(outputs.len());
        for (shape, dtype) in outputs {
            let launched = recorder.buffer(shape, *dtype, false)?;
            arguments.push(Argument::Buffer(launched.buffer, 0));
            let described = Tensor::zeros(shape, *dtype)?;
            made.push(match shape.len() <= MAX_AXES {
                true => described.from_launch(launched),
                false => described,
            });
        }
        recorder.launches.push(Launch {
            module: module.clone(),
            arguments,
            grid,
        });
        Ok(made)
    })
}

/// Records attention by caches.
pub fn attend(attention: CachedAttention<'_>) -> Result<Option<Tensor>> {
    let dtype = attention.queries.dtype();
    let of_width = || Error::Unsupported(format!("recorded attention of {:?}", attention.queries));
    let (number, shape) = match attention.cache {
        CacheOf::Shared(number) => with(|recorder| Ok((number, recorder.caches.get(number).copied())))?,
        CacheOf::Own(keys, values) => match (keys.shape(), values.shape()) {
            (&[_, heads, 1, width], values) if *values == *keys.shape() => {
                with(|recorder| Ok((recorder.caches.len(), Some(CacheShape { dtype, heads, width }))))?
            }
            _ => return Err(of_width()),
        },
    };
    let shape = shape.ok_or_else(of_width)?;
    let rows = with(|recorder| Ok(recorder.rows))?;
    let plan = cached_attention::plan(attention, shape, rows)?.ok_or_else(of_width)?;
    with(|recorder| {
        if number == recorder.caches.len() {
            recorder.caches.push(shape);
        }
        let queries = recorder.input(attention.queries)?;
        let [keys, values] = match attention.cache {
            CacheOf::Own(keys, values) => [recorder.input(keys)?, recorder.input(values)?],
            CacheOf::Shared(_) => [nothing(), nothing()],
        };
        let sinks = attention.sinks.map(|sinks| recorder.input(sinks)).transpose()?;
        let result = recorder.buffer(&plan.result, dtype, false)?;
        let partial = recorder.buffer(&plan.partial, Dtype::Float32, false)?;
        let counters = recorder.buffer(&plan.counters, Dtype::Uint32, true)?;
        let arguments = [
            nothing(),
            nothing(),
            queries,
            keys,
            values,
            sinks.unwrap_or_else(nothing),
            Argument::Buffer(PLACES, number * rows.count() * PLACE_BYTES),
            Argument::Buffer(OFFSETS, 0),
            Argument::Buffer(result.buffer, 0),
            Argument::Buffer(partial.buffer, 0),
            Argument::Buffer(counters.buffer, 0),
        ];
        for (numbers, grid) in plan.launches {
            let mut arguments = arguments.to_vec();
            arguments[1] = Argument::Bytes(shape_bytes(&numbers));
            recorder.launches.push(Launch {
                module: plan.module.clone(),
                arguments,
                grid,
            });
        }
        Tensor::zeros(&plan.result, dtype).map(|described| Some(described.from_launch(result)))
    })
}

/// Records an operation on single numbers: the sizes that both tensors broadcast to, and their steps along these.
pub fn launch_elementwise(
    module: Rc<Module>,
    (numbers, sizes): (&[i32], &[i32]),
    [a, b]: [&Tensor; 2],
    steps: &[[i32; MAX_AXES]; 2],
    (shape, grid): (&[i32], Grid),
) -> Result<Tensor> {
    with(|recorder| {
        let made = recorder.buffer(shape, a.dtype(), false)?;
        let mut arguments = Vec::new();
        for numbers in [numbers, sizes] {
            arguments.extend([nothing(), Argument::Bytes(shape_bytes(numbers))]);
        }
        for (tensor, steps) in [a, b].into_iter().zip(steps) {
            arguments.extend([recorder.input(tensor)?, Argument::Bytes(shape_bytes(steps))]);
        }
        arguments.push(Argument::Buffer(made.buffer, 0));
        recorder.launches.push(Launch {
            module,
            arguments,
            grid,
        });
        Ok(Tensor::zeros(shape, a.dtype())?.from_launch(made))
    })
}

/// Records a launch that chooses the tokens of the next step.
pub fn launch_choice(module: Rc<Module>, numbers: &[i32], logits: &Tensor, grid: Grid) -> Result<()> {
    with(|recorder| {
        let arguments = vec![
            nothing(),
            Argument::Bytes(shape_bytes(numbers)),
            recorder.input(logits)?,
            Argument::Buffer(OFFSETS, 0),
            Argument::Buffer(POSITIONS, 0),
            nothing(),
            Argument::Buffer(TOKENS, 0),
        ];
        recorder.launches.push(Launch {
            module,
            arguments,
            grid,
        });
        Ok(())
    })
}

fn with<R>(write: impl FnOnce(&mut Recorder) -> Result<R>) -> Result<R> {
    RECORDER.with_borrow_mut(|recorder| match recorder {
        Some(recorder) => write(recorder),
        None => Err(Error::Unsupported("a launch without a recording".into())),
    })
}

/// An address that is not read.
fn nothing() -> Argument {
    Argument::Bytes(vec![0; size_of::<u64>()])
}

/// A shape as MLX passes it.
fn shape_bytes(shape: &[i32]) -> Vec<u8> {
    let mut all = [0i32; PASSED_AXES];
    all[..shape.len()].copy_from_slice(shape);
    all.iter().flat_map(|length| length.to_ne_bytes()).collect()
}

/// Strides as MLX passes them.
fn stride_bytes(strides: &[i64]) -> Vec<u8> {
    let mut all = [0i64; PASSED_AXES];
    all[..strides.len()].copy_from_slice(strides);
    all.iter().flat_map(|step| step.to_ne_bytes()).collect()
}
