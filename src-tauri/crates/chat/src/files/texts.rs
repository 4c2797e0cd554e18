//! Files of a chat: their text kept once, counted before it is sent, and quoted for the engine.

use api::FileText;
use history::History;
use protocol::{Content, Message, ModelSource, Request, Result, Role, TokenCount};

use crate::core::{blocking, Core};
use crate::files::Files;

/// The name of what was pasted, whose letters are kept as a file.
const UNNAMED: &str = "text.txt";

impl Files {
    /// Reads the text of a file, keeps it, and returns the part that names all of it. It stays as long as a message or
    /// a draft names it, and a day before one does; the file itself is not kept.
    ///
    /// # Errors
    /// `FileBroken` if it has no text that can be read, with the reason; those of the history file.
    pub async fn add_file(&self, bytes: Vec<u8>, name: &str) -> Result<Content> {
        let length = bytes.len() as u64;
        let name = match name.trim() {
            "" => UNNAMED.to_owned(),
            name => name.to_owned(),
        };
        let called = name.clone();
        let document = blocking(move || documents::read(bytes, &called)).await??;
        let excerpt = documents::whole(&document.text);
        Ok(Content::File {
            attachment: self.core.history.add_text(document.text).await?,
            media_type: document.kind.media_type().to_owned(),
            name,
            bytes: length,
            excerpt: Some(excerpt),
        })
    }

    /// The text of a file that was added, in its pages or lines.
    ///
    /// # Errors
    /// `NotFound` if it is not kept any more.
    pub async fn file_text(&self, attachment: &str) -> Result<FileText> {
        let text = self.core.history.text(attachment).await?;
        Ok(FileText {
            unit: documents::unit(&text),
            pieces: documents::pieces(&text).into_iter().map(str::to_owned).collect(),
        })
    }

    /// The files of a chat's messages, as its branch is shown, and of its project: those of the project first, then the
    /// oldest.
    ///
    /// # Errors
    /// `NotFound` if there is no such chat.
    pub async fn of_chat(&self, chat: &str) -> Result<Vec<Content>> {
        let view = self.core.history.chat(chat).await?;
        let project = self.core.history.project_of(chat).await?;
        let files = project.into_iter().flat_map(|project| project.files);
        let parts = view.messages.into_iter().flat_map(|message| message.parts);
        Ok(files
            .chain(parts.map(|part| part.content))
            .filter(|part| matches!(part, Content::File { .. }))
            .collect())
    }

    /// Tokens that this would take in a question to the model of this reference, or to the default model; images left
    /// out, which [`Files::image_tokens`] counts. Nothing is loaded for it.
    ///
    /// # Errors
    /// `ModelNotFound` and `ModelBroken` from the model folder; what the model's template refuses.
    pub async fn content_tokens(&self, reference: Option<&str>, content: Vec<Content>) -> Result<TokenCount> {
        let (_, model) = self.core.model(reference).await?;
        content_tokens(&self.core, &model, content).await
    }
}

/// Keeps a text as a file of this name.
///
/// # Errors
/// Those of the history file.
pub(crate) async fn text_file(history: &History, text: String, name: &str) -> Result<Content> {
    let (bytes, excerpt) = (text.len() as u64, documents::whole(&text));
    Ok(Content::File {
        attachment: history.add_text(text).await?,
        media_type: "text/plain".to_owned(),
        name: name.to_owned(),
        bytes,
        excerpt: Some(excerpt),
    })
}

/// Tokens that this would take in a question to a model, without its images.
pub(crate) async fn content_tokens(core: &Core, model: &ModelSource, content: Vec<Content>) -> Result<TokenCount> {
    let ask = |content: Vec<Content>| {
        let message = Message {
            content,
            ..Message::text(Role::User, "")
        };
        Request::new(model.clone(), vec![message])
    };
    let content = content
        .into_iter()
        .filter(|part| !matches!(part, Content::Image { .. }));
    let mut request = ask(content.collect());
    add_texts(&core.history, &mut request).await;
    let counted = core.engine.count(request).await?;
    // The tokens that the template writes around any question do not count. Some templates refuse an empty one.
    let around = core.engine.count(ask(vec![Content::text(" ")])).await;
    let around = around.map_or(0, |around| around.tokens);
    Ok(TokenCount {
        tokens: counted.tokens.saturating_sub(around),
        estimated: counted.estimated,
    })
}

/// Puts the text of each file in its place, as quoted context. A file whose text is gone stays, and the engine says so.
pub(crate) async fn add_texts(history: &History, request: &mut Request) {
    for message in &mut request.messages {
        if !message.has_media() {
            continue;
        }
        let mut content = Vec::with_capacity(message.content.len());
        for part in message.content.drain(..) {
            Content::push(&mut content, quoted(history, part).await);
        }
        message.content = content;
    }
}

async fn quoted(history: &History, part: Content) -> Content {
    if let Content::File {
        attachment,
        name,
        excerpt,
        ..
    } = &part
    {
        match history.text(attachment).await {
            Ok(text) => return Content::text(documents::quoted(name, &text, *excerpt)),
            Err(error) => tracing::warn!(%error, "the text of a file could not be read"),
        }
    }
    part
}
