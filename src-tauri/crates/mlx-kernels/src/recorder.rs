//! The launches of a step, written down while it is described.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mlx::recording::{self, CacheShape, Launched, Origin, StepRows, MAX_AXES};
use mlx::tensor::Tensor;
use mlx::{Dtype, Error, Result};

use crate::compiler::Module;

/// The tokens `[rows]` that a step reads, and then those that it chose.
pub const TOKENS: usize = 0;
/// How many tokens its sequence has in its caches before each, `[rows]`.
pub const OFFSETS: usize = 1;
/// The positions of the tokens, `[rows]`.
pub const POSITIONS: usize = 2;
/// The places of the caches, `[caches, rows]` of [`PLACE_BYTES`].
pub const PLACES: usize = 3;
/// How the next token of each row is chosen, `[rows]` of [`SAMPLER_BYTES`]; at first the likeliest is.
pub const SAMPLERS: usize = 4;
/// 1 / temperature, top-p, the logarithm of min-p, top-k and the key of the random numbers, in words.
pub const SAMPLER_BYTES: usize = 32;
/// The buffers that every step has.
pub const FIXED: [usize; 5] = [TOKENS, OFFSETS, POSITIONS, PLACES, SAMPLERS];
/// The address of keys, that of values, and how many positions there is room for.
pub const PLACE_BYTES: usize = 24;

/// The axes that MLX passes to a kernel.
const PASSED_AXES: usize = 10;

/// Blocks in both directions, and threads of a block.
pub type Grid = (u32, u32, u32);

/// An argument of a kernel.
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
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// Its blocks and threads.
    pub grid: Grid,
}

/// The launch that would make the heads of an attention, as far as the attention needs it to make them itself.
pub struct HeadsLaunch {
    /// Its numbers, as a kernel gets them.
    pub numbers: Argument,
    /// The addresses of what it reads: the projection, factors, periods, positions.
    pub inputs: Vec<Argument>,
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

/// A recording, which ends with it, also after a panic.
pub struct Recording;

impl Recording {
    /// Begins to record a step of these rows.
    pub fn begin(rows: StepRows) -> Self {
        RECORDER.set(Some(Recorder::new(rows)));
        Self
    }

    /// The step as far as it was recorded.
    pub fn end(self) -> Option<Recorder> {
        RECORDER.take()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDER.take();
    }
}

impl Recorder {
    /// A step of these rows.
    fn new(rows: StepRows) -> Self {
        let numbers = || Buffer {
            bytes: rows.count() * size_of::<u32>(),
            lasts: true,
        };
        let places = Buffer { bytes: 0, lasts: true };
        let samplers = Buffer {
            bytes: rows.count() * SAMPLER_BYTES,
            lasts: true,
        };
        Self {
            rows,
            launches: Vec::new(),
            buffers: vec![numbers(), numbers(), numbers(), places, samplers],
            constants: Vec::new(),
            caches: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// A new buffer. What `lasts` is as the step before left it.
    pub fn buffer(&mut self, shape: &[i32], dtype: Dtype, lasts: bool) -> Result<Launched> {
        let numbers: usize = shape.iter().map(|length| *length as usize).product();
        self.buffers.push(Buffer {
            bytes: numbers * bytes_of(dtype)?,
            lasts,
        });
        Ok(Launched::new(self.buffers.len() - 1, shape))
    }

    /// Takes back the last launch if it makes these queries, keys and values, no values are normed, and no other launch
    /// makes what it needs beside the projection.
    pub fn take_heads(&mut self, made: [&Tensor; 3]) -> Option<HeadsLaunch> {
        let launch = self.launches.last()?;
        let [_, numbers @ Argument::Bytes(bytes), inputs @ .., _, _, _] = &*launch.arguments else {
            return None;
        };
        // A kernel gets its numbers as a shape, in which each is one more.
        let number = |place: usize| {
            let bytes = bytes.get(place * 4..place * 4 + 4)?;
            Some(i32::from_ne_bytes(bytes.try_into().ok()?) - 1)
        };
        let (heads, key_heads, normed) = (number(0)?, number(1)?, number(3)?);
        let outputs = &launch.arguments[launch.arguments.len() - 3..];
        let makes = |(output, tensor): (&Argument, &Tensor)| match (output, tensor.origin()) {
            (Argument::Buffer(buffer, 0), Origin::Launch(launched)) => {
                (*buffer, 0) == (launched.buffer, launched.offset) && is_dense(launched, tensor.shape())
            }
            _ => false,
        };
        let is_there = |input: &Argument| matches!(input, Argument::Constant(_) | Argument::Buffer(POSITIONS, _));
        let fits = launch.module.name().starts_with("ponder_three_")
            && normed <= heads + key_heads
            && inputs.iter().skip(1).all(is_there)
            && outputs.iter().zip(made).all(makes);
        let taken = fits.then(|| HeadsLaunch {
            numbers: numbers.clone(),
            inputs: inputs.to_vec(),
        })?;
        self.launches.pop();
        Some(taken)
    }

    fn constant(&mut self, tensor: &Tensor) -> Argument {
        let constants = &mut self.constants;
        let number = *self.known.entry(tensor.id()).or_insert_with(|| {
            constants.push(tensor.clone());
            constants.len() - 1
        });
        Argument::Constant(number)
    }

    /// The address of what a launch reads.
    pub fn input(&mut self, tensor: &Tensor) -> Result<Argument> {
        match tensor.origin() {
            Origin::Launch(launched) if !is_dense(launched, tensor.shape()) => Err(Error::Unsupported(format!(
                "a recorded launch of numbers that lie apart, {tensor:?}"
            ))),
            _ => self.strided_input(tensor),
        }
    }

    /// The address of what a launch reads by its strides.
    pub fn strided_input(&mut self, tensor: &Tensor) -> Result<Argument> {
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

/// True if numbers lie row after row without gaps.
fn is_dense(launched: Launched, shape: &[i32]) -> bool {
    let dense = Launched::new(launched.buffer, shape);
    let mut axes = shape.iter().zip(launched.strides.iter().zip(dense.strides));
    axes.all(|(length, (step, wanted))| *length == 1 || *step == wanted)
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

/// The positions of the tokens of the step that is being recorded.
pub fn positions() -> Option<Tensor> {
    let rows = RECORDER.with_borrow(|recorder| recorder.as_ref().map(|recorder| recorder.rows))?;
    let positions = || numbers(POSITIONS, rows.count(), Dtype::Int32).ok();
    recording::is_on().then(positions).flatten()
}

/// The numbers `[rows]` of a buffer that every step has.
pub fn numbers(buffer: usize, rows: usize, dtype: Dtype) -> Result<Tensor> {
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
            arguments.push(match strides {
                true => recorder.strided_input(tensor)?,
                false => recorder.input(tensor)?,
            });
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
            arguments.extend([recorder.strided_input(tensor)?, Argument::Bytes(shape_bytes(steps))]);
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
            Argument::Buffer(SAMPLERS, 0),
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

/// Writes into the step that is being recorded.
pub fn with<R>(write: impl FnOnce(&mut Recorder) -> Result<R>) -> Result<R> {
    RECORDER.with_borrow_mut(|recorder| match recorder {
        Some(recorder) => write(recorder),
        None => Err(Error::Unsupported("a launch without a recording".into())),
    })
}

/// An address that is not read.
pub fn nothing() -> Argument {
    Argument::Bytes(vec![0; size_of::<u64>()])
}

/// A shape as MLX passes it.
pub fn shape_bytes(shape: &[i32]) -> Vec<u8> {
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
