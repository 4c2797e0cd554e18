//! The hub's address.

use url::{Host, Origin, Url};

use crate::error::{Error, Result};

/// The hub that is asked unless HF_ENDPOINT names another one.
pub const PUBLIC_HUB: &str = "https://huggingface.co";

/// The hub's address: scheme, host and, for mirrors, a path prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    base: Url,
}

impl Endpoint {
    /// Reads an address such as `https://huggingface.co` or `https://mirror.example/hf`.
    ///
    /// # Errors
    /// [`Error::BadEndpoint`] if it is no http or https address, or has a user name, a password or a query.
    pub fn parse(address: &str) -> Result<Self> {
        let refused = || Error::BadEndpoint {
            address: without_secrets(address),
        };
        let mut base = Url::parse(address.trim()).map_err(|_| refused())?;
        let plain = base.username().is_empty()
            && base.password().is_none()
            && base.query().is_none()
            && base.fragment().is_none();
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() || !plain {
            return Err(refused());
        }
        let path = base.path().trim_end_matches('/').to_owned();
        base.set_path(&path);
        Ok(Self { base })
    }

    /// Stands in for an invalid HF_ENDPOINT: an address that cannot exist.
    pub(crate) fn unusable() -> Self {
        Self {
            base: Url::parse("https://hf-endpoint.invalid").expect("a fixed address"),
        }
    }

    /// The address below the endpoint with these path segments; each is escaped.
    pub fn at(&self, parts: &[&str]) -> String {
        let mut address = self.base.clone();
        if let Ok(mut path) = address.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        address.into()
    }

    /// The whole address, without a slash at its end.
    pub fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The path in front of everything, without a slash at its end: empty for the public hub.
    pub fn prefix(&self) -> &str {
        self.base.path().trim_end_matches('/')
    }

    /// The host, with its port if that is not the scheme's default.
    pub fn host(&self) -> String {
        host_of(&self.base)
    }

    /// Scheme, host and port, as text: under this name the keychain keeps the token.
    pub(crate) fn origin(&self) -> String {
        self.base.origin().ascii_serialization()
    }

    /// True if a token may be sent to this address: the endpoint's own scheme, host and port, encrypted or on this
    /// computer.
    pub(crate) fn may_see_the_token(&self, address: &Url) -> bool {
        let origin: Origin = self.base.origin();
        address.origin() == origin && (address.scheme() == "https" || is_loopback(address))
    }

    /// True if this address has the endpoint's origin.
    pub(crate) fn owns(&self, address: &Url) -> bool {
        address.origin() == self.base.origin()
    }
}

/// The host, with its port if that is not the scheme's default.
pub(crate) fn host_of(address: &Url) -> String {
    let host = address.host_str().unwrap_or_default();
    match address.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// True if an address is this computer itself, so that requests never leave it. Of names only those count that are
/// never looked up: `localhost` and its subdomains.
pub fn is_loopback(address: &Url) -> bool {
    match address.host() {
        Some(Host::Domain(name)) => {
            // A dot at the end says that the name is whole.
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(number)) => number.is_loopback(),
        Some(Host::Ipv6(number)) => {
            number.is_loopback() || number.to_ipv4_mapped().is_some_and(|inner| inner.is_loopback())
        }
        None => false,
    }
}

/// An address without what must not be shown: the part before an `@` may be a password, the part after a `?` a
/// signature.
pub(crate) fn without_secrets(address: &str) -> String {
    let shown = address.split(['?', '#']).next().unwrap_or_default();
    match (shown.find("://"), shown.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}{}", &shown[..scheme + 3], &shown[at + 1..]),
        _ => shown.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_escaped_and_the_mirrors_path_stays() {
        let mirror = Endpoint::parse("https://mirror.example/hf/").unwrap();
        assert_eq!(mirror.at(&["api", "models"]), "https://mirror.example/hf/api/models");
        let hub = Endpoint::parse(PUBLIC_HUB).unwrap();
        assert_eq!(
            hub.at(&["o", "n", "resolve", "refs/pr/1", "a b?.json"]),
            "https://huggingface.co/o/n/resolve/refs%2Fpr%2F1/a%20b%3F.json"
        );
        assert_eq!(hub.address(), "https://huggingface.co");
        assert_eq!((hub.prefix(), mirror.prefix()), ("", "/hf"));
    }

    #[test]
    fn an_endpoint_is_plain_http() {
        for bad in [
            "ftp://a.example",
            "huggingface.co",
            "https://me:secret@hub.example",
            "https://hub.example/?a=1",
            "",
        ] {
            let error = Endpoint::parse(bad).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn only_loopback_is_this_computer() {
        for (address, here) in [
            ("http://localhost:1/v1", true),
            ("http://LOCALHOST./v1", true),
            ("http://models.localhost/v1", true),
            ("http://127.0.0.2/v1", true),
            ("http://127.1/v1", true),
            ("http://0x7f000001/v1", true),
            ("http://[::1]:80/v1", true),
            ("http://[::ffff:127.0.0.1]/v1", true),
            ("http://localhost.evil.example/v1", false),
            ("http://notlocalhost/v1", false),
            ("http://127.0.0.1.evil.example/v1", false),
            ("http://127.0.0.1@evil.example/v1", false),
            ("http://0.0.0.0/v1", false),
            ("http://192.168.1.2/v1", false),
            ("http://[::ffff:192.168.1.2]/v1", false),
            ("https://example.org/v1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(address).unwrap()), here, "{address}");
        }
    }

    #[test]
    fn the_token_goes_to_the_endpoint_alone_and_never_in_the_clear() {
        let see = |endpoint: &str, address: &str| {
            Endpoint::parse(endpoint)
                .unwrap()
                .may_see_the_token(&Url::parse(address).unwrap())
        };
        assert!(see(PUBLIC_HUB, "https://huggingface.co/api/models"));
        assert!(!see(PUBLIC_HUB, "http://huggingface.co/api/models"));
        assert!(!see(PUBLIC_HUB, "https://huggingface.co:444/"));
        assert!(!see(PUBLIC_HUB, "https://cdn.huggingface.co/"));
        assert!(!see("http://mirror.example", "http://mirror.example/api"));
        assert!(see("http://127.0.0.1:8080", "http://127.0.0.1:8080/api"));
        assert!(!see("http://127.0.0.1:8080", "http://127.0.0.1:8081/api"));
    }
}
