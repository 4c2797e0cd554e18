//! Images in a prompt. A chat template writes one placeholder for each; here it becomes the run of tokens that the
//! model's family has for an image of that plan: a token for each feature, and marks around and between them.
//!
//! This happens on ids. The marks of a run are control tokens, and text of the user is escaped before it is
//! encoded, so that a placeholder which the user spells stays text.

use std::collections::HashMap;

use checkpoint::{image_prompt, ImagePlan, ImagePrompt, ImageRun, RunSegment};
use protocol::{Content, Message};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::prompt::{ImageSpan, Prompt};
use crate::template::{ContentFormat, Template};
use crate::tokenizer::Tokenizer;

/// The types of parts that templates know as images; some know the second one alone (ERNIE 4.5 VL).
const PARTS: [&str; 2] = ["image", "image_url"];

/// The image tokens of a model: its family's row, with the ids of this tokenizer.
#[derive(Debug)]
pub(crate) struct ImageTokens {
    family: &'static ImagePrompt,
    /// The token that is replaced.
    placeholder: u32,
    /// The token that takes a feature, as it is spelled.
    feature: String,
    feature_id: u32,
    /// The marks around a run, if the family has any.
    marks: [String; 2],
    /// The type of parts for which the template writes the placeholder of an image.
    part: Option<&'static str>,
}

