//! The keys of endpoints: in the system's keychain, or in the environment of this process.

use api::{Endpoint, KeySource};
use net::Net;

use super::address::may_see_its_key;
use crate::error::{Error, Result};

/// How the keychain calls the key of an endpoint.
fn secret_name(endpoint: &str) -> String {
    format!("endpoint:{endpoint}")
}

/// The variable that goes before the keychain: `PONDER_KEY_LAB_2` for an endpoint called `lab-2`.
pub(crate) fn variable(endpoint: &str) -> String {
    let name = endpoint.to_ascii_uppercase();
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("PONDER_KEY_{name}")
}

fn of_environment(endpoint: &Endpoint) -> Option<String> {
    std::env::var(variable(&endpoint.name))
        .ok()
        .filter(|key| !key.trim().is_empty())
}

/// The source of an endpoint's key. The keychain is not asked.
pub(crate) fn source(endpoint: &Endpoint) -> KeySource {
    match (of_environment(endpoint), endpoint.has_key) {
        (Some(_), _) => KeySource::Environment,
        (None, true) => KeySource::Keychain,
        (None, false) => KeySource::None,
    }
}

/// The key of an endpoint, if it has one. The keychain may ask the user to unlock it, so it is asked only if a key was
/// stored for the endpoint.
///
/// # Errors
/// If the keychain does not answer, or the key would be sent unencrypted and the user did not allow it.
pub(crate) async fn key(net: &Net, endpoint: &Endpoint) -> Result<Option<String>> {
    if source(endpoint) != KeySource::None {
        check_way(endpoint)?;
    }
    if let Some(key) = of_environment(endpoint) {
        return Ok(Some(key));
    }
    if !endpoint.has_key {
        return Ok(None);
    }
    let secret = net.secret(&secret_name(&endpoint.name)).await;
    secret.map_err(|error| of_keychain(&endpoint.name, error))
}

/// Refuses a key for an endpoint where anyone on the way could read it, unless the user allowed that.
///
/// # Errors
/// [`Error::KeyUnencrypted`].
pub fn check_way(endpoint: &Endpoint) -> Result<()> {
    if may_see_its_key(endpoint) {
        Ok(())
    } else {
        Err(Error::KeyUnencrypted(endpoint.name.clone()))
    }
}

/// Stores the key of an endpoint.
///
/// # Errors
/// If it is no key, or the keychain does not take it.
pub(crate) async fn store(net: &Net, endpoint: &str, key: &str) -> Result<()> {
    let stored = net.set_secret(&secret_name(endpoint), key).await;
    stored.map_err(|error| of_keychain(endpoint, error))
}

/// Removes the key of an endpoint.
///
/// # Errors
/// If the keychain does not answer.
pub(crate) async fn forget(net: &Net, endpoint: &str) -> Result<()> {
    let forgotten = net.forget_secret(&secret_name(endpoint)).await;
    forgotten.map_err(|error| of_keychain(endpoint, error))
}

/// Names the environment variable of this endpoint; net's own message names that of the hub's token.
fn of_keychain(endpoint: &str, error: net::Error) -> Error {
    match error {
        net::Error::Keychain { reason } => Error::Keychain {
            variable: variable(endpoint),
            reason,
        },
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_variable_is_made_of_letters_digits_and_lines() {
        assert_eq!(super::variable("lab-2.home"), "PONDER_KEY_LAB_2_HOME");
    }
}
