//! Tensors of files, read into the card's memory by several threads: each has pieces read into memory that the card
//! copies by itself, two at a time, so that reading and copying overlap. MLX reads them one after another.
//!
//! Reason for unsafe code: bytes are copied to addresses of MLX's arrays.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use cudarc::driver::{result, CudaContext, CudaEvent, CudaStream, PinnedHostSlice};
use mlx::fused::FileTensor;
use mlx::tensor::{eval, Tensor};
use mlx::{Dtype, Error, Result};

use crate::addresses::addresses;
use crate::graph::{context, failed};

/// Smaller tensors are left to MLX: they cost more to begin than to read.
const MIN_BYTES: usize = 1 << 20;
/// Threads at most, and bytes of a piece.
const MAX_THREADS: usize = 8;
const PIECE: usize = 4 << 20;

thread_local! {
    static LANES: RefCell<Vec<Lane>> = const { RefCell::new(Vec::new()) };
    /// True if the first tensor was as MLX reads it, false if it was not and all are left to MLX.
    static RIGHT: Cell<Option<bool>> = const { Cell::new(None) };
}

/// The memory of a reading thread.
struct Lane {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    /// Two pieces, and when the card has copied them.
    pieces: [(PinnedHostSlice<u8>, CudaEvent); 2],
}

/// The bytes of a tensor, and the place that they are copied to.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    file: &'a File,
    offset: u64,
    length: usize,
    to: u64,
}

impl Lane {
    fn new() -> Result<Self> {
        let context = context()?;
        let piece = || {
            // SAFETY: bytes are written before the card reads them.
            let bytes = unsafe { context.alloc_pinned_with_flags(PIECE, 0) }?;
            Ok((bytes, context.new_event(None)?))
        };
        let pieces = [piece().map_err(failed)?, piece().map_err(failed)?];
        let stream = context.new_stream().map_err(failed)?;
        Ok(Self {
            context,
            stream,
            pieces,
        })
    }

    /// Copies pieces until none is left; they are there when this returns.
    fn copy(&mut self, bytes: Bytes<'_>, next: &AtomicUsize) -> Result<()> {
        self.context.bind_to_thread().map_err(failed)?;
        for turn in 0.. {
            let start = next.fetch_add(1, Ordering::Relaxed) * PIECE;
            if start >= bytes.length {
                break;
            }
            let length = PIECE.min(bytes.length - start);
            let (piece, copied) = &mut self.pieces[turn % 2];
            copied.synchronize().map_err(failed)?;
            let piece = &mut piece.as_mut_slice().map_err(failed)?[..length];
            let read = bytes.file.read_exact_at(piece, bytes.offset + start as u64);
            read.map_err(|error| Error::Failed(format!("a weight cannot be read: {error}")))?;
            // SAFETY: the array has as many bytes, and the piece is not written again before the event.
            unsafe { result::memcpy_htod_async(bytes.to + start as u64, piece, self.stream.cu_stream()) }
                .map_err(failed)?;
            copied.record(&self.stream).map_err(failed)?;
        }
        self.stream.synchronize().map_err(failed)
    }
}

/// The tensor that a file has at a place, which MLX would read as `described`; `None` if MLX shall.
pub fn read(path: &Path, place: &FileTensor, described: &Tensor) -> Result<Option<Tensor>> {
    let length = described.nbytes();
    let fits = described.shape() == place.shape && described.dtype() == place.dtype;
    if length < MIN_BYTES || !fits || RIGHT.get() == Some(false) {
        return Ok(None);
    }
    let tensor = Tensor::zeros(&place.shape, place.dtype)?;
    eval([&tensor])?;
    copy(path, place.offset, &tensor)?;
    if RIGHT.get().is_none() {
        let right = are_equal(&tensor, described)?;
        RIGHT.set(Some(right));
        if !right {
            tracing::warn!(path = %path.display(), "a weight was read wrongly; MLX reads all of them");
            return Ok(None);
        }
    }
    Ok(Some(tensor))
}

/// True if all bytes are equal.
fn are_equal(a: &Tensor, b: &Tensor) -> Result<bool> {
    let words = |tensor: &Tensor| tensor.reshape(&[-1])?.view(Dtype::Uint32);
    // The greatest of unsigned differences is 0 only if all are.
    let most = words(a)?.sub(&words(b)?)?.max(0, false)?.reshape(&[1])?.to_u32()?;
    Ok(most == [0])
}

/// Copies bytes of a file to a tensor, which was computed.
fn copy(path: &Path, offset: u64, tensor: &Tensor) -> Result<()> {
    let length = tensor.nbytes();
    let to = addresses(&[tensor])?;
    let file = File::open(path).map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
    let bytes = Bytes {
        file: &file,
        offset,
        length,
        to: to[0],
    };
    let pieces = length.div_ceil(PIECE);
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_THREADS)
        .min(pieces);
    LANES.with_borrow_mut(|lanes| {
        while lanes.len() < threads {
            lanes.push(Lane::new()?);
        }
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let running: Vec<_> = lanes[..threads]
                .iter_mut()
                .map(|lane| scope.spawn(|| lane.copy(bytes, &next)))
                .collect();
            running.into_iter().try_for_each(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|_| Err(Error::Failed("a reading thread panicked".into())))
            })
        })
    })
}

/// Frees the memory that was read through.
pub fn clear() {
    LANES.take();
}
