//! How a chat asks: its model, its settings with those of its project, and the request for an answer to a branch.

use std::borrow::Cow;

use api::{ChatSettings, Project, StoredMessage};
use history::History;
use protocol::{
    most_of_result, Capabilities, Content, FolderSource, ModelSource, OfferedTool, Request, Result, Role, OWN_CHATS,
};

use crate::core::Core;
use crate::files::images::attachments;
use crate::files::texts::add_texts;
use crate::request::compaction_mark::after_mark;
use crate::request::conversation::{add_question, conversation, put_before_questions};
use crate::request::personal::{is_personal, may_know, notes, without_other_chats};
use crate::request::results::{Results, SURELY_FITS};
use crate::request::tools::offered_tools;

/// The parts of a request that do not depend on the question.
#[derive(Debug, Clone)]
pub(crate) struct RequestTemplate {
    /// The reference of the model.
    pub(crate) reference: String,
    pub(crate) model: ModelSource,
    /// Those of the model, read once: an engine may have to open the model's files for them.
    pub(crate) capabilities: Capabilities,
    /// The settings, with the instructions and collections of the project before those of the chat, and the user's defaults for the
    /// model for what both leave open.
    pub(crate) settings: ChatSettings,
    /// The model that drafts the answers.
    pub(crate) draft_model: Option<FolderSource>,
    /// Files of the chat's project, whose texts stand before its first question.
    pub(crate) files: Vec<Content>,
    /// The tools that the model is told of.
    pub(crate) tools: Vec<OfferedTool>,
    /// True if the model may be told of the user and of their other chats.
    pub(crate) may_know: bool,
}

impl RequestTemplate {
    /// The template for these settings of a chat, with the instructions and the files of its project.
    ///
    /// # Errors
    /// `ModelNotFound` and `ModelBroken` from the model folder.
    pub(crate) async fn of_chat(core: &Core, chat: &str, settings: ChatSettings) -> Result<Self> {
        let project = core.history.project_of(chat).await?;
        let mut template = Self::in_project(core, project, settings).await?;
        if template.capabilities.tools {
            template.tools = offered_tools(core, chat, &template.settings).await?;
            if !template.may_know {
                template.tools.retain(|tool| !is_personal(&tool.of));
            }
        }
        Ok(template)
    }

    /// [`RequestTemplate::of_chat`] for a chat in this project, which may not be created yet.
    pub(crate) async fn in_project(core: &Core, project: Option<Project>, mut settings: ChatSettings) -> Result<Self> {
        let (reference, model) = core.model(settings.model.as_deref()).await?;
        let may_know = may_know(core, &model);
        let notes = match may_know {
            true => notes(core, project.as_ref()).await?,
            false => String::new(),
        };
        let files = take_from_project(project, &mut settings);
        settings.system_prompt = paragraphs(&[&settings.system_prompt, &notes]);
        if !may_know {
            settings.collections.retain(|collection| collection != OWN_CHATS);
        }
        let defaults = core.settings.borrow().model_defaults.get(&reference).cloned();
        let mut draft_model = None;
        if let Some(defaults) = defaults {
            draft_model = draft_model_of(core, &model, defaults.draft_model.as_deref()).await;
            settings = defaults.applied_to(settings);
        }
        let capabilities = core.capabilities(&model).await;
        Ok(Self {
            reference,
            model,
            capabilities,
            settings,
            draft_model,
            files,
            tools: Vec::new(),
            may_know,
        })
    }

    /// The request for an answer to the end of this branch or, if there is one, to this question after it, with the
    /// texts of its files and, for a model with vision, the bytes of its images. An image whose file is gone is left
    /// out, and the engine reports it.
    pub(crate) async fn build(&self, core: &Core, branch: &[StoredMessage], question: &[Content]) -> Request {
        let history = &core.history;
        let results = self.results(core, branch).await;
        let branch = match self.may_know {
            true => Cow::Borrowed(branch),
            false => without_other_chats(branch),
        };
        let mut request = self.without_media(&branch, question, results);
        add_texts(history, &mut request).await;
        if self.capabilities.images {
            let named: Vec<String> = request
                .messages
                .iter()
                .flat_map(|message| attachments(&message.content))
                .collect();
            add_images(history, &mut request, named).await;
        }
        request
    }

