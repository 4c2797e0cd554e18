//! The bytes of images, as requests carry them.

use std::fmt;
use std::sync::Arc;

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The bytes of an image file. Clones share them; in JSON they are base64.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ImageBytes(Arc<[u8]>);

impl ImageBytes {
    /// The id of the file everywhere, the `attachment` of [`Content::Image`](crate::Content::Image): SHA-256 of its
    /// bytes, hexadecimal. Equal images have equal ids.
    pub fn id(&self) -> String {
        format!("{:x}", Sha256::digest(&self.0))
    }

    /// True if a text has the form of such an id, so that it is safe in a path.
    pub fn is_id(text: &str) -> bool {
        text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// The bytes as base64.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// The bytes in a data URL.
    ///
    /// # Errors
    /// If the address is of another kind, which is never opened, or its bytes are not base64; the reason is for the
    /// user.
    pub fn from_data_url(url: &str) -> Result<Self, &'static str> {
        let scheme = url.get(..5).unwrap_or_default();
        if !scheme.eq_ignore_ascii_case("data:") {
            return Err("only data URLs are read: no address is opened, and no file. Send data:image/png;base64,…");
        }
        let data = url
            .split_once(',')
            .filter(|(head, _)| head.to_ascii_lowercase().ends_with(";base64"));
        data.and_then(|(_, data)| Self::from_base64(data.trim()))
            .ok_or("this data URL holds no base64; send data:image/png;base64,…")
    }

    /// The bytes as a data URL of this media type.
    pub fn to_data_url(&self, media_type: &str) -> String {
        format!("data:{media_type};base64,{}", self.to_base64())
    }

    /// The bytes of this base64; `None` if it is invalid.
    pub fn from_base64(text: &str) -> Option<Self> {
        STANDARD.decode(text).ok().map(Self::from)
    }
}

impl std::ops::Deref for ImageBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for ImageBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for ImageBytes {
    /// Prints the length alone, to keep logs readable.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ImageBytes({} bytes)", self.0.len())
    }
}

impl Serialize for ImageBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for ImageBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::from_base64(&text).ok_or_else(|| D::Error::custom("an image's bytes are no base64"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_json_and_have_their_hash_as_their_name() {
        let bytes = ImageBytes::from(b"abc".to_vec());
        assert_eq!(
            bytes.id(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let json = serde_json::to_string(&bytes).unwrap();
        assert_eq!(json, r#""YWJj""#);
        assert_eq!(serde_json::from_str::<ImageBytes>(&json).unwrap(), bytes);
        assert!(serde_json::from_str::<ImageBytes>(r#""not base64!""#).is_err());
        assert_eq!(format!("{bytes:?}"), "ImageBytes(3 bytes)");
    }

    #[test]
    fn only_data_urls_are_read() {
        let bytes = ImageBytes::from(b"abc".to_vec());
        assert_eq!(bytes.to_data_url("image/png"), "data:image/png;base64,YWJj");
        for url in [
            "data:image/png;base64,YWJj",
            "DATA:;BASE64,YWJj",
            "data:image/png;charset=x;base64, YWJj\n",
        ] {
            assert_eq!(ImageBytes::from_data_url(url), Ok(bytes.clone()), "{url}");
        }
        for url in [
            "http://a/b.png",
            "https://a/b.png",
            "file:///etc/passwd",
            "/etc/passwd",
            "",
            "datä:",
            "data:image/png,YWJj",
            "data:;base64,ü",
        ] {
            assert!(ImageBytes::from_data_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn only_a_hash_may_be_part_of_a_path() {
        assert!(ImageBytes::is_id(&ImageBytes::from(Vec::new()).id()));
        for other in [
            "",
            "../../etc/passwd",
            &"A".repeat(64),
            &"a".repeat(63),
            &format!("{}/", "a".repeat(63)),
        ] {
            assert!(!ImageBytes::is_id(other), "{other}");
        }
    }
}
