//! A server that a person changes after it was added.

use api::{ServerVariable, ToolSetup};

use super::grants::keychain;
use super::servers::secret_name;
use super::setup::ParsedSetup;
use super::Tools;
use crate::configuration::{Setting, Transport, Variable};
use crate::error::{Error, Result};
use crate::oauth::SignInStore;

impl Tools {
    /// Changes a server. A part without a value keeps the secret of its name. Another command or other variables switch
    /// it off, until a person has seen the command; what was allowed for its tools has to be allowed again.
    ///
    /// # Errors
    /// For a name that is taken, and a command that is none; nothing is changed then.
    pub async fn change(&self, id: &str, setup: ToolSetup) -> Result<()> {
        let before = self.server(id)?;
        let had = secrets_of(&before.transport);
        let keeps = |part: &ServerVariable| {
            let empty = part.value.as_ref().is_none_or(String::is_empty);
            empty && had.contains(&part.name)
        };
        let ParsedSetup {
            name,
            transport,
            secrets,
        } = self.read_setup(id, setup, keeps)?;
        if name != before.name {
            self.check_name(&name)?;
        }
        let has = secrets_of(&transport);
        let gone: Vec<String> = had
            .iter()
            .filter(|name| !has.contains(name))
            .map(|name| secret_name(id, name))
            .collect();
        // A new secret is another setting, though the configuration looks the same.
        let changed = transport != before.transport || !secrets.is_empty();
        // A sign-in was one at the former address.
        let signed_out = before.signed_in && transport != before.transport;
        self.with_keychain(move |chain| {
            secrets
                .iter()
                .try_for_each(|(name, secret)| chain.set(name, secret).map_err(keychain))
        })
        .await?;
        self.0.file.change(|configuration| {
            let server = configuration.servers.iter_mut().find(|server| server.id == id);
            let server = server.ok_or_else(|| Error::NoServer(id.to_owned()))?;
            (server.name, server.transport) = (name, transport);
            server.enabled &= !changed;
            server.signed_in &= !signed_out;
            Ok(())
        })?;
        if changed {
            self.0.sign_ins.end(id);
            self.0.servers.stop(id);
        }
        if signed_out {
            SignInStore::of(self.0.keychain.clone(), id).forget().await?;
        }
        self.changed();
        // Nobody reads them any more, so a keychain that does not answer now harms nothing.
        let forgotten =
            self.with_keychain(move |chain| gone.iter().try_for_each(|name| chain.forget(name).map_err(keychain)));
        if let Err(error) = forgotten.await {
            tracing::warn!(%error, "a secret that no server has any more stays in the keychain");
        }
        Ok(())
    }
}

/// The names of the secrets.
fn secrets_of(transport: &Transport) -> Vec<String> {
    let (Transport::Stdio { env: variables, .. } | Transport::Http { headers: variables, .. }) = transport;
    let secret = |variable: &&Variable| variable.value == Setting::Secret;
    variables
        .iter()
        .filter(secret)
        .map(|variable| variable.name.clone())
        .collect()
}
