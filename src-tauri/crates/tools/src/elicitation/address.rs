//! Addresses that a server wants the person to open.

use std::net::IpAddr;

use url::{Host, Url};

/// Bytes of an address at most; browsers stop at about four times as many.
const LONGEST: usize = 2048;

/// An address that may be opened: by TLS, or on this computer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(Url);

impl Address {
    /// Reads one.
    ///
    /// # Errors
    /// A sentence for the server.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("an address has at most {LONGEST} bytes"));
        }
        // Parsers skip some of these, and what is shown would be another address than what is opened.
        if text.contains(|character: char| character.is_control() || character.is_whitespace() || character == '\\') {
            return Err("the address has characters that no address has".to_owned());
        }
        let url = Url::parse(text).map_err(|error| format!("this is no address: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address with a name or a password is not opened".to_owned());
        }
        match (url.scheme(), url.host()) {
            ("https", Some(_)) => Ok(Self(url)),
            ("http", Some(host)) if is_loopback(&host) => Ok(Self(url)),
            _ => Err("only addresses with https are opened, and http on this computer".to_owned()),
        }
    }

    /// The whole address, rebuilt from what was understood: the host as the network knows it.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The host, with its port if that is not the usual one.
    pub fn host(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(address) => IpAddr::V4(*address).is_loopback(),
        Host::Ipv6(address) => IpAddr::V6(*address).is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_as_it_is_opened() {
        for (text, whole, host) in [
            (
                "https://example.org/login?id=1#x",
                "https://example.org/login?id=1#x",
                "example.org",
            ),
            (
                "HTTPS://EXAMPLE.org:8443",
                "https://example.org:8443/",
                "example.org:8443",
            ),
            // A Cyrillic letter in the middle becomes visible.
            (
                "https://ex\u{430}mple.org/",
                "https://xn--exmple-4nf.org/",
                "xn--exmple-4nf.org",
            ),
            ("http://127.0.0.1:9/a", "http://127.0.0.1:9/a", "127.0.0.1:9"),
            ("http://[::1]/", "http://[::1]/", "[::1]"),
            ("http://localhost:8080/", "http://localhost:8080/", "localhost:8080"),
            (
                "https://example.org/\u{202e}gro",
                "https://example.org/%E2%80%AEgro",
                "example.org",
            ),
        ] {
            let address = Address::read(text).unwrap();
            assert_eq!((address.as_str(), address.host().as_str()), (whole, host), "{text}");
        }
    }

    #[test]
    fn what_is_not_safe_to_open_is_refused() {
        let long = format!("https://example.org/{}", "a".repeat(3000));
        for text in [
            "",
            "example.org",
            "http://example.org",
            "http://10.0.0.1/",
            "http://localhost.example.org/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "ponder://approve",
            "mailto:a@b.example",
            "https://bank.example@evil.example/",
            "https://:pw@evil.example/",
            "https://example.org\\@evil.example",
            "https://example.org/\r\nHost: x",
            "https://exa mple.org",
            "https://",
            long.as_str(),
        ] {
            assert!(Address::read(text).is_err(), "{text}");
        }
    }
}
