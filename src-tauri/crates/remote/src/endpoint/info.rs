//! Descriptions of endpoints, and names that are free.

use api::{Endpoint, EndpointInfo, KeySource};

use super::address::{may_see_its_key, meaning};
use super::keys;
use crate::error::{Error, Result};

/// The description of an endpoint that windows show.
pub fn info(endpoint: &Endpoint) -> EndpointInfo {
    EndpointInfo {
        name: endpoint.name.clone(),
        address: meaning(&endpoint.base_url),
        key: keys::source(endpoint),
        personal: endpoint.personal,
        key_held_back: keys::source(endpoint) != KeySource::None && !may_see_its_key(endpoint),
    }
}

/// Refuses a name that another of these endpoints has, or one so like it that both would find their keys under one name
/// in the environment: then the key of one would be sent to the other.
///
/// # Errors
/// [`Error::NameTaken`] with the name of the other.
pub fn check_name_is_free(endpoints: &[Endpoint], name: &str) -> Result<()> {
    match endpoints
        .iter()
        .find(|known| keys::variable(&known.name) == keys::variable(name))
    {
        Some(known) => Err(Error::NameTaken(known.name.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::address::endpoint;

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
}
