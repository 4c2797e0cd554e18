//! The search text as an id, or as the address of a model's page in any of its forms.

use net::Endpoint;

use crate::cache::{RepositoryId, Revision};
use crate::error::Error;

/// Hosts of the public hub.
const HOSTS: [&str; 3] = ["huggingface.co", "www.huggingface.co", "hf.co"];
/// First path segments of the hub's pages that are no owner.
const PAGES: [&str; 14] = [
    "blog",
    "chat",
    "collections",
    "docs",
    "join",
    "learn",
    "login",
    "models",
    "organizations",
    "papers",
    "posts",
    "pricing",
    "settings",
    "tasks",
];

/// Pages of a model that name a revision.
const OF_REVISION: [&str; 7] = ["tree", "blob", "resolve", "raw", "commit", "commits", "revision"];

/// The target of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelAddress {
    /// A model, and the revision if the text names one.
    Model {
        /// Its id.
        id: RepositoryId,
        /// The revision; `main` if the text names none.
        revision: Revision,
    },
    /// All of an owner's models.
    Owner(String),
}

impl ModelAddress {
    /// Parses a text; `None` for words to search for.
    ///
    /// Accepts `owner/name`, `owner/name@revision`, `hf://owner/name`, `hf:owner/name`, and pages of the public hub or
    /// of `endpoint`, with or without `https://`: the model's own, and those of its files, commits and branches.
    ///
    /// # Errors
    /// [`Error::Address`] for the address of something else, [`Error::Name`] for a name that no model may have.
    pub fn parse(text: &str, endpoint: &Endpoint) -> Result<Option<Self>, Error> {
        let text = text.trim();
        let refused = |reason| {
            Err(Error::Address {
                text: text.chars().take(120).collect(),
                reason,
            })
        };
        if text.is_empty() || text.contains(char::is_whitespace) {
            return Ok(None);
        }
        let path = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("hf") => {
                let rest = rest.strip_prefix("models/").unwrap_or(rest);
                return of_id(rest.split(['?', '#']).next().unwrap_or_default()).map(Some);
            }
            Some((scheme, rest)) if ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web)) => {
                below_hub(rest, endpoint)
            }
            Some(_) => return refused("only https:// and hf:// addresses lead to models"),
            // The short form of other programs: an id, or the path of a page.
            None if text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("hf:")) => match &text[3..] {
                id if id.contains('@') => return of_id(id.split(['?', '#']).next().unwrap_or_default()).map(Some),
                path => Some(path),
            },
            None => match below_hub(text, endpoint) {
                Some(path) => Some(path),
                None if text.matches('/').count() == 1 => return of_id(text).map(Some),
                None if text.contains('/') => return refused("an id is owner/name"),
                None => return Ok(None),
            },
        };
        let Some(path) = path else {
            return refused("the address is not one of the hub that Ponder asks");
        };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let parts = parts.strip_prefix(&["api", "models"]).unwrap_or(&parts);
        match parts {
            [] => refused("it is the hub's own page; look for a model by its name"),
            ["datasets", ..] => refused("it is a data set, not a model"),
            ["spaces", ..] => refused("it is a space, not a model"),
            [page, ..] if PAGES.contains(page) => refused("it is another page of the hub, not a model's"),
            // The rules for an owner's name are part of those for an id.
            [owner] => RepositoryId::new(&format!("{owner}/x")).map(|_| Some(Self::Owner((*owner).to_owned()))),
            [owner, name, rest @ ..] => {
                let revision = match rest {
                    [page, "refs", kind, number, ..] if OF_REVISION.contains(page) => {
                        Revision::new(&format!("refs/{kind}/{number}"))?
                    }
                    [page, revision, ..] if OF_REVISION.contains(page) => Revision::new(revision)?,
                    _ => Revision::main(),
                };
                Ok(Some(Self::Model {
                    id: RepositoryId::new(&format!("{owner}/{name}"))?,
                    revision,
                }))
            }
        }
    }
}

/// `owner/name`, or `owner/name@revision`; what follows a third slash is a file, and is left out.
fn of_id(text: &str) -> Result<ModelAddress, Error> {
    let mut parts = text.trim_matches('/').splitn(3, '/');
    let (owner, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (name, revision) = match name.split_once('@') {
        Some((name, revision)) => (name, Revision::new(&decoded(revision))?),
        None => (name, Revision::main()),
    };
    Ok(ModelAddress::Model {
        id: RepositoryId::new(&format!("{owner}/{name}"))?,
        revision,
    })
}

/// The path below the hub's host, and below a mirror's prefix, of an address without its scheme.
fn below_hub<'a>(rest: &'a str, endpoint: &Endpoint) -> Option<&'a str> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    if host.eq_ignore_ascii_case(&endpoint.host()) {
        // The page may have been opened on the mirror, or its address written without the prefix.
        let inside = path.strip_prefix(endpoint.prefix());
        let inside = inside.filter(|path| path.is_empty() || path.starts_with('/'));
        return Some(inside.unwrap_or(path));
    }
    let is_public = HOSTS.iter().any(|known| host.eq_ignore_ascii_case(known));
    is_public.then_some(path)
}

