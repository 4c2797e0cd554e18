//! Addresses that may be asked, and redirects that may be followed.

use reqwest::header::HeaderValue;
use url::Url;

use crate::endpoint::{host_of, is_loopback, without_secrets, Place};
use crate::error::{Error, Result};

/// An address that a request can be sent to.
pub(super) fn parsed(address: &str) -> Result<Url> {
    let refused = || Error::BadAddress {
        address: without_secrets(address),
    };
    let mut parsed = Url::parse(address).map_err(|_| refused())?;
    let plain = parsed.username().is_empty() && parsed.password().is_none();
    if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() || !plain {
        return Err(refused());
    }
    parsed.set_fragment(None);
    Ok(parsed)
}

/// The host of an address of the internet, with its port if that is not the scheme's default: as far as the address
/// tells, because a name is not looked up for it.
///
/// # Errors
/// [`Error::BadAddress`] for what is no plain web address, [`Error::LocalNetwork`] for one that spells this computer or
/// its network.
pub fn public_host(address: &str) -> Result<String> {
    let address = parsed(address)?;
    match Place::spelled(&address) {
        None | Some(Place::Internet) => Ok(host_of(&address)),
        Some(Place::Network | Place::ThisComputer) => Err(Error::LocalNetwork {
            host: host_of(&address),
        }),
    }
}

/// The target of a redirect, if it may be followed.
pub(super) fn target(from: &Url, location: &HeaderValue) -> Result<Url> {
    let refused = |reason: &str| Error::Redirect {
        host: host_of(from),
        reason: reason.to_owned(),
    };
    let location = location.to_str().map_err(|_| refused("its address is no text"))?;
    let joined = from.join(location).map_err(|_| refused("its address makes no sense"))?;
    let next = parsed(joined.as_str()).map_err(|_| refused("its address is no plain web address"))?;
    if from.scheme() == "https" && next.scheme() == "http" && !is_loopback(from) {
        return Err(refused("from an encrypted address to one that is not"));
    }
    // No server on the internet has a reason to redirect to this computer.
    if Place::spelled(&next) == Some(Place::ThisComputer) && !is_loopback(from) {
        return Err(refused("back to this computer"));
    }
    Ok(next)
}

/// The error of a redirect from a server to one that is nearer to this computer.
pub(super) fn into_the_network(from: &str, to: &str) -> Error {
    Error::Redirect {
        host: from.to_owned(),
        reason: format!("to {to}, which leads into this computer's own network"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_page_is_on_the_internet() {
        for (address, host) in [
            ("https://Example.org/a?b#c", "example.org"),
            ("http://example.org:443/", "example.org:443"),
            ("https://example.org:443/", "example.org"),
            ("https://b\u{fc}cher.example/", "xn--bcher-kva.example"),
            ("https://1.1.1.1/", "1.1.1.1"),
        ] {
            assert_eq!(public_host(address).as_deref(), Ok(host), "{address}");
        }
        for near in [
            "http://localhost/",
            "http://2130706433/",
            "https://10.1.2.3/",
            "http://[::1]/",
            "http://[fd00::1]/",
        ] {
            assert!(matches!(public_host(near), Err(Error::LocalNetwork { .. })), "{near}");
        }
        for none in [
            "",
            "example.org",
            "file:///etc/passwd",
            "https://me:you@example.org/",
            "javascript:alert(1)",
        ] {
            assert!(matches!(public_host(none), Err(Error::BadAddress { .. })), "{none}");
        }
    }

    #[test]
    fn a_redirect_never_leads_to_less_safety() {
        let follow = |from: &str, to: &str| {
            target(&Url::parse(from).unwrap(), &HeaderValue::try_from(to).unwrap()).map(String::from)
        };
        assert_eq!(
            follow("https://hub.example/a/b", "../c?x=1#y").unwrap(),
            "https://hub.example/c?x=1"
        );
        assert_eq!(
            follow("https://hub.example/a", "//cdn.example/b").unwrap(),
            "https://cdn.example/b"
        );
        assert_eq!(
            follow("http://mirror.example/a", "http://cdn.example/b").unwrap(),
            "http://cdn.example/b"
        );
        assert_eq!(
            follow("http://127.0.0.1:1/a", "http://127.0.0.1:2/b").unwrap(),
            "http://127.0.0.1:2/b"
        );
        for (from, to) in [
            ("https://hub.example/a", "http://hub.example/b"),
            ("https://hub.example/a", "https://127.0.0.1/b"),
            ("http://mirror.example/a", "http://localhost:631/"),
            ("https://hub.example/a", "https://[::1]/"),
            ("http://mirror.example/a", "http://0.0.0.0:631/"),
            ("http://mirror.example/a", "http://[::]:631/"),
            ("http://mirror.example/a", "http://localhost.:631/"),
            ("https://hub.example/a", "file:///etc/passwd"),
            ("https://hub.example/a", "https://me:you@cdn.example/"),
            ("https://hub.example/a", "https://"),
        ] {
            assert!(
                matches!(follow(from, to), Err(Error::Redirect { .. })),
                "{from} to {to}"
            );
        }
    }
}
