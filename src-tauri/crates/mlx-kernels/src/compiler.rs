//! Compiles our kernels once for a computer. MLX keeps what it compiles of its own kernels, but compiles others in
//! every process, and again for all types of arrays they are launched with. It looks into the folder first, though, for
//! a file of a name that it makes of the source. So ours are compiled by the same library (NVRTC, which MLX has loaded)
//! and put there under those names. They need no header, which is most of the time that MLX takes. If it looked for
//! another name it would compile them, as it does without the folder.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use mlx::{compiled_kernels, device, Dtype, Error, Result};
use sha2::{Digest, Sha256};

use crate::nvrtc;

/// The function of a module that is launched.
pub const FUNCTION: &str = "ponder_kernel";

/// How a program is entered.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Names of inputs.
    pub inputs: &'static [&'static str],
    /// Names of results.
    pub outputs: &'static [&'static str],
    /// The call in which all of it ends; shapes and strides are passed if it names them.
    pub call: &'static str,
    /// True if the functions wait for the launch before by themselves.
    pub waits: bool,
}

impl Entry {
    /// The arguments that MLX passes for an input in addition to its address.
    fn passed(&self, input: &str) -> impl Iterator<Item = (&'static str, String)> {
        let call = self.call;
        let names = [
            ("Shape", format!("{input}_shape")),
            ("Strides", format!("{input}_strides")),
        ];
        names.into_iter().filter(move |(_, name)| call.contains(name.as_str()))
    }

    /// The function that is compiled: it takes what MLX passes, whatever the types are.
    fn function(&self) -> String {
        let inputs = self.inputs.iter().flat_map(|input| {
            let passed = self
                .passed(input)
                .map(|(kind, name)| format!("const __grid_constant__ {kind} {name}"));
            std::iter::once(format!("const void* {input}")).chain(passed)
        });
        let outputs = self.outputs.iter().map(|output| format!("void* {output}"));
        let parameters: Vec<String> = inputs.chain(outputs).collect();
        format!(
            "extern \"C\" __global__ void {FUNCTION}({}) {{ {}{} }}\n",
            parameters.join(", "),
            self.begins(),
            self.call
        )
    }

    /// The call by which launches of a graph overlap: a kernel lets the next one come, and waits for the one before it
    /// unless it has something to do until then.
    fn begins(&self) -> &'static str {
        match self.waits {
            true => "ponder_let_next(); ",
            false => "ponder_let_next(); ponder_wait(); ",
        }
    }

    /// The source that MLX would compile for these types of inputs and results (`build_kernel` in MLX's
    /// `custom_kernel.cpp`).
    fn mlx_source(&self, name: &str, header: &str, types: &[Dtype]) -> Result<String> {
        let mut source = format!(
            "\n#include \"mlx/backend/cuda/device/utils.cuh\"\n\n#include <cooperative_groups.h>\n\n{header}namespace mlx::core::cu {{\n\n\
             namespace cg = cooperative_groups;\n\n__global__ void custom_kernel_{name}(\n"
        );
        let (inputs, outputs) = types.split_at(self.inputs.len().min(types.len()));
        // Writing to a string cannot fail.
        for (input, dtype) in self.inputs.iter().zip(inputs) {
            let _ = writeln!(source, "    const {}* {input},", cuda_type(*dtype)?);
            for (kind, name) in self.passed(input) {
                let _ = writeln!(source, "    const __grid_constant__ {kind} {name},");
            }
        }
        let results = self
            .outputs
            .iter()
            .zip(outputs)
            .map(|(output, dtype)| Ok(format!("    {}* {output}", cuda_type(*dtype)?)));
        source.push_str(&results.collect::<Result<Vec<_>>>()?.join(",\n"));
        let _ = write!(source, ") {{\n{}\n}}\n\n}} // namespace mlx::core::cu\n", self.call);
        Ok(source)
    }
}

/// MLX's name of a type in CUDA.
fn cuda_type(dtype: Dtype) -> Result<&'static str> {
    Ok(match dtype {
        Dtype::Bfloat16 => "__nv_bfloat16",
        Dtype::Float16 => "__half",
        Dtype::Float32 => "float",
        Dtype::Int32 => "int32_t",
        Dtype::Uint32 => "uint32_t",
        Dtype::Uint8 => "uint8_t",
        other => return Err(Error::Unsupported(format!("a kernel for {other:?}"))),
    })
}

/// A program for one kind of card. Its name has a hash of the source, so another version of it is another module.
pub struct Module {
    name: String,
    entry: Entry,
    functions: String,
    architecture: String,
}

impl Module {
    /// `functions` are what the entry calls.
    pub fn new(name: &str, entry: Entry, functions: String) -> Self {
        let architecture = device::architecture();
        let hash = Sha256::new()
            .chain_update(&functions)
            .chain_update(entry.function())
            .finalize();
        Self {
            name: format!("ponder_{name}_{architecture}_{hash:.16x}"),
            entry,
            functions,
            architecture,
        }
    }

    /// MLX's name of the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if it was compiled for this computer.
    pub fn is_kept(&self) -> bool {
        self.file("cubin").is_ok_and(|file| file.exists())
    }

