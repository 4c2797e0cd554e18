//! Files of pixels: what their header says, checked before anything is unfolded, and their first frame.

use std::io::Cursor;

use image::codecs::{
    bmp::BmpDecoder, gif::GifDecoder, jpeg::JpegDecoder, png::PngDecoder, tiff::TiffDecoder, webp::WebPDecoder,
};
use image::metadata::Orientation;
use image::{ColorType, ImageDecoder, ImageResult, Limits};

use crate::error::{Error, Result};
use crate::gif;
use crate::kind::Kind;
use crate::pixels::{oriented, turned, Rgb};

/// The longest file.
pub const MAX_BYTES: usize = 50 << 20;
/// The most pixels of an image.
pub(crate) const MAX_PIXELS: u64 = 100_000_000;
/// The longest side.
pub(crate) const MAX_SIDE: u32 = 16_384;
/// The most memory that unfolding may take, in bytes.
const MAX_UNFOLDED: u64 = 240 << 20;

/// A file whose header was read and found within the limits.
pub(crate) struct Raster<'a> {
    kind: Kind,
    decoder: Box<dyn ImageDecoder + 'a>,
    orientation: Orientation,
    animated: bool,
}

/// Refuses sizes that nobody means.
pub(crate) fn check_size(width: u32, height: u32) -> Result<()> {
    let pixels = u64::from(width) * u64::from(height);
    if width > MAX_SIDE || height > MAX_SIDE {
        return Err(Error::TooLarge(format!(
            "it is {width}×{height} pixels, and no side may be longer than {MAX_SIDE}"
        )));
    }
    if pixels > MAX_PIXELS {
        return Err(Error::TooLarge(format!(
            "it has {} megapixels, and at most {} are read",
            pixels / 1_000_000,
            MAX_PIXELS / 1_000_000
        )));
    }
    Ok(())
}

/// Refuses what would take too much memory while it is unfolded.
pub(crate) fn check_memory(width: u32, height: u32, bytes_per_pixel: u64, besides: usize) -> Result<()> {
    let bytes = u64::from(width) * u64::from(height) * bytes_per_pixel + besides as u64;
    match bytes > MAX_UNFOLDED {
        true => Err(Error::TooLarge(format!(
            "it would take {} MB to unfold, and at most {} are given",
            bytes >> 20,
            MAX_UNFOLDED >> 20
        ))),
        false => Ok(()),
    }
}

impl<'a> Raster<'a> {
    /// Reads a file's header.
    pub(crate) fn open(kind: Kind, bytes: &'a [u8]) -> Result<Self> {
        let (decoder, animated) = decoder(kind, bytes).map_err(|error| broken(kind, &error))?;
        let mut raster = Self {
            kind,
            decoder,
            orientation: Orientation::NoTransforms,
            animated,
        };
        let (width, height) = raster.decoder.dimensions();
        if width == 0 || height == 0 {
            return Err(Error::Broken {
                kind: kind.name().into(),
                reason: "it has no pixels".into(),
            });
        }
        check_size(width, height)?;
        let unfolded = u64::from(raster.decoder.color_type().bytes_per_pixel());
        // Gray becomes color beside itself; what has more than three bytes is narrowed where it lies.
        let beside = if unfolded < 3 || raster.decoder.color_type() == ColorType::La16 {
            3
        } else {
            0
        };
        // The decoder of JPEG has a copy of the file.
        let copied = if kind == Kind::Jpeg { bytes.len() } else { 0 };
        check_memory(width, height, unfolded + beside + working_space(kind, bytes), copied)?;
        let mut limits = Limits::default();
        limits.max_image_width = Some(MAX_SIDE);
        limits.max_image_height = Some(MAX_SIDE);
        limits.max_alloc = Some(MAX_UNFOLDED);
        raster
            .decoder
            .set_limits(limits)
            .map_err(|error| broken(kind, &error))?;
        // A turn that cannot be read leaves the image as it is.
        raster.orientation = raster.decoder.orientation().unwrap_or(Orientation::NoTransforms);
        Ok(raster)
    }

    /// Width and height, turned upright.
    pub(crate) fn size(&self) -> (u32, u32) {
        turned(self.decoder.dimensions(), self.orientation)
    }

    /// True if there are more frames.
    pub(crate) fn animated(&self) -> bool {
        self.animated
    }

    /// The first frame, upright and over white. Very large ones are halved.
    pub(crate) fn unfold(self) -> Result<Rgb> {
        let (width, height) = self.decoder.dimensions();
        let colours = self.decoder.color_type();
        let length = usize::try_from(self.decoder.total_bytes()).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(length).is_err() {
            return Err(Error::TooLarge("there is no memory for it".into()));
        }
        bytes.resize(length, 0);
        let kind = self.kind;
        self.decoder
            .read_image_boxed(&mut bytes)
            .map_err(|error| broken(kind, &error))?;
        let rgb = Rgb::of(bytes, (width, height), colours).ok_or_else(|| Error::Broken {
            kind: kind.name().into(),
            reason: format!("colours of the kind {colours:?} are not read"),
        })?;
        Ok(oriented(rgb.halved_if_huge(), self.orientation))
    }
}

fn decoder(kind: Kind, bytes: &[u8]) -> ImageResult<(Box<dyn ImageDecoder + '_>, bool)> {
    let reader = Cursor::new(bytes);
    Ok(match kind {
        Kind::Png => {
            let decoder = PngDecoder::new(reader)?;
            let animated = decoder.is_apng().unwrap_or(false);
            (Box::new(decoder), animated)
        }
        Kind::Webp => {
            let decoder = WebPDecoder::new(reader)?;
            let animated = decoder.has_animation();
            (Box::new(decoder), animated)
        }
        Kind::Gif => (Box::new(GifDecoder::new(reader)?), is_animated(bytes)),
        Kind::Bmp => (Box::new(BmpDecoder::new(reader)?), false),
        Kind::Tiff => (Box::new(TiffDecoder::new(reader)?), false),
        Kind::Jpeg | Kind::Heic | Kind::Avif | Kind::Svg => (Box::new(JpegDecoder::new(reader)?), false),
    })
}

fn broken(kind: Kind, error: &image::ImageError) -> Error {
    match error {
        image::ImageError::Limits(_) => Error::TooLarge("it would take too much memory to unfold".into()),
        other => Error::Broken {
            kind: kind.name().into(),
            reason: other.to_string(),
        },
    }
}

/// Bytes for each pixel that a decoder needs besides its result.
fn working_space(kind: Kind, bytes: &[u8]) -> u64 {
    match kind {
        // All coefficients of a progressive image are there before its first pixel.
        Kind::Jpeg if is_progressive(bytes) => 6,
        Kind::Webp => 4,
        Kind::Gif => 1,
        _ => 0,
    }
}

fn is_progressive(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = bytes.get(at..at + 4) {
        match marker {
            0xc2 | 0xc6 | 0xca | 0xce => return true,
            0xc0 | 0xc1 | 0xda => return false,
            0xff => at += 1,
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    false
}

/// True if a GIF has a second frame.
fn is_animated(bytes: &[u8]) -> bool {
    gif::blocks(bytes)
        .filter(|(kind, _)| *kind == gif::FRAME)
        .nth(1)
        .is_some()
}
