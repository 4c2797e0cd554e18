//! A PDF: its text, which is what its pages would draw, by the places where the letters stand; and its pages as images.

mod cost;
mod page;

pub(crate) use page::draw;

use hayro_interpret::font::{Glyph, GlyphRun, PositionedGlyph};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::{LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Vec2};
use hayro_interpret::{
    interpret_page, BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, RenderContent, SoftMask, TransformExt,
};

use crate::budget::{end, Budget};
use crate::error::{Error, Result};
use crate::excerpt::PAGE_BREAK;
use crate::kind::DocumentKind;
use crate::limits::MAX_TEXT;

/// The most pages of a file.
const MAX_PAGES: usize = 5000;

/// How many drawings are made between two looks at the time.
const STEPS: u64 = 1024;

/// The most drawings of a page; a map has some hundred thousand.
const MAX_STEPS: u64 = 5_000_000;

/// The text of all pages.
///
/// # Errors
/// If the file is broken, protected or too large.
pub(crate) fn text(bytes: &[u8], budget: &Budget) -> Result<String> {
    let pdf = open(bytes, budget)?;
    let pages = pdf.pages();
    let settings = InterpreterSettings {
        render_content: RenderContent::PAGE,
        ..InterpreterSettings::default()
    };
    let cache = InterpreterCache::new();
    let mut text = String::new();
    let (mut known, mut unknown) = (0, 0);
    for (number, page) in pages.iter().enumerate() {
        budget.check()?;
        let (width, height) = page.render_dimensions();
        let mut context = Context::new(
            page.initial_transform(true).to_kurbo(),
            Rect::new(0.0, 0.0, width.into(), height.into()),
            &cache,
            page.xref(),
            settings.clone(),
        );
        let mut letters = Letters::new(budget);
        interpret_page(page, &mut context, &mut letters);
        if number > 0 {
            text.push(PAGE_BREAK);
        }
        text.push_str(letters.text.trim());
        (known, unknown) = (known + letters.known, unknown + letters.unknown);
        if text.len() > MAX_TEXT {
            return Err(Error::too_much_text());
        }
    }
    match unknown > known {
        true => Err(Error::NoText {
            kind: DocumentKind::Pdf.name().into(),
            advice: "its fonts do not tell which letters they draw; add its pages as images".into(),
        }),
        false => Ok(text),
    }
}

/// Opens a file that unfolds to no more than is sensible.
fn open(bytes: &[u8], budget: &Budget) -> Result<Pdf> {
    cost::check(bytes, budget)?;
    let pdf = Pdf::new(bytes.to_vec()).map_err(|error| match error {
        LoadPdfError::Decryption(_) => Error::Protected(DocumentKind::Pdf.name().into()),
        LoadPdfError::Invalid => Error::broken(DocumentKind::Pdf, "its table of contents is damaged"),
    })?;
    match pdf.pages().len() {
        0 => Err(Error::broken(DocumentKind::Pdf, "it has no pages")),
        1..=MAX_PAGES => Ok(pdf),
        more => {
            let reason = format!("it has {more} pages, and at most {MAX_PAGES} are read");
            Err(Error::TooLarge(reason))
        }
    }
}

/// Writes down the letters that a page draws.
struct Letters<'b> {
    budget: &'b Budget,
    steps: u64,
    text: String,
    /// Letters whose meaning the fonts tell, and those of which they do not.
    known: u64,
    unknown: u64,
    /// The letter before.
    last: Option<Placed>,
    /// The first letter of what was drawn last at once.
    first_of_run: Option<Placed>,
}

/// The position of a letter.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Placed {
    origin: Point,
    /// The origin of a letter that would follow.
    end: Point,
    /// Along its line, with the font's size as its length.
    along: Vec2,
    /// From the line that it stands on to what is above it, with the font's size as its length.
    up: Vec2,
}

