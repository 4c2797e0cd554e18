//! Kernels of our own for CUDA, each doing in one launch what takes several of MLX's: with small batches a token costs
//! as much as it has launches. Every kernel is compared with the operations it stands for before it is used the first
//! time; one that cannot be compiled or differs is left out, and its caller composes.
//!
//! A program takes a second to compile, so there are few of them, by their number of results, and sizes are no
//! constants: they come as the shape of an array of one element, which the device gets without reading memory. What was
//! compiled is [kept](compiler) from process to process.
//!
//! Reason for unsafe code: handles of MLX's C interface are passed, as in `ops.rs`.
#![allow(unsafe_code)]

mod attend;
mod compiler;
mod gate;
mod heads;
mod linear;
mod norm_linear;
mod residual;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::rc::Rc;

use mlx_rs::Dtype;
use mlx_sys::{mlx_fast_cuda_kernel, mlx_vector_string};

pub use attend::attend;
pub use compiler::keep_compiled;
pub use gate::{gate, GateKernel};
pub use heads::{heads, HeadShape, Split};
pub use linear::linear;
pub use norm_linear::{norm_linear, Epilogue, ResidualInput};
pub use residual::{add_norm, Norm};

use compiler::{Entry, Module};

use crate::error::{Error, Result};
use crate::mlx::device::{check, has_kernels, stream};
use crate::mlx::tensor::{eval, Handles, Tensor};

/// The largest difference from the composed operations, as a part of the largest number: a few steps of a 16 bit float.
const TOLERANCE: f32 = 0.02;

/// The most numbers a kernel gets.
const NUMBERS: usize = 8;

/// A unit of compilation: functions with the same inputs and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Program {
    /// Projections, gates, sums, heads of queries.
    One,
    /// A sum and its norm.
    Two,
    /// Heads of queries, keys and values.
    Three,
    /// Attention, and joining its parts.
    Attend,
    /// Parts of an attention.
    Parts,
    /// A sum, its norm and a projection of that.
    NormLinear,
}

impl Program {
    /// Names of inputs and results, and the call in which all of it ends.
    fn call(self) -> (&'static [&'static str], &'static [&'static str], &'static CStr) {
        match self {
            Self::One => (
                &["p", "a", "b", "c", "d"],
                &["out"],
                c"ponder_one(p_shape, a, a_shape, a_strides, b, b_strides, c, c_shape, d, out);",
            ),
            Self::Two => (
                &["p", "a", "b", "c", "d", "e"],
                &["sum", "normed"],
                c"ponder_two(p_shape, a, b, c, d, e, sum, normed);",
            ),
            Self::Three => (
                &["p", "a", "b", "c", "d"],
                &["queries", "keys", "values"],
                c"ponder_three(p_shape, a, b, c, d, queries, keys, values);",
            ),
            Self::Attend => (
                &["p", "a", "b", "c"],
                &["result"],
                c"ponder_whole(p_shape, a, b, b_shape, b_strides, c, c_strides, result);",
            ),
            Self::Parts => (
                &["p", "a", "b", "c"],
                &["partial", "weights"],
                c"ponder_split(p_shape, a, b, b_shape, b_strides, c, c_strides, partial, weights);",
            ),
            Self::NormLinear => (
                &["p", "h", "x", "inner", "factor", "outer", "weight", "scales", "biases", "other"],
                &["y", "sum"],
                c"ponder_reading(p_shape, h, h_shape, x, inner, factor, outer, weight, scales, scales_shape, biases, other, y, sum);",
            ),
        }
    }

    /// Its device functions.
    fn functions(self) -> &'static [&'static str] {
        const LAYERS: &str = include_str!("layers.cuh");
        const LINEAR: &str = include_str!("linear.cuh");
        match self {
            Self::One => &[LAYERS, LINEAR, include_str!("one.cuh")],
            Self::Two | Self::Three => &[LAYERS],
            Self::Attend | Self::Parts => &[include_str!("attend.cuh")],
            Self::NormLinear => &[LINEAR, include_str!("norm_linear.cuh")],
        }
    }

    /// The module that is compiled for activations of this type.
    fn module(self, dtype: Dtype) -> Result<Module> {
        let element = match dtype {
            Dtype::Bfloat16 => "BFloat16",
            Dtype::Float16 => "Float16",
            Dtype::Float32 => "float",
            other => return Err(Error::Unsupported(format!("a kernel for {other:?}"))),
        };
        let functions = format!(
            "{}#define T {element}\n{}{}",
            include_str!("types.cuh"),
            include_str!("common.cuh"),
            self.functions().concat()
        );
        let (inputs, outputs, call) = self.call();
        let call = call.to_str().map_err(|error| Error::Mlx(error.to_string()))?;
        let entry = Entry { inputs, outputs, call };
        Ok(Module::new(
            &format!("{self:?}_{element}").to_lowercase(),
            entry,
            functions,
        ))
    }
}

