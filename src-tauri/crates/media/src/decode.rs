//! Unfolding an image's file.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

use sandbox::{Task, Work};
use serde::{Deserialize, Serialize};

use crate::decoded_image::{still, DecodedImage};
use crate::error::{Error, Result};
use crate::heic;
use crate::kind::Kind;
use crate::raster::{Raster, MAX_BYTES};
use crate::svg;

/// The facts about an image that its header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// The kind of file, by its first bytes and never by its name.
    pub kind: Kind,
    /// Pixels in a row, turned upright.
    pub width: u32,
    /// Rows, turned upright.
    pub height: u32,
}

/// A hundred megapixels take about two seconds.
const TIME: Duration = Duration::from_secs(30);

static MEASURE: Task<Kind, Result<Measured>> =
    Task::new("image-size", TIME, |kind, bytes| (size(kind, &bytes), Vec::new()));
static DECODE: Task<Kind, Result<Decoded>> = Task::new("image", TIME, |kind, bytes| match unfold(kind, &bytes) {
    Ok((decoded, rgb)) => (Ok(decoded), rgb),
    Err(error) => (Err(error), Vec::new()),
});

/// The work of this room on files of strangers.
pub static TASKS: [&dyn Work; 2] = [&MEASURE, &DECODE];

/// A decoded image without its pixels.
#[derive(Debug, Serialize, Deserialize)]
struct Decoded {
    width: u32,
    height: u32,
    original: (u32, u32),
    animated: bool,
}

/// Kind and size of an image by its header alone. The result is within the limits of [`decode`].
pub fn measure(bytes: &[u8]) -> Result<Measured> {
    let kind = checked(bytes)?;
    let (measured, _) = MEASURE
        .run(kind, bytes.to_vec())
        .map_err(|error| stopped(kind, &error))?;
    measured
}

/// Unfolds the first frame of a file. Sizes are checked by its header before: 50 MB, 100 megapixels, 16,384 pixels a
/// side, and the memory it will take.
pub fn decode(bytes: &[u8]) -> Result<DecodedImage> {
    let kind = checked(bytes)?;
    let (decoded, rgb) = DECODE
        .run(kind, bytes.to_vec())
        .map_err(|error| stopped(kind, &error))?;
    let decoded = decoded?;
    Ok(DecodedImage {
        width: decoded.width,
        height: decoded.height,
        rgb,
        original: decoded.original,
        animated: decoded.animated,
    })
}

fn stopped(kind: Kind, error: &sandbox::Error) -> Error {
    Error::Broken {
        kind: kind.name().into(),
        reason: error.to_string(),
    }
}

fn size(kind: Kind, bytes: &[u8]) -> Result<Measured> {
    let (width, height) = contained(kind, || match kind {
        Kind::Heic | Kind::Avif => heic::size(kind, bytes),
        Kind::Svg => svg::size(bytes),
        _ => Raster::open(kind, bytes).map(|raster| raster.size()),
    })?;
    Ok(Measured { kind, width, height })
}

fn unfold(kind: Kind, bytes: &[u8]) -> Result<(Decoded, Vec<u8>)> {
    let (rgb, original, animated) = contained(kind, || match kind {
        Kind::Heic | Kind::Avif => heic::unfold(kind, bytes),
        Kind::Svg => svg::draw(bytes).map(|rgb| still(rgb, None)),
        _ => {
            let raster = Raster::open(kind, bytes)?;
            let (size, animated) = (raster.size(), raster.animated());
            Ok((raster.unfold()?, size, animated))
        }
    })?;
    let decoded = Decoded {
        width: rgb.width,
        height: rgb.height,
        original,
        animated,
    };
    Ok((decoded, rgb.bytes))
}

fn checked(bytes: &[u8]) -> Result<Kind> {
    if bytes.len() > MAX_BYTES {
        return Err(Error::TooLarge(format!(
            "its file has {} MB, and at most {} are read",
            bytes.len() >> 20,
            MAX_BYTES >> 20
        )));
    }
    Kind::of(bytes)
}

/// Decoders are other people's code on files from anywhere: if one panics, its file is broken, and nothing else
/// happens.
fn contained<T>(kind: Kind, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        Err(Error::Broken {
            kind: kind.name().into(),
            reason: "its contents contradict each other".into(),
        })
    })
}
