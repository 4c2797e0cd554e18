//! Names and addresses of endpoints.

use protocol::Endpoint;
use url::Url;

use crate::keys::variable;
use crate::{Error, Result};

/// The longest name.
const LONGEST_NAME: usize = 40;

/// An endpoint of this name and base URL, checked. An address without a path gets `/v1`; a slash at the end, or
/// `/chat/completions`, goes.
///
/// # Errors
/// [`Error::BadName`], [`Error::BadUrl`].
pub fn endpoint(name: &str, base_url: &str) -> Result<Endpoint> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(Error::BadName(name.into()));
    }
    let bad = || Error::BadUrl(base_url.into());
    let url = Url::parse(base_url.trim()).map_err(|_| bad())?;
    let tidy = url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    if !tidy || !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(bad());
    }
    let mut base_url = url.as_str().trim_end_matches('/').trim_end_matches("/chat/completions").to_owned();
    if url.path() == "/" {
        base_url.push_str("/v1");
    }
    Ok(Endpoint {
        name: name.into(),
        base_url,
        has_key: false,
    })
}

/// Refuses a name that another of these endpoints has, or one so like it that both would find their keys under one name in the
/// environment: then the key of one would be sent to the other.
///
/// # Errors
/// [`Error::NameTaken`] with the name of the other.
pub fn check_name_is_free(endpoints: &[Endpoint], name: &str) -> Result<()> {
    match endpoints.iter().find(|known| variable(&known.name) == variable(name)) {
        Some(known) => Err(Error::NameTaken(known.name.clone())),
        None => Ok(()),
    }
}

/// Whether what is sent to an endpoint leaves this computer, by the rule that the offline switch follows. An address that cannot be
/// read counts as leaving.
pub fn leaves_computer(endpoint: &Endpoint) -> bool {
    Url::parse(&endpoint.base_url).map_or(true, |url| !net::is_loopback(&url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_what_paths_are_appended_to() {
        for (given, kept) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
            ("https://example.org/openai/v1/", "https://example.org/openai/v1"),
            (" http://lab:1234/v1/chat/completions ", "http://lab:1234/v1"),
        ] {
            assert_eq!(endpoint("lab", given).expect(given).base_url, kept);
        }
        for bad in [
            "",
            "lab:1234",
            "ftp://lab/v1",
            "http://",
            "http://me:secret@lab/v1",
            "http://lab/v1?key=secret",
            "file:///v1",
        ] {
            assert!(endpoint("lab", bad).is_err(), "{bad}");
        }
        for bad in ["", "a/b", "a b", "a:b", "ü", &"a".repeat(41)] {
            assert!(endpoint(bad, "http://lab/v1").is_err(), "{bad}");
        }
    }

    #[test]
    fn names_that_share_a_key_are_one_name() {
        let known = [endpoint("lab-2", "http://lab:1").expect("it is one")];
        for taken in ["lab-2", "lab.2", "LAB_2"] {
            assert!(
                matches!(check_name_is_free(&known, taken), Err(Error::NameTaken(name)) if name == "lab-2"),
                "{taken}"
            );
        }
        assert!(check_name_is_free(&known, "lab2").is_ok());
    }

    #[test]
    fn what_is_sent_to_another_computer_leaves_this_one() {
        for (url, leaves) in [
            ("http://localhost:1/v1", false),
            ("http://localhost.:1/v1", false),
            ("http://localhost.example.org/v1", true),
        ] {
            assert_eq!(leaves_computer(&endpoint("lab", url).expect(url)), leaves, "{url}");
        }
        let unreadable = Endpoint {
            base_url: "no address".into(),
            ..endpoint("lab", "http://localhost").expect("it is one")
        };
        assert!(leaves_computer(&unreadable));
    }
}