/// One kernel: its program and the numbers that it gets in addition to its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    program: Program,
    dtype: Dtype,
    numbers: [i32; NUMBERS],
}

impl Key {
    fn new<const N: usize>(program: Program, dtype: Dtype, numbers: [i32; N]) -> Self {
        let mut all = [0; NUMBERS];
        all[..N].copy_from_slice(&numbers);
        Self {
            program,
            dtype,
            numbers: all,
        }
    }
}

/// A kernel that may be launched.
struct Kernel {
    program: Rc<Compiled>,
    /// Its numbers, as the shape of an array.
    numbers: Tensor,
}

#[derive(Default)]
struct KernelCache {
    programs: HashMap<(Program, Dtype), Rc<Compiled>>,
    kernels: HashMap<Key, Option<Rc<Kernel>>>,
}

thread_local! {
    static KERNELS: RefCell<KernelCache> = RefCell::default();
}

/// Lets MLX compute for as long as it is asked to: on CUDA it refuses every further step once it has seen 800 graphs
/// that were not in its cache, which it takes for thrashing but counts since the start of the process. Called before
/// MLX computes for the first time.
pub fn disable_cache_thrashing_check() {
    const VARIABLE: &str = "MLX_ENABLE_CACHE_THRASHING_CHECK";
    if cfg!(target_os = "linux") && std::env::var_os(VARIABLE).is_none() {
        std::env::set_var(VARIABLE, "0");
    }
}

/// True if no kernel for any type of activations was compiled on this computer and for this card, so that a load will
/// take longer.
pub fn are_missing() -> bool {
    let kept = |dtype| Program::One.module(dtype).is_ok_and(|module| module.is_kept());
    has_kernels() && ![Dtype::Bfloat16, Dtype::Float16, Dtype::Float32].into_iter().any(kept)
}

/// Drops this thread's kernels.
pub fn clear() {
    KERNELS.take();
}

/// The kernel of this key: created and compared once for each thread; `differs` says by how much it differs from the
/// operations it stands for. `None` if it cannot be used.
fn find(key: Key, differs: impl FnOnce(&Kernel) -> Result<f32>) -> Option<Rc<Kernel>> {
    if !has_kernels() {
        return None;
    }
    if let Some(known) = KERNELS.with_borrow(|known| known.kernels.get(&key).cloned()) {
        return known;
    }
    let tried = Kernel::new(key).and_then(|kernel| Ok((differs(&kernel)?, kernel)));
    let kernel = match tried {
        Ok((difference, kernel)) if difference <= TOLERANCE => {
            tracing::debug!(?key, difference, "kernel");
            Some(Rc::new(kernel))
        }
        Ok((difference, _)) => {
            tracing::warn!(
                ?key,
                difference,
                "a kernel computes something else than the operations it stands for; they are used"
            );
            None
        }
        Err(error) => {
            tracing::warn!(?key, %error, "a kernel cannot be used; the operations it stands for are");
            // A stored kernel may be damaged; the next process compiles it again.
            if let Some(program) = KERNELS.with_borrow(|known| known.programs.get(&(key.program, key.dtype)).cloned()) {
                program.module.forget();
            }
            None
        }
    };
    KERNELS.with_borrow_mut(|known| known.kernels.insert(key, kernel.clone()));
    kernel
}

impl Kernel {
    fn new(key: Key) -> Result<Self> {
        let program = (key.program, key.dtype);
        let known = KERNELS.with_borrow(|known| known.programs.get(&program).cloned());
        let program = match known {
            Some(compiled) => compiled,
            None => {
                let compiled = Rc::new(Compiled::new(key.program, key.dtype)?);
                KERNELS.with_borrow_mut(|known| known.programs.insert(program, compiled.clone()));
                compiled
            }
        };
        let shape = key.numbers.map(|number| number + 1);
        let one = Tensor::zeros(&[1], Dtype::Int32)?;
        // SAFETY: the handle and the shape live during the call.
        let numbers = Tensor::make(|result| unsafe {
            mlx_sys::mlx_broadcast_to(result, one.raw(), shape.as_ptr(), NUMBERS, stream())
        })?;
        eval([&numbers])?;
        Ok(Self { program, numbers })
    }

