//! Authentication and origin checks. They run before routing, so no route can skip them.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, Method, Uri};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::http::error_body::{Kind, Refusal};

/// Paths without private data that need no key: Claude Code requests the first before it sends one.
const OPEN_PATHS: [&str; 2] = ["/", "/health"];

/// True for a path that anybody may ask.
pub(crate) fn is_open(path: &str) -> bool {
    OPEN_PATHS.contains(&path)
}

/// The message for a web page that is not listed.
const PAGES: &str = "web pages may not ask this server, unless their origin is listed with --allow-origin";

/// The message for a client without a key, with both ways: to send it, and to do without.
const NO_KEY: &str =
    "this server wants a key: `Authorization: Bearer KEY` or `x-api-key: KEY`. For clients that send none, start it \
    with `ponder serve --no-key`, or remove the key in the app (Settings, Local server)";

/// The hosts, origins and key that may send requests.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    address: SocketAddr,
    /// More names of this server, with or without a port.
    hosts: Vec<String>,
    /// Web pages that may send requests.
    origins: Vec<String>,
    /// SHA-256 of the key, so that the compared values always have one length.
    key: Option<[u8; 32]>,
}

impl Guard {
    /// A guard for the server at this address.
    pub(crate) fn new(address: SocketAddr, hosts: Vec<String>, origins: Vec<String>, key: Option<&str>) -> Self {
        Self {
            address,
            hosts,
            origins,
            key: key.map(|key| Sha256::digest(key).into()),
        }
    }

    /// True if a key is needed.
    pub(crate) fn wants_key(&self) -> bool {
        self.key.is_some()
    }

    /// True if it answers for a proxy, which may run as another user.
    pub(crate) fn has_proxy(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Checks the headers of a request.
    ///
    /// # Errors
    /// If the request was meant for another host, comes from a web page that is not listed, or has a wrong key or none.
    pub(crate) fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        self.check_host(uri, headers)?;
        let origin = self.check_origin(headers)?;
        if origin.is_none() && is_part_of_other_page(headers) {
            return Err(Refusal::new(Kind::Forbidden, PAGES));
        }
        // A browser sends its preflight request without a key.
        let preflight = method == Method::OPTIONS && origin.is_some();
        if preflight || is_open(uri.path()) {
            return Ok(());
        }
        self.check_key(headers)
    }

    /// The origin of the request, if it is listed.
    pub(crate) fn listed_origin<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let origin = headers.get(ORIGIN)?.to_str().ok()?;
        self.origins.iter().any(|listed| listed == origin).then_some(origin)
    }

    /// DNS rebinding: a page of another site whose name points at this computer sends that name as its host.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::new(Kind::Forbidden, "there must be one Host header"));
        };
        let named = [host.to_str().ok(), uri.authority().map(|authority| authority.as_str())];
        let known = host.to_str().is_ok() && named.into_iter().flatten().all(|host| self.is_own(host));
        if known {
            return Ok(());
        }
        let message =
            "this server does not answer to that Host; ask it by its address, or list the name with --allow-host";
        Err(Refusal::new(Kind::Forbidden, message))
    }

    fn is_own(&self, host: &str) -> bool {
        let (name, port) = split_port(host);
        let listed = |listed: &String| listed.eq_ignore_ascii_case(host) || listed.eq_ignore_ascii_case(name);
        if self.hosts.iter().any(listed) {
            return true;
        }
        if port.unwrap_or(80) != self.address.port() {
            return false;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        match bare.unwrap_or(name).parse::<IpAddr>() {
            // An IP address cannot be rebound.
            Ok(ip) => ip.is_loopback() || !self.address.ip().is_loopback(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }

    fn check_origin<'a>(&self, headers: &'a HeaderMap) -> Result<Option<&'a str>, Refusal> {
        if !headers.contains_key(ORIGIN) {
            return Ok(None);
        }
        match self.listed_origin(headers) {
            Some(origin) if headers.get_all(ORIGIN).iter().count() == 1 => Ok(Some(origin)),
            _ => Err(Refusal::new(Kind::Forbidden, PAGES)),
        }
    }

    fn check_key(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(key) = &self.key else { return Ok(()) };
        let bearer = headers.get(AUTHORIZATION).and_then(|value| {
            let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
        });
        let own_header = headers.get("x-api-key").and_then(|value| value.to_str().ok());
        let sent: Vec<&str> = [bearer, own_header].into_iter().flatten().collect();
        let right = |sent: &&str| {
            let sent: [u8; 32] = Sha256::digest(sent).into();
            bool::from(sent.ct_eq(key))
        };
        if sent.iter().any(right) {
            return Ok(());
        }
        let message = if sent.is_empty() {
            NO_KEY
        } else {
            "this is not the key of this server"
        };
        Err(Refusal::new(Kind::Unauthorized, message).code("invalid_api_key"))
    }
}

/// A host and its port, if it has one.
fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') && (!name.contains(':') || name.ends_with(']')) => {
            // Any other number is not our port either.
            (name, Some(port.parse().unwrap_or(0)))
        }
        _ => (host, None),
    }
}

