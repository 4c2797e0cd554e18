//! The row of a family: all that its name decides.

use protocol::ModelKind;

use super::source::Source;
use super::vision::VisionConfig;
use crate::config::{Family, Fields};
use crate::error::Error;
use crate::image_processor::{ImageProcessor, ProcessorConfig};
use crate::image_prompt::ImagePrompt;

/// A family: a parser of its text part, and how it sees.
pub(super) struct FamilyRow {
    /// The models, as their makers call them.
    pub name: &'static str,
    /// The `model_type`s of config.json that go by it.
    pub model_types: &'static [&'static str],
    /// Reads the text part.
    pub text: fn(Source<'_>) -> Result<Family, Error>,
    pub vision: Option<VisionRow>,
    pub kind: ModelKind,
}

/// The part of a family that reads images.
pub(super) struct VisionRow {
    /// Reads `vision_config`; the second argument is the whole file.
    pub encoder: fn(Fields<'_>, Fields<'_>) -> Result<VisionConfig, Error>,
    pub processor: ProcessorRow,
    pub prompt: ImagePrompt,
}

/// An image processor.
pub(super) struct ProcessorRow {
    /// Its names in `preprocessor_config.json`, without `ImageProcessor` or `VideoProcessor`.
    pub names: &'static [&'static str],
    /// Reads its file; defaults are those of transformers.
    pub describe: fn(&ProcessorConfig) -> Result<ImageProcessor, Error>,
    /// True if repositories of the family name another processor, or none.
    pub always: bool,
    /// True if its numbers are fixed: there is no `vision_config` and no file of a processor.
    pub fixed: bool,
}

impl FamilyRow {
    /// A family that reads text alone.
    pub(super) const fn text(
        name: &'static str,
        model_types: &'static [&'static str],
        text: fn(Source<'_>) -> Result<Family, Error>,
    ) -> Self {
        Self {
            name,
            model_types,
            text,
            vision: None,
            kind: ModelKind::Chat,
        }
    }

    /// A family that reads images too.
    pub(super) const fn vision(
        name: &'static str,
        model_types: &'static [&'static str],
        text: fn(Source<'_>) -> Result<Family, Error>,
        vision: VisionRow,
    ) -> Self {
        Self {
            vision: Some(vision),
            ..Self::text(name, model_types, text)
        }
    }

    /// A family whose models generate nothing.
    pub(super) const fn embedding(
        name: &'static str,
        model_types: &'static [&'static str],
        text: fn(Source<'_>) -> Result<Family, Error>,
    ) -> Self {
        Self {
            kind: ModelKind::Embedding,
            ..Self::text(name, model_types, text)
        }
    }

    /// A family of heads that draft for other models.
    pub(super) const fn draft(
        name: &'static str,
        model_types: &'static [&'static str],
        text: fn(Source<'_>) -> Result<Family, Error>,
    ) -> Self {
        Self {
            kind: ModelKind::Draft,
            ..Self::text(name, model_types, text)
        }
    }
}

impl ProcessorRow {
    pub(super) const fn new(
        names: &'static [&'static str],
        describe: fn(&ProcessorConfig) -> Result<ImageProcessor, Error>,
    ) -> Self {
        Self {
            names,
            describe,
            always: false,
            fixed: false,
        }
    }

    /// For families whose repositories name another processor, or none.
    pub(super) const fn always(
        names: &'static [&'static str],
        describe: fn(&ProcessorConfig) -> Result<ImageProcessor, Error>,
    ) -> Self {
        Self {
            always: true,
            ..Self::new(names, describe)
        }
    }

    /// For a family whose repositories have no file of a processor.
    pub(super) const fn fixed(
        names: &'static [&'static str],
        describe: fn(&ProcessorConfig) -> Result<ImageProcessor, Error>,
    ) -> Self {
        Self {
            fixed: true,
            ..Self::always(names, describe)
        }
    }
}
