//! A model's card: the README of its repository, as Markdown.
//!
//! The window renders it without running anything in it and without fetching its images: the address of an image would
//! tell its host that somebody looks at this model.

use net::Purpose;

use crate::cache::FilePath;
use crate::error::Error;
use crate::huggingface::hub_api::HubApi;
use crate::huggingface::summary::HubSummary;

/// Limit of a card, in bytes.
const LARGEST_CARD: u64 = 1 << 20;

/// The card of a model without its front matter; empty if it has none.
pub(crate) async fn fetch_card(api: &HubApi, summary: &HubSummary) -> Result<String, Error> {
    let Some(commit) = &summary.commit else {
        return Ok(String::new());
    };
    let path = FilePath::new("README.md")?;
    match api.text(&summary.id, commit, &path, LARGEST_CARD, Purpose::Card).await {
        Ok(text) => Ok(body(&text).to_owned()),
        Err(Error::Net(net::Error::NotFound { .. }) | Error::NotOnHub(_)) => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// A card without its front matter: the lines between `---` at its very beginning.
fn body(card: &str) -> &str {
    let card = card.trim_start_matches('\u{feff}');
    let Some(rest) = card.strip_prefix("---\n").or_else(|| card.strip_prefix("---\r\n")) else {
        return card.trim_start();
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        at += line.len();
        if matches!(line.trim_end(), "---" | "...") {
            return rest[at..].trim_start();
        }
    }
    // Front matter without an end is text that begins with a rule.
    card
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn the_data_at_the_head_is_left_out() {
        assert_eq!(body("---\nlicense: mit\n---\n\n# Hi\n---\nmore"), "# Hi\n---\nmore");
        assert_eq!(body("\u{feff}---\r\nlicense: mit\r\n---\r\n# Hi"), "# Hi");
        assert_eq!(body("---\n---\n"), "");
        assert_eq!(body("# Hi\n---\nnot: data\n---\n"), "# Hi\n---\nnot: data\n---\n");
        assert_eq!(body("---\nnever ends"), "---\nnever ends");
        assert_eq!(body(""), "");
    }
}
