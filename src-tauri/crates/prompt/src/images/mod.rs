//! Pictures in a prompt. A chat template writes one placeholder for each; here it becomes the run of tokens that the model's family has for a
//! picture of that plan: a token for each feature, and marks around and between them.
//!
//! This happens on ids. The marks of a run are control tokens, and whatever somebody types is broken up before it is encoded, so that a
//! placeholder which a person spells stays text.

mod families;

use std::collections::HashMap;
use std::ops::Range;

use checkpoint::ImagePlan;
use protocol::{Content, Message};
use serde_json::Value;

use crate::{Error, Prompt, Result, Template, Tokenizer};
use families::{Family, RunSegment};

/// Where a picture stands in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSpan {
    /// Its whole run of ids, the marks of the run included.
    pub range: Range<usize>,
    /// The ids in it that take features, in the order of the features. None if the model looks at them beside its prompt.
    pub features: Vec<Range<usize>>,
    /// Which picture of the conversation it is, from 0.
    pub image: usize,
}

/// How the content of messages that hold pictures is given to a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentFormat {
    /// As a list of parts, of which the template writes the placeholders.
    Parts,
    /// As one text in which this character stands for a picture, for templates that know no parts. No message contains it.
    Inline(char),
}

/// How a model is shown pictures: its family's row, with the ids of this tokenizer.
#[derive(Debug)]
pub(crate) struct ImageTokens {
    family: &'static Family,
    /// What is replaced.
    placeholder: u32,
    /// What takes a feature, as it is spelled.
    feature: String,
    feature_id: u32,
    /// What begins and ends a run, if the family has such marks.
    marks: [String; 2],
    /// Whether the template writes the placeholder of a picture that is a part.
    knows_parts: bool,
}

