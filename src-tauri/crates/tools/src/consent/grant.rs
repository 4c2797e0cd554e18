//! A consent to all later calls of a tool as it is now.

use std::fmt;

use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::canonical::Digest;
use crate::catalog::{Binding, ToolRef};

/// A consent to later calls of a tool, as long as its binding stays.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The tool.
    pub tool: ToolRef,
    /// The tool as it was shown.
    pub binding: Binding,
    /// The host that its calls may reach, if the binding names one.
    pub host: Option<String>,
    /// When it was given, in Unix milliseconds.
    pub granted_at: i64,
}

/// The key by which grants are sealed. It lies in the keychain, so that nobody makes a grant by writing a file, and it is
/// a new one after each revocation, so that no older file brings a grant back.
#[derive(Clone, PartialEq, Eq)]
pub struct SealKey([u8; 32]);

impl SealKey {
    /// The key of these random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("SealKey")
    }
}

/// A grant in a file, with its seal (HMAC-SHA256, RFC 2104).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedGrant {
    server: String,
    tool: String,
    binding: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    granted_at: i64,
    seal: String,
}

impl SealedGrant {
    /// The grant, sealed.
    pub fn seal(grant: &Grant, key: &SealKey) -> Self {
        Self {
            server: grant.tool.server.clone(),
            tool: grant.tool.tool.clone(),
            binding: grant.binding.digest().to_string(),
            host: grant.host.clone(),
            granted_at: grant.granted_at,
            seal: Digest::from_bytes(mac(grant, key).finalize().into_bytes().into()).to_string(),
        }
    }

    /// The grant, if it was sealed with this key.
    pub fn open(&self, key: &SealKey) -> Option<Grant> {
        let grant = Grant {
            tool: ToolRef {
                server: self.server.clone(),
                tool: self.tool.clone(),
            },
            binding: Binding::from_digest(Digest::parse(&self.binding)?),
            host: self.host.clone(),
            granted_at: self.granted_at,
        };
        let seal = Digest::parse(&self.seal)?;
        // In constant time.
        mac(&grant, key).verify_slice(seal.bytes()).ok()?;
        Some(grant)
    }
}

fn mac(grant: &Grant, key: &SealKey) -> Hmac<Sha256> {
    let ToolRef { server, tool } = &grant.tool;
    let (binding, granted_at) = (grant.binding.digest().to_string(), grant.granted_at.to_string());
    let mut said = vec!["ponder tool grant 1", server, tool, &binding, &granted_at];
    said.extend(grant.host.as_deref());
    let said = Digest::of(&said);
    // A key of the length of a block, as a shorter one is filled up.
    let mut block = [0; 64];
    block[..32].copy_from_slice(&key.0);
    let mut mac = <Hmac<Sha256> as Mac>::new((&block).into());
    mac.update(said.bytes());
    mac
}
