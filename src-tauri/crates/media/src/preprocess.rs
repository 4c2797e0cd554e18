//! From pixels to a tower's numbers.

use checkpoint::image_processor::{Filter, Layout, Part, Scaling};
use checkpoint::{ImagePlan, ImageProcessor, View};

use crate::decoded_image::DecodedImage;
use crate::error::{Error, Result};
use crate::resize::{resize_rgb, resize_squared};

/// The pixels of an image that was resized, and its width and height.
type Resized = (Vec<u8>, (u32, u32));

/// The numbers of one view.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewPixels {
    /// `[patches, numbers of a patch]` if the processor's layout is of patches, else `[3, height, width]`.
    pub shape: Vec<usize>,
    /// The numbers, as transformers' processors on Pillow make them, without padding.
    pub values: Vec<f32>,
}

/// Does with an image what its plan says: one result for each view. The plan has to be of this processor and of the
/// image's original size.
pub fn preprocess(image: &DecodedImage, processor: &ImageProcessor, plan: &ImagePlan) -> Result<Vec<ViewPixels>> {
    if image.rgb.len() != image.width as usize * image.height as usize * 3 || image.rgb.is_empty() {
        return Err(Error::WrongPlan(
            "it has another number of pixels than its size says".into(),
        ));
    }
    let around = match (processor.sizing.is_on_white(), processor.sizing.is_on_mean()) {
        (true, _) => [255; 3],
        (false, true) => mean_colour(&processor.scaling),
        (false, false) => [0; 3],
    };
    let numbers = Numbers::of(&processor.scaling, around);
    let original = RgbRef {
        rgb: &image.rgb,
        size: (image.width, image.height),
    };
    let (mut last, mut before_last): (Option<Resized>, Option<Resized>) = (None, None);
    for step in &plan.steps {
        let from = last
            .as_ref()
            .map_or(original, |(rgb, size)| RgbRef { rgb, size: *size });
        let resized = match processor.sizing.is_squared() {
            true => resize_squared(from.rgb, from.size, *step, around, processor.filter),
            false => from.resized(*step, processor.filter),
        };
        before_last = last.replace((resized, *step));
    }
    let shown = last
        .as_ref()
        .map_or(original, |(rgb, size)| RgbRef { rgb, size: *size });
    let tiles = plan.views.len() - usize::from(plan.whole && !plan.views.is_empty());
    let (rows, columns) = plan.tiles.map_or((1, 1), |(rows, columns)| (rows, columns.max(1)));
    let before = match plan.views.first().filter(|_| processor.sizing.is_centered()) {
        Some(view) => {
            let canvas = |tiles: u32, side: u32| (tiles.max(1) - 1) * processor.sizing.stride(side) + side;
            let half = |canvas: u32, image: u32| match canvas >= image {
                true => i64::from(processor.sizing.before(canvas - image)),
                false => -i64::from((image - canvas) / 2),
            };
            (
                half(canvas(columns, view.width), shown.size.0),
                half(canvas(rows, view.height), shown.size.1),
            )
        }
        None => (0, 0),
    };
    let mut views = Vec::with_capacity(plan.views.len());
    for (index, view) in plan.views.iter().enumerate() {
        if let Some(part) = processor.sizing.part(index, original.size).filter(|_| index < tiles) {
            let rgb = original.part(part);
            let size = (view.width, view.height);
            let part = RgbRef {
                rgb: &rgb,
                size: part.1,
            }
            .resized(size, processor.filter);
            views.push(numbers.view(&RgbRef { rgb: &part, size }, (0, 0), view, processor.layout)?);
        } else if index < tiles {
            let corner = (
                i64::from(index as u32 % columns * processor.sizing.stride(view.width)) - before.0,
                i64::from(index as u32 / columns * processor.sizing.stride(view.height)) - before.1,
            );
            views.push(numbers.view(&shown, corner, view, processor.layout)?);
        } else {
            let from = match &before_last {
                Some((rgb, size)) if processor.sizing.whole_is_of_first_step() => RgbRef { rgb, size: *size },
                _ if processor.sizing.whole_is_of_original() => original,
                _ => shown,
            };
            let size = processor.sizing.whole_size(from.size, (view.width, view.height));
            let whole = from.resized(size, processor.sizing.whole_filter(processor.filter));
            let whole = RgbRef { rgb: &whole, size };
            let before = |canvas: u32, image: u32| -i64::from(processor.sizing.before(canvas.saturating_sub(image)));
            let corner = (before(view.width, size.0), before(view.height, size.1));
            views.push(numbers.view(&whole, corner, view, processor.layout)?);
        }
    }
    Ok(views)
}

/// The steps next below what is subtracted of each color.
fn mean_colour(scaling: &Scaling) -> [u8; 3] {
    let mean = scaling.normalization.map_or([0.0; 3], |(mean, _)| mean);
    mean.map(|mean| (f64::from(mean) * 255.0) as u8)
}

/// Borrowed pixels of red, green and blue, row by row.
#[derive(Clone, Copy)]
struct RgbRef<'a> {
    rgb: &'a [u8],
    size: (u32, u32),
}

impl<'a> RgbRef<'a> {
    fn resized(&self, to: (u32, u32), filter: Filter) -> Vec<u8> {
        resize_rgb(self.rgb, self.size, (to.0.max(1), to.1.max(1)), filter)
    }

