//! Tensors that lie in files, read by all threads into the memory where they stay.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use mlx::fused::FileTensor;
use mlx::sys::{mlx_stream, mlx_vector_array};
use mlx::tensor::Tensor;
use mlx::{device, Error, Result};

use crate::pool::Pool;
use crate::shared::Shared;

/// Bytes that a thread reads at once.
const PIECE: u64 = 4 << 20;

/// Neighboring bytes of an open file, as in `src-tauri/mlx/files.cpp`.
#[repr(C)]
struct Place {
    descriptor: RawFd,
    offset: u64,
    bytes: u64,
}

extern "C" {
    fn ponder_file_tensors(
        list: *mut mlx_vector_array,
        path: *const std::ffi::c_char,
        offsets: *const u64,
        types: *const i32,
        shapes: *const i32,
        axes: *const i32,
        count: usize,
        read: unsafe extern "C" fn(*const Place, usize, *mut u8) -> i32,
        stream: mlx_stream,
    ) -> i32;
}

/// The tensors of a file at these places. Each is read when it is computed; several that are joined are read into the
/// memory of the whole.
pub fn file_tensors(path: &Path, tensors: &[FileTensor]) -> Result<Vec<Tensor>> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| Error::Failed(error.to_string()))?;
    let offsets: Vec<u64> = tensors.iter().map(|tensor| tensor.offset).collect();
    let types: Vec<i32> = tensors.iter().map(|tensor| tensor.dtype as i32).collect();
    let axes: Vec<i32> = tensors.iter().map(|tensor| tensor.shape.len() as i32).collect();
    let shapes: Vec<i32> = tensors.iter().flat_map(|tensor| tensor.shape.iter().copied()).collect();
    Tensor::make_several(tensors.len(), |list| {
        // SAFETY: the slices live during the call and have as many entries as it reads; `read` is called with places of
        // files that are open and memory for all their bytes.
        unsafe {
            ponder_file_tensors(
                list,
                name.as_ptr(),
                offsets.as_ptr(),
                types.as_ptr(),
                shapes.as_ptr(),
                axes.as_ptr(),
                tensors.len(),
                read,
                device::stream(),
            )
        }
    })
}

/// A part of a place, and how far from the beginning of the memory it goes.
struct Piece<'a> {
    place: &'a Place,
    start: u64,
    to: usize,
}

/// Reads places one after another into memory; 0 if all could be read.
unsafe extern "C" fn read(places: *const Place, count: usize, to: *mut u8) -> i32 {
    // SAFETY: there are so many places.
    let places = unsafe { std::slice::from_raw_parts(places, count) };
    let (mut pieces, mut at) = (Vec::new(), 0);
    for place in places {
        for start in (0..place.bytes).step_by(PIECE as usize) {
            pieces.push(Piece {
                place,
                start,
                to: at + start as usize,
            });
        }
        at += place.bytes as usize;
    }
    let (to, failed) = (Shared(to), AtomicBool::new(false));
    Pool::get().run(pieces.len(), &|index| {
        let Piece { place, start, to: at } = pieces[index];
        let length = PIECE.min(place.bytes - start) as usize;
        // SAFETY: the file is open, and closed by its owner; the memory is that of this piece alone.
        let (file, memory) = unsafe {
            (
                ManuallyDrop::new(File::from_raw_fd(place.descriptor)),
                to.slice(at, length),
            )
        };
        if file.read_exact_at(memory, place.offset + start).is_err() {
            failed.store(true, Ordering::Relaxed);
        }
    });
    i32::from(failed.into_inner())
}
