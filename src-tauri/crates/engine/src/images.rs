//! The pictures of a request before its model is loaded: what each will be to the model, told from its header by what the model's folder
//! says. A picture is unfolded on a thread of its own, and only if somebody has to look at it: most of a chat were read in an earlier turn.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use checkpoint::{sight, ImagePlan, ImageProcessor};
use media::Measured;
use prompt::ImageSpan;
use protocol::{Content, ImageBytes, ImageDetail, Message, Notice, NoticeCode, Request, Role};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::error::Result;
use crate::sequence::{ImageViews, PendingViews, PromptImage};

/// A picture of a request.
#[derive(Clone)]
pub struct PlannedImage {
    /// How it goes through the tower.
    pub plan: ImagePlan,
    /// The details that a person could choose instead, the closest first, with the patches of its largest view at each.
    pub less_detail: Vec<(ImageDetail, u64)>,
    /// A hash of its file, of what is done with it and of how.
    pub hash: [u8; 32],
    /// What goes through the tower.
    pub views: ImageViews,
}

impl PlannedImage {
    /// The picture by itself, in no prompt.
    pub fn alone(&self) -> PromptImage {
        let tokens = self.plan.tokens();
        PromptImage {
            run: 0..tokens,
            places: (0..tokens).collect(),
            plan: self.plan.clone(),
            less_detail: self.less_detail.clone(),
            views: self.views.clone(),
            hash: self.hash,
        }
    }

    /// The picture in the place that it has in a prompt.
    pub fn at(&self, span: &ImageSpan) -> PromptImage {
        PromptImage {
            run: span.range.clone(),
            places: span.features.iter().cloned().flatten().collect(),
            plan: self.plan.clone(),
            less_detail: self.less_detail.clone(),
            views: self.views.clone(),
            hash: self.hash,
        }
    }
}

/// Whether the model in a folder sees, and if it does not although it has a tower, why. What else is wrong with its files, loading tells.
pub fn sees(folder: &Path) -> (bool, Option<String>) {
    match sight(folder) {
        Ok(processor) => (processor.is_some(), None),
        Err(checkpoint::Error::Vision(problem)) => (false, Some(problem)),
        Err(_) => (false, None),
    }
}

/// The pictures of a request.
#[derive(Clone, Default)]
pub struct RequestImages {
    /// Those of the conversation, in their order; one that stands there twice is there twice.
    pub shown: Vec<PlannedImage>,
    /// Those that came along beside the conversation, of a question that somebody is about to ask.
    pub ahead: Vec<PlannedImage>,
}

impl RequestImages {
    /// What the pictures of the conversation will be to the model.
    pub fn plans(&self) -> Vec<ImagePlan> {
        self.shown.iter().map(|image| image.plan.clone()).collect()
    }

    /// Those of the conversation in the places that they have in a prompt.
    pub fn placed(&self, spans: &[ImageSpan]) -> Vec<PromptImage> {
        let placed = |span: &ImageSpan| Some(self.shown.get(span.image)?.at(span));
        spans.iter().filter_map(placed).collect()
    }
}

/// Plans the pictures of a request, after what the model will not see was replaced by its name; also returns what a person should know.
///
/// # Errors
/// If the model's files cannot be read, or one that is shown is no picture.
pub fn prepare(request: &mut Request) -> Result<(RequestImages, Vec<Notice>)> {
    if request.images.is_empty() && !request.messages.iter().any(Message::has_media) {
        return Ok(Default::default());
    }
    let (processor, problem) = match request.model.folder().map(|folder| sight(&folder.path)) {
        Some(Ok(processor)) => (processor.map(Arc::new), None),
        Some(Err(error @ checkpoint::Error::Vision(_))) => (None, Some(error.to_string())),
        Some(Err(error)) => return Err(error.into()),
        None => (None, None),
    };
    let mut notices = request.leave_out_unseen(processor.is_some());
    if let Some(problem) = problem {
        for notice in notices.iter_mut().filter(|notice| notice.code == NoticeCode::ImageLeftOut) {
            notice.message = format!("{} {problem}", notice.message);
        }
    }
    let Some(processor) = processor else {
        return Ok((RequestImages::default(), notices));
    };
    let mut known: HashMap<&str, PlannedImage> = HashMap::new();
    let mut images = RequestImages::default();
    let asked = request.messages.iter().rposition(|message| message.role == Role::User);
    for (index, message) in request.messages.iter().enumerate() {
        for part in &message.content {
            let Content::Image { attachment, alt, .. } = part else { continue };
            let Some(bytes) = request.images.get(attachment) else { continue };
            if !known.contains_key(attachment.as_str()) {
                let (image, measured) = plan(bytes, request, &processor)?;
                if Some(index) == asked {
                    notices.extend(resized(measured, &image.plan, alt));
                }
                known.insert(attachment, image);
            }
            images.shown.extend(known.get(attachment.as_str()).cloned());
        }
    }
    for (attachment, bytes) in &request.images {
        if !known.contains_key(attachment.as_str()) {
            // Nobody has asked about it yet, so nobody hears what is wrong with it.
            images.ahead.extend(plan(bytes, request, &processor).ok().map(|(image, _)| image));
        }
    }
    Ok((images, notices))
}

fn plan(bytes: &ImageBytes, request: &Request, processor: &Arc<ImageProcessor>) -> Result<(PlannedImage, Measured)> {
    let measured = media::measure(bytes)?;
    let (size, detail) = ((measured.width, measured.height), request.image_detail);
    let plan = processor.plan(size.0, size.1, detail)?;
    let mut hash = Sha256::new();
    hash.update(Sha256::digest(&**bytes));
    // What is done with it depends on the settings and on the plan alone.
    hash.update(processor.key());
    hash.update(format!("{plan:?}"));
    let less_detail = processor.less_detail(size, detail);
    let (bytes, processor, planned) = (bytes.clone(), processor.clone(), plan.clone());
    let prepare = move || start(bytes.clone(), processor.clone(), planned.clone());
    let image = PlannedImage {
        plan,
        less_detail,
        hash: hash.finalize().into(),
        views: ImageViews::Prepare(Arc::new(prepare)),
    };
    Ok((image, measured))
}

/// Unfolds a picture on a thread of its own. If there is none, whoever waits hears that it has ended.
fn start(bytes: ImageBytes, processor: Arc<ImageProcessor>, plan: ImagePlan) -> PendingViews {
    let (sender, views) = oneshot::channel();
    let unfold = move || {
        let unfold = || Ok(media::preprocess(&media::decode(&bytes)?, &processor, &plan)?);
        // Nobody may wait any more.
        let _ = sender.send(crate::error::catch_panic(unfold));
    };
    let _ = std::thread::Builder::new().name("picture".into()).spawn(unfold);
    views
}

/// What a person should know of a picture of the question that the model sees smaller than it is.
fn resized(measured: Measured, plan: &ImagePlan, name: &str) -> Option<Notice> {
    let pixels = |width: u32, height: u32| u64::from(width) * u64::from(height);
    let (width, height) = plan.resized;
    if pixels(width, height) >= pixels(measured.width, measured.height) {
        return None;
    }
    let message = format!(
        "The model was shown the picture at {width}×{height} of its {}×{} pixels.",
        measured.width, measured.height
    );
    let notice = Notice::new(NoticeCode::ImageResized, message).with("name", name);
    let notice = notice.with("width", width).with("height", height);
    Some(
        notice
            .with("original_width", measured.width)
            .with("original_height", measured.height),
    )
}
