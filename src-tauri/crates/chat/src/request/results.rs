//! The results of tools as a model is given them: cut to a part of its context, with images if it sees them.

use protocol::{cut_result, Content};

/// A longer result may have to be cut, whatever the model.
pub(super) const SURELY_FITS: usize = protocol::limits::LEAST_CONTEXT as usize / 2;

/// How a model is given the results of tools.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Results {
    /// Bytes of a result at most.
    pub(crate) most: usize,
    /// Its images are given, too; a line stands for each otherwise.
    pub(crate) images: bool,
}

impl Results {
    /// The content of a result for the model: always the same for the same result, so that prompts begin alike.
    pub(super) fn given(self, result: impl Iterator<Item = Content>) -> Vec<Content> {
        let (mut words, mut images) = (Vec::new(), Vec::new());
        for part in result {
            match (&part, part.as_text()) {
                (Content::Image { .. }, _) if self.images => images.push(part),
                (Content::Image { .. }, Some(line)) => {
                    let gap = if words.is_empty() { "" } else { "\n" };
                    Content::push(&mut words, Content::text(format!("{gap}{line}")));
                }
                _ => Content::push(&mut words, part),
            }
        }
        let texts: Vec<_> = words.iter().filter_map(Content::as_text).collect();
        if texts.iter().map(|text| text.len()).sum::<usize>() > self.most {
            words = vec![Content::text(cut_result(texts.concat(), self.most))];
        }
        words.extend(images);
        words
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn image(alt: &str) -> Content {
        Content::Image {
            attachment: "1".into(),
            media_type: "image/png".into(),
            width: 2,
            height: 2,
            alt: alt.into(),
        }
    }

    fn given(most: usize, images: bool, result: &[Content]) -> Vec<Content> {
        Results { most, images }.given(result.iter().cloned())
    }

    #[test]
    fn images_are_for_models_that_see_and_lines_for_others() {
        let result = [Content::text("A map."), image("map.png"), image("")];
        let seen = [Content::text("A map."), image("map.png"), image("")];
        assert_eq!(given(100, true, &result), seen);
        let told = [Content::text("A map.\n[image: map.png]\n[image]")];
        assert_eq!(given(100, false, &result), told);
        assert_eq!(given(100, false, &result[1..2]), [Content::text("[image: map.png]")]);
    }

    #[test]
    fn a_long_result_is_cut_whatever_it_consists_of() {
        let long = "x".repeat(3000);
        for result in [
            vec![Content::text(&long)],
            vec![Content::Data {
                data: json!({ "long": long }),
            }],
            vec![Content::text(&long), image(""), Content::text(&long)],
        ] {
            let cut = given(1000, true, &result);
            let text = cut[0].as_text().unwrap();
            assert!(text.len() <= 1000 && text.contains("[cut: "), "{text}");
            assert_eq!(cut.len(), result.iter().filter(|part| part.is_media()).count() + 1);
            assert_eq!(cut, given(1000, true, &result));
        }
        // Data that fits stays data, which some templates write in their own way.
        let data = Content::Data {
            data: json!({ "a": 1 }),
        };
        assert_eq!(given(1000, true, std::slice::from_ref(&data)), [data]);
    }
}
