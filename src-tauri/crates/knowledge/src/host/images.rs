//! Images of a collection, which a vision model of this computer reads when the person says so.

use std::path::{Path, PathBuf};

use api::{ImageReading, ModelShelf};
use protocol::{
    Content, Error as Failure, ErrorCode, FolderSource, ImageBytes, Message, Priority, Request, Role, Sampling,
    Thinking,
};
use tokio::sync::watch;

use super::image_work::ImageWork;
use super::size::{size, RECIPE};
use super::update::blocking;
use super::Knowledge;
use crate::folder::{read, FoundFile, Reading, Stamp};
use crate::index::Collection;
use crate::reading::{describe, Described, Outcome};
use crate::{Error, Result};

/// The request, with the image before it.
const PROMPT: &str = "Write down all text in this image, word for word and in its order. Then describe in a few \
    sentences what the image shows. Write nothing else.";

/// Tokens of a response at most: about a page of small print.
const LONGEST: u32 = 1000;

/// The outcome of reading the images of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImagesRead {
    /// Images that were read.
    pub read: u64,
    /// Images that could not be read, with the reason.
    pub failed: Vec<(PathBuf, Failure)>,
    /// True if it was stopped before the last image.
    pub is_stopped: bool,
}

/// A vision model of this computer.
struct VisionModel {
    source: FolderSource,
    /// Its name for people.
    name: String,
}

impl VisionModel {
    fn of(shelf: &dyn ModelShelf, reference: &str) -> protocol::Result<Self> {
        let source = shelf.resolve(reference)?;
        let Some(source) = source.folder().cloned() else {
            let message = "images of documents are read by models on this computer alone, and nothing was sent. \
                Choose a local model that supports images";
            return Err(Failure::new(ErrorCode::BadRequest, message));
        };
        let listed = shelf
            .list()
            .into_iter()
            .find(|model| model.reference == source.reference);
        let last = || source.reference.rsplit(['/', '\\']).find(|part| !part.is_empty());
        let name = listed.map(|model| model.name).or_else(|| last().map(str::to_owned));
        Ok(Self {
            name: name.unwrap_or_else(|| reference.to_owned()),
            source,
        })
    }
}

impl Knowledge {
    /// Begins to read the images of a collection that no model has read yet, in the background, and embeds what comes of
    /// them. [`Knowledge::view`] tells how far it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such collection; [`Error::Model`] if the model is not on this computer, does
    /// not support images, or reads them already.
    pub async fn begin_images(&self, id: &str, reference: &str) -> Result<()> {
        let (model, stop) = self.image_reader(id, reference).await?;
        let (knowledge, id) = (self.clone(), id.to_owned());
        tokio::spawn(async move {
            if let Err(error) = knowledge.read_with(&id, &model, stop).await {
                tracing::warn!(%error, "images of a collection could not be read");
            }
            if let Err(error) = knowledge.embed().await {
                tracing::warn!(%error, "passages could not be embedded");
            }
        });
        Ok(())
    }

    /// Reads the images of a collection that no model has read yet, one after the other and behind every other work of
    /// the engine. Each is stored as soon as it was read.
    ///
    /// # Errors
    /// As [`Knowledge::begin_images`], and if the model fails as a whole; those of reading and writing the index. What
    /// was read before is found in every case.
    pub async fn read_images(&self, id: &str, reference: &str) -> Result<ImagesRead> {
        let (model, stop) = self.image_reader(id, reference).await?;
        self.read_with(id, &model, stop).await
    }

    /// Stops reading the images of a collection; those that were read stay.
    pub fn stop_images(&self, id: &str) {
        if let Some(work) = self.shared.image_work().get(id) {
            work.stop();
        }
    }

    /// How far the images of a collection are read; `None` if nobody reads them.
    pub fn image_reading(&self, id: &str) -> Option<ImageReading> {
        self.shared.image_work().get(id).map(ImageWork::view)
    }

    /// The model that is to read images, once the work is noted: no other one begins then.
    async fn image_reader(&self, id: &str, reference: &str) -> Result<(VisionModel, watch::Receiver<bool>)> {
        self.collection(id).await?;
        let (shared, wanted) = (self.shared.clone(), reference.to_owned());
        let model = blocking(move || {
            let model = VisionModel::of(&*shared.shelf, &wanted)?;
            let capabilities = shared.engine.capabilities(&model.source.clone().into());
            match capabilities.images {
                true => Ok(model),
                false => {
                    let message = format!(
                        "{} doesn't support images{}; no image was read. Choose another model",
                        model.name,
                        capabilities.because_blind()
                    );
                    Err(Failure::new(ErrorCode::ImageNotSeen, message))
                }
            }
        });
        let model = model.await?.map_err(Error::Model)?;
        let (stop, stopped) = watch::channel(false);
        let view = ImageReading {
            model: model.source.reference.clone(),
            done: 0,
            of: 0,
            failed: 0,
            is_running: true,
            problem: None,
        };
        {
            let mut work = self.shared.image_work();
            if work.get(id).is_some_and(|work| work.view.is_running) {
                let message = "the images of these documents are being read already; wait, or stop it first";
                return Err(Error::Model(Failure::new(ErrorCode::Busy, message)));
            }
            work.insert(id.to_owned(), ImageWork { view, stop });
        }
        self.changed();
        Ok((model, stopped))
    }