    /// The header that MLX is given: it names a file, because MLX puts the source together for every launch.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn header(&self) -> Result<String> {
        let file = self.file("cuh")?;
        if !file.exists() {
            write(&file, self.functions.as_bytes())?;
        }
        Ok(include(&file))
    }

    /// Puts it where MLX looks for it when it is launched with arrays of these types, inputs before results.
    ///
    /// # Errors
    /// If it cannot be compiled or written.
    pub fn prepare(&self, types: &[Dtype]) -> Result<()> {
        let source = self.entry.mlx_source(&self.name, &include(&self.file("cuh")?), types)?;
        let module = folder()?.join(format!(
            "custom_kernel_{}_{:x}.ptx",
            self.name,
            hash_bytes(source.as_bytes())
        ));
        if module.exists() {
            return Ok(());
        }
        let bytes = self.binary()?;
        // MLX reads which function is meant once it has found the binary, so that comes last.
        let names = format!("mlx::core::cu::custom_kernel_{}\t{FUNCTION}\n", self.name);
        write(&module.with_extension("txt"), names.as_bytes())?;
        write(&module, &bytes)
    }

    /// Its machine code, compiled if this computer does not have it yet.
    ///
    /// # Errors
    /// If it cannot be compiled, kept or read.
    pub fn binary(&self) -> Result<Vec<u8>> {
        let binary = self.file("cubin")?;
        if !binary.exists() {
            let start = Instant::now();
            let source = [&*self.functions, &*self.entry.function()].concat();
            write(&binary, &nvrtc::compile(&self.name, &source, &self.architecture)?)?;
            let milliseconds = start.elapsed().as_millis() as u64;
            tracing::info!(kernel = self.name, milliseconds, "compiled");
        }
        fs::read(&binary).map_err(|error| cannot_keep(&binary, &error))
    }

    /// The file of what was compared and right ([`crate::verdicts`]).
    ///
    /// # Errors
    /// If there is no folder.
    pub fn verdicts(&self) -> Result<PathBuf> {
        self.file("right")
    }

    /// For each input, whether its shape and its strides are passed after its address.
    pub fn passed(&self) -> impl Iterator<Item = (bool, bool)> + '_ {
        self.entry.inputs.iter().map(|input| {
            let passes = |wanted: &str| self.entry.passed(input).any(|(kind, _)| kind == wanted);
            (passes("Shape"), passes("Strides"))
        })
    }

    /// Removes what was compiled, so that the next process compiles it again.
    pub fn forget(&self) {
        let files = folder()
            .ok()
            .and_then(|folder| fs::read_dir(folder).ok())
            .into_iter()
            .flatten()
            .flatten();
        for file in files.filter(|file| file.file_name().to_string_lossy().contains(&self.name)) {
            // One that is not there is forgotten.
            let _ = fs::remove_file(file.path());
        }
    }

    fn file(&self, extension: &str) -> Result<PathBuf> {
        Ok(folder()?.join(format!("{}.{extension}", self.name)))
    }
}

fn folder() -> Result<PathBuf> {
    compiled_kernels::folder().ok_or_else(|| Error::Unsupported("kernels without a folder to keep them in".into()))
}

fn include(file: &Path) -> String {
    format!("#include \"{}\"\n", file.display())
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    let written = || {
        fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
        let mut partial = file.as_os_str().to_owned();
        partial.push(format!(".{}", std::process::id()));
        fs::write(&partial, bytes)?;
        fs::rename(&partial, file)
    };
    written().map_err(|error| cannot_keep(file, &error))
}

fn cannot_keep(file: &Path, error: &std::io::Error) -> Error {
    Error::Failed(format!(
        "a compiled kernel cannot be kept as {}: {error}",
        file.display()
    ))
}

/// The hash by which MLX names modules: that of strings in GCC's C++ library, MurmurHash64A.
fn hash_bytes(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 0xc70f_6907;
    let mix = |word: u64| word ^ (word >> 47);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        hash = (hash ^ mix(number(word).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        hash = (hash ^ number(rest)).wrapping_mul(MULTIPLIER);
    }
    mix(mix(hash).wrapping_mul(MULTIPLIER))
}

#[cfg(test)]
mod tests {

    use mlx::Dtype;

    use super::{hash_bytes, Entry};

    #[test]
    fn modules_are_named_as_mlx_names_them() {
        // Two kernels without a header as MLX 0.32.2 named them on an H200.
        let entry = Entry {
            inputs: &["p", "a", "b", "c", "d"],
            outputs: &["queries", "keys", "values"],
            call: "ponder_three(p_shape, a, b, c, d, queries, keys, values);",
            waits: false,
        };
        let (half, int) = (Dtype::Bfloat16, Dtype::Int32);
        let types = [int, half, half, Dtype::Float32, int, half, half, half];
        let source = entry
            .mlx_source("ponder_three_bfloat16_sm_90_d4c5e1c6cf5c38bc", "", &types)
            .unwrap();
        assert_eq!(hash_bytes(source.as_bytes()), 0xd30a_4488_61e1_aad2);
        let entry = Entry {
            inputs: &["p", "a", "b", "c", "d"],
            outputs: &["out"],
            call: "ponder_one(p_shape, a, a_shape, a_strides, b, b_strides, c, c_shape, d, out);",
            waits: false,
        };
        let packed = [int, half, Dtype::Uint32, half, half, half];
        let source = entry
            .mlx_source("ponder_one_bfloat16_sm_90_35edb4a3a08b481e", "", &packed)
            .unwrap();
        assert_eq!(hash_bytes(source.as_bytes()), 0xc587_e491_b493_1e9d);
    }

    #[test]
    fn the_compiled_function_takes_what_the_call_names() {
        let entry = Entry {
            inputs: &["p", "a"],
            outputs: &["out"],
            call: "f(p_shape, a, a_strides, out);",
            waits: false,
        };
        assert_eq!(
            entry.function(),
            "extern \"C\" __global__ void ponder_kernel(const void* p, const __grid_constant__ Shape p_shape, const void* a, const \
             __grid_constant__ Strides a_strides, void* out) { ponder_let_next(); ponder_wait(); f(p_shape, a, a_strides, out); }\n"
        );
    }
}