impl Placed {
    /// The position of a letter of a run that is drawn with this transform.
    fn of(glyph: &PositionedGlyph<'_>, transform: Affine) -> Self {
        /// Of glyph space in an em.
        const EM: f64 = 1000.0;
        let transform = transform * glyph.transform();
        let origin = transform * Point::ZERO;
        let along = transform * Point::new(EM, 0.0) - origin;
        let advance = match &**glyph {
            Glyph::Outline(glyph) => glyph.advance_width(),
            Glyph::Type3(glyph) => glyph.advance_width(),
        };
        Self {
            origin,
            end: origin + along * (f64::from(advance.unwrap_or(500.0)) / EM),
            along,
            up: transform * Point::new(0.0, EM) - origin,
        }
    }

    /// True for the first letter of a run that draws the edges of the run before: a letter with an outline is drawn
    /// twice.
    fn is_edge(self, mode: &DrawMode, before: Option<Self>) -> bool {
        matches!(mode, DrawMode::Stroke(_)) && before == Some(self)
    }
}

impl<'b> Letters<'b> {
    fn new(budget: &'b Budget) -> Self {
        Self {
            budget,
            steps: 0,
            text: String::new(),
            known: 0,
            unknown: 0,
            last: None,
            first_of_run: None,
        }
    }

    /// Counts a drawing. The page's reader cannot fail, so it is ended.
    fn step(&mut self) {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            end(Error::broken(DocumentKind::Pdf, "one of its pages draws without end"));
        }
        if self.steps.is_multiple_of(STEPS) {
            if let Err(error) = self.budget.check() {
                end(error);
            }
        }
        if self.text.len() > MAX_TEXT {
            end(Error::too_much_text());
        }
    }

    fn letter(&mut self, letter: Option<BfString>, placed: Placed) {
        self.step();
        let mut own = [0; 4];
        let said = match &letter {
            Some(BfString::Char(letter)) => &*letter.encode_utf8(&mut own),
            Some(BfString::String(letters)) => letters.as_str(),
            None => "\u{fffd}",
        };
        match said.chars().all(|letter| letter == '\u{fffd}') {
            true => self.unknown += 1,
            false => self.known += 1,
        }
        if let Some(last) = self.last {
            self.gap(last, placed);
        }
        // A space at the beginning of a line is one of its place.
        if !(said == " " && (self.text.is_empty() || self.text.ends_with(['\n', ' ']))) {
            self.text.push_str(said);
        }
        self.last = Some(placed);
    }

    /// Spaces and ends of lines are places, more often than letters.
    fn gap(&mut self, last: Placed, next: Placed) {
        let size = last.along.hypot().max(next.along.hypot());
        if size <= 0.0 || !size.is_finite() {
            return;
        }
        let along = last.along / last.along.hypot().max(f64::MIN_POSITIVE);
        let moved = next.origin - last.end;
        let forward = moved.dot(along) / size;
        let across = moved.cross(along).abs() / size;
        let turned = next.along.dot(last.along) < 0.7 * next.along.hypot() * last.along.hypot();
        if turned || across > 1.7 || (across <= 0.5 && forward < -2.0) {
            self.feeds(2);
        } else if across > 0.5 {
            // Raised and lowered letters stay on their line.
            let smaller = next.along.hypot().min(last.along.hypot()) < 0.8 * size && forward.abs() < 0.6;
            if !smaller {
                self.feeds(1);
            }
        } else if forward > 1.5 {
            // Columns of a table.
            self.spaces("  ");
        } else if forward > 0.15 {
            self.spaces(" ");
        }
    }

    fn feeds(&mut self, count: usize) {
        let kept = self.text.trim_end_matches([' ', '\n']).len();
        self.text.truncate(kept);
        if kept > 0 {
            self.text.push_str(&"\n".repeat(count));
        }
    }

    fn spaces(&mut self, spaces: &str) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push_str(spaces);
        }
    }
}

impl<'a> Device<'a> for Letters<'_> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        for (index, glyph) in run.glyphs().iter().enumerate() {
            let placed = Placed::of(glyph, props.transform);
            if index == 0 && placed.is_edge(mode, self.first_of_run) {
                return;
            }
            if index == 0 {
                self.first_of_run = Some(placed);
            }
            self.letter(glyph.as_unicode(), placed);
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

    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {
        self.step();
    }

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}
