//! The hub's address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

    /// Scheme, host and port, as text: under this name the keychain keeps a secret for it.
    pub fn origin(&self) -> String {
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

/// The place of a server, as far as its address tells: the nearer, the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// A server on the internet.
    Internet,
    /// A computer in the network that this one is in.
    Network,
    /// This computer itself.
    ThisComputer,
}

impl Place {
    /// The place of an address.
    pub(crate) fn of(number: IpAddr) -> Self {
        let number = match number {
            IpAddr::V4(number) => number,
            IpAddr::V6(number) => match v4_within(number) {
                Some(inner) => inner,
                None => return Self::of_v6(number),
            },
        };
        let [first, second, ..] = number.octets();
        // 0.0.0.0/8 is this computer to many systems. 100.64.0.0/10 lies behind a carrier's translation.
        let shared = first == 100 && second & 0xc0 == 64;
        if first == 0 || number.is_loopback() {
            Self::ThisComputer
        } else if number.is_private() || number.is_link_local() || shared {
            Self::Network
        } else {
            Self::Internet
        }
    }

    fn of_v6(number: Ipv6Addr) -> Self {
        let first = number.segments()[0];
        // Unique local, link-local, and what was site-local.
        let of_the_network = first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80 || first & 0xffc0 == 0xfec0;
        if number.is_loopback() {
            Self::ThisComputer
        } else if of_the_network {
            Self::Network
        } else {
            Self::Internet
        }
    }

    /// The place that an address spells; `None` for a name that is looked up.
    pub(crate) fn spelled(address: &Url) -> Option<Self> {
        match address.host()? {
            Host::Ipv4(number) => Some(Self::of(number.into())),
            Host::Ipv6(number) => Some(Self::of(number.into())),
            Host::Domain(_) => is_loopback(address).then_some(Self::ThisComputer),
        }
    }
}

/// The number of IPv4 that one of IPv6 stands for: mapped, compatible, or behind NAT64.
fn v4_within(number: Ipv6Addr) -> Option<Ipv4Addr> {
    match number.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Some(Ipv4Addr::new(a, b, c, d))
        }
        [0, 0, 0, 0, 0, 0, 0, 1] => None,
        // The unspecified address is among them, as 0.0.0.0.
        _ => number.to_ipv4(),
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
    fn an_address_tells_its_place() {
        for (place, numbers) in [
            (
                Place::ThisComputer,
                "127.0.0.1 127.9.9.9 0.0.0.0 0.1.2.3 :: ::1 ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::7f00:1",
            ),
            (
                Place::Network,
                "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 100.127.255.255 \
                 ::ffff:192.168.1.1 ::10.0.0.1 64:ff9b::a9fe:a9fe fe80::1 febf::1 fec0::1 fc00::1 fdff::1",
            ),
            // Some proxies answer every name with a number of 198.18.0.0/15.
            (
                Place::Internet,
                "1.1.1.1 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 169.253.0.1 192.167.1.1 198.18.0.1 \
                 2606:4700::1111 ::ffff:1.1.1.1 64:ff9b::101:101",
            ),
        ] {
            for number in numbers.split_whitespace() {
                assert_eq!(Place::of(number.parse().unwrap()), place, "{number}");
            }
        }
        let spelled = |address: &str| Place::spelled(&Url::parse(address).unwrap());
        assert_eq!(spelled("http://localhost.:1/"), Some(Place::ThisComputer));
        assert_eq!(spelled("http://[::]:1/"), Some(Place::ThisComputer));
        assert_eq!(spelled("http://0xc0a80101/"), Some(Place::Network));
        assert_eq!(spelled("https://1.1.1.1/"), Some(Place::Internet));
        assert_eq!(spelled("https://router.example/"), None);
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
