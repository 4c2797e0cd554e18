//! Texts that end an answer where they first appear in it.

/// Watches a stream of text for stop texts. The match that ends first counts, and of those the longest, so that the
/// result does not depend on how the text was cut into pieces.
#[derive(Debug, Clone)]
pub(super) struct StopStrings {
    texts: Vec<String>,
    /// The end of the text so far that may be the beginning of a stop text.
    held: String,
    /// The stop text that has appeared, among `texts`.
    matched: Option<usize>,
}

impl StopStrings {
    pub(super) fn new(texts: &[String]) -> Self {
        Self {
            texts: texts.iter().filter(|text| !text.is_empty()).cloned().collect(),
            held: String::new(),
            matched: None,
        }
    }

    /// True if there are no stop strings.
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// True once a stop string has appeared; all further text is dropped.
    pub(super) fn matched(&self) -> bool {
        self.matched.is_some()
    }

    /// The stop text that has appeared.
    pub(super) fn found(&self) -> Option<&str> {
        self.matched.map(|index| self.texts[index].as_str())
    }

    /// The text that is safe to show.
    pub(super) fn push(&mut self, piece: &str) -> String {
        if self.matched() {
            return String::new();
        }
        let mut text = std::mem::take(&mut self.held);
        let known = text.len();
        text.push_str(piece);
        let ends = text
            .char_indices()
            .map(|(at, c)| at + c.len_utf8())
            .filter(|end| *end > known);
        for end in ends {
            let ending = self.texts.iter().enumerate();
            let ending = ending.filter(|(_, stop)| text[..end].ends_with(stop.as_str()));
            if let Some((index, stop)) = ending.max_by_key(|(_, stop)| stop.len()) {
                self.matched = Some(index);
                text.truncate(end - stop.len());
                return text;
            }
        }
        let begins_a_stop = |at: &usize| self.texts.iter().any(|stop| stop.starts_with(&text[*at..]));
        if let Some(at) = text.char_indices().map(|(at, _)| at).find(begins_a_stop) {
            self.held = text.split_off(at);
        }
        text
    }

    /// The text held back, which is no stop string.
    pub(super) fn flush(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one_shot(text: &str, stops: &[String]) -> String {
        let first_end = (1..=text.len()).find(|end| stops.iter().any(|stop| text[..*end].ends_with(stop.as_str())));
        let cut = first_end.map(|end| {
            end - stops
                .iter()
                .filter(|stop| text[..end].ends_with(stop.as_str()))
                .map(String::len)
                .max()
                .unwrap()
        });
        text[..cut.unwrap_or(text.len())].to_owned()
    }

    proptest! {
        #[test]
        fn the_cut_does_not_depend_on_the_pieces(pieces in prop::collection::vec("[ab]{0,3}", 0..8), stops in prop::collection::vec("[ab]{1,4}", 0..3)) {
            let mut watch = StopStrings::new(&stops);
            let mut shown: String = pieces.iter().map(|piece| watch.push(piece)).collect();
            shown.push_str(&watch.flush());
            prop_assert_eq!(shown, one_shot(&pieces.concat(), &stops));
        }
    }

    #[test]
    fn only_the_beginning_of_a_stop_is_held() {
        let mut watch = StopStrings::new(&["END".into(), String::new()]);
        assert_eq!(watch.push("ab E"), "ab ");
        assert_eq!(watch.push("N"), "");
        assert_eq!(watch.push("x"), "ENx");
        assert_eq!(watch.push("ü END and"), "ü ");
        assert!(watch.matched());
        assert_eq!(watch.push("more"), "");
    }
}
