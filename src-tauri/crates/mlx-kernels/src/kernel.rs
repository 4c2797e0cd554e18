//! A kernel: created, compared with the operations it stands for, and kept for this thread.
//!
//! Reason for unsafe code: handles of MLX's C interface are passed, as in the crate `mlx`.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::rc::Rc;

use mlx::device::{check, platform, stream};
use mlx::recording;
use mlx::sys::{self, mlx_fast_cuda_kernel, mlx_vector_string};
use mlx::tensor::{eval, Handles, Tensor};
use mlx::{Dtype, Error, Result};

use crate::compiler::Module;
use crate::program::Program;
use crate::recorder;
use crate::verdicts;

/// The largest difference from the composed operations, as a part of the largest number: a few steps of a 16 bit float.
const TOLERANCE: f32 = 0.02;

/// The most numbers a kernel gets.
const NUMBERS: usize = 8;

/// One kernel: its program and the numbers that it gets in addition to its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    program: Program,
    dtype: Dtype,
    numbers: [i32; NUMBERS],
}

impl Key {
    /// The kernel of a program for activations of this type; what is left of the numbers is 0.
    pub fn new<const N: usize>(program: Program, dtype: Dtype, numbers: [i32; N]) -> Self {
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
pub struct Kernel {
    program: Rc<Compiled>,
    /// Its numbers, as the shape of an array.
    numbers: Tensor,
    shape: [i32; NUMBERS],
}

#[derive(Default)]
struct KernelCache {
    programs: HashMap<(Program, Dtype), Rc<Compiled>>,
    kernels: HashMap<Key, Option<Rc<Kernel>>>,
}

thread_local! {
    static KERNELS: RefCell<KernelCache> = RefCell::default();
}

/// True if no kernel for any type of activations was compiled on this computer and for this card, so that a load will
/// take longer.
pub fn are_missing() -> bool {
    let kept = |dtype| Program::One.module(dtype).is_ok_and(|module| module.is_kept());
    ![Dtype::Bfloat16, Dtype::Float16, Dtype::Float32].into_iter().any(kept)
}

/// Drops this thread's kernels.
pub fn clear() {
    KERNELS.take();
}

/// The kernel of this key: created once for each thread and compared once on a computer; `differs` says by how much it
/// differs from the operations it stands for. `None` if it cannot be used.
pub fn find(key: Key, differs: impl FnOnce(&Kernel) -> Result<f32>) -> Option<Rc<Kernel>> {
    if let Some(known) = KERNELS.with_borrow(|known| known.kernels.get(&key).cloned()) {
        return known;
    }
    let try_it = || -> Result<(Option<f32>, Kernel)> {
        let kernel = Kernel::new(key)?;
        let file = kernel.program.module.verdicts()?;
        let platform = platform();
        if verdicts::is_kept(&file, &platform, &key.numbers) {
            return Ok((None, kernel));
        }
        let difference = differs(&kernel)?;
        if difference <= TOLERANCE {
            verdicts::keep(&file, &platform, &key.numbers);
        }
        Ok((Some(difference), kernel))
    };
    let tried = recording::paused(try_it);
    let kernel = match tried {
        Ok((None, kernel)) => Some(Rc::new(kernel)),
        Ok((Some(difference), kernel)) if difference <= TOLERANCE => {
            tracing::debug!(?key, difference, "kernel");
            Some(Rc::new(kernel))
        }
        Ok((difference, _)) => {
            tracing::warn!(
                ?key,
                ?difference,
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
    /// The kernel, which no one has compared yet.
    pub fn new(key: Key) -> Result<Self> {
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
            sys::mlx_broadcast_to(result, one.raw(), shape.as_ptr(), NUMBERS, stream())
        })?;
        eval([&numbers])?;
        Ok(Self {
            program,
            numbers,
            shape,
        })
    }

    /// Launches `blocks` of `threads` threads; `outputs` are shapes and types. Unused inputs may be any arrays.
    pub fn launch<const I: usize, const O: usize>(
        &self,
        inputs: [&Tensor; I],
        outputs: [(&[i32], Dtype); O],
        blocks: (i32, i32),
        threads: i32,
    ) -> Result<[Tensor; O]> {
        if recording::is_on() {
            let grid = (blocks.0 as u32, blocks.1 as u32, threads as u32);
            let made = recorder::launch(&self.program.module, &self.shape, &inputs, &outputs, grid)?;
            return made
                .try_into()
                .map_err(|_| Error::Failed("a recorded kernel made too few arrays".into()));
        }
        self.program.prepare(&inputs, outputs.map(|(_, dtype)| dtype))?;
        let inputs = Handles::new(std::iter::once(&self.numbers).chain(inputs));
        // SAFETY: the configuration is created and freed here; shapes and handles live during the calls.
        let made = unsafe {
            let config = sys::mlx_fast_cuda_kernel_config_new();
            for (shape, dtype) in outputs {
                sys::mlx_fast_cuda_kernel_config_add_output_arg(config, shape.as_ptr(), shape.len(), dtype.into());
            }
            sys::mlx_fast_cuda_kernel_config_set_grid(config, blocks.0 * threads, blocks.1, 1);
            sys::mlx_fast_cuda_kernel_config_set_thread_group(config, threads, 1, 1);
            let made = Tensor::make_several(O, |results| {
                sys::mlx_fast_cuda_kernel_apply(results, self.program.handle, inputs.0, config, stream())
            });
            sys::mlx_fast_cuda_kernel_config_free(config);
            made?
        };
        made.try_into()
            .map_err(|_| Error::Failed("a kernel made too few arrays".into()))
    }
}

/// A program as MLX keeps it.
struct Compiled {
    handle: mlx_fast_cuda_kernel,
    module: Rc<Module>,
    /// The types of inputs and results that it was launched with, by their hash.
    prepared: RefCell<HashSet<u64>>,
}

impl Compiled {
    fn new(program: Program, dtype: Dtype) -> Result<Self> {
        let module = Rc::new(program.module(dtype)?);
        let (inputs, outputs, call) = program.call();
        let text = |text: &str| CString::new(text).map_err(|error| Error::Failed(error.to_string()));
        let (name, header) = (text(module.name())?, text(&module.header()?)?);
        let (inputs, outputs) = (Names::new(inputs)?, Names::new(outputs)?);
        // SAFETY: the strings live during the call, which copies them.
        let handle = unsafe {
            sys::mlx_fast_cuda_kernel_new(
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
        unsafe { sys::mlx_fast_cuda_kernel_free(self.handle) };
    }
}

struct Names(mlx_vector_string);

impl Names {
    fn new(names: &[&str]) -> Result<Self> {
        // SAFETY: the vector is created here and freed on drop; each string lives during its call, which copies it.
        let all = Self(unsafe { sys::mlx_vector_string_new() });
        for name in names {
            let name = CString::new(*name).map_err(|error| Error::Failed(error.to_string()))?;
            // SAFETY: as above.
            check(unsafe { sys::mlx_vector_string_append_value(all.0, name.as_ptr()) })?;
        }
        Ok(all)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        // SAFETY: created by `new`, freed once.
        unsafe { sys::mlx_vector_string_free(self.0) };
    }
}