    /// Reads images until the last one, or until it is stopped, and notes how it ended.
    async fn read_with(&self, id: &str, model: &VisionModel, mut stop: watch::Receiver<bool>) -> Result<ImagesRead> {
        let mut done = ImagesRead::default();
        let mut closing = self.shared.closing.subscribe();
        let ended = {
            let all = self.read_all_images(id, model, &mut done);
            tokio::select! {
                ended = all => Some(ended),
                _ = stop.wait_for(|stop| *stop) => None,
                _ = closing.wait_for(|closing| *closing) => None,
            }
        };
        done.is_stopped = ended.is_none();
        let problem = ended.and_then(Result::err);
        {
            let mut work = self.shared.image_work();
            if let Some(work) = work.get_mut(id) {
                work.view.is_running = false;
                work.view.problem = problem.as_ref().map(Error::told);
            }
            // A collection may be gone by now, and nothing is told of work without a fault.
            if problem.is_none() && done.failed.is_empty() || *stop.borrow() {
                work.remove(id);
            }
        }
        self.changed();
        match problem {
            Some(error) => Err(error),
            None => Ok(done),
        }
    }

    async fn read_all_images(&self, id: &str, model: &VisionModel, done: &mut ImagesRead) -> Result<()> {
        let _alone = self.shared.image_reading.lock().await;
        let collection = self.collection(id).await?;
        let index = self.index().await?;
        let images = index.unread_images(id).await?;
        let of = images.len() as u64;
        for (path, number) in images.into_iter().zip(0..) {
            self.tell_images(id, number, of, done);
            let Some((hash, outcome)) = self.read_image(&collection, &path, model).await? else {
                continue;
            };
            // An image that changed meanwhile is read the next time.
            if !index.store_if(id, &path, Some(&hash), &outcome, RECIPE).await? {
                continue;
            }
            match outcome {
                Outcome::Failed { error, .. } | Outcome::Image { error: Some(error), .. } => {
                    done.failed.push((path, error));
                }
                _ => done.read += 1,
            }
        }
        self.tell_images(id, of, of, done);
        Ok(())
    }

    fn tell_images(&self, id: &str, number: u64, of: u64, done: &ImagesRead) {
        if let Some(work) = self.shared.image_work().get_mut(id) {
            work.view.done = number;
            work.view.of = of;
            work.view.failed = done.failed.len() as u64;
        }
        self.changed();
    }

    /// The outcome of an image with the hash of its bytes; `None` for a file that cannot be read now, whose reason the
    /// next update finds.
    async fn read_image(
        &self,
        collection: &Collection,
        path: &Path,
        model: &VisionModel,
    ) -> Result<Option<([u8; 32], Outcome)>> {
        let found = FoundFile {
            path: path.to_owned(),
            stamp: Stamp { size: 0, modified: 0 },
        };
        let (source, most_bytes) = (collection.source.clone(), collection.rules.most_bytes);
        let opened = blocking(move || {
            let Reading { bytes, hash, stamp } = read(&source, &found, most_bytes).ok()?;
            let measured = media::measure(&bytes);
            Some((ImageBytes::from(bytes), hash, stamp, measured))
        });
        let Some((bytes, hash, stamp, measured)) = opened.await? else {
            return Ok(None);
        };
        let shown = measured.map_err(Failure::from).map(|measured| Content::Image {
            attachment: bytes.id(),
            media_type: measured.kind.media_type().to_owned(),
            width: measured.width,
            height: measured.height,
            alt: String::new(),
        });
        let said = match shown {
            Ok(shown) => self.ask_of_image(model, bytes, shown).await,
            Err(error) => Err(error),
        };
        Ok(Some((
            hash,
            match said {
                Ok(text) => {
                    let model = model.name.clone();
                    let described = Described { hash, model, text };
                    blocking(move || describe(described, stamp, size())).await?
                }
                Err(error) if error.code == ErrorCode::ImageBroken => Outcome::Failed { hash, stamp, error },
                Err(error) if fails_for_all(error.code) => return Err(Error::Model(error)),
                Err(error) => Outcome::Image {
                    hash,
                    stamp,
                    error: Some(error),
                },
            },
        )))
    }

    /// The text of an image and what it shows, as the model tells it.
    async fn ask_of_image(&self, model: &VisionModel, bytes: ImageBytes, shown: Content) -> protocol::Result<String> {
        let question = Message {
            content: vec![shown, Content::text(PROMPT)],
            ..Message::text(Role::User, "")
        };
        let mut request = Request::new(model.source.clone(), vec![question]);
        request.images.insert(bytes.id(), bytes);
        request.priority = Priority::Background;
        request.sampling = Sampling::greedy();
        request.thinking = Some(Thinking::Off);
        request.max_tokens = Some(LONGEST);
        written(&self.response(request).await?)
    }
}

/// The text of a response without control characters, which could stand for pages.
fn written(said: &str) -> protocol::Result<String> {
    let is_plain = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let plain: String = said.chars().filter(is_plain).collect();
    match plain.trim() {
        "" => Err(Failure::new(
            ErrorCode::Engine,
            "the model wrote nothing of this image; try another model",
        )),
        text => Ok(text.to_owned()),
    }
}

/// True for an error that the next image would meet as well.
fn fails_for_all(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ModelNotFound
            | ErrorCode::ModelBroken
            | ErrorCode::ModelUnsupported
            | ErrorCode::ImageNotSeen
            | ErrorCode::TemplateRefused
            | ErrorCode::Busy
            | ErrorCode::Stopped
            | ErrorCode::EngineGone
    )
}
