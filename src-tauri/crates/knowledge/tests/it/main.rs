//! Collections on the disk, and an index that is killed, damaged and made anew.

#![allow(clippy::unwrap_used)]

mod damage;
mod documents_of_a_folder;
mod kill;
mod ranking;
mod searching;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use knowledge::{prepare, walk, Changes, Form, Index, Rules, Size, Source, Text};
use protocol::{Error, Reason};

/// A folder with documents and an index beside it.
pub(crate) struct House {
    folder: tempfile::TempDir,
    pub(crate) index: Index,
    pub(crate) collection: String,
}

pub(crate) const RECIPE: &str = "words 50";

pub(crate) fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

pub(crate) const SIZE: Size<'static> = Size {
    most: 50,
    overlap: 5,
    count: &words,
};

/// Why a file without text is not read.
pub(crate) fn no_text() -> Error {
    Error::because(Reason::FileWithoutText, "this file is no text").with("kind", "Markdown")
}

/// Reads whatever is text as Markdown.
pub(crate) fn as_markdown(bytes: Vec<u8>, _name: &str) -> Result<Text, Error> {
    let text = String::from_utf8(bytes).map_err(|error| match error.as_bytes().starts_with(b"\x89PNG") {
        true => Error::because(Reason::FileKind, "an image cannot be read"),
        false => no_text(),
    })?;
    Ok(Text {
        text,
        form: Form::Markdown,
    })
}

impl House {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("documents")).unwrap();
        let index = Index::open(&folder.path().join("data/knowledge.sqlite")).await.unwrap();
        let source = Source::Folder(folder.path().join("documents"));
        let collection = index.add_collection("Tea", &source, &Rules::default()).await.unwrap();
        Self {
            folder,
            index,
            collection,
        }
    }

    pub(crate) fn documents(&self) -> PathBuf {
        self.folder.path().join("documents")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("data/knowledge.sqlite")
    }

    /// Writes a document that changed a minute ago.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        write(&self.documents().join(name), text.as_ref(), 60);
    }

    pub(crate) async fn look(&self) -> Changes {
        let collection = self.index.collection(&self.collection).await.unwrap();
        let found = walk(&collection.source, &collection.rules).unwrap();
        self.index.sync(&self.collection, &found, RECIPE).await.unwrap()
    }

    /// Brings the index up to the folder.
    pub(crate) async fn update(&self) -> Changes {
        let sync = self.look().await;
        let collection = self.index.collection(&self.collection).await.unwrap();
        for file in &sync.read {
            let outcome = prepare(
                &collection.source,
                &collection.rules,
                &file.file,
                file.known,
                &as_markdown,
                SIZE,
            );
            let stored = self
                .index
                .store(&self.collection, &file.file.path, &outcome, RECIPE)
                .await
                .unwrap();
            assert!(stored);
        }
        sync
    }

    pub(crate) async fn found(&self, question: &str) -> Vec<String> {
        let hits = self.index.search(&[&self.collection], question, 20).await.unwrap();
        hits.into_iter().map(|hit| hit.passage.text).collect()
    }
}

pub(crate) fn write(path: &Path, text: &[u8], seconds_ago: u64) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds_ago))
        .unwrap();
}
