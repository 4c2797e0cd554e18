//! A page of a PDF as an image, and the lines of a passage on it.

use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::vello_cpu::{Pixmap, RasterizerSettings, RenderContext, Resources, TargetInit};
use hayro::{render_into, RenderCache, RenderSettings};
use hayro_interpret::font::GlyphRun;
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::page::Page;
use hayro_interpret::kurbo::{Affine, BezPath, Rect};
use hayro_interpret::{
    interpret_page, BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, TransformExt,
};

use super::{open, Placed, STEPS};
use crate::budget::{end, Budget};
use crate::error::{Error, Result};
use crate::kind::DocumentKind;
use crate::limits::MAX_TEXT;
use crate::page_image::{PageImage, PageMark, PageRequest};

/// The most pixels of an image of a page.
const MAX_PIXELS: f64 = 4_000_000.0;

/// The longest side of it, in pixels, which the canvas counts in 16 bits.
const MAX_SIDE: f64 = 16_000.0;

/// The most drawings of a page: the canvas keeps all of them until the end.
const MAX_DRAWINGS: u64 = 1_000_000;

/// The most pixels of an image on a page, and of all of them.
const MAX_IMAGE: u64 = 100_000_000;
const MAX_IMAGES: u64 = 400_000_000;

/// The most lines of a passage.
const MAX_MARKS: usize = 500;

/// The parts of an em above and below the line that letters stand on.
const ASCENT: f64 = 0.85;
const DESCENT: f64 = 0.22;

/// Draws a page. Its drawings are counted before any of them is made, since the canvas cannot be asked to stop.
///
/// # Errors
/// If the file is broken, protected or too large, or has no such page.
pub(crate) fn draw(bytes: &[u8], wanted: &PageRequest, budget: &Budget) -> Result<PageImage> {
    let pdf = open(bytes, budget)?;
    let pages = pdf.pages();
    let at = (wanted.page as usize).checked_sub(1);
    let page = at.and_then(|at| pages.get(at)).ok_or(Error::NoPage {
        page: wanted.page,
        pages: pages.len(),
    })?;
    let broken = |reason| Error::broken(DocumentKind::Pdf, reason);
    let size = page.render_dimensions();
    let (width, height, scale) = fitted(size, wanted.width).ok_or(broken("its page has no size that can be drawn"))?;
    let settings = InterpreterSettings::default();
    let spoken = spoken(page, size, &settings, budget);
    let mut canvas = RenderContext::new(width, height);
    let transform = Affine::scale(scale) * page.initial_transform(true).to_kurbo();
    let cache = RenderCache::new();
    render_into(
        page,
        &cache,
        &settings,
        &RenderSettings::default(),
        &mut canvas,
        transform,
    );
    canvas.flush();
    let mut pixels = Pixmap::new(width, height);
    let paper = RasterizerSettings {
        target_init: TargetInit::Clear(WHITE),
        ..RasterizerSettings::default()
    };
    canvas.render_with(&mut pixels, &mut Resources::default(), paper);
    budget.check()?;
    Ok(PageImage {
        pages: u32::try_from(pages.len()).unwrap_or(u32::MAX),
        width: width.into(),
        height: height.into(),
        marks: spoken.marks(&wanted.passage, size),
        png: pixels.into_png().map_err(|_| broken("its page cannot be packed"))?,
    })
}

/// The size of the image in pixels, and how much larger than the page it is.
fn fitted((page_width, page_height): (f32, f32), width: u32) -> Option<(u16, u16, f64)> {
    let (page_width, page_height) = (f64::from(page_width), f64::from(page_height));
    let by_width = f64::from(width) / page_width;
    let by_pixels = (MAX_PIXELS / (page_width * page_height)).sqrt();
    let by_side = MAX_SIDE / page_width.max(page_height);
    let scale = by_width.min(by_pixels).min(by_side);
    let pixels = |length: f64| {
        let length = (length * scale).round();
        // A comparison with what is no number is false.
        (1.0..=MAX_SIDE).contains(&length).then_some(length as u16)
    };
    Some((pixels(page_width)?, pixels(page_height)?, scale))
}

fn spoken<'a>(page: &Page<'a>, size: (f32, f32), settings: &InterpreterSettings, budget: &'a Budget) -> Spoken<'a> {
    let cache = InterpreterCache::new();
    let mut context = Context::new(
        page.initial_transform(true).to_kurbo(),
        Rect::new(0.0, 0.0, size.0.into(), size.1.into()),
        &cache,
        page.xref(),
        settings.clone(),
    );
    let mut spoken = Spoken {
        budget,
        steps: 0,
        image_pixels: 0,
        text: String::new(),
        places: Vec::new(),
        first_of_run: None,
    };
    interpret_page(page, &mut context, &mut spoken);
    spoken
}

