//! `--image` and `--image-detail`: pictures from files.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use checkpoint::{ImagePlan, ImageProcessor};
use clap::{Args, ValueEnum};
use openai_wire::InvalidParam;
use protocol::{
    Content, Engine, Error, ErrorCode, ImageBytes, ImageDetail, Message, ModelKind, ModelSource, Request, Role,
};

use crate::app;

/// The word that means standard input.
const STDIN: &str = "-";

#[derive(Args, Clone)]
pub struct PictureArgs {
    /// A picture to be shown before the question; may be given several times. `-` reads it from standard input
    #[arg(long = "image", value_name = "FILE")]
    images: Vec<PathBuf>,
    #[command(flatten)]
    detail: DetailArgs,
}

/// `--image-detail`.
#[derive(Args, Clone)]
pub struct DetailArgs {
    /// How closely pictures are looked at: at most 512, 2,048 or 16,384 tokens each; without it as the settings say
    #[arg(long, value_name = "quick|normal|full", hide_possible_values = true)]
    image_detail: Option<DetailArg>,
}

impl DetailArgs {
    /// How closely pictures are looked at, if that is said.
    pub fn detail(&self) -> Option<ImageDetail> {
        self.image_detail.map(|detail| match detail {
            DetailArg::Quick => ImageDetail::Quick,
            DetailArg::Normal => ImageDetail::Normal,
            DetailArg::Full => ImageDetail::Full,
        })
    }
}

/// How closely pictures are looked at.
#[derive(Clone, Copy, ValueEnum)]
enum DetailArg {
    /// What is in it
    Quick,
    /// The text of a whole screen
    Normal,
    /// Small print
    Full,
}

impl PictureArgs {
    /// How closely pictures are looked at: as it is said, or else as it is set.
    pub async fn detail(&self) -> ImageDetail {
        match self.detail.detail() {
            Some(detail) => detail,
            None => app::settings().await.image_detail,
        }
    }

    /// Whether standard input is a picture.
    pub fn read_stdin(&self) -> bool {
        self.images.iter().any(|path| path.as_os_str() == STDIN)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Reads the pictures and puts them before the words of the last question; without one they are the question.
    ///
    /// # Errors
    /// When a file cannot be read or is no picture.
    pub fn put_into(&self, messages: &mut Vec<Message>, pictures: &mut Pictures) -> Result<()> {
        let mut shown = Vec::new();
        for path in &self.images {
            shown.push(pictures.read(path)?);
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

/// The pictures of a command, by their attachments.
#[derive(Default)]
pub struct Pictures(pub BTreeMap<String, ImageBytes>);

impl Pictures {
    /// The picture in a file.
    ///
    /// # Errors
    /// When it cannot be read or is no picture.
    fn read(&mut self, path: &Path) -> Result<Content> {
        let (bytes, name) = read_file(path)?;
        self.add(bytes, &name)
            .map_err(|error| {
                let code = ErrorCode::PictureBroken;
                Error {
                    code,
                    ..Error::from(error)
                }
            })
            .with_context(|| path.display().to_string())
    }

    /// The picture in a data URL of a conversation.
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

    /// The picture of a file with these bytes.
    ///
    /// # Errors
    /// When it is no picture.
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

    /// What the pictures of a conversation will be to the model in this folder, in their order.
    ///
    /// # Errors
    /// When the model does not see, or its files do not say how.
    pub fn plans(messages: &[Message], folder: &Path, detail: ImageDetail) -> Result<Vec<ImagePlan>> {
        let sizes = messages
            .iter()
            .flat_map(|message| &message.content)
            .filter_map(|part| match part {
                Content::Image { width, height, .. } => Some((*width, *height)),
                Content::Text { .. }
                | Content::Thinking { .. }
                | Content::ToolCall { .. }
                | Content::Data { .. }
                | Content::File { .. } => None,
            });
        let sizes: Vec<(u32, u32)> = sizes.collect();
        if sizes.is_empty() {
            return Ok(Vec::new());
        }
        let config = std::fs::read(folder.join("config.json")).context("config.json cannot be read")?;
        let config = serde_json::from_slice(&config).context("config.json is not JSON")?;
        let processor = ImageProcessor::read(folder, &config)?;
        let processor = processor
            .ok_or_else(|| Error::new(ErrorCode::PictureNotSeen, "this model has no way to be shown pictures"))?;
        Ok(sizes
            .into_iter()
            .map(|(width, height)| processor.plan(width, height, detail))
            .collect::<checkpoint::Result<_>>()?)
    }
}

/// The bytes of a file, or of standard input, and what it is called.
///
/// # Errors
/// When it cannot be read.
pub fn read_file(path: &Path) -> Result<(ImageBytes, String)> {
    // One byte more than any picture may have: what never ends is refused like what is too long.
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
        .with_context(|| format!("the picture {} cannot be read", path.display()))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok((bytes.into(), name.unwrap_or_default()))
}

/// Refuses a request with pictures for a model that does not see, and names those on this computer that do.
///
/// # Errors
/// `PictureNotSeen`.
pub async fn check_sees(engine: &dyn Engine, request: &Request) -> Result<()> {
    if request.images.is_empty() {
        return Ok(());
    }
    let capabilities = engine.capabilities(&request.model);
    if capabilities.images {
        return Ok(());
    }
    let because = capabilities.because_blind();
    let seeing = app::models().await.list();
    let seeing = seeing
        .iter()
        .filter(|model| model.sees && model.kind == ModelKind::Chat && model.problem.is_none());
    let seeing: Vec<&str> = seeing.map(|model| model.reference.as_str()).collect();
    let advice = match seeing.is_empty() {
        true => "no model on this computer can; leave the picture out, or fetch a model that sees".to_owned(),
        false => format!("models on this computer that can: {}", seeing.join(", ")),
    };
    let model = ModelSource::reference(&request.model);
    Err(Error::new(
        ErrorCode::PictureNotSeen,
        format!("{model} cannot see pictures{because}; {advice}"),
    )
    .into())
}