    /// The pixels of a part of it, given its corner and its size.
    fn part(&self, ((left, top), (width, height)): Part) -> Vec<u8> {
        let row = |row: u32| {
            let start = ((top + row) as usize * self.size.0 as usize + left as usize) * 3;
            &self.rgb[start..start + width as usize * 3]
        };
        (0..height).flat_map(row).copied().collect()
    }

    /// Colors of a part of a row, and how many pixels of it lie before the image; shorter if the image ends before it,
    /// empty above and below it.
    fn row(&self, left: i64, top: i64, width: u32) -> (u32, &'a [u8]) {
        let before = u32::try_from(-left).unwrap_or(0).min(width);
        let (left, width) = (left.max(0) as u32, width - before);
        let top = u32::try_from(top).unwrap_or(u32::MAX);
        if top >= self.size.1 || left >= self.size.0 {
            return (0, &[]);
        }
        let start = (top as usize * self.size.0 as usize + left as usize) * 3;
        let end = start + width.min(self.size.0 - left) as usize * 3;
        (before, &self.rgb[start..end])
    }
}

/// The results for each of the 256 values of red, green and blue.
struct Numbers {
    of_steps: [[f32; 256]; 3],
    /// The color where a canvas is larger than its image.
    around: [u8; 3],
}

impl Numbers {
    fn of(scaling: &Scaling, around: [u8; 3]) -> Self {
        let mut numbers = [[0.0; 256]; 3];
        for (colour, numbers) in numbers.iter_mut().enumerate() {
            for (step, number) in numbers.iter_mut().enumerate() {
                // Widths of the numbers as in numpy's code, so that no bit differs.
                let scaled = scaling
                    .factor
                    .map_or(step as f32, |factor| (step as f64 * factor) as f32);
                *number = scaling
                    .normalization
                    .map_or(scaled, |(mean, std)| (scaled - mean[colour]) / std[colour]);
            }
        }
        Self {
            of_steps: numbers,
            around,
        }
    }

    /// The numbers of a view whose corner lies here.
    fn view(&self, pixels: &RgbRef, corner: (i64, i64), view: &View, layout: Layout) -> Result<ViewPixels> {
        match layout {
            Layout::Planes => Ok(self.planes(pixels, corner, view)),
            Layout::Patches {
                side,
                block,
                frames,
                colour_by_colour,
            } => {
                let (rows, columns) = (view.height / side.max(1), view.width / side.max(1));
                if side == 0 || block == 0 || rows % block != 0 || columns % block != 0 {
                    return Err(Error::WrongPlan(format!(
                        "{}×{} pixels are no blocks of patches of {side} pixels",
                        view.width, view.height
                    )));
                }
                let order = Order {
                    side,
                    block,
                    frames,
                    colour_by_colour,
                };
                Ok(self.patches(pixels, corner, (rows, columns), &order))
            }
        }
    }

    fn planes(&self, pixels: &RgbRef, (left, top): (i64, i64), view: &View) -> ViewPixels {
        let (width, height) = (view.width as usize, view.height as usize);
        let mut values = Vec::with_capacity(3 * width * height);
        for (colour, numbers) in self.of_steps.iter().enumerate() {
            let around = numbers[usize::from(self.around[colour])];
            for row in 0..view.height {
                let (before, steps) = pixels.row(left, top + i64::from(row), view.width);
                let start = values.len();
                values.resize(start + before as usize, around);
                values.extend(steps.chunks_exact(3).map(|pixel| numbers[usize::from(pixel[colour])]));
                values.resize(start + width, around);
            }
        }
        ViewPixels {
            shape: vec![3, height, width],
            values,
        }
    }

    fn patches(
        &self,
        pixels: &RgbRef,
        (left, top): (i64, i64),
        (rows, columns): (u32, u32),
        order: &Order,
    ) -> ViewPixels {
        let side = order.side as usize;
        let length = 3 * side * side * order.frames as usize;
        let mut values = Vec::with_capacity(rows as usize * columns as usize * length);
        for (row, column) in order.grid(rows, columns) {
            let (left, top) = (left + i64::from(column * order.side), top + i64::from(row * order.side));
            let lines = (0..order.side).map(|line| pixels.row(left, top + i64::from(line), order.side).1);
            match order.colour_by_colour {
                true => {
                    for (colour, numbers) in self.of_steps.iter().enumerate() {
                        let start = values.len();
                        for line in lines.clone() {
                            values.extend(line.chunks_exact(3).map(|pixel| numbers[usize::from(pixel[colour])]));
                        }
                        let end = values.len();
                        for _ in 1..order.frames {
                            values.extend_from_within(start..end);
                        }
                    }
                }
                false => {
                    for line in lines {
                        let pixels = line.chunks_exact(3);
                        values.extend(pixels.flat_map(|pixel| {
                            [0, 1, 2].map(|colour| self.of_steps[colour][usize::from(pixel[colour])])
                        }));
                    }
                }
            }
        }
        ViewPixels {
            shape: vec![(rows * columns) as usize, length],
            values,
        }
    }
}

/// How patches follow each other, and their numbers.
struct Order {
    side: u32,
    block: u32,
    frames: u32,
    colour_by_colour: bool,
}

impl Order {
    /// Row and column of each patch, block after block.
    fn grid(&self, rows: u32, columns: u32) -> impl Iterator<Item = (u32, u32)> {
        let block = self.block;
        (0..rows / block).flat_map(move |down| {
            (0..columns / block).flat_map(move |across| {
                (0..block)
                    .flat_map(move |row| (0..block).map(move |column| (down * block + row, across * block + column)))
            })
        })
    }
}