/// The words of a page without their spaces, the place of each letter, and the number of its drawings.
struct Spoken<'b> {
    budget: &'b Budget,
    steps: u64,
    image_pixels: u64,
    text: String,
    /// The beginning of a letter in the text, and its place on the page.
    places: Vec<(usize, Rect)>,
    /// The first letter of what was drawn last at once.
    first_of_run: Option<Placed>,
}

impl Spoken<'_> {
    /// Counts a drawing. The page's reader cannot fail, so it is ended.
    fn step(&mut self) {
        self.steps += 1;
        if self.steps > MAX_DRAWINGS || self.text.len() > MAX_TEXT {
            end(Error::broken(DocumentKind::Pdf, "its page draws without end"));
        }
        if self.steps.is_multiple_of(STEPS) {
            if let Err(error) = self.budget.check() {
                end(error);
            }
        }
    }

    fn letter(&mut self, letter: Option<BfString>, place: Rect) {
        let mut own = [0; 4];
        let said = match &letter {
            Some(BfString::Char(letter)) => &*letter.encode_utf8(&mut own),
            Some(BfString::String(letters)) => letters.as_str(),
            None => "\u{fffd}",
        };
        self.places.push((self.text.len(), place));
        self.text.extend(said.chars().filter(is_letter));
    }

    /// The lines of a passage; none if the page does not say it. Spaces are left out, because they are places.
    fn marks(&self, passage: &str, (width, height): (f32, f32)) -> Vec<PageMark> {
        let passage: String = passage.chars().filter(is_letter).collect();
        let found = self.text.find(&passage).filter(|_| !passage.is_empty());
        let Some(start) = found else {
            return Vec::new();
        };
        let first = self.places.partition_point(|(at, _)| *at < start);
        let after = self.places.partition_point(|(at, _)| *at < start + passage.len());
        let page = Rect::new(0.0, 0.0, width.into(), height.into());
        let letters = self.places[first..after].iter().map(|(_, place)| place.intersect(page));
        // The page's size has passed `fitted`.
        let share = |length: f64, of: f64| (length / of) as f32;
        let lines = lines(letters.filter(|place| place.is_finite() && place.area() > 0.0));
        let marks = lines.into_iter().map(|line| PageMark {
            left: share(line.x0, page.x1),
            top: share(line.y0, page.y1),
            width: share(line.width(), page.x1),
            height: share(line.height(), page.y1),
        });
        marks.collect()
    }
}

fn is_letter(letter: &char) -> bool {
    !letter.is_whitespace() && !letter.is_control()
}

/// Letters beside each other as one rectangle.
fn lines(letters: impl Iterator<Item = Rect>) -> Vec<Rect> {
    let mut lines: Vec<Rect> = Vec::new();
    for letter in letters {
        match lines.last_mut() {
            Some(line) if are_beside(*line, letter) => *line = line.union(letter),
            _ => lines.push(letter),
        }
    }
    lines.truncate(MAX_MARKS);
    lines
}

/// True if a letter stands on a line, at most two of its heights away from it.
fn are_beside(line: Rect, letter: Rect) -> bool {
    let shared = line.y1.min(letter.y1) - line.y0.max(letter.y0);
    let apart = line.x0.max(letter.x0) - line.x1.min(letter.x1);
    shared > 0.5 * line.height().min(letter.height()) && apart < 2.0 * line.height()
}

/// The place that a letter takes.
fn around(placed: Placed) -> Rect {
    let up = placed.up;
    let corners = [placed.origin, placed.end].map(|at| Rect::from_points(at + up * ASCENT, at - up * DESCENT));
    corners[0].union(corners[1])
}

impl<'a> Device<'a> for Spoken<'_> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        for (index, glyph) in run.glyphs().iter().enumerate() {
            self.step();
            let placed = Placed::of(glyph, props.transform);
            if index == 0 && placed.is_edge(mode, self.first_of_run) {
                return;
            }
            if index == 0 {
                self.first_of_run = Some(placed);
            }
            self.letter(glyph.as_unicode(), around(placed));
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {
        self.step();
    }

    fn push_clip_path(&mut self, _: &ClipPath) {
        self.step();
    }

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.step();
    }

    fn draw_image(&mut self, image: Image<'a, '_>, _: ImageDrawProps<'a>) {
        self.step();
        let (width, height) = match &image {
            Image::Raster(image) => (image.width(), image.height()),
            Image::Stencil(image) => (image.width(), image.height()),
        };
        let pixels = u64::from(width) * u64::from(height);
        self.image_pixels = self.image_pixels.saturating_add(pixels);
        if pixels > MAX_IMAGE || self.image_pixels > MAX_IMAGES {
            end(Error::TooLarge(
                "an image on its page has more than 100 megapixels".into(),
            ));
        }
    }

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}
