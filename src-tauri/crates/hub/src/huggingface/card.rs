//! A model's card: the README of its repository, as Markdown.
//!
//! What an author writes is shown by the window, which renders it without running anything in it and without fetching its pictures:
//! a picture's address would show its host that somebody looks at this model.

use net::Purpose;
use protocol::ErrorCode;

use crate::cache::{FilePath, RepositoryId};
use crate::huggingface::response_cache::CacheKind;
use crate::{Error, Hub};

/// The most of a card that is read, in bytes.
const LARGEST_CARD: u64 = 1 << 20;

impl Hub {
    /// The card of a model, without the data at its head; empty if it has none. From the cache if the hub cannot be reached.
    ///
    /// # Errors
    /// [`Error::Name`] for what is no id; whatever keeps the hub from answering, if the card was never read before.
    pub async fn card(&self, id: &str) -> Result<String, Error> {
        let id = RepositoryId::new(id)?;
        match self.fetched_card(&id).await {
            Ok(card) => {
                self.response_cache().put(CacheKind::Card, id.as_str(), &card);
                Ok(card)
            }
            Err(error) if unreachable(&error) => {
                match self.response_cache().get::<String>(CacheKind::Card, id.as_str()) {
                    Some((card, _)) => Ok(card),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn fetched_card(&self, id: &RepositoryId) -> Result<String, Error> {
        let summary = self.recent_summary(id).await?;
        let Some(commit) = summary.commit else {
            return Ok(String::new());
        };
        let path = FilePath::new("README.md")?;
        match self
            .text(&summary.id, &commit, &path, LARGEST_CARD, Purpose::Card)
            .await
        {
            Ok(text) => Ok(body(&text).to_owned()),
            Err(Error::Net(net::Error::NotFound { .. }) | Error::NotOnHub { .. }) => Ok(String::new()),
            Err(error) => Err(error),
        }
    }
}

/// Whether a cached response may replace the hub's answer.
pub(crate) fn unreachable(error: &Error) -> bool {
    match error {
        Error::Net(error) => matches!(
            protocol::Error::from(error.clone()).code,
            ErrorCode::Offline | ErrorCode::Network
        ),
        _ => false,
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
    // It never ends, so it is text that begins with a rule.
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
