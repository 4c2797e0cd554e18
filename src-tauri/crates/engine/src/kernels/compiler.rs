//! Compiles our kernels once for a computer: MLX reads a kernel's module from its folder of compiled kernels if there is one of that
//! name, but writes only its own there, so ours are compiled by the same library (NVRTC, which MLX has loaded) and put there for it.
//! The sources need no header, which is most of the time that MLX would take for them.
//!
//! Reason for unsafe code: NVRTC is a C library that only computers with an NVIDIA card have, so it is looked up at run time.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::tensor;

/// Where MLX keeps compiled kernels; it reads this once, before it computes for the first time.
const VARIABLE: &str = "MLX_PTX_CACHE_DIR";

/// The function of a module that is launched.
pub const FUNCTION: &str = "ponder_kernel";

/// Keeps kernels that are compiled for an NVIDIA card in `cache_dir`, where MLX's default is a temporary folder: each of MLX's takes 10
/// to 30 seconds. MLX finds them by their name alone, so those of another MLX or card have another folder. A folder named in the
/// environment stays; without any, there are no kernels of our own. Called before MLX computes for the first time.
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
        .filter_map(|text| Some(text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim().to_lowercase()))
        .collect();
    cards.sort();
    cards.dedup();
    let parts = std::iter::once(format!("mlx {}", tensor::version().unwrap_or_default())).chain(cards);
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '.' {
            letter
        } else {
            '-'
        }
    };
    parts.collect::<Vec<_>>().join(" ").chars().map(letter).collect()
}

/// A compiled kernel for one kind of card. Its name has a hash of the source, so another version of it is another module.
pub struct Module {
    name: String,
    source: String,
    architecture: String,
}

impl Module {
    /// `source` has one function, [`FUNCTION`].
    pub fn new(name: &str, source: String) -> Self {
        let architecture = tensor::architecture();
        let hash = Sha256::digest(&source);
        Self {
            name: format!("ponder_{name}_{architecture}_{hash:.16x}"),
            source,
            architecture,
        }
    }

    /// What MLX calls the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is compiled.
    pub fn is_kept(&self) -> bool {
        self.file("ptx").is_ok_and(|file| file.exists())
    }

    /// Sees to it that MLX finds it.
    ///
    /// # Errors
    /// If it cannot be compiled or written.
    pub fn compile(&self) -> Result<()> {
        if self.is_kept() {
            return Ok(());
        }
        let start = std::time::Instant::now();
        let binary = nvrtc::compile(&self.name, &self.source, &self.architecture)?;
        let milliseconds = start.elapsed().as_millis() as u64;
        tracing::info!(kernel = self.name, milliseconds, "compiled");
        // MLX reads which function is meant once it has found the binary, so that comes last.
        self.write(
            "txt",
            format!("mlx::core::cu::custom_kernel_{}\t{FUNCTION}\n", self.name).as_bytes(),
        )?;
        self.write("ptx", &binary)
    }

    /// Removes it, so that the next process compiles it again.
    pub fn forget(&self) {
        // One that is not there is forgotten.
        let _ = self.file("ptx").map(fs::remove_file);
    }

    fn file(&self, extension: &str) -> Result<PathBuf> {
        let folder = std::env::var_os(VARIABLE).ok_or_else(|| Error::Unsupported("kernels without a folder to keep them in".into()))?;
        Ok(Path::new(&folder).join(format!("custom_kernel_{}.{extension}", self.name)))
    }

    fn write(&self, extension: &str, bytes: &[u8]) -> Result<()> {
        let file = self.file(extension)?;
        let written = || {
            fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
            let partial = file.with_extension(format!("{extension}.{}", std::process::id()));
            fs::write(&partial, bytes)?;
            fs::rename(&partial, &file)
        };
        written().map_err(|error| Error::Mlx(format!("a compiled kernel cannot be kept as {}: {error}", file.display())))
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod nvrtc {
    use std::ffi::{c_char, c_int, c_void, CString};
    use std::ptr;

    use libloading::os::unix::{Library, Symbol};

    use crate::error::{Error, Result};

    type Program = *mut c_void;
    type Create =
        unsafe extern "C" fn(*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char) -> c_int;
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
        // SAFETY: names and types are those of nvrtc.h; all pointers live during their calls, and the program is destroyed once, after
        // its last use.
        unsafe {
            let create = symbol::<Create>(&library, "nvrtcCreateProgram")?;
            let destroy = symbol::<Destroy>(&library, "nvrtcDestroyProgram")?;
            let mut program = ptr::null_mut();
            if create(&mut program, source.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null()) != 0 {
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
    /// As of [`binary`]; the names must be those of a function that tells a size and of one that writes so many bytes.
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
        library.get(name.as_bytes()).map_err(|error| Error::Mlx(error.to_string()))
    }
}

#[cfg(not(target_os = "linux"))]
mod nvrtc {
    use crate::error::{Error, Result};

    pub fn compile(_name: &str, _source: &str, _architecture: &str) -> Result<Vec<u8>> {
        Err(Error::Unsupported("CUDA on this system".into()))
    }
}
