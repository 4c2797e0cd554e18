//! Folders that a person chose for a server, which it is told of (*roots*).

use std::path::{Path, PathBuf};

use super::Tools;
use crate::error::{Error, Result};
use crate::session::can_be_root;

/// Folders of a server at most.
const MOST_ROOTS: usize = 50;

impl Tools {
    /// Gives a server a folder that the person chose. What was allowed for its tools has to be allowed again.
    ///
    /// # Errors
    /// [`Error::NoServer`], [`Error::BadFolder`] and [`Error::File`].
    pub async fn add_root(&self, id: &str, folder: &Path) -> Result<()> {
        if !folder.is_dir() || !can_be_root(folder) {
            return Err(Error::BadFolder("it is no folder of this computer"));
        }
        self.change_roots(id, |roots| {
            if roots.len() >= MOST_ROOTS {
                return Err(Error::BadFolder("the server has all that fit"));
            }
            if !roots.iter().any(|root| root == folder) {
                roots.push(folder.to_path_buf());
            }
            Ok(())
        })
        .await
    }

    /// Takes a folder from a server.
    ///
    /// # Errors
    /// [`Error::NoServer`] and [`Error::File`].
    pub async fn remove_root(&self, id: &str, folder: &str) -> Result<()> {
        self.change_roots(id, |roots| {
            roots.retain(|root| root.display().to_string() != folder);
            Ok(())
        })
        .await
    }

    async fn change_roots(&self, id: &str, change: impl FnOnce(&mut Vec<PathBuf>) -> Result<()>) -> Result<()> {
        let roots = self.0.file.change(|configuration| {
            let server = configuration.servers.iter_mut().find(|server| server.id == id);
            let server = server.ok_or_else(|| Error::NoServer(id.to_owned()))?;
            change(&mut server.roots)?;
            Ok(server.roots.clone())
        })?;
        self.0.servers.set_roots(id, roots).await;
        self.changed();
        Ok(())
    }
}
