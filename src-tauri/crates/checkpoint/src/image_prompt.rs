//! Images in a prompt: the placeholder of a family's templates and the run of tokens that replaces it (transformers,
//! `replace_image_token` of each processor; Falcon-OCR: mlx-vlm).

use crate::image_processor::ImagePlan;

/// The text that a family's templates write for an image, and the tokens that its processor makes of it.
#[derive(Debug)]
pub struct ImagePrompt {
    /// The token that the template writes for an image.
    pub placeholder: &'static str,
    /// All that such templates write, marks included, for a template that knows no images.
    pub written: &'static str,
    /// Other texts that templates write for an image, marks included; the run has its own marks then (ERNIE 4.5 VL).
    pub also_written: &'static [&'static str],
    /// The token that takes a feature, unless config.json names one.
    pub feature: &'static str,
    /// The text around the placeholder before the prompt is encoded.
    pub around: &'static str,
    /// True if tokenizers may lack the placeholder, which then only tells where an image is.
    pub added: bool,
    /// True if a space stands between an image and a word after it, and one mark between two images.
    pub spaced: bool,
    /// True if images stand before everything else, whatever the template (Molmo).
    pub first: bool,
    /// The most images of a conversation.
    pub most: Option<usize>,
    /// A template for models that bring none.
    pub template: Option<&'static str>,
    /// The run that a placeholder becomes.
    pub run: ImageRun,
}

