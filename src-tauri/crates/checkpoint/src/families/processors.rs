//! The choice of an image processor, by the family and by the name in its file.

use std::path::Path;

use serde_json::Value;

use super::row::{ProcessorRow, VisionRow};
use super::{gemma3, vision_rows};
use crate::error::{Error, Result};
use crate::image_processor::{ImageProcessor, ProcessorConfig};

/// Processors that no family here has of its own.
const OTHERS: &[ProcessorRow] = &[ProcessorRow::new(&["Siglip"], gemma3::siglip_processor)];

impl ImageProcessor {
    /// Reads the image processor of a model's folder; `config` is its `config.json`. `None` if there is none, as in
    /// text models.
    ///
    /// # Errors
    /// A processor that is not known, or a number that no processor has.
    pub fn read(folder: &Path, config: &Value) -> Result<Option<Self>> {
        let model_type = config.get("model_type").and_then(Value::as_str).unwrap_or_default();
        let family = super::vision_row_of(config);
        let needs_no_file = family.is_some_and(|family| family.processor.fixed);
        match ProcessorConfig::read(folder, config, needs_no_file)? {
            Some(processor) => describe(&processor, model_type, family).map(Some),
            None => Ok(None),
        }
    }
}

fn describe(processor: &ProcessorConfig, model_type: &str, family: Option<&VisionRow>) -> Result<ImageProcessor> {
    let own = family.map(|family| &family.processor);
    let row = match (own, processor.name()) {
        (Some(own), _) if own.always => own,
        (_, Some(name)) => named(name).ok_or_else(|| Error::UnknownProcessor(name.to_owned()))?,
        (own, None) => own.ok_or_else(|| Error::UnknownProcessor(format!("the processor of {model_type}")))?,
    };
    (row.describe)(processor)
}

/// The processor of this name.
fn named(name: &str) -> Option<&'static ProcessorRow> {
    let ends = ["VideoProcessor", "ImageProcessor"];
    let short = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let mut rows = vision_rows().map(|family| &family.processor).chain(OTHERS);
    rows.find(|row| row.names.contains(&short))
}
