//! The calls.

use std::ffi::c_void;

use objc2_core_foundation::{
    CFBoolean, CFData, CFDictionary, CFNumber, CFRetained, CFString, CFType, CGPoint, CGRect, CGSize,
};
use objc2_core_graphics::{CGBitmapContextCreate, CGColorSpace, CGContext, CGImage, CGImageAlphaInfo};
use objc2_image_io::{
    kCGImagePropertyOrientation, kCGImagePropertyPixelHeight, kCGImagePropertyPixelWidth,
    kCGImageSourceCreateThumbnailFromImageAlways, kCGImageSourceCreateThumbnailWithTransform,
    kCGImageSourceThumbnailMaxPixelSize, CGImageSource,
};

/// An image of 8 bits a color.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Red, green, blue and a byte that means nothing, for each pixel, row by row.
    pub rgbx: Vec<u8>,
}

fn source(bytes: &[u8]) -> Option<CFRetained<CGImageSource>> {
    let data = CFData::from_bytes(bytes);
    // SAFETY: no options are passed, so none can be of the wrong type.
    unsafe { CGImageSource::with_data(&data, None) }
}

/// Width and height by the file's header, turned upright. `None` if the system does not know the file.
pub fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    let source = source(bytes)?;
    // SAFETY: no options are passed; an index that is not there gives nothing.
    let properties = unsafe { source.properties_at_index(source.primary_image_index(), None) }?;
    // SAFETY: ImageIO documents the keys of its properties as strings, and every value is a Core Foundation object.
    let properties = unsafe { CFRetained::cast_unchecked::<CFDictionary<CFString, CFType>>(properties) };
    let number = |key: &CFString| properties.get(key)?.downcast::<CFNumber>().ok()?.as_i64();
    // SAFETY: constants of the framework, which are there as long as the program.
    let (width, height, orientation) = unsafe {
        (
            number(kCGImagePropertyPixelWidth)?,
            number(kCGImagePropertyPixelHeight)?,
            number(kCGImagePropertyOrientation),
        )
    };
    let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    Some(if orientation.is_some_and(|turn| turn >= 5) {
        (height, width)
    } else {
        (width, height)
    })
}

/// The first image of a file, upright, over white, and no longer on a side than `longest`: larger ones are made
/// smaller while they are read.
pub fn decode(bytes: &[u8], longest: u32) -> Option<Decoded> {
    let source = source(bytes)?;
    let yes: &CFType = CFBoolean::new(true).as_ref();
    let most = CFNumber::new_i64(i64::from(longest));
    // SAFETY: constants of the framework, which are there as long as the program.
    let keys: [&CFString; 3] = unsafe {
        [
            kCGImageSourceCreateThumbnailFromImageAlways,
            kCGImageSourceCreateThumbnailWithTransform,
            kCGImageSourceThumbnailMaxPixelSize,
        ]
    };
    let options = CFDictionary::<CFString, CFType>::from_slices(&keys, &[yes, yes, most.as_ref()]);
    // SAFETY: the values are of the types that ImageIO documents for these keys: two booleans and a number.
    let image = unsafe { source.thumbnail_at_index(source.primary_image_index(), Some(options.as_ref())) }?;
    draw(&image)
}

fn draw(image: &CGImage) -> Option<Decoded> {
    let (width, height) = (CGImage::width(Some(image)), CGImage::height(Some(image)));
    let space = CGColorSpace::new_device_rgb()?;
    // White, so that what is transparent is white afterwards.
    let mut rgbx = vec![0xff; width.checked_mul(height)?.checked_mul(4)?];
    // SAFETY: the buffer holds `height` rows of `width · 4` bytes and outlives the context, which is dropped below.
    let context = unsafe {
        CGBitmapContextCreate(
            rgbx.as_mut_ptr().cast::<c_void>(),
            width,
            height,
            8,
            width * 4,
            Some(&space),
            CGImageAlphaInfo::NoneSkipLast.0,
        )
    }?;
    let whole = CGRect {
        origin: CGPoint { x: 0.0, y: 0.0 },
        size: CGSize {
            width: width as f64,
            height: height as f64,
        },
    };
    CGContext::draw_image(Some(&context), whole, Some(image));
    drop(context);
    Some(Decoded {
        width: u32::try_from(width).ok()?,
        height: u32::try_from(height).ok()?,
        rgbx,
    })
}
