//! HEIC and AVIF. On macOS the system decodes both, elsewhere a decoder without C or unsafe code takes HEIC.

#[cfg(target_os = "macos")]
pub(crate) use system::{size, unfold};

#[cfg(not(target_os = "macos"))]
pub(crate) use portable::{size, unfold};

#[cfg(target_os = "macos")]
mod system {
    use crate::decoded_image::{still, Unfolded};
    use crate::error::{Error, Result};
    use crate::kind::Kind;
    use crate::pixels::Rgb;
    use crate::raster::check_size;

    /// The longest side that the system unfolds; it shrinks larger images while it reads them.
    const LONGEST: u32 = 8192;

    pub(crate) fn size(kind: Kind, bytes: &[u8]) -> Result<(u32, u32)> {
        let (width, height) = image_io::size(bytes).ok_or_else(|| broken(kind))?;
        check_size(width, height)?;
        Ok((width, height))
    }

    pub(crate) fn unfold(kind: Kind, bytes: &[u8]) -> Result<Unfolded> {
        let original = size(kind, bytes)?;
        let image = image_io::decode(bytes, LONGEST).ok_or_else(|| broken(kind))?;
        let rgb = Rgb {
            width: image.width,
            height: image.height,
            bytes: image
                .rgbx
                .chunks_exact(4)
                .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
                .collect(),
        };
        Ok(still(rgb.halved_if_huge(), Some(original)))
    }

    fn broken(kind: Kind) -> Error {
        Error::Broken {
            kind: kind.name().into(),
            reason: "the system cannot decode it".into(),
        }
    }
}

#[cfg(not(target_os = "macos"))]
mod portable {
    use heifer::heifer_isobmff::boxes::Property;
    use heifer::heifer_isobmff::HeifFile;

    use crate::decoded_image::{still, Unfolded};
    use crate::error::{Error, Result};
    use crate::kind::Kind;
    use crate::pixels::{over_white, Rgb};
    use crate::raster::{check_memory, check_size};

    /// Bytes for each pixel: the image with its alpha, and a turned copy of it.
    const BYTES_PER_PIXEL: u64 = 5;

    pub(crate) fn size(kind: Kind, bytes: &[u8]) -> Result<(u32, u32)> {
        if kind == Kind::Avif {
            return Err(Error::UnknownKind("an AVIF image (on this system)".into()));
        }
        let file = HeifFile::parse(bytes).map_err(|error| broken(error.to_string()))?;
        // Tiles and auxiliary images are unfolded too, so none of them may be too large.
        for property in &file.properties {
            if let Property::ImageSize { width, height } = property {
                check_size(*width, *height)?;
                check_memory(*width, *height, BYTES_PER_PIXEL, 0)?;
            }
        }
        let of_primary = file
            .image_size(file.primary_id)
            .map_err(|error| broken(error.to_string()))?;
        let (width, height) = of_primary.ok_or_else(|| broken("it does not say how large it is".into()))?;
        if width == 0 || height == 0 {
            return Err(broken("it has no pixels".into()));
        }
        let properties = file
            .item_properties(file.primary_id)
            .map_err(|error| broken(error.to_string()))?;
        let quarters: u32 = properties
            .map(|property| {
                if let Property::Rotation(turns) = property {
                    u32::from(*turns)
                } else {
                    0
                }
            })
            .sum();
        Ok(if quarters % 2 == 1 {
            (height, width)
        } else {
            (width, height)
        })
    }

    pub(crate) fn unfold(kind: Kind, bytes: &[u8]) -> Result<Unfolded> {
        let (width, height) = size(kind, bytes)?;
        let options = heifer::Options {
            max_threads: 2,
            max_pixels: u64::from(width) * u64::from(height) * 2,
        };
        let image = heifer::decode_rgba8(bytes, &options).map_err(|error| broken(error.to_string()))?;
        let size = (image.width, image.height);
        let mut bytes = image.data;
        let pixels = bytes.len() / 4;
        for pixel in 0..pixels {
            let [red, green, blue, alpha] = [0, 1, 2, 3].map(|colour| bytes[pixel * 4 + colour]);
            let alpha = if image.has_alpha { alpha } else { 255 };
            bytes[pixel * 3..pixel * 3 + 3]
                .copy_from_slice(&[red, green, blue].map(|colour| over_white(colour, alpha)));
        }
        bytes.truncate(pixels * 3);
        let rgb = Rgb {
            width: size.0,
            height: size.1,
            bytes,
        };
        Ok(still(rgb.halved_if_huge(), Some(size)))
    }

    fn broken(reason: String) -> Error {
        Error::Broken {
            kind: "HEIC".into(),
            reason,
        }
    }
}
