//! Wrappers that put a tower beside a language part of one of several types.

use super::parse;
use super::source::Source;
use crate::config::Family;
use crate::error::Error;

/// The language part, whose own `model_type` tells how it is read; Llama if it is silent.
pub(super) fn by_language_part(source: Source<'_>) -> Result<Family, Error> {
    let wrapper = source.top.text("model_type")?;
    match source.text.text("model_type")? {
        Some(model_type) if wrapper.as_ref() == Some(&model_type) => Err(Error::MissingField("text_config")),
        Some(model_type) => parse(&model_type, source),
        None => parse("llama", source),
    }
}