    /// Launches `blocks` of `threads` threads; `outputs` are shapes and types. Unused inputs may be any arrays.
    fn launch<const I: usize, const O: usize>(
        &self,
        inputs: [&Tensor; I],
        outputs: [(&[i32], Dtype); O],
        blocks: (i32, i32),
        threads: i32,
    ) -> Result<[Tensor; O]> {
        self.program.prepare(&inputs, outputs.map(|(_, dtype)| dtype))?;
        let inputs = Handles::new(std::iter::once(&self.numbers).chain(inputs));
        // SAFETY: the configuration is created and freed here; shapes and handles live during the calls.
        let made = unsafe {
            let config = mlx_sys::mlx_fast_cuda_kernel_config_new();
            for (shape, dtype) in outputs {
                mlx_sys::mlx_fast_cuda_kernel_config_add_output_arg(config, shape.as_ptr(), shape.len(), dtype.into());
            }
            mlx_sys::mlx_fast_cuda_kernel_config_set_grid(config, blocks.0 * threads, blocks.1, 1);
            mlx_sys::mlx_fast_cuda_kernel_config_set_thread_group(config, threads, 1, 1);
            let made = Tensor::make_several(O, |results| {
                mlx_sys::mlx_fast_cuda_kernel_apply(results, self.program.handle, inputs.0, config, stream())
            });
            mlx_sys::mlx_fast_cuda_kernel_config_free(config);
            made?
        };
        made.try_into()
            .map_err(|_| Error::Mlx("a kernel made too few arrays".into()))
    }
}

/// A program as MLX keeps it.
struct Compiled {
    handle: mlx_fast_cuda_kernel,
    module: Module,
    /// The types of inputs and results that it was launched with, by their hash.
    prepared: RefCell<HashSet<u64>>,
}

impl Compiled {
    fn new(program: Program, dtype: Dtype) -> Result<Self> {
        let module = program.module(dtype)?;
        let (inputs, outputs, call) = program.call();
        let text = |text: &str| CString::new(text).map_err(|error| Error::Mlx(error.to_string()));
        let (name, header) = (text(module.name())?, text(&module.header()?)?);
        let (inputs, outputs) = (Names::new(inputs)?, Names::new(outputs)?);
        // SAFETY: the strings live during the call, which copies them.
        let handle = unsafe {
            mlx_sys::mlx_fast_cuda_kernel_new(
                name.as_ptr(),
                inputs.0,
                outputs.0,
                call.as_ptr(),
                header.as_ptr(),
                false,
                0,
            )
        };
        let compiled = Self {
            handle,
            module,
            prepared: RefCell::default(),
        };
        if handle.ctx.is_null() {
            check(1)?;
        }
        Ok(compiled)
    }
}

impl Compiled {
    /// Sees to it that MLX finds the program when it is launched with inputs and results of these types.
    fn prepare<const O: usize>(&self, inputs: &[&Tensor], outputs: [Dtype; O]) -> Result<()> {
        let types = inputs.iter().map(|input| input.dtype()).chain(outputs);
        let hash = types.clone().fold(0, |hash: u64, dtype| hash * 31 + dtype as u64);
        if !self.prepared.borrow().contains(&hash) {
            // The first input are the numbers.
            let types: Vec<_> = std::iter::once(Dtype::Int32).chain(types).collect();
            self.module.prepare(&types)?;
            self.prepared.borrow_mut().insert(hash);
        }
        Ok(())
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: created by `new`, freed once.
        unsafe { mlx_sys::mlx_fast_cuda_kernel_free(self.handle) };
    }
}

struct Names(mlx_vector_string);

impl Names {
    fn new(names: &[&str]) -> Result<Self> {
        // SAFETY: the vector is created here and freed on drop; each string lives during its call, which copies it.
        let all = Self(unsafe { mlx_sys::mlx_vector_string_new() });
        for name in names {
            let name = CString::new(*name).map_err(|error| Error::Mlx(error.to_string()))?;
            // SAFETY: as above.
            check(unsafe { mlx_sys::mlx_vector_string_append_value(all.0, name.as_ptr()) })?;
        }
        Ok(all)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        // SAFETY: created by `new`, freed once.
        unsafe { mlx_sys::mlx_vector_string_free(self.0) };
    }
}

/// Numbers between -1 and 1 to compare with; other ones for each seed.
fn noise(shape: &[i32], dtype: Dtype, seed: u32) -> Result<Tensor> {
    let count: i32 = shape.iter().product();
    let mut state = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let numbers: Vec<f32> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_f32(&numbers, shape).astype(dtype)
}

/// The largest difference between two tensors as a part of the largest number; infinite if something is not finite.
fn difference(made: &Tensor, wanted: &Tensor) -> Result<f32> {
    let (made, wanted) = (made.to_f32()?, wanted.to_f32()?);
    if made.len() != wanted.len() || made.iter().any(|number| !number.is_finite()) {
        return Ok(f32::INFINITY);
    }
    let largest = wanted
        .iter()
        .fold(f32::MIN_POSITIVE, |most, number| most.max(number.abs()));
    let apart = made
        .iter()
        .zip(&wanted)
        .fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
    Ok(apart / largest)
}