/// True if a browser reports that another site embeds the resource, as an image, a script or a frame: such requests
/// have no Origin (<https://www.w3.org/TR/fetch-metadata/>). A link that the user follows is not embedded.
fn is_part_of_other_page(headers: &HeaderMap) -> bool {
    let is = |name: &str, values: &[&str]| {
        let value = headers.get(name);
        value.is_some_and(|value| values.iter().any(|known| value == known))
    };
    let elsewhere = headers.contains_key("sec-fetch-site") && !is("sec-fetch-site", &["same-origin", "none"]);
    elsewhere && !(is("sec-fetch-mode", &["navigate"]) && is("sec-fetch-dest", &["document"]))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn guard(address: &str, key: Option<&str>) -> Guard {
        let (hosts, origins) = (
            vec!["proxy.lan".into(), "other:81".into()],
            vec!["http://page.test".into()],
        );
        Guard::new(address.parse().unwrap(), hosts, origins, key)
    }

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn status(guard: &Guard, method: Method, uri: &str, list: &[(&'static str, &str)]) -> Option<Kind> {
        guard
            .check(&method, &uri.parse().unwrap(), &headers(list))
            .err()
            .map(|refusal| refusal.kind)
    }

    #[test]
    fn only_its_own_names_are_answered_to() {
        let guard = guard("127.0.0.1:8231", None);
        let asked = |host: &str| status(&guard, Method::GET, "/v1/models", &[("host", host)]);
        for own in [
            "127.0.0.1:8231",
            "localhost:8231",
            "LocalHost:8231",
            "[::1]:8231",
            "127.8.8.8:8231",
            "proxy.lan",
            "proxy.lan:443",
            "other:81",
        ] {
            assert_eq!(asked(own), None, "{own}");
        }
        for strange in [
            "evil.test:8231",
            "evil.test",
            "localhost",
            "localhost:80",
            "127.0.0.1:1",
            "192.168.1.7:8231",
            "localhost.evil.test:8231",
            "other:82",
            "[::1]",
            "::1",
            "",
            ":8231",
            "127.0.0.1:8231x",
        ] {
            assert_eq!(asked(strange), Some(Kind::Forbidden), "{strange}");
        }
        assert_eq!(status(&guard, Method::GET, "/", &[]), Some(Kind::Forbidden));
        let twice = [("host", "localhost:8231"), ("host", "localhost:8231")];
        assert_eq!(status(&guard, Method::GET, "/", &twice), Some(Kind::Forbidden));
        let absolute = "http://evil.test/v1/models";
        assert_eq!(
            status(&guard, Method::GET, absolute, &[("host", "localhost:8231")]),
            Some(Kind::Forbidden)
        );
    }

    #[test]
    fn what_a_page_of_another_site_embeds_is_refused_and_a_link_is_not() {
        let guard = guard("127.0.0.1:8231", None);
        let asked = |site: &str, mode: &str, dest: &str| {
            let headers = [
                ("host", "127.0.0.1:8231"),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            status(&guard, Method::GET, "/", &headers)
        };
        for site in ["cross-site", "same-site", ""] {
            for (mode, dest) in [
                ("no-cors", "image"),
                ("no-cors", "script"),
                ("navigate", "iframe"),
                ("cors", "empty"),
            ] {
                assert_eq!(asked(site, mode, dest), Some(Kind::Forbidden), "{site} {mode} {dest}");
            }
            assert_eq!(asked(site, "navigate", "document"), None);
        }
        assert_eq!(asked("none", "navigate", "document"), None);
        assert_eq!(asked("same-origin", "no-cors", "image"), None);
        assert_eq!(status(&guard, Method::GET, "/", &[("host", "127.0.0.1:8231")]), None);
    }

    #[test]
    fn another_address_answers_to_numbers_and_wants_its_key() {
        let guard = guard("0.0.0.0:8231", Some("secret"));
        let asked = |list: &[(&'static str, &str)]| {
            let mut all = vec![("host", "192.168.1.7:8231")];
            all.extend_from_slice(list);
            status(&guard, Method::POST, "/v1/messages", &all)
        };
        assert_eq!(asked(&[]), Some(Kind::Unauthorized));
        for wrong in ["Bearer ", "Bearer secre", "Bearer secrets", "secret", "Basic secret"] {
            assert_eq!(asked(&[("authorization", wrong)]), Some(Kind::Unauthorized), "{wrong}");
        }
        assert_eq!(asked(&[("authorization", "bearer secret")]), None);
        assert_eq!(asked(&[("x-api-key", "secret")]), None);
        // Claude Code sends a placeholder in one header if the other has the key.
        assert_eq!(
            asked(&[("x-api-key", "local"), ("authorization", "Bearer secret")]),
            None
        );
        assert_eq!(status(&guard, Method::HEAD, "/", &[("host", "192.168.1.7:8231")]), None);
        assert_eq!(
            status(&guard, Method::GET, "/metrics", &[("host", "192.168.1.7:8231")]),
            Some(Kind::Unauthorized)
        );
        assert_eq!(
            status(&guard, Method::GET, "/", &[("host", "evil.test:8231")]),
            Some(Kind::Forbidden)
        );
    }

    #[test]
    fn web_pages_are_strangers_unless_they_are_listed() {
        let guard = guard("127.0.0.1:8231", Some("secret"));
        let asked = |method: Method, origin: &str| {
            status(
                &guard,
                method,
                "/v1/models",
                &[("host", "localhost:8231"), ("origin", origin)],
            )
        };
        for origin in [
            "http://evil.test",
            "null",
            "http://localhost:8231",
            "http://page.test.evil.test",
            "https://page.test",
        ] {
            assert_eq!(asked(Method::OPTIONS, origin), Some(Kind::Forbidden), "{origin}");
        }
        assert_eq!(asked(Method::OPTIONS, "http://page.test"), None);
        assert_eq!(asked(Method::POST, "http://page.test"), Some(Kind::Unauthorized));
    }
}
