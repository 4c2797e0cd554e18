//! The runs of all families: what their templates write for a picture, and what their processors make of it (transformers,
//! `replace_image_token` of each processor; Falcon-OCR: mlx-vlm).

use checkpoint::ImagePlan;
use serde_json::Value;

/// A family's row.
#[derive(Debug)]
pub(super) struct Family {
    /// `model_type` of config.json.
    model_types: &'static [&'static str],
    /// The token that the template writes for a picture.
    pub placeholder: &'static str,
    /// The whole of what such templates write, marks of their own included, for a template that knows no pictures.
    pub written: &'static str,
    /// The token that takes a feature, unless config.json says so.
    pub feature: &'static str,
    /// What stands around the placeholder before the prompt is encoded.
    pub around: &'static str,
    /// The most pictures of a conversation.
    pub most: Option<usize>,
    /// For models that bring none.
    pub template: Option<&'static str>,
    run: Run,
}

/// What a placeholder becomes.
#[derive(Debug)]
enum Run {
    /// Features.
    Features,
    /// Features between two marks.
    Between(&'static str, &'static str),
    /// Rows of features, this mark after each, and this one after the last.
    Rows(&'static str, &'static str),
    /// Tiles, each after a mark that says its place, a line for each row of them; then the whole picture.
    Idefics,
    /// Tiles, each after a mark that says its place; then the whole picture; all between two marks.
    Lfm2,
    /// Itself: the model looks at features beside the prompt.
    Itself,
}

/// A segment of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RunSegment {
    /// So many features.
    Features(usize),
    /// Control tokens and ends of lines, as they are spelled.
    Marks(String),
    /// The placeholder itself.
    Placeholder,
}

/// What most rows have in common.
const PLAIN: Family = Family {
    model_types: &[],
    placeholder: "",
    written: "",
    feature: "",
    around: "",
    most: None,
    template: None,
    run: Run::Features,
};

/// All families.
const FAMILIES: [Family; 13] = [
    Family {
        model_types: &[
            "qwen2_vl",
            "qwen2_5_vl",
            "qwen3_vl",
            "qwen3_vl_moe",
            "qwen3_5",
            "qwen3_5_moe",
            "qwen3_omni_moe",
        ],
        placeholder: "<|image_pad|>",
        written: "<|vision_start|><|image_pad|><|vision_end|>",
        feature: "<|image_pad|>",
        ..PLAIN
    },
    Family {
        model_types: &["gemma4"],
        placeholder: "<|image|>",
        written: "<|image|>",
        feature: "<|image|>",
        run: Run::Between("<|image>", "<image|>"),
        ..PLAIN
    },
    Family {
        model_types: &["gemma3"],
        placeholder: "<start_of_image>",
        written: "<start_of_image>",
        feature: "<image_soft_token>",
        around: "\n\n",
        run: Run::Between("<start_of_image>", "<end_of_image>"),
        ..PLAIN
    },
    Family {
        model_types: &["gemma3n"],
        placeholder: "<image_soft_token>",
        written: "<image_soft_token>",
        feature: "<image_soft_token>",
        around: "\n\n",
        run: Run::Between("<start_of_image>", "<end_of_image>"),
        ..PLAIN
    },
    Family {
        model_types: &["glm4v", "glm4v_moe", "glm_ocr"],
        placeholder: "<|image|>",
        written: "<|begin_of_image|><|image|><|end_of_image|>",
        feature: "<|image|>",
        ..PLAIN
    },
    Family {
        // Pixtral's first conversions call themselves by the name of their projector.
        model_types: &["pixtral", "mistral3", "llava"],
        placeholder: "[IMG]",
        written: "[IMG]",
        feature: "[IMG]",
        run: Run::Rows("[IMG_BREAK]", "[IMG_END]"),
        ..PLAIN
    },
    Family {
        model_types: &["idefics3", "smolvlm"],
        placeholder: "<image>",
        written: "<image>",
        feature: "<image>",
        run: Run::Idefics,
        ..PLAIN
    },
    Family {
        model_types: &["lfm2_vl", "lfm2-vl"],
        placeholder: "<image>",
        written: "<image>",
        feature: "<image>",
        run: Run::Lfm2,
        ..PLAIN
    },
    Family {
        model_types: &["internvl", "internvl_chat"],
        placeholder: "<IMG_CONTEXT>",
        written: "<IMG_CONTEXT>\n",
        feature: "<IMG_CONTEXT>",
        run: Run::Between("<img>", "</img>"),
        ..PLAIN
    },
    Family {
        model_types: &["paddleocr_vl"],
        placeholder: "<|IMAGE_PLACEHOLDER|>",
        written: "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
        feature: "<|IMAGE_PLACEHOLDER|>",
        ..PLAIN
    },
    Family {
        model_types: &["hunyuan_vl"],
        placeholder: "<｜hy_place▁holder▁no▁102｜>",
        written: "<｜hy_place▁holder▁no▁100｜><｜hy_place▁holder▁no▁102｜><｜hy_place▁holder▁no▁101｜>",
        feature: "<｜hy_place▁holder▁no▁102｜>",
        ..PLAIN
    },
    Family {
        model_types: &["mllama"],
        placeholder: "<|image|>",
        written: "<|image|>",
        feature: "<|image|>",
        run: Run::Itself,
        ..PLAIN
    },
    Family {
        model_types: &["falcon_ocr"],
        placeholder: "<|image|>",
        written: "<|image|>",
        feature: "<|image|>",
        most: Some(1),
        // The model reads a page after these words alone; what else is asked for stands in their place.
        template: Some(
            "{% for message in messages %}{% if message['role'] == 'user' %}{{ message['content'] }}\n{% endif %}{% endfor %}<|OCR_PLAIN|>",
        ),
        run: Run::Between(
            "<|image_cls|><|image_reg_1|><|image_reg_2|><|image_reg_3|><|image_reg_4|>",
            "<|end_of_image|>",
        ),
        ..PLAIN
    },
];

