use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use openai_wire::InvalidParam;
use protocol::{
    Content, Engine, Error, ErrorCode, ImageBytes, ImageDetail, Message, ModelKind, ModelSource, Request, Role,
};

use crate::app;

/// The path that stands for standard input.
pub(super) const STDIN: &str = "-";

/// `--image` and `--image-detail`.
#[derive(Args, Clone)]
pub struct ImageArgs {
    /// Attach an image, or - for standard input (repeatable)
    #[arg(long = "image", short = 'i', value_name = "FILE")]
    images: Vec<PathBuf>,
    #[command(flatten)]
    detail: DetailArgs,
}

/// `--image-detail`.
#[derive(Args, Clone)]
pub struct DetailArgs {
    /// Image detail, at most 512, 2048 or 16384 tokens (default: from Settings)
    #[arg(long, value_name = "low|standard|high", hide_possible_values = true)]
    image_detail: Option<DetailArg>,
}

impl DetailArgs {
    /// The detail, if it is given.
    pub fn detail(&self) -> Option<ImageDetail> {
        self.image_detail.map(|detail| match detail {
            DetailArg::Low => ImageDetail::Quick,
            DetailArg::Standard => ImageDetail::Normal,
            DetailArg::High => ImageDetail::Full,
        })
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum DetailArg {
    /// The subject
    #[value(alias = "quick")]
    Low,
    /// The text of a whole screen
    #[value(alias = "normal")]
    Standard,
    /// Small print
    #[value(alias = "full")]
    High,
}

impl ImageArgs {
    /// The given detail, or else that of the settings.
    pub async fn detail(&self) -> ImageDetail {
        match self.detail.detail() {
            Some(detail) => detail,
            None => app::settings().await.image_detail,
        }
    }

    /// True if one of the images is standard input.
    pub fn read_stdin(&self) -> bool {
        self.images.iter().any(|path| path.as_os_str() == STDIN)
    }

    /// True without images.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Reads the images and puts them before the text of the last message; without one they are the message.
    ///
    /// # Errors
    /// When a file cannot be read or is no image.
    pub fn put_into(&self, messages: &mut Vec<Message>, images: &mut Images) -> Result<()> {
        let mut shown = Vec::new();
        for path in &self.images {
            shown.push(images.read(path)?);
        }
        if shown.is_empty() {
            return Ok(());
        }
        match messages.last_mut().filter(|last| last.role == Role::User) {
            Some(last) => drop(last.content.splice(0..0, shown)),
            None => messages.push(Message {
                content: shown,
                ..Message::text(Role::User, "")
            }),
        }
        Ok(())
    }
}

/// The images of a command, by their attachments.
#[derive(Default)]
pub struct Images(pub BTreeMap<String, ImageBytes>);

impl Images {
    fn read(&mut self, path: &Path) -> Result<Content> {
        let (bytes, name) = read_image(path)?;
        let added = self.add(bytes, &name).map_err(Error::from);
        added.with_context(|| path.display().to_string())
    }

    /// The image in a data URL of a conversation; `place` names the URL in errors.
    ///
    /// # Errors
    /// When it is none; no address is opened.
    pub fn read_url(&mut self, url: &str, place: &str) -> Result<Content, InvalidParam> {
        let invalid = |reason: String| InvalidParam {
            param: place.to_owned(),
            reason,
        };
        let bytes = ImageBytes::from_data_url(url).map_err(|reason| invalid(reason.to_owned()))?;
        self.add(bytes, "").map_err(|error| invalid(error.to_string()))
    }

    /// Takes the bytes of an image's file; `name` becomes its alternative text.
    ///
    /// # Errors
    /// When it is no image.
    pub fn add(&mut self, bytes: ImageBytes, name: &str) -> media::Result<Content> {
        let measured = media::measure(&bytes)?;
        let attachment = bytes.id();
        self.0.insert(attachment.clone(), bytes);
        Ok(Content::Image {
            attachment,
            media_type: measured.kind.media_type().to_owned(),
            width: measured.width,
            height: measured.height,
            alt: name.to_owned(),
        })
    }
}

/// The bytes and the name of a file; the path `-` is standard input, which has no name.
///
/// # Errors
/// When it cannot be read.
pub fn read_image(path: &Path) -> Result<(ImageBytes, String)> {
    // One byte more than any image may have: a device that never ends is refused like a file that is too long.
    let most = media::MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    if path.as_os_str() == STDIN {
        std::io::stdin()
            .take(most)
            .read_to_end(&mut bytes)
            .context("standard input cannot be read")?;
        return Ok((bytes.into(), String::new()));
    }
    std::fs::File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .with_context(|| format!("the image {} cannot be read", path.display()))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok((bytes.into(), name.unwrap_or_default()))
}

/// Refuses a request with images for a model without vision, and names those on this computer that have it.
///
/// # Errors
/// `ImageNotSeen`.
pub async fn check_vision(engine: &dyn Engine, request: &Request) -> Result<()> {
    if request.images.is_empty() {
        return Ok(());
    }
    let capabilities = engine.capabilities(&request.model);
    if capabilities.images {
        return Ok(());
    }
    let because = capabilities.because_blind();
    let vision_models = app::models().await.list();
    let vision_models = vision_models
        .iter()
        .filter(|model| model.supports_vision && model.kind == ModelKind::Chat && model.problem.is_none());
    let vision_models: Vec<&str> = vision_models.map(|model| model.reference.as_str()).collect();
    let advice = match vision_models.is_empty() {
        true => "No model on this computer does. Remove the image or download a vision model".to_owned(),
        false => format!("Models on this computer that do: {}", vision_models.join(", ")),
    };
    let model = ModelSource::reference(&request.model);
    let message = format!("{model} doesn't support images{because}. {advice}");
    Err(Error::new(ErrorCode::ImageNotSeen, message).into())
}
