//! The file of an image processor: which one it is, its fields, and the few of `config.json` that sizes depend on.

use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::{Map, Value};

use super::{Filter, Scaling};
use crate::error::{Error, Result};

/// Places of the configuration, the best first: a file, and the object within it. Those for videos have the same
/// patches and other sizes.
const PLACES: [(&str, Option<&str>); 4] = [
    ("preprocessor_config.json", None),
    ("processor_config.json", Some("image_processor")),
    ("video_preprocessor_config.json", None),
    ("processor_config.json", Some("video_processor")),
];

/// No such file is longer.
const MAX_BYTES: u64 = 1 << 20;

/// Half of 256 steps.
pub(crate) const HALF: [f64; 3] = [0.5; 3];
/// Mean and standard deviation of CLIP.
pub(crate) const CLIP: ([f64; 3], [f64; 3]) = (
    [0.481_454_66, 0.457_827_5, 0.408_210_73],
    [0.268_629_54, 0.261_302_58, 0.275_777_11],
);
/// Mean and deviation of ImageNet.
pub(crate) const IMAGENET: ([f64; 3], [f64; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// The configuration of a model's image processor as its files have it, each field looked at when it is asked for.
/// `null` means absent everywhere.
pub(crate) struct ProcessorConfig {
    fields: Map<String, Value>,
    config: Value,
}

impl ProcessorConfig {
    /// Reads them from the first place that has some.
    /// Without one, none of them is read unless the family needs no file.
    pub(crate) fn read(folder: &Path, config: &Value, needs_no_file: bool) -> Result<Option<Self>> {
        for (place, (file, part)) in PLACES.into_iter().enumerate() {
            let Some(mut fields) = object(folder, file, part)? else {
                continue;
            };
            // A text model may have a file that only names its tokenizer.
            if ![
                "image_processor_type",
                "feature_extractor_type",
                "image_mean",
                "patch_size",
                "size",
                "video_processor_type",
            ]
            .iter()
            .any(|field| fields.get(*field).is_some_and(|value| !value.is_null()))
            {
                continue;
            }
            if place >= 2 {
                for field in ["size", "min_pixels", "max_pixels"] {
                    fields.remove(field);
                }
            }
            return Ok(Some(Self {
                fields,
                config: config.clone(),
            }));
        }
        Ok(needs_no_file.then(|| Self {
            fields: Map::new(),
            config: config.clone(),
        }))
    }

    /// The processor's name without what says how it is computed, such as `Qwen2VLImageProcessor`.
    pub(crate) fn name(&self) -> Option<&str> {
        let name = ["image_processor_type", "feature_extractor_type", "video_processor_type"]
            .iter()
            .find_map(|field| self.get(field)?.as_str())?;
        Some(
            ["Fast", "Pil"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .unwrap_or(name),
        )
    }

    fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// A whole number within limits.
    pub(crate) fn number(&self, field: &'static str, default: u32, limits: RangeInclusive<u32>) -> Result<u32> {
        self.get(field).map_or(Ok(default), |value| whole(field, value, limits))
    }

    /// A number with a fraction within limits.
    pub(crate) fn fraction(&self, field: &'static str, default: f64, limits: RangeInclusive<f64>) -> Result<f64> {
        match self.get(field) {
            None => Ok(default),
            Some(value) => value
                .as_f64()
                .filter(|number| limits.contains(number))
                .ok_or_else(|| unusable(field, value)),
        }
    }

    /// A word.
    pub(crate) fn text(&self, field: &'static str) -> Result<Option<&str>> {
        match self.get(field) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| unusable(field, value)),
        }
    }

    pub(crate) fn flag(&self, field: &'static str, default: bool) -> Result<bool> {
        match self.get(field) {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| unusable(field, value)),
        }
    }

    /// A number of an object such as `size`; the first of the names that is there.
    pub(crate) fn within(
        &self,
        field: &'static str,
        names: &[&str],
        limits: RangeInclusive<u32>,
    ) -> Result<Option<u32>> {
        let found = names
            .iter()
            .find_map(|name| self.get(field)?.get(name).filter(|value| !value.is_null()));
        found.map(|value| whole(field, value, limits)).transpose()
    }

    /// Width and height of a field that is one number, or an object with both.
    pub(crate) fn sides(&self, field: &'static str, default: u32, limits: RangeInclusive<u32>) -> Result<(u32, u32)> {
        if let Some(value) = self.get(field).filter(|value| value.is_number()) {
            let side = whole(field, value, limits)?;
            return Ok((side, side));
        }
        let width = self.within(field, &["width"], limits.clone())?;
        let height = self.within(field, &["height"], limits)?;
        Ok((width.unwrap_or(default), height.unwrap_or(default)))
    }

    /// A field that is one number, or the shortest edge of an object.
    pub(crate) fn shortest_edge(&self, field: &'static str, limits: RangeInclusive<u32>) -> Result<Option<u32>> {
        match self.get(field).filter(|value| value.is_number()) {
            Some(value) => whole(field, value, limits).map(Some),
            None => self.within(field, &["shortest_edge"], limits),
        }
    }

    /// A list of two whole numbers.
    pub(crate) fn pair(
        &self,
        field: &'static str,
        default: (u32, u32),
        limits: RangeInclusive<u32>,
    ) -> Result<(u32, u32)> {
        let Some(value) = self.get(field) else {
            return Ok(default);
        };
        match value.as_array().map(Vec::as_slice) {
            Some([first, second]) => Ok((whole(field, first, limits.clone())?, whole(field, second, limits)?)),
            _ => Err(unusable(field, value)),
        }
    }

    /// A list of pairs of whole numbers, at most `most`.
    pub(crate) fn pairs(
        &self,
        field: &'static str,
        most: usize,
        limits: RangeInclusive<u32>,
    ) -> Result<Option<Vec<(u32, u32)>>> {
        pairs(field, self.get(field), most, limits)
    }

    /// The same of `config.json`.
    pub(crate) fn model_pairs(
        &self,
        field: &'static str,
        most: usize,
        limits: RangeInclusive<u32>,
    ) -> Result<Option<Vec<(u32, u32)>>> {
        let value = self.config.get(field).filter(|value| !value.is_null());
        pairs(field, value, most, limits)
    }

    /// A whole number of `config.json`, at the first of these paths that has one; a list counts as its first number.
    pub(crate) fn model_number(
        &self,
        paths: &[&'static str],
        default: u32,
        limits: RangeInclusive<u32>,
    ) -> Result<u32> {
        for path in paths {
            let found = path.split('.').try_fold(&self.config, |value, part| value.get(part));
            match found.map(|value| value.get(0).unwrap_or(value)) {
                None | Some(Value::Null) => {}
                Some(value) => return whole(path, value, limits),
            }
        }
        Ok(default)
    }

    /// A word of `config.json`.
    pub(crate) fn model_text(&self, field: &'static str) -> Result<Option<&str>> {
        match self.config.get(field).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or_else(|| unusable(field, value)),
        }
    }

    /// A number with a fraction of `config.json`.
    pub(crate) fn model_fraction(&self, field: &'static str, default: f64, limits: RangeInclusive<f64>) -> Result<f64> {
        match self.config.get(field).filter(|value| !value.is_null()) {
            None => Ok(default),
            Some(value) => value
                .as_f64()
                .filter(|number| limits.contains(number))
                .ok_or_else(|| unusable(field, value)),
        }
    }

    /// The filter, which files name by Pillow's numbers.
    pub(crate) fn filter(&self, default: Filter) -> Result<Filter> {
        match self.get("resample") {
            None => Ok(default),
            Some(value) => match value.as_u64() {
                Some(1) => Ok(Filter::Lanczos),
                Some(2) => Ok(Filter::Bilinear),
                Some(3) => Ok(Filter::Bicubic),
                Some(4) => Ok(Filter::Box),
                Some(5) => Ok(Filter::Hamming),
                _ => Err(unusable("resample", value)),
            },
        }
    }

    /// The scaling of pixel values; by default 1/255, then this mean and standard deviation.
    pub(crate) fn scaling(&self, default: Option<([f64; 3], [f64; 3])>) -> Result<Scaling> {
        let factor = self.fraction("rescale_factor", 1.0 / 255.0, f64::MIN_POSITIVE..=1e6)?;
        let (mean, std) = default.unwrap_or((HALF, HALF));
        // NVIDIA's processors have names of their own.
        let named = |usual, other| if self.get(usual).is_none() { other } else { usual };
        let mean = self.colours(named("image_mean", "norm_mean"), mean)?;
        let std = self.colours(named("image_std", "norm_std"), std)?;
        if std.iter().any(|value| value.abs() < 1e-6) {
            return Err(Error::InvalidProcessor {
                field: "image_std",
                reason: "it is 0".into(),
            });
        }
        Ok(Scaling {
            factor: self.flag("do_rescale", true)?.then_some(factor),
            normalization: self.flag("do_normalize", default.is_some())?.then_some((mean, std)),
        })
    }

    fn colours(&self, field: &'static str, default: [f64; 3]) -> Result<[f32; 3]> {
        let Some(value) = self.get(field) else {
            return Ok(default.map(|number| number as f32));
        };
        let numbers: Option<Vec<f64>> = match value {
            Value::Array(items) => items.iter().map(Value::as_f64).collect(),
            one => one.as_f64().map(|number| vec![number; 3]),
        };
        let numbers = numbers.filter(|numbers| numbers.iter().all(|number| number.abs() <= 1e6));
        let numbers: Option<[f64; 3]> = numbers.and_then(|numbers| numbers.try_into().ok());
        numbers
            .map(|numbers| numbers.map(|number| number as f32))
            .ok_or_else(|| unusable(field, value))
    }
}

