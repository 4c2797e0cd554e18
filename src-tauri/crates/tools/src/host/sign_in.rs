//! Signing in to servers behind an address, and out.

use api::ToolClient;

use super::Tools;
use crate::configuration::{Server, Transport};
use crate::error::{Error, Result};
use crate::oauth::{self, Browser, OwnClient, SignIn, SignInStore};

impl Tools {
    /// Signs in to a server in the person's browser and connects to it; false if they did not want the page to open, or
    /// began anew meanwhile. Hosts call it when a person asked for it.
    ///
    /// # Errors
    /// [`Error::NoServer`], [`Error::NoSignIn`] for a program, [`Error::Off`], and [`Error::SignIn`]; nothing is kept then.
    pub async fn sign_in(&self, id: &str, client: Option<ToolClient>, browser: Browser) -> Result<bool> {
        let server = self.server(id)?;
        if !server.enabled {
            return Err(Error::Off(server.name));
        }
        let address = address_of(&server)?;
        let ended = self.0.sign_ins.begin(id);
        let sign_in = SignIn {
            net: self.0.net.clone(),
            address,
            store: SignInStore::of(self.0.keychain.clone(), id),
            challenge: self.0.servers.demand(id).unwrap_or_default(),
            client: client.map(|client| OwnClient {
                id: client.id.trim().to_owned(),
                secret: Some(client.secret.trim().to_owned()).filter(|secret| !secret.is_empty()),
            }),
        };
        let signed_in = tokio::select! {
            signed_in = oauth::sign_in(sign_in, browser) => signed_in,
            () = ended.notified() => return Ok(false),
        };
        self.0.sign_ins.end(id);
        match signed_in {
            Ok(()) => {}
            Err(oauth::Error::NotOpened) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.note_sign_in(id, true)?;
        self.0.servers.stop(id);
        self.changed();
        self.start(id).await?;
        Ok(true)
    }

    /// Forgets the tokens of a server, and who Ponder is to it.
    ///
    /// # Errors
    /// [`Error::NoServer`], [`Error::SignIn`] if the keychain does not answer, and [`Error::File`].
    pub async fn sign_out(&self, id: &str) -> Result<()> {
        self.server(id)?;
        self.0.sign_ins.end(id);
        SignInStore::of(self.0.keychain.clone(), id).forget().await?;
        self.note_sign_in(id, false)?;
        self.0.servers.stop(id);
        self.changed();
        Ok(())
    }

    fn note_sign_in(&self, id: &str, signed_in: bool) -> Result<()> {
        self.0.file.change(|configuration| {
            let server = configuration.servers.iter_mut().find(|server| server.id == id);
            server.ok_or_else(|| Error::NoServer(id.to_owned()))?.signed_in = signed_in;
            Ok(())
        })
    }
}

fn address_of(server: &Server) -> Result<String> {
    match &server.transport {
        Transport::Http { url, .. } => Ok(url.clone()),
        Transport::Stdio { .. } => Err(Error::NoSignIn(server.name.clone())),
    }
}
