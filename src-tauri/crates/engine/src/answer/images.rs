//! The images of a request before its model is loaded: the plan of each, from its header and the processor in the
//! model's folder. An image is decoded on a thread of its own, and only if it has to be encoded: most of a chat were
//! read in an earlier turn.

use std::collections::HashMap;
use std::sync::Arc;

use checkpoint::{vision_support, ImagePlan, ImageProcessor};
use media::Measured;
use prompt::ImageSpan;
use protocol::{Content, ImageBytes, ImageDetail, Message, Notice, NoticeCode, Request, Role};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::error::Result;
use crate::sequence::{ImageViews, PendingViews, PromptImage};

/// An image of a request.
#[derive(Clone)]
pub struct ImageInput {
    /// How it goes through the vision encoder.
    pub plan: ImagePlan,
    /// The details that the user could choose instead, the closest first, with the patches of its largest view at each.
    pub less_detail: Vec<(ImageDetail, u64)>,
    /// A hash of its file, of what is done with it and of how.
    pub hash: [u8; 32],
    /// The pixels that go through the vision encoder.
    pub views: ImageViews,
}

impl ImageInput {
    /// The image by itself, in no prompt.
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

    /// The image in the place that it has in a prompt.
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

/// The images of a request.
#[derive(Clone, Default)]
pub struct RequestImages {
    /// Those of the conversation, in their order; one that stands there twice is there twice.
    pub shown: Vec<ImageInput>,
    /// Those that came with the conversation, of a question that the user is about to ask.
    pub ahead: Vec<ImageInput>,
}

impl RequestImages {
    /// The plans of the images of the conversation.
    pub fn plans(&self) -> Vec<ImagePlan> {
        self.shown.iter().map(|image| image.plan.clone()).collect()
    }

    /// Those of the conversation in the places that they have in a prompt.
    pub fn placed(&self, spans: &[ImageSpan]) -> Vec<PromptImage> {
        let placed = |span: &ImageSpan| Some(self.shown.get(span.image)?.at(span));
        spans.iter().filter_map(placed).collect()
    }
}

/// Plans the images of a request, after what the model will not see was replaced by its name; also returns what the
/// user should know.
///
/// # Errors
/// If the model's files cannot be read, or one that is shown is no image.
pub fn prepare(request: &mut Request) -> Result<(RequestImages, Vec<Notice>)> {
    if request.images.is_empty() && !request.messages.iter().any(Message::has_media) {
        return Ok(Default::default());
    }
    let (processor, problem) = match request.model.folder().map(|folder| vision_support(&folder.path)) {
        Some(Ok(processor)) => (processor.map(Arc::new), None),
        Some(Err(error @ checkpoint::Error::Vision(_))) => (None, Some(error.to_string())),
        Some(Err(error)) => return Err(error.into()),
        None => (None, None),
    };
    let mut notices = request.leave_out_unseen(processor.is_some());
    if let Some(problem) = problem {
        for notice in notices
            .iter_mut()
            .filter(|notice| notice.code == NoticeCode::ImageLeftOut)
        {
            notice.message = format!("{} {problem}", notice.message);
        }
    }
    let Some(processor) = processor else {
        return Ok((RequestImages::default(), notices));
    };
    let mut known: HashMap<&str, ImageInput> = HashMap::new();
    let mut images = RequestImages::default();
    let asked = request.messages.iter().rposition(|message| message.role == Role::User);
    for (index, message) in request.messages.iter().enumerate() {
        for part in &message.content {
            let Content::Image { attachment, alt, .. } = part else {
                continue;
            };
            let Some(bytes) = request.images.get(attachment) else {
                continue;
            };
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
            // No question refers to it yet, so its errors are not reported.
            images
                .ahead
                .extend(plan(bytes, request, &processor).ok().map(|(image, _)| image));
        }
    }
    Ok((images, notices))
}

fn plan(bytes: &ImageBytes, request: &Request, processor: &Arc<ImageProcessor>) -> Result<(ImageInput, Measured)> {
    let measured = media::measure(bytes)?;
    let (size, detail) = ((measured.width, measured.height), request.image_detail);
    let plan = processor.plan(size.0, size.1, detail)?;
    let mut hash = Sha256::new();
    hash.update(Sha256::digest(&**bytes));
    // The pixels that are made of it depend on the settings and on the plan alone.
    hash.update(processor.key());
    hash.update(format!("{plan:?}"));
    let less_detail = processor.less_detail(size, detail);
    let (bytes, processor, planned) = (bytes.clone(), processor.clone(), plan.clone());
    let prepare = move || start(bytes.clone(), processor.clone(), planned.clone());
    let image = ImageInput {
        plan,
        less_detail,
        hash: hash.finalize().into(),
        views: ImageViews::Prepare(Arc::new(prepare)),
    };
    Ok((image, measured))
}

/// Decodes an image on a thread of its own. If there is none, the receiver learns that it has ended.
fn start(bytes: ImageBytes, processor: Arc<ImageProcessor>, plan: ImagePlan) -> PendingViews {
    let (sender, views) = oneshot::channel();
    let unfold = move || {
        let unfold = || Ok(media::preprocess(&media::decode(&bytes)?, &processor, &plan)?);
        // The receiver may be gone.
        let _ = sender.send(crate::error::catch_panic(unfold));
    };
    let _ = std::thread::Builder::new().name("image".into()).spawn(unfold);
    views
}

/// A notice for an image of the question that the model sees at less than its size.
fn resized(measured: Measured, plan: &ImagePlan, name: &str) -> Option<Notice> {
    let pixels = |width: u32, height: u32| u64::from(width) * u64::from(height);
    let (width, height) = plan.resized;
    if pixels(width, height) >= pixels(measured.width, measured.height) {
        return None;
    }
    let message = format!(
        "The model was shown the image at {width}×{height} of its {}×{} pixels.",
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