/// A list of pairs of whole numbers, at most `most`.
fn pairs(
    field: &'static str,
    value: Option<&Value>,
    most: usize,
    limits: RangeInclusive<u32>,
) -> Result<Option<Vec<(u32, u32)>>> {
    let Some(value) = value else {
        return Ok(None);
    };
    let pair = |pair: &Value| match pair.as_array().map(Vec::as_slice) {
        Some([first, second]) => Ok((
            whole(field, first, limits.clone())?,
            whole(field, second, limits.clone())?,
        )),
        _ => Err(unusable(field, value)),
    };
    match value.as_array() {
        Some(pairs) if (1..=most).contains(&pairs.len()) => pairs.iter().map(pair).collect::<Result<_>>().map(Some),
        _ => Err(unusable(field, value)),
    }
}

fn whole(field: &'static str, value: &Value, limits: RangeInclusive<u32>) -> Result<u32> {
    let number = value
        .as_f64()
        .filter(|number| number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number));
    number
        .map(|number| number as u32)
        .filter(|number| limits.contains(number))
        .ok_or_else(|| unusable(field, value))
}

fn unusable(field: &'static str, value: &Value) -> Error {
    let mut shown = value.to_string();
    if shown.len() > 40 {
        shown = shown.chars().take(40).chain(['…']).collect();
    }
    Error::InvalidProcessor {
        field,
        reason: format!("{shown} is none that fits"),
    }
}

/// The JSON object of a file, or of a part of it.
fn object(folder: &Path, file: &'static str, part: Option<&str>) -> Result<Option<Map<String, Value>>> {
    let path = folder.join(file);
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Ok(metadata) if metadata.len() > MAX_BYTES => {
            return Err(Error::InvalidProcessor {
                field: file,
                reason: "the file is too long".into(),
            })
        }
        _ => {}
    }
    let json = std::fs::read_to_string(&path).map_err(|source| Error::Unreadable { path, source })?;
    let broken = |reason: String| Error::InvalidProcessor { field: file, reason };
    let value: Value = serde_json::from_str(&json).map_err(|error| broken(error.to_string()))?;
    let value = match part {
        None => Some(value),
        Some(part) => value.get(part).filter(|value| !value.is_null()).cloned(),
    };
    match value {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(broken("it is not a JSON object".into())),
    }
}