    /// The tokens of its model's context that a chat uses, if that is known on this computer.
    pub(crate) async fn context(&self, core: &Core) -> Option<u32> {
        let context = model_context(core, &self.model).await?;
        Some(self.settings.context.map_or(context, |most| most.min(context)))
    }

    /// How the model is given the results of tools in this branch.
    async fn results(&self, core: &Core, branch: &[StoredMessage]) -> Results {
        // The models are only listed where it matters.
        let context = match branch.iter().any(is_long_result) {
            true => self.context(core).await.or(self.settings.context),
            false => None,
        };
        Results {
            most: most_of_result(context),
            // OpenAI's interface takes texts there, and other servers refuse the whole conversation.
            images: self.capabilities.images && self.model.folder().is_some(),
        }
    }

    fn without_media(&self, branch: &[StoredMessage], question: &[Content], results: Results) -> Request {
        let (instructions, branch) = after_mark(&self.settings, branch);
        let mut messages = conversation(&instructions, branch, results);
        add_question(&mut messages, question);
        put_before_questions(&mut messages, &self.files);
        let mut request = Request::new(self.model.clone(), messages);
        request.tools = self.tools.iter().map(|tool| tool.declaration.clone()).collect();
        request.thinking = self.settings.thinking;
        request.thinking_budget = self.settings.thinking_budget;
        request.sampling = self.settings.sampling.clone();
        request.chat_defaults = true;
        request.max_tokens = self.settings.max_tokens;
        request.context = self.settings.context;
        // An endpoint has no setting for its cache, and the chat may go on with another model.
        request.kv_bits = self.model.folder().and(self.settings.kv_bits);
        request.draft_model = self.draft_model.clone();
        request.stop = self.settings.stop.clone();
        request.image_detail = self.settings.image_detail;
        request
    }
}

/// The draft model of this reference for a model; `None` if it is gone, or the model is on another computer.
async fn draft_model_of(core: &Core, model: &ModelSource, reference: Option<&str>) -> Option<FolderSource> {
    model.folder()?;
    let reference = reference?;
    match core.resolve(reference).await {
        Ok(found) => found.folder().cloned(),
        Err(error) => {
            tracing::warn!(%error, reference, "the draft model is not on this computer");
            None
        }
    }
}

/// The tokens that a model's context holds, if that is known on this computer.
async fn model_context(core: &Core, model: &ModelSource) -> Option<u32> {
    model.folder()?;
    let reference = model.reference();
    if let Some(info) = core.loaded(&reference) {
        return Some(info.context);
    }
    let listed = core.models().await;
    listed.into_iter().find(|model| model.reference == reference)?.context
}

fn is_long_result(stored: &StoredMessage) -> bool {
    let texts = stored.parts.iter().filter_map(|part| part.content.as_text());
    stored.role == Role::Tool && texts.map(|text| text.len()).sum::<usize>() > SURELY_FITS
}

/// Puts the instructions and collections of a project before those of a chat in it; returns the project's files.
fn take_from_project(project: Option<Project>, settings: &mut ChatSettings) -> Vec<Content> {
    let (instructions, files, mut collections) = project
        .map(|project| (project.system_prompt, project.files, project.collections))
        .unwrap_or_default();
    settings.collections.retain(|own| !collections.contains(own));
    collections.append(&mut settings.collections);
    settings.collections = collections;
    settings.system_prompt = paragraphs(&[&instructions, &settings.system_prompt]);
    files
}

/// Those of these texts that say something.
fn paragraphs(texts: &[&str]) -> String {
    let said = texts.iter().filter(|text| !text.trim().is_empty());
    said.copied().collect::<Vec<_>>().join("\n\n")
}

/// Adds the bytes of these images.
pub(crate) async fn add_images(history: &History, request: &mut Request, attachments: Vec<String>) {
    for attachment in attachments {
        if request.images.contains_key(&attachment) {
            continue;
        }
        match history.attachment_bytes(&attachment).await {
            Ok(bytes) => {
                request.images.insert(attachment, bytes);
            }
            Err(error) => tracing::warn!(%error, "an image could not be read"),
        }
    }
}
