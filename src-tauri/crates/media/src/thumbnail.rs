//! Small images for windows.

use checkpoint::image_processor::Filter;
use image::codecs::jpeg::JpegEncoder;
use image::ExtendedColorType;

use crate::decoded_image::DecodedImage;
use crate::error::{Error, Result};
use crate::resize::resize_rgb;

/// Of 100; text stays legible.
const QUALITY: u8 = 85;

/// The image as a JPEG file of at most `side` pixels on its longer side, 512 for previews; smaller ones keep their
/// size.
pub fn thumbnail(image: &DecodedImage, side: u32) -> Result<Vec<u8>> {
    let longer = image.width.max(image.height).max(1);
    let shorten = |pixels: u32| match longer > side {
        true => ((u64::from(pixels) * u64::from(side) / u64::from(longer)) as u32).max(1),
        false => pixels,
    };
    let size = (shorten(image.width), shorten(image.height));
    let rgb = resize_rgb(&image.rgb, (image.width, image.height), size, Filter::Bilinear);
    let mut file = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut file, QUALITY);
    let encode = |encoder: JpegEncoder<_>| {
        let mut encoder = encoder;
        encoder.encode(&rgb, size.0, size.1, ExtendedColorType::Rgb8)
    };
    encode(encoder).map_err(|error| Error::Broken {
        kind: "JPEG".into(),
        reason: error.to_string(),
    })?;
    Ok(file)
}
