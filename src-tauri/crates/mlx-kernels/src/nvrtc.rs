//! CUDA's compiler.
//!
//! Reason for unsafe code: NVRTC is a C library that only computers with an NVIDIA card have, so it is looked up at run
//! time.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void, CString};
use std::ptr;

use libloading::os::unix::{Library, Symbol};
use mlx::{Error, Result};

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
    let text = |text: String| CString::new(text).map_err(|error| Error::Failed(error.to_string()));
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
            return Err(Error::Failed("NVRTC refused the source of a kernel".into()));
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
        return Err(Error::Failed(format!(
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
        return Err(Error::Failed("NVRTC did not tell what it made of a kernel".into()));
    }
    Ok(bytes)
}

/// # Safety
/// `T` must be the type of the function.
unsafe fn symbol<T>(library: &Library, name: &str) -> Result<Symbol<T>> {
    library
        .get(name.as_bytes())
        .map_err(|error| Error::Failed(error.to_string()))
}