/// The run of tokens that a placeholder becomes.
#[derive(Debug)]
pub enum ImageRun {
    /// Features.
    Features,
    /// Features between two marks.
    Between(&'static str, &'static str),
    /// Rows of features, the first mark after each but the last, the second after the last.
    Rows(&'static str, &'static str),
    /// Tiles, each after a mark with its place, a line for each row of them; then the full image.
    Idefics,
    /// Views, each after a mark that stands at the end too (Idefics 2).
    Fenced(&'static str),
    /// Tiles, each after a mark with its place; then the full image; all between two marks.
    Lfm2,
    /// Tiles, each after its number, then the full image, all between two marks (Aya Vision).
    NumberedTiles(&'static str, &'static str),
    /// Tiles and the full image, each before the second mark, between the first and the third (Command A Vision).
    EndedTiles(&'static str, &'static str, &'static str),
    /// The full image, then the grid that all tiles make, each after a mark of its own and before the one at the end,
    /// with a mark after each row (Molmo).
    Grids {
        /// The marks before the full image and before the tiles.
        starts: [&'static str; 2],
        /// The mark after a row.
        row_end: &'static str,
        /// The mark after a grid.
        end: &'static str,
    },
    /// The number of the image in the prompt, the full image, then a line for each row of slices (MiniCPM-V).
    Slices,
    /// The placeholder itself: the model reads features next to the prompt.
    Itself,
}

/// A segment of a run.
#[derive(Debug, PartialEq, Eq)]
pub enum RunSegment {
    /// This number of features.
    Features(usize),
    /// Control tokens and line ends, as they are spelled.
    Marks(String),
    /// The placeholder itself.
    Placeholder,
}

impl ImagePrompt {
    /// One token as placeholder and feature, and a run of features alone: the fields that most families share.
    pub(crate) const fn new(token: &'static str) -> Self {
        Self {
            placeholder: token,
            written: token,
            also_written: &[],
            feature: token,
            around: "",
            added: false,
            spaced: false,
            first: false,
            most: None,
            template: None,
            run: ImageRun::Features,
        }
    }
}

impl ImagePrompt {
    /// The tokens that the row names.
    pub fn spelled(&self) -> Vec<&'static str> {
        let (open, close) = match self.run {
            ImageRun::Between(open, close)
            | ImageRun::Rows(open, close)
            | ImageRun::NumberedTiles(open, close)
            | ImageRun::EndedTiles(open, _, close) => (open, close),
            ImageRun::Idefics => ("<fake_token_around_image>", "<global-img>"),
            ImageRun::Fenced(mark) => (mark, mark),
            ImageRun::Lfm2 => ("<|image_start|>", "<|image_end|>"),
            ImageRun::Slices => ("<image>", "</image>"),
            ImageRun::Grids { starts, row_end, end } => {
                let marks = [row_end, end].into_iter().chain(starts);
                return [self.placeholder, self.feature].into_iter().chain(marks).collect();
            }
            ImageRun::Features | ImageRun::Itself => ("", ""),
        };
        vec![self.placeholder, self.feature, self.written, open, close]
    }

    /// The marks around a run, unless config.json names others.
    pub fn marks(&self) -> (&'static str, &'static str) {
        match self.run {
            ImageRun::Between(open, close)
            | ImageRun::NumberedTiles(open, close)
            | ImageRun::EndedTiles(open, _, close) => (open, close),
            ImageRun::Features
            | ImageRun::Rows(..)
            | ImageRun::Idefics
            | ImageRun::Fenced(_)
            | ImageRun::Lfm2
            | ImageRun::Grids { .. }
            | ImageRun::Slices
            | ImageRun::Itself => ("", ""),
        }
    }

    /// The run of the image of this plan that is the `number`th of the prompt, from 0; `marks` begin and end it.
    pub fn segments(&self, number: usize, plan: &ImagePlan, marks: &[String; 2]) -> Vec<RunSegment> {
        let views = || plan.views.iter().map(|view| view.features as usize);
        match self.run {
            ImageRun::Features => vec![RunSegment::Features(plan.tokens())],
            ImageRun::Between(..) => {
                let [open, close] = marks;
                vec![
                    RunSegment::Marks(open.clone()),
                    RunSegment::Features(plan.tokens()),
                    RunSegment::Marks(close.clone()),
                ]
            }
            ImageRun::Rows(between, end) => {
                let mut segments = Vec::new();
                for (rows, columns) in plan.views.iter().map(|view| view.tokens) {
                    for row in 1..=rows {
                        segments.push(RunSegment::Features(columns as usize));
                        segments.push(RunSegment::Marks(if row == rows { end } else { between }.to_owned()));
                    }
                }
                segments
            }
            ImageRun::Idefics => {
                const FAKE: &str = "<fake_token_around_image>";
                let columns = plan.tiles.map_or(0, |(_, columns)| columns);
                let mut run = Builder::default();
                for (tile, features) in views().enumerate() {
                    let tile = tile as u32;
                    if Some(tile + 1) == u32::try_from(plan.views.len()).ok() {
                        run.marks(if columns > 0 { "\n" } else { "" });
                        run.marks(&format!("{FAKE}<global-img>"));
                    } else {
                        run.marks(&format!(
                            "{FAKE}<row_{}_col_{}>",
                            tile / columns.max(1) + 1,
                            tile % columns.max(1) + 1
                        ));
                    }
                    run.features(features);
                    if (tile + 1).is_multiple_of(columns) && (tile as usize) + 1 < plan.views.len() {
                        run.marks("\n");
                    }
                }
                run.marks(FAKE);
                run.segments
            }
            ImageRun::Fenced(mark) => {
                let mut run = Builder::default();
                for features in views() {
                    run.marks(mark);
                    run.features(features);
                }
                run.marks(mark);
                run.segments
            }
            ImageRun::Lfm2 => {
                let columns = plan.tiles.map_or(1, |(_, columns)| columns).max(1);
                let tiles = plan.tiles.map_or(0, |(rows, columns)| rows * columns);
                let mut run = Builder::default();
                run.marks("<|image_start|>");
                for (tile, features) in (0u32..).zip(views()) {
                    if tile < tiles {
                        run.marks(&format!(
                            "<|img_row_{}_col_{}|>",
                            tile / columns + 1,
                            tile % columns + 1
                        ));
                    } else if tiles > 0 {
                        run.marks("<|img_thumbnail|>");
                    }
                    run.features(features);
                }
                run.marks("<|image_end|>");
                run.segments
            }
            ImageRun::NumberedTiles(..) => {
                let [open, close] = marks;
                let mut run = Builder::default();
                run.marks(open);
                for (tile, features) in (1..).zip(views()) {
                    match tile == plan.views.len() {
                        true => run.marks("TILE_GLOBAL"),
                        false => run.marks(&format!("TILE_{tile}")),
                    }
                    run.features(features);
                }
                run.marks(close);
                run.segments
            }
            ImageRun::EndedTiles(_, end, _) => {
                let [open, close] = marks;
                let mut run = Builder::default();
                run.marks(open);
                for features in views() {
                    run.features(features);
                    run.marks(end);
                }
                run.marks(close);
                run.segments
            }
            ImageRun::Grids { starts, row_end, end } => {
                let grids = [plan.views.last(), plan.views.first()];
                let mut run = Builder::default();
                for (start, view) in starts.iter().zip(grids) {
                    let (rows, columns) = view.map_or((0, 0), |view| view.tokens);
                    run.marks(start);
                    for _ in 0..rows {
                        run.features(columns as usize);
                        run.marks(row_end);
                    }
                    run.marks(end);
                }
                run.segments
            }
            ImageRun::Slices => {
                let (rows, columns) = plan.tiles.unwrap_or_default();
                let features: Vec<usize> = views().collect();
                let (whole, slices) = features
                    .split_last()
                    .map_or((0, &[][..]), |(whole, slices)| (*whole, slices));
                let mut run = Builder::default();
                run.marks(&format!("<image_id>{number}</image_id><image>"));
                run.features(whole);
                run.marks("</image>");
                for (index, features) in (0..rows * columns).zip(slices) {
                    if index > 0 && index.is_multiple_of(columns) {
                        run.marks("\n");
                    }
                    run.marks("<slice>");
                    run.features(*features);
                    run.marks("</slice>");
                }
                run.segments
            }
            ImageRun::Itself => vec![RunSegment::Placeholder],
        }
    }
}

/// Segments, of which neighboring marks are one, because they are encoded together.
#[derive(Default)]
struct Builder {
    segments: Vec<RunSegment>,
}

impl Builder {
    fn marks(&mut self, text: &str) {
        match self.segments.last_mut() {
            Some(RunSegment::Marks(before)) => before.push_str(text),
            _ => self.segments.push(RunSegment::Marks(text.to_owned())),
        }
    }

    fn features(&mut self, count: usize) {
        self.segments.push(RunSegment::Features(count));
    }
}
