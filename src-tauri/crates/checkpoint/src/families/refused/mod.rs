//! Models that people look for and that are not run: they are refused by their names before a byte of weights is
//! downloaded, and told what else does the same. A test compares the lists with the models of mlx-lm and mlx-vlm.

mod not_yet;
mod other_work;

use crate::error::Error;

/// A model as its makers call it, and every `model_type` it goes by.
type Model = (&'static str, &'static [&'static str]);

/// Models that Ponder is for, and what does the same here.
const NOT_YET: &[(&[Model], &str)] = &[
    (not_yet::TEXT, "Qwen 3.5, Gemma 4 and gpt-oss answer here"),
    (not_yet::VISION, "Qwen3-VL, SmolVLM and Gemma 4 read images here"),
    (
        not_yet::EMBEDDINGS,
        "Qwen3 Embedding, EmbeddingGemma and BERT do that here",
    ),
    (not_yet::DRAFTS, "the model that it belongs to runs without it"),
];

/// Models for other purposes, and what they do.
const OTHER_WORK: &[(&[Model], &str)] = &[
    (other_work::MAKES_IMAGES, "makes images"),
    (other_work::MAKES_VIDEO, "makes videos"),
    (other_work::FINDS_OBJECTS, "marks objects in images"),
    (other_work::MEASURES_IMAGES, "measures images"),
    (other_work::DECIDES, "labels texts"),
    (other_work::SPEAKS, "hears or speaks"),
];

fn find(lists: &[(&[Model], &'static str)], model_type: &str) -> Option<(&'static str, &'static str)> {
    lists.iter().find_map(|(models, about)| {
        let (name, _) = models.iter().find(|(_, types)| types.contains(&model_type))?;
        Some((*name, *about))
    })
}

/// The reason why a model of this type does not run, if it is one of these.
pub(super) fn refused(model_type: &str) -> Option<Error> {
    let not_yet = || find(NOT_YET, model_type).map(|(model, instead)| Error::NotYet { model, instead });
    let other_work = || find(OTHER_WORK, model_type).map(|(model, work)| Error::OtherWork { model, work });
    not_yet().or_else(other_work)
}

/// A model that is refused by its name, for lists of them.
#[derive(Debug, Clone, Copy)]
pub struct RefusedModel {
    /// The model, as its makers call it.
    pub name: &'static str,
    /// The `model_type`s of config.json that go by it.
    pub model_types: &'static [&'static str],
    /// The purpose of a model that Ponder is not for, as a verb and its object; `None` for one that it does not run yet.
    pub other_work: Option<&'static str>,
}

/// Every model that is refused by its name.
pub fn refused_models() -> impl Iterator<Item = RefusedModel> {
    let not_yet = NOT_YET.iter().map(|(models, _)| (*models, None));
    let other_work = OTHER_WORK.iter().map(|(models, work)| (*models, Some(*work)));
    not_yet.chain(other_work).flat_map(|(models, other_work)| {
        models.iter().map(move |(name, model_types)| RefusedModel {
            name,
            model_types,
            other_work,
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::KNOWN_MODEL_TYPES;
    use super::{find, refused_models, NOT_YET, OTHER_WORK};
    use crate::{check_compatibility, FileListing, ModelConfig};
    use protocol::{ErrorCode, ModelKind, Reason};

    fn types() -> impl Iterator<Item = &'static str> {
        refused_models().flat_map(|model| model.model_types).copied()
    }

    #[test]
    fn a_model_that_is_not_run_is_refused_by_its_name() {
        for model_type in types() {
            assert!(!KNOWN_MODEL_TYPES.contains(&model_type), "{model_type} runs");
            // As its repository has it, with code of its own, which is not the reason.
            let config = format!(r#"{{"model_type": "{model_type}", "auto_map": {{"AutoModel": "modeling.Model"}}}}"#);
            let listing = FileListing {
                config: &config,
                tokenizer_config: None,
                files: &[],
                card: ModelKind::Chat,
            };
            let error = protocol::Error::from(check_compatibility(&listing).unwrap_err());
            assert_eq!(error.code, ErrorCode::ModelUnsupported);
            let (reason, (name, about)) = match find(NOT_YET, model_type) {
                Some(found) => (Reason::ModelFamily, found),
                None => (Reason::ModelTask, find(OTHER_WORK, model_type).unwrap()),
            };
            assert_eq!(error.reason, Some(reason), "{model_type}");
            assert!(
                error.message.contains(name) && error.message.contains(about),
                "{}",
                error.message
            );
            assert!(ModelConfig::parse(&config).is_err());
        }
    }

    #[test]
    fn every_type_is_refused_for_one_reason() {
        let mut all: Vec<_> = types().collect();
        all.sort_unstable();
        let twice = all.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None);
    }
}