impl ImageTokens {
    /// The control tokens that a family of this `config.json` has for images, as they are spelled, so that they count
    /// as such in a tokenizer that does not say so.
    pub fn spelled(config: &Value) -> Vec<&'static str> {
        image_prompt(config).map(|family| family.spelled()).unwrap_or_default()
    }

    /// The placeholder that is added to tokenizers without it.
    pub fn added(config: &Value) -> Option<&'static str> {
        let family = image_prompt(config)?;
        family.added.then_some(family.placeholder)
    }

    /// A template for models of families that have none of their own.
    pub fn template(config: &Value) -> Option<&'static str> {
        image_prompt(config)?.template
    }

    /// Of the model with this `config.json`; `None` if its family sees no images or its tokenizer has no tokens for
    /// them.
    pub fn of(config: &Value, tokenizer: &Tokenizer, template: &Template) -> Option<Self> {
        let family = image_prompt(config)?;
        // The config goes before the defaults of the family.
        let named = |keys: &[&str], usual: &str| {
            let ids = keys
                .iter()
                .filter_map(|key| u32::try_from(config.get(*key)?.as_u64()?).ok());
            let mut spelled = ids
                .filter(|id| tokenizer.is_control(*id))
                .filter_map(|id| tokenizer.content(id));
            spelled.next().unwrap_or_else(|| usual.to_owned())
        };
        let feature = match family.run {
            // The config names their placeholder.
            ImageRun::Grids { .. } => family.feature.to_owned(),
            _ => named(&["image_token_id", "image_token_index", "img_id"], family.feature),
        };
        let (open, close) = family.marks();
        let registers =
            ["cls", "reg_1", "reg_2", "reg_3", "reg_4"].map(|register| format!("image_{register}_token_id"));
        let registers: String = registers.iter().map(|key| named(&[key.as_str()], "")).collect();
        let open = if registers.is_empty() { open } else { registers.as_str() };
        let tokens = Self {
            family,
            placeholder: tokenizer.id(family.placeholder)?,
            // One that was added may lie after those that the model embeds. Any other one takes a feature as well.
            feature_id: if family.added { 0 } else { tokenizer.id(&feature)? },
            feature,
            marks: [
                named(&["boi_token_id", "boi_token_index"], open),
                named(&["eoi_token_id", "eoi_token_index", "img_end_id"], close),
            ],
            part: None,
        };
        Some(Self {
            part: PARTS.into_iter().find(|part| tokens.writes(part, template)),
            ..tokens
        })
    }

    /// True if the template writes exactly one placeholder for an image part of this type, and none without one.
    fn writes(&self, part: &str, template: &Template) -> bool {
        let written = |content: Value| {
            let variables = serde_json::json!({
                "messages": [{"role": "user", "content": content}], "tools": null, "documents": null, "add_generation_prompt": true,
            });
            let text = self.shortened(template.render(variables.as_object()?.clone()).ok()?);
            text.contains("Quokka")
                .then(|| text.matches(self.family.placeholder).count())
        };
        let words = serde_json::json!({"type": "text", "text": "Quokka"});
        written(serde_json::json!([{"type": part}, words])) == Some(1)
            && written(serde_json::json!([words])).unwrap_or(0) == 0
    }

    /// A rendered text with the placeholder in place of other texts that stand for an image.
    fn shortened(&self, text: String) -> String {
        let others = self.family.also_written.iter();
        others.fold(text, |text, other| text.replace(other, self.family.placeholder))
    }

    /// How the content of a conversation that holds these texts is given to the template.
    pub fn content_format<'a>(
        &self,
        messages: &[Message],
        texts: impl IntoIterator<Item = &'a str> + Clone,
    ) -> ContentFormat {
        match self.part.filter(|_| !messages.iter().any(result_with_image)) {
            Some(part) => ContentFormat::Parts(part),
            None => ContentFormat::Inline(Tokenizer::marker_for(texts)),
        }
    }

    /// A rendered conversation as it is encoded: with placeholders for what stands for images, and with what belongs
    /// around them before anything is encoded, because it is joined with the words next to it.
    pub fn write(&self, text: String, format: ContentFormat) -> String {
        let text = match format {
            ContentFormat::Inline(marker) => text.replace(marker, self.family.written),
            ContentFormat::Parts(_) => self.shortened(text),
        };
        let text = match self.family.first {
            true => {
                let placeholder = self.family.placeholder;
                let images = text.matches(placeholder).count();
                placeholder.repeat(images) + &text.replace(placeholder, "")
            }
            false => text,
        };
        let text = match self.family.spaced {
            true => self.spaced(&text),
            false => text,
        };
        match self.family.around {
            "" => text,
            around => text.replace(
                self.family.placeholder,
                &format!("{around}{}{around}", self.family.placeholder),
            ),
        }
    }

    /// A text with a space between each placeholder and a word right after it.
    fn spaced(&self, text: &str) -> String {
        let placeholder = self.family.placeholder;
        let mut parts = text.split(placeholder);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            whole.push_str(placeholder);
            if part.starts_with(|first: char| !first.is_whitespace() && first != '<') {
                whole.push(' ');
            }
            whole.push_str(part);
        }
        whole
    }

    /// Widens a prompt: each placeholder becomes the run of its image.
    ///
    /// # Errors
    /// If there are not as many placeholders as images, or more of them than the family takes.
    pub fn widen(&self, tokenizer: &Tokenizer, prompt: Prompt, plans: &[ImagePlan]) -> Result<Prompt> {
        let placeholders = prompt.ids.iter().filter(|id| **id == self.placeholder).count();
        if placeholders != plans.len() {
            return Err(Error::ImageCount {
                images: plans.len(),
                placeholders,
            });
        }
        let images = plans.len();
        if let Some(most) = self.family.most.filter(|most| images > *most) {
            return Err(Error::TooManyImages { images, most });
        }
        let features: usize = plans.iter().map(ImagePlan::tokens).sum();
        let mut ids = Vec::with_capacity(prompt.ids.len() + features);
        let (mut images, mut known) = (Vec::with_capacity(plans.len()), HashMap::new());
        for id in prompt.ids {
            if id != self.placeholder {
                ids.push(id);
                continue;
            }
            let image = images.len();
            let (start, mut spans) = (ids.len(), Vec::new());
            let after_another = images.last().is_some_and(|span: &ImageSpan| span.range.end == start);
            let shared = usize::from(self.family.spaced && after_another);
            for segment in self
                .family
                .segments(image, &plans[image], &self.marks)
                .into_iter()
                .skip(shared)
            {
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

    /// The ids of a prompt with one placeholder for each image, as they were before they were widened.
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

/// True for the result of a tool with an image: few templates take a list of parts there.
fn result_with_image(message: &Message) -> bool {
    message.role == protocol::Role::Tool && message.content.iter().any(|part| matches!(part, Content::Image { .. }))
}

/// The offset in a prompt's ids of a place in its narrow ids. A place is never inside an image.
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
