//! Resizing, bit for bit as Pillow 12.3 does: towers were trained on images that it made.
//!
//! Rows are squeezed first, then columns, each by weights in fixed point and rounded to 8 bits
//! (`libImaging/Resample.c`). Pillow 13 chooses the order by size, so sharp images come out of it otherwise.

use std::f64::consts::PI;

use checkpoint::image_processor::Filter;

use crate::decoded_image::DecodedImage;

/// Bits of a weight after the point.
const PRECISION: u32 = 22;
/// A half, so that sums are rounded.
const HALF: i32 = 1 << (PRECISION - 1);

/// For each pixel of the result: the first one of the source that it is made of, and their weights.
struct Weights {
    /// The start and the length of each window.
    windows: Vec<(usize, usize)>,
    /// Weights of all windows, `stride` for each.
    weights: Vec<i32>,
    stride: usize,
}

/// Half of the width of a filter's window, in pixels of the result.
fn support(filter: Filter) -> f64 {
    match filter {
        Filter::Box => 0.5,
        Filter::Bilinear | Filter::Hamming => 1.0,
        Filter::Bicubic => 2.0,
        Filter::Lanczos => 3.0,
    }
}

fn sinc(x: f64) -> f64 {
    match x == 0.0 {
        true => 1.0,
        false => (x * PI).sin() / (x * PI),
    }
}

/// The filter's value at a distance from the pixel.
fn weight(filter: Filter, x: f64) -> f64 {
    let distance = x.abs();
    match filter {
        // Only the right end of the window belongs to it.
        Filter::Box => f64::from(u8::from(x > -0.5 && x <= 0.5)),
        Filter::Bilinear => (1.0 - distance).max(0.0),
        Filter::Hamming if distance >= 1.0 => 0.0,
        Filter::Hamming => sinc(distance) * (0.54 + 0.46 * (distance * PI).cos()),
        Filter::Bicubic => {
            let a = -0.5;
            if distance < 1.0 {
                ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1.0
            } else if distance < 2.0 {
                (((distance - 5.0) * distance + 8.0) * distance - 4.0) * a
            } else {
                0.0
            }
        }
        Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
        Filter::Lanczos => 0.0,
    }
}

impl Weights {
    fn of(from: usize, to: usize, filter: Filter) -> Self {
        let scale = from as f64 / to as f64;
        let widened = scale.max(1.0);
        let support = support(filter) * widened;
        let stride = support.ceil() as usize * 2 + 1;
        let mut all = Self {
            windows: Vec::with_capacity(to),
            weights: vec![0; to * stride],
            stride,
        };
        let mut window = vec![0.0; stride];
        for (place, row) in all.weights.chunks_exact_mut(stride).enumerate() {
            let centre = (place as f64 + 0.5) * scale;
            let first = (centre - support + 0.5).max(0.0) as usize;
            let end = ((centre + support + 0.5) as usize).min(from);
            let length = end.saturating_sub(first);
            let mut sum = 0.0;
            let inverse = 1.0 / widened;
            for (offset, value) in window[..length].iter_mut().enumerate() {
                *value = weight(filter, ((offset + first) as f64 - centre + 0.5) * inverse);
                sum += *value;
            }
            for (value, fixed) in window[..length].iter().zip(row) {
                let value = if sum == 0.0 { *value } else { *value / sum };
                let half = if value < 0.0 { -0.5 } else { 0.5 };
                *fixed = (half + value * f64::from(1 << PRECISION)) as i32;
            }
            all.windows.push((first, length));
        }
        all
    }

    fn each(&self) -> impl Iterator<Item = (usize, &[i32])> {
        let windows = self.windows.iter().zip(self.weights.chunks_exact(self.stride));
        windows.map(|((first, length), weights)| (*first, &weights[..*length]))
    }
}

fn clamp(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// The image at another size, both sides at least 1.
pub fn resize(image: &DecodedImage, (width, height): (u32, u32), filter: Filter) -> DecodedImage {
    let to = (width.max(1), height.max(1));
    DecodedImage {
        width: to.0,
        height: to.1,
        rgb: resize_rgb(&image.rgb, (image.width, image.height), to, filter),
        original: image.original,
        animated: image.animated,
    }
}

/// Resizes `width · height` pixels of red, green and blue to `to` (width, height), all at least 1.
pub(crate) fn resize_rgb(rgb: &[u8], (width, height): (u32, u32), to: (u32, u32), filter: Filter) -> Vec<u8> {
    let (width, height, to_width, to_height) = (width as usize, height as usize, to.0 as usize, to.1 as usize);
    let squeezed;
    let mut rows = rgb;
    if to_width != width {
        squeezed = squeeze_rows(rgb, width, to_width, filter);
        rows = &squeezed;
    }
    match to_height == height {
        true => rows.to_vec(),
        false => squeeze_columns(rows, to_width * 3, height, to_height, filter),
    }
}

/// Rows of a square that are made at once.
const BAND: usize = 64;

/// The same of the square in whose middle the image stands, `around` on both sides of the shorter one. The square
/// itself is never held in memory.
pub(crate) fn resize_squared(
    rgb: &[u8],
    (width, height): (u32, u32),
    to: (u32, u32),
    around: [u8; 3],
    filter: Filter,
) -> Vec<u8> {
    let (width, height, to_width, to_height) = (width as usize, height as usize, to.0 as usize, to.1 as usize);
    let side = width.max(height);
    let (before, above) = ((side - width) / 2, (side - height) / 2);
    let plain = |pixels: usize| around.into_iter().cycle().take(pixels * 3);
    let mut rows: Vec<u8> = plain(above * to_width).collect();
    for band in rgb.chunks(width * 3 * BAND) {
        let mut padded: Vec<u8> = plain(band.len() / (width * 3) * side).collect();
        for (row, padded) in band.chunks_exact(width * 3).zip(padded.chunks_exact_mut(side * 3)) {
            padded[before * 3..][..width * 3].copy_from_slice(row);
        }
        match to_width == side {
            true => rows.extend(padded),
            false => rows.extend(squeeze_rows(&padded, side, to_width, filter)),
        }
    }
    rows.extend(plain((side - rows.len() / (to_width * 3)) * to_width));
    match to_height == side {
        true => rows,
        false => squeeze_columns(&rows, to_width * 3, side, to_height, filter),
    }
}

fn squeeze_rows(rgb: &[u8], width: usize, to: usize, filter: Filter) -> Vec<u8> {
    let weights = Weights::of(width, to, filter);
    let mut result = Vec::with_capacity(rgb.len() / width * to);
    for row in rgb.chunks_exact(width * 3) {
        for (first, weights) in weights.each() {
            let mut sums = [HALF; 3];
            for (pixel, weight) in row[first * 3..].chunks_exact(3).zip(weights) {
                for (sum, step) in sums.iter_mut().zip(pixel) {
                    *sum += i32::from(*step) * weight;
                }
            }
            result.extend(sums.map(clamp));
        }
    }
    result
}

fn squeeze_columns(rows: &[u8], stride: usize, height: usize, to: usize, filter: Filter) -> Vec<u8> {
    let weights = Weights::of(height, to, filter);
    let mut result = Vec::with_capacity(stride * to);
    let mut sums = vec![HALF; stride];
    for (first, weights) in weights.each() {
        sums.fill(HALF);
        for (row, weight) in rows[first * stride..].chunks_exact(stride).zip(weights) {
            for (sum, step) in sums.iter_mut().zip(row) {
                *sum += i32::from(*step) * weight;
            }
        }
        result.extend(sums.iter().copied().map(clamp));
    }
    result
}
