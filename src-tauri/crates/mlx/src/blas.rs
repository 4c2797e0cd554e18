//! The library that multiplies matrices for MLX on a CPU: Accelerate on a Mac; on Linux OpenBLAS, if `./dev setup` or
//! the package put it under MLX, otherwise what MLX's own wheel brings.

use std::sync::OnceLock;

/// Sets the number of its threads, the first time it is called in a process, and names it: `OpenBLAS 0.3.21 for
/// SkylakeX, 2 threads`. MLX has to be loaded.
pub fn set_up() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        if cfg!(target_os = "macos") {
            return "Accelerate".into();
        }
        openblas::use_physical_cores();
        openblas::name().unwrap_or_else(|| "the BLAS of MLX's wheel".into())
    })
}

/// OpenBLAS in this process. It is never linked by name, so that the same program runs with an MLX without it.
#[cfg(target_os = "linux")]
mod openblas {
    #![allow(unsafe_code)]

    use std::ffi::{c_char, c_int, c_void, CStr};
    use std::mem::transmute;

    /// A function of this process.
    fn function(name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the name is terminated, and looking a name up changes nothing.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }

    /// The text that a function without arguments returns.
    fn text(name: &CStr) -> Option<String> {
        let function = function(name)?;
        // SAFETY: only called for functions that cblas.h declares as `char *f(void)`; they return terminated strings
        // that live as long as the library, which MLX keeps.
        let text = unsafe { CStr::from_ptr(transmute::<*mut c_void, extern "C" fn() -> *const c_char>(function)()) };
        Some(text.to_string_lossy().into_owned())
    }

    /// Takes one thread for each physical core that this process may use: a second one on a core shares its arithmetic
    /// units and only waits. A number in the environment is left as it is.
    pub fn use_physical_cores() {
        let chosen = ["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"];
        if chosen.iter().any(|name| std::env::var_os(name).is_some()) {
            return;
        }
        let allowed = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = sysinfo::System::physical_core_count().map_or(allowed, |physical| physical.min(allowed));
        if let Some(function) = function(c"openblas_set_num_threads") {
            // SAFETY: cblas.h declares it as `void openblas_set_num_threads(int)`.
            unsafe { transmute::<*mut c_void, extern "C" fn(c_int)>(function)(c_int::try_from(cores).unwrap_or(1)) };
        }
    }

    pub fn name() -> Option<String> {
        // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH …"
        let config = text(c"openblas_get_config")?;
        let version: Vec<&str> = config.split_whitespace().take(2).collect();
        let core = text(c"openblas_get_corename")?;
        let function = function(c"openblas_get_num_threads")?;
        // SAFETY: cblas.h declares it as `int openblas_get_num_threads(void)`.
        let threads = unsafe { transmute::<*mut c_void, extern "C" fn() -> c_int>(function)() };
        let plural = if threads == 1 { "" } else { "s" };
        Some(format!("{} for {core}, {threads} thread{plural}", version.join(" ")))
    }
}

#[cfg(not(target_os = "linux"))]
mod openblas {
    pub fn use_physical_cores() {}

    pub fn name() -> Option<String> {
        None
    }
}