fn decoded(part: &str) -> String {
    // A form's decoder takes a plus for a blank; in a path it is a plus.
    let form = format!("x={}", part.replace('+', "%2B").replace('&', "%26"));
    let value = url::form_urlencoded::parse(form.as_bytes()).next();
    value.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<ModelAddress>, Error> {
        ModelAddress::parse(text, &Endpoint::parse("https://mirror.example/hf").unwrap())
    }

    #[test]
    fn every_form_of_an_address_leads_to_the_same_model() {
        for (text, revision) in [
            ("mlx-community/Qwen3-4B-4bit", "main"),
            ("  mlx-community/Qwen3-4B-4bit\n", "main"),
            ("mlx-community/Qwen3-4B-4bit@v1", "v1"),
            ("https://huggingface.co/mlx-community/Qwen3-4B-4bit", "main"),
            ("https://huggingface.co/mlx-community/Qwen3-4B-4bit/", "main"),
            (
                "HTTP://HuggingFace.co/mlx-community/Qwen3-4B-4bit?library=mlx#top",
                "main",
            ),
            ("https://huggingface.co/mlx-community/Qwen3-4B-4bit/tree/main", "main"),
            (
                "https://huggingface.co/mlx-community/Qwen3-4B-4bit/tree/refs%2Fpr%2F1",
                "refs/pr/1",
            ),
            (
                "https://huggingface.co/mlx-community/Qwen3-4B-4bit/tree/refs/pr/1",
                "refs/pr/1",
            ),
            (
                "https://huggingface.co/mlx-community/Qwen3-4B-4bit/blob/v1/config.json",
                "v1",
            ),
            (
                "https://huggingface.co/mlx-community/Qwen3-4B-4bit/discussions/3",
                "main",
            ),
            ("https://huggingface.co/api/models/mlx-community/Qwen3-4B-4bit", "main"),
            ("huggingface.co/mlx-community/Qwen3-4B-4bit", "main"),
            ("hf.co/mlx-community/Qwen3-4B-4bit", "main"),
            ("https://www.huggingface.co/mlx-community/Qwen3-4B-4bit", "main"),
            ("https://mirror.example/hf/mlx-community/Qwen3-4B-4bit", "main"),
            ("mirror.example/mlx-community/Qwen3-4B-4bit/tree/v1", "v1"),
            ("hf://mlx-community/Qwen3-4B-4bit", "main"),
            ("hf://mlx-community/Qwen3-4B-4bit@v1/config.json", "v1"),
            ("hf:mlx-community/Qwen3-4B-4bit", "main"),
            ("hf:mlx-community/Qwen3-4B-4bit/tree/v1", "v1"),
            ("hf:mlx-community/Qwen3-4B-4bit@v1/config.json", "v1"),
            ("hf://models/mlx-community/Qwen3-4B-4bit", "main"),
        ] {
            let expected = ModelAddress::Model {
                id: RepositoryId::new("mlx-community/Qwen3-4B-4bit").unwrap(),
                revision: Revision::new(revision).unwrap(),
            };
            assert_eq!(parse(text).unwrap(), Some(expected), "{text}");
        }
        assert_eq!(
            parse("https://huggingface.co/mlx-community").unwrap(),
            Some(ModelAddress::Owner("mlx-community".into()))
        );
    }

    #[test]
    fn words_are_looked_for() {
        for text in ["", "qwen", "qwen 4bit", "gpt-oss", "what is a/b test"] {
            assert_eq!(parse(text).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_model_is_refused_with_a_reason() {
        for text in [
            "https://huggingface.co/datasets/o/n",
            "https://huggingface.co/spaces/o/n",
            "https://huggingface.co/docs/hub",
            "https://huggingface.co/",
            "https://evil.example/o/n",
            "https://huggingface.co.evil.example/o/n",
            "https://me@huggingface.co/o/n",
            "ftp://huggingface.co/o/n",
            "file:///etc/passwd",
            "../etc",
            "o/..",
            "../..",
            "/etc/passwd",
            "o/n/../../x",
            "https://huggingface.co/o/%2E%2E",
            "https://huggingface.co/o/n/tree/..%2F..",
            "https://huggingface.co/..%2F..%2Fetc/passwd",
            "o/-n\u{0}",
            "hf://",
            "hf:",
            "hf:datasets/o/n",
        ] {
            let error = parse(text).expect_err(text);
            assert!(!error.to_string().is_empty());
        }
    }
}