impl ImageTokens {
    /// The control tokens that a family of this `config.json` has for pictures, as they are spelled, so that they count as such in a
    /// tokenizer that does not say so.
    pub fn spelled(config: &Value) -> Vec<&'static str> {
        Family::of(config).map(|family| family.spelled().to_vec()).unwrap_or_default()
    }

    /// A template for models of families that have none of their own.
    pub fn template(config: &Value) -> Option<&'static str> {
        Family::of(config)?.template
    }

    /// Of the model with this `config.json`; `None` if its family sees no pictures or its tokenizer has no tokens for them.
    pub fn of(config: &Value, tokenizer: &Tokenizer, template: &Template) -> Option<Self> {
        let family = Family::of(config)?;
        // What the file says counts more than how such models are usually made.
        let named = |keys: &[&str], usual: &str| {
            let ids = keys.iter().filter_map(|key| u32::try_from(config.get(*key)?.as_u64()?).ok());
            let mut spelled = ids.filter(|id| tokenizer.is_control(*id)).filter_map(|id| tokenizer.content(id));
            spelled.next().unwrap_or_else(|| usual.to_owned())
        };
        let feature = named(&["image_token_id", "image_token_index", "img_id"], family.feature);
        let (open, close) = family.marks();
        let registers = [
            "image_cls_token_id",
            "image_reg_1_token_id",
            "image_reg_2_token_id",
            "image_reg_3_token_id",
            "image_reg_4_token_id",
        ];
        let registers: String = registers.iter().map(|key| named(&[*key], "")).collect();
        let open = if registers.is_empty() { open } else { registers.as_str() };
        let tokens = Self {
            family,
            placeholder: tokenizer.id(family.placeholder)?,
            feature_id: tokenizer.id(&feature)?,
            feature,
            marks: [
                named(&["boi_token_id", "boi_token_index"], open),
                named(&["eoi_token_id", "eoi_token_index", "img_end_id"], close),
            ],
            knows_parts: false,
        };
        Some(Self {
            knows_parts: tokens.writes_parts(template),
            ..tokens
        })
    }

    /// Whether the template writes one placeholder for a part that is a picture.
    fn writes_parts(&self, template: &Template) -> bool {
        let content = serde_json::json!([{"type": "image"}, {"type": "text", "text": "Quokka"}]);
        let variables = serde_json::json!({
            "messages": [{"role": "user", "content": content}], "tools": null, "documents": null, "add_generation_prompt": true,
        });
        let rendered = variables.as_object().and_then(|variables| template.render(variables.clone()).ok());
        rendered.is_some_and(|text| text.contains("Quokka") && text.matches(self.family.placeholder).count() == 1)
    }

    /// How the content of a conversation that holds these texts is given to the template.
    pub fn content_format<'a>(&self, messages: &[Message], texts: impl IntoIterator<Item = &'a str> + Clone) -> ContentFormat {
        match self.knows_parts && !messages.iter().any(result_with_picture) {
            true => ContentFormat::Parts,
            false => ContentFormat::Inline(Tokenizer::marker_for(texts)),
        }
    }

    /// A rendered conversation as it is encoded: with placeholders for what stands for pictures, and with what belongs around them
    /// before anything is encoded, because it is joined with the words beside it.
    pub fn write(&self, text: String, format: ContentFormat) -> String {
        let text = match format {
            ContentFormat::Inline(marker) => text.replace(marker, self.family.written),
            ContentFormat::Parts => text,
        };
        match self.family.around {
            "" => text,
            around => text.replace(self.family.placeholder, &format!("{around}{}{around}", self.family.placeholder)),
        }
    }

    /// Widens a prompt: each placeholder becomes the run of its picture.
    ///
    /// # Errors
    /// If there are not as many placeholders as pictures, or more of them than the family takes.
    pub fn widen(&self, tokenizer: &Tokenizer, prompt: Prompt, plans: &[ImagePlan]) -> Result<Prompt> {
        let placeholders = prompt.ids.iter().filter(|id| **id == self.placeholder).count();
        if placeholders != plans.len() {
            return Err(Error::PictureCount {
                pictures: plans.len(),
                placeholders,
            });
        }
        if self.family.most.is_some_and(|most| plans.len() > most) {
            return Err(Error::TooManyPictures {
                pictures: plans.len(),
                most: self.family.most.unwrap_or_default(),
            });
        }
        let features: usize = plans.iter().map(ImagePlan::tokens).sum();
        let (mut ids, mut images) = (Vec::with_capacity(prompt.ids.len() + features), Vec::with_capacity(plans.len()));
        let mut known = HashMap::new();
        for id in prompt.ids {
            if id != self.placeholder {
                ids.push(id);
                continue;
            }
            let image = images.len();
            let (start, mut spans) = (ids.len(), Vec::new());
            for segment in self.family.run(&plans[image], &self.marks) {
                match segment {
                    RunSegment::Features(0) => {}
                    RunSegment::Features(count) => {
                        spans.push(ids.len()..ids.len() + count);
                        ids.extend(std::iter::repeat_n(self.feature_id, count));
                    }
                    RunSegment::Marks(text) => {
                        if !known.contains_key(&text) {
                            known.insert(text.clone(), self.encode(tokenizer, &text)?);
                        }
                        ids.extend(&known[&text]);
                    }
                    RunSegment::Placeholder => ids.push(self.placeholder),
                }
            }
            images.push(ImageSpan {
                range: start..ids.len(),
                features: spans,
                image,
            });
        }
        Ok(Prompt {
            text: prompt.text,
            ids,
            images,
        })
    }

    /// Marks as ids. They stand between features, so that is how they are encoded.
    fn encode(&self, tokenizer: &Tokenizer, marks: &str) -> Result<Vec<u32>> {
        let ids = tokenizer.encode_rendered(&format!("{0}{marks}{0}", self.feature), None)?;
        match ids.as_slice() {
            [first, inner @ .., last] if (*first, *last) == (self.feature_id, self.feature_id) => Ok(inner.to_vec()),
            _ => Err(Error::NoImageToken(self.feature.clone())),
        }
    }

    /// The ids of a prompt with one placeholder for each picture, as they were before they were widened.
    pub fn narrow(&self, prompt: &Prompt) -> Vec<u32> {
        let (mut ids, mut at) = (Vec::with_capacity(prompt.ids.len()), 0);
        for span in &prompt.images {
            ids.extend_from_slice(&prompt.ids[at..span.range.start]);
            ids.push(self.placeholder);
            at = span.range.end;
        }
        ids.extend_from_slice(&prompt.ids[at..]);
        ids
    }
}

/// A picture that a tool gave: few templates take a list of parts there.
fn result_with_picture(message: &Message) -> bool {
    message.role == protocol::Role::Tool && message.content.iter().any(|part| matches!(part, Content::Image { .. }))
}

/// How many ids of a prompt stand before a place that was found in its narrow ids. A place is never inside a picture.
pub(crate) fn widened(images: &[ImageSpan], narrow: usize) -> usize {
    let mut longer = 0;
    for span in images {
        if span.range.start - longer >= narrow {
            break;
        }
        longer += span.range.len() - 1;
    }
    narrow + longer
}
