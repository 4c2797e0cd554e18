//! Compiles our kernels once for a computer. MLX keeps what it compiles of its own kernels, but compiles others in
//! every process, and again for all types of arrays they are launched with. It looks into the folder first, though, for
//! a file of a name that it makes of the source. So ours are compiled by the same library (NVRTC, which MLX has loaded)
//! and put there under those names. They need no header, which is most of the time that MLX takes. If it looked for
//! another name it would compile them, as it does without the folder.
//!
//! Reason for unsafe code: NVRTC is a C library that only computers with an NVIDIA card have, so it is looked up at run
//! time.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use mlx_rs::Dtype;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::mlx::device;

/// The variable that names MLX's folder of compiled kernels; MLX reads it once, before it computes for the first time.
const VARIABLE: &str = "MLX_PTX_CACHE_DIR";

/// The function of a module that is launched.
const FUNCTION: &str = "ponder_kernel";

/// Keeps kernels that are compiled for an NVIDIA card in `cache_dir`, where MLX's default is a temporary folder: each
/// of MLX's takes 10 to 30 seconds. MLX finds them by their name alone, so those of another MLX or card have another
/// folder. A folder named in the environment stays. Called before MLX computes for the first time.
pub fn keep_compiled(cache_dir: &Path) {
    if cfg!(target_os = "linux") && std::env::var_os(VARIABLE).is_none() {
        std::env::set_var(VARIABLE, cache_dir.join("cuda-kernels").join(platform()));
    }
}

/// MLX's version and the cards of this computer, as the name of a folder.
fn platform() -> String {
    let mut cards: Vec<String> = fs::read_dir("/proc/driver/nvidia/gpus")
        .into_iter()
        .flatten()
        .filter_map(|card| fs::read_to_string(card.ok()?.path().join("information")).ok())
        .filter_map(|text| {
            Some(
                text.lines()
                    .find_map(|line| line.strip_prefix("Model:"))?
                    .trim()
                    .to_lowercase(),
            )
        })
        .collect();
    cards.sort();
    cards.dedup();
    let parts = std::iter::once(format!("mlx {}", device::version().unwrap_or_default())).chain(cards);
    let letter = |letter: char| match letter.is_ascii_alphanumeric() || letter == '.' {
        true => letter,
        false => '-',
    };
    parts.collect::<Vec<_>>().join(" ").chars().map(letter).collect()
}

