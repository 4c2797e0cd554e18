//! Pixels as they come out of files: to red, green and blue of 8 bits over white, and upright.

use image::metadata::Orientation;
use image::ColorType;

/// More pixels than any tower takes; larger images are halved, so that what follows needs no more memory than
/// unfolding did.
const HUGE: u64 = 32_000_000;

/// Pixels of red, green and blue, row by row.
pub(crate) struct Rgb {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bytes: Vec<u8>,
}

/// A color of 8 bits over white, rounded as Pillow does.
pub(crate) fn over_white(colour: u8, alpha: u8) -> u8 {
    let (colour, alpha) = (u32::from(colour), u32::from(alpha));
    ((colour * alpha + 255 * (255 - alpha) + 127) / 255) as u8
}

/// 16 bits to the nearest of 8.
fn narrow(low: u8, high: u8) -> u8 {
    ((u32::from(u16::from_ne_bytes([low, high])) + 128) / 257) as u8
}

fn from_float(bytes: &[u8]) -> u8 {
    let value = bytes.try_into().map_or(0.0, f32::from_ne_bytes);
    (value.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Colors over white. Each pixel ends before the next one begins, so it can be narrowed where it lies.
fn flattened(mut bytes: Vec<u8>, pixels: usize, rgba: impl Fn(&[u8], usize) -> [u8; 4]) -> Vec<u8> {
    for pixel in 0..pixels {
        let [red, green, blue, alpha] = rgba(&bytes, pixel);
        let to = pixel * 3;
        bytes[to..to + 3].copy_from_slice(&[red, green, blue].map(|colour| over_white(colour, alpha)));
    }
    shortened(bytes, pixels * 3)
}

impl Rgb {
    /// Of what a decoder wrote; `None` if these colors are not known.
    pub(crate) fn of(mut bytes: Vec<u8>, (width, height): (u32, u32), colours: ColorType) -> Option<Self> {
        let pixels = width as usize * height as usize;
        let bytes = match colours {
            ColorType::Rgb8 => bytes,
            ColorType::L8 => bytes.iter().flat_map(|grey| [*grey; 3]).collect(),
            ColorType::La8 => bytes
                .chunks_exact(2)
                .flat_map(|pixel| [over_white(pixel[0], pixel[1]); 3])
                .collect(),
            ColorType::L16 => bytes
                .chunks_exact(2)
                .flat_map(|pixel| [narrow(pixel[0], pixel[1]); 3])
                .collect(),
            ColorType::La16 => {
                let grey = |pixel: &[u8]| over_white(narrow(pixel[0], pixel[1]), narrow(pixel[2], pixel[3]));
                bytes.chunks_exact(4).flat_map(|pixel| [grey(pixel); 3]).collect()
            }
            ColorType::Rgba8 => flattened(bytes, pixels, |bytes, pixel| {
                [0, 1, 2, 3].map(|colour| bytes[pixel * 4 + colour])
            }),
            ColorType::Rgb16 => {
                for colour in 0..pixels * 3 {
                    bytes[colour] = narrow(bytes[colour * 2], bytes[colour * 2 + 1]);
                }
                shortened(bytes, pixels * 3)
            }
            ColorType::Rgba16 => flattened(bytes, pixels, |bytes, pixel| {
                [0, 2, 4, 6].map(|at| narrow(bytes[pixel * 8 + at], bytes[pixel * 8 + at + 1]))
            }),
            ColorType::Rgb32F => {
                for colour in 0..pixels * 3 {
                    bytes[colour] = from_float(&bytes[colour * 4..colour * 4 + 4]);
                }
                shortened(bytes, pixels * 3)
            }
            ColorType::Rgba32F => flattened(bytes, pixels, |bytes, pixel| {
                [0, 4, 8, 12].map(|at| from_float(&bytes[pixel * 16 + at..][..4]))
            }),
            _ => return None,
        };
        Some(Self { width, height, bytes })
    }

    /// Half as wide and high if it is larger than any model could use.
    pub(crate) fn halved_if_huge(mut self) -> Self {
        if u64::from(self.width) * u64::from(self.height) <= HUGE || self.width < 2 || self.height < 2 {
            return self;
        }
        let (width, height, stride) = (
            self.width as usize / 2,
            self.height as usize / 2,
            self.width as usize * 3,
        );
        for row in 0..height {
            for place in 0..width * 3 {
                let (pixel, colour) = (place / 3, place % 3);
                let from = row * 2 * stride + pixel * 6 + colour;
                let sum: u32 = [0, 3, stride, stride + 3]
                    .iter()
                    .map(|step| u32::from(self.bytes[from + step]))
                    .sum();
                self.bytes[row * width * 3 + place] = ((sum + 2) / 4) as u8;
            }
        }
        Self {
            width: width as u32,
            height: height as u32,
            bytes: shortened(self.bytes, width * height * 3),
        }
    }
}

fn shortened(mut bytes: Vec<u8>, length: usize) -> Vec<u8> {
    bytes.truncate(length);
    bytes.shrink_to_fit();
    bytes
}

/// Width and height after a turn.
pub(crate) fn turned((width, height): (u32, u32), orientation: Orientation) -> (u32, u32) {
    match orientation {
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH => {
            (height, width)
        }
        _ => (width, height),
    }
}

/// The image upright.
pub(crate) fn oriented(rgb: Rgb, orientation: Orientation) -> Rgb {
    let (w, h) = (rgb.width as usize, rgb.height as usize);
    // The place in the file's image of the upright image's pixel at (x, y).
    let source = |x: usize, y: usize| match orientation {
        Orientation::NoTransforms => (x, y),
        Orientation::FlipHorizontal => (w - 1 - x, y),
        Orientation::Rotate180 => (w - 1 - x, h - 1 - y),
        Orientation::FlipVertical => (x, h - 1 - y),
        Orientation::Rotate90FlipH => (y, x),
        Orientation::Rotate90 => (y, h - 1 - x),
        Orientation::Rotate270FlipH => (w - 1 - y, h - 1 - x),
        Orientation::Rotate270 => (w - 1 - y, x),
    };
    if orientation == Orientation::NoTransforms {
        return rgb;
    }
    let (width, height) = turned((rgb.width, rgb.height), orientation);
    let mut bytes = Vec::with_capacity(rgb.bytes.len());
    for y in 0..height as usize {
        for x in 0..width as usize {
            let (across, down) = source(x, y);
            let from = (down * w + across) * 3;
            bytes.extend_from_slice(&rgb.bytes[from..from + 3]);
        }
    }
    Rgb { width, height, bytes }
}