impl Family {
    /// The row of a model with this `config.json`.
    pub fn of(config: &Value) -> Option<&'static Self> {
        let model_type = config.get("model_type")?.as_str()?;
        FAMILIES.iter().find(|family| family.model_types.contains(&model_type))
    }

    /// The tokens that the row names.
    pub fn spelled(&'static self) -> [&'static str; 5] {
        let (open, close) = match self.run {
            Run::Between(open, close) | Run::Rows(open, close) => (open, close),
            Run::Idefics => ("<fake_token_around_image>", "<global-img>"),
            Run::Lfm2 => ("<|image_start|>", "<|image_end|>"),
            Run::Features | Run::Itself => ("", ""),
        };
        [self.placeholder, self.feature, self.written, open, close]
    }

    /// What begins and ends a run, unless config.json says so.
    pub fn marks(&'static self) -> (&'static str, &'static str) {
        match self.run {
            Run::Between(open, close) => (open, close),
            Run::Features | Run::Rows(..) | Run::Idefics | Run::Lfm2 | Run::Itself => ("", ""),
        }
    }

    /// The run of a picture of this plan; `marks` begin and end it.
    pub fn run(&self, plan: &ImagePlan, marks: &[String; 2]) -> Vec<RunSegment> {
        let views = || plan.views.iter().map(|view| view.features as usize);
        match self.run {
            Run::Features => vec![RunSegment::Features(plan.tokens())],
            Run::Between(..) => {
                let [open, close] = marks;
                vec![
                    RunSegment::Marks(open.clone()),
                    RunSegment::Features(plan.tokens()),
                    RunSegment::Marks(close.clone()),
                ]
            }
            Run::Rows(between, end) => {
                let mut segments = Vec::new();
                for (rows, columns) in plan.views.iter().map(|view| view.tokens) {
                    for row in 1..=rows {
                        segments.push(RunSegment::Features(columns as usize));
                        segments.push(RunSegment::Marks(if row == rows { end } else { between }.to_owned()));
                    }
                }
                segments
            }
            Run::Idefics => {
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
            Run::Lfm2 => {
                let columns = plan.tiles.map_or(1, |(_, columns)| columns).max(1);
                let tiles = plan.tiles.map_or(0, |(rows, columns)| rows * columns);
                let mut run = Builder::default();
                run.marks("<|image_start|>");
                for (tile, features) in (0u32..).zip(views()) {
                    if tile < tiles {
                        run.marks(&format!("<|img_row_{}_col_{}|>", tile / columns + 1, tile % columns + 1));
                    } else if tiles > 0 {
                        run.marks("<|img_thumbnail|>");
                    }
                    run.features(features);
                }
                run.marks("<|image_end|>");
                run.segments
            }
            Run::Itself => vec![RunSegment::Placeholder],
        }
    }
}

/// Segments, of which neighbouring marks are one, because they are encoded together.
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