/// How a program is entered.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Names of inputs.
    pub inputs: &'static [&'static str],
    /// Names of results.
    pub outputs: &'static [&'static str],
    /// The call in which all of it ends; shapes and strides are passed if it names them.
    pub call: &'static str,
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
            "extern \"C\" __global__ void {FUNCTION}({}) {{ {} }}\n",
            parameters.join(", "),
            self.call
        )
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
        let binary = self.file("cubin")?;
        if !binary.exists() {
            let start = Instant::now();
            let source = [&*self.functions, &*self.entry.function()].concat();
            write(&binary, &nvrtc::compile(&self.name, &source, &self.architecture)?)?;
            let milliseconds = start.elapsed().as_millis() as u64;
            tracing::info!(kernel = self.name, milliseconds, "compiled");
        }
        let bytes = fs::read(&binary).map_err(|error| cannot_keep(&binary, &error))?;
        // MLX reads which function is meant once it has found the binary, so that comes last.
        let names = format!("mlx::core::cu::custom_kernel_{}\t{FUNCTION}\n", self.name);
        write(&module.with_extension("txt"), names.as_bytes())?;
        write(&module, &bytes)
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
    let folder = std::env::var_os(VARIABLE).map(PathBuf::from);
    folder.ok_or_else(|| Error::Unsupported("kernels without a folder to keep them in".into()))
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
    Error::Mlx(format!(
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

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod nvrtc {
    use std::ffi::{c_char, c_int, c_void, CString};
    use std::ptr;

    use libloading::os::unix::{Library, Symbol};

    use crate::error::{Error, Result};

    type Program = *mut c_void;
    type Create = unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int;
    type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
    type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
    type Bytes = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
    type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;

    /// Versions of CUDA that MLX is built for.
    const LIBRARIES: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so.12"];

    /// The binary of a source for an architecture such as `sm_90`.
    pub fn compile(name: &str, source: &str, architecture: &str) -> Result<Vec<u8>> {
        let text = |text: String| CString::new(text).map_err(|error| Error::Mlx(error.to_string()));
        let (name, source) = (text(format!("{name}.cu"))?, text(source.to_owned())?);
        let option = text(format!("--gpu-architecture={architecture}"))?;
        let library = LIBRARIES.iter().find_map(|name| {
            // SAFETY: only a library that is in the process already is opened, so no code of it runs here.
            unsafe { Library::open(Some(name), libc::RTLD_NOW | libc::RTLD_NOLOAD) }.ok()
        });
        let library = library.ok_or_else(|| Error::Unsupported("kernels without CUDA's compiler".into()))?;
        // SAFETY: names and types are those of nvrtc.h; all pointers live during their calls, and the program is
        // destroyed once, after its last use.
        unsafe {
            let create = symbol::<Create>(&library, "nvrtcCreateProgram")?;
            let destroy = symbol::<Destroy>(&library, "nvrtcDestroyProgram")?;
            let mut program = ptr::null_mut();
            if create(
                &mut program,
                source.as_ptr(),
                name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            ) != 0
            {
                return Err(Error::Mlx("NVRTC refused the source of a kernel".into()));
            }
            let compiled = binary(&library, program, option.as_ptr());
            destroy(&mut program);
            compiled
        }
    }

    /// # Safety
    /// `program` must be one of this library's, and `option` a terminated string.
    unsafe fn binary(library: &Library, program: Program, option: *const c_char) -> Result<Vec<u8>> {
        let compile = symbol::<Compile>(library, "nvrtcCompileProgram")?;
        if compile(program, 1, &option) != 0 {
            let log = bytes(library, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")?;
            return Err(Error::Mlx(format!(
                "a kernel cannot be compiled: {}",
                String::from_utf8_lossy(&log)
            )));
        }
        bytes(library, program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")
    }

    /// # Safety
    /// As of [`binary`]; the names must be those of a function that returns a size and of one that writes that many
    /// bytes.
    unsafe fn bytes(library: &Library, program: Program, size: &str, get: &str) -> Result<Vec<u8>> {
        let (size, get) = (symbol::<Size>(library, size)?, symbol::<Bytes>(library, get)?);
        let mut length = 0;
        let told = size(program, &mut length);
        let mut bytes = vec![0u8; length];
        if told != 0 || get(program, bytes.as_mut_ptr().cast()) != 0 {
            return Err(Error::Mlx("NVRTC did not tell what it made of a kernel".into()));
        }
        Ok(bytes)
    }

    /// # Safety
    /// `T` must be the type of the function.
    unsafe fn symbol<T>(library: &Library, name: &str) -> Result<Symbol<T>> {
        library
            .get(name.as_bytes())
            .map_err(|error| Error::Mlx(error.to_string()))
    }
}

#[cfg(not(target_os = "linux"))]
mod nvrtc {
    use crate::error::{Error, Result};

    pub fn compile(_name: &str, _source: &str, _architecture: &str) -> Result<Vec<u8>> {
        Err(Error::Unsupported("CUDA on this system".into()))
    }
}

#[cfg(test)]
mod tests {
    use mlx_rs::Dtype;

    use super::{hash_bytes, Entry};

    #[test]
    fn modules_are_named_as_mlx_names_them() {
        // Two kernels without a header as MLX 0.32.2 named them on an H200.
        let entry = Entry {
            inputs: &["p", "a", "b", "c", "d"],
            outputs: &["queries", "keys", "values"],
            call: "ponder_three(p_shape, a, b, c, d, queries, keys, values);",
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
        };
        assert_eq!(
            entry.function(),
            "extern \"C\" __global__ void ponder_kernel(const void* p, const __grid_constant__ Shape p_shape, const void* a, const \
             __grid_constant__ Strides a_strides, void* out) { f(p_shape, a, a_strides, out); }\n"
        );
    }
}
