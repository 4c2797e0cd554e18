//! Names and addresses of endpoints.

use api::{Endpoint, EndpointAddress};
use url::Url;

use crate::error::{Error, Result};

/// The longest name.
const LONGEST_NAME: usize = 40;

/// An endpoint of this name and address, checked; it has no key yet.
///
/// # Errors
/// [`Error::BadName`], [`Error::BadUrl`].
pub fn endpoint(name: &str, url: &str) -> Result<Endpoint> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(Error::BadName(name.into()));
    }
    Ok(Endpoint {
        name: name.into(),
        base_url: base_url(url)?,
        has_key: false,
        unencrypted_key: false,
        personal: false,
    })
}

/// The meaning of an address as the user typed it.
///
/// # Errors
/// [`Error::BadUrl`].
pub fn address(url: &str) -> Result<EndpointAddress> {
    Ok(meaning(&base_url(url)?))
}

/// True if requests to an endpoint leave this computer.
pub(crate) fn leaves_computer(endpoint: &Endpoint) -> bool {
    meaning(&endpoint.base_url).leaves_computer
}

/// True if a key may be sent to an endpoint: where nobody on the way can read it, or the user allowed it.
pub(crate) fn may_see_its_key(endpoint: &Endpoint) -> bool {
    endpoint.unencrypted_key || !meaning(&endpoint.base_url).unencrypted
}

/// An address that cannot be read counts as one of another computer.
pub(crate) fn meaning(base_url: &str) -> EndpointAddress {
    let url = Url::parse(base_url).ok();
    let leaves_computer = !url.as_ref().is_some_and(net::is_loopback);
    EndpointAddress {
        base_url: base_url.into(),
        leaves_computer,
        unencrypted: leaves_computer && url.is_none_or(|url| url.scheme() != "https"),
    }
}

/// The address that paths are appended to. One without a path gets `/v1`; a slash at the end, or `/chat/completions`,
/// goes.
fn base_url(given: &str) -> Result<String> {
    let bad = || Error::BadUrl(given.into());
    let url = Url::parse(given.trim()).map_err(|_| bad())?;
    let tidy =
        url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    if !tidy || !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(bad());
    }
    let mut base_url = url
        .as_str()
        .trim_end_matches('/')
        .trim_end_matches("/chat/completions")
        .to_owned();
    if url.path() == "/" {
        base_url.push_str("/v1");
    }
    Ok(base_url)
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
    fn an_address_tells_what_leaves_this_computer_and_who_can_read_it() {
        for (url, leaves_computer, unencrypted) in [
            ("http://localhost:1", false, false),
            ("http://localhost.:1/v1", false, false),
            ("http://localhost.example.org/v1", true, true),
            ("https://127.0.0.1/v1", false, false),
            ("http://192.168.1.2/v1", true, true),
            ("https://example.org/v1", true, false),
        ] {
            let address = address(url).expect(url);
            assert_eq!(
                (address.leaves_computer, address.unencrypted),
                (leaves_computer, unencrypted),
                "{url}"
            );
            assert_eq!(meaning(&endpoint("lab", url).expect(url).base_url), address);
        }
        assert!(address("lab:1234").is_err());
        // Written by another version, or by hand.
        let unreadable = meaning("nonsense");
        assert!(unreadable.leaves_computer && unreadable.unencrypted);
    }
}
