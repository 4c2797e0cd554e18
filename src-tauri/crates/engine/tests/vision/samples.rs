//! Images, requests and models without vision, for tests of requests.

use std::collections::BTreeMap;
use std::path::Path;

use protocol::{Content, ImageBytes, Message, Request, Role, Sampling, Thinking};

use crate::common::{files, source, Heard};

/// A question about images.
pub fn question(text: &str, images: &[&ImageBytes]) -> Message {
    let mut message = Message::text(Role::User, text);
    message.content.extend(images.iter().map(|bytes| Content::Image {
        attachment: bytes.id(),
        media_type: "image/bmp".into(),
        width: 1,
        height: 1,
        alt: "stripes.bmp".into(),
    }));
    message
}

pub fn request(model: &Path, messages: Vec<Message>, images: &[&ImageBytes]) -> Request {
    Request {
        sampling: Sampling::greedy(),
        thinking: Some(Thinking::Off),
        max_tokens: Some(6),
        top_logprobs: Some(1),
        images: images
            .iter()
            .map(|bytes| (bytes.id(), (*bytes).clone()))
            .collect::<BTreeMap<_, _>>(),
        ..Request::new(source(model), messages)
    }
}

/// A model without the tensors of its tower, in a folder of its own.
pub fn without_vision_weights(with_vision: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    files::copy_words(with_vision, folder.path());
    let entries = files::read_entries(&with_vision.join("model.safetensors"));
    let kept: Vec<_> = entries
        .into_iter()
        .filter(|entry| !entry.name.contains("vision"))
        .collect();
    files::write_entries(&folder.path().join("model.safetensors"), &kept);
    folder
}

/// The same of Llama 3.2 Vision, whose layers of these numbers look at images: only what looks is gone, or the whole layers, with the tokens that
/// stand for images.
pub fn without_its_looks(with_vision: &Path, layers: [usize; 2], whole: bool) -> tempfile::TempDir {
    let folder = without_vision_weights(with_vision);
    let path = folder.path().join("model.safetensors");
    let mut entries = files::read_entries(&path);
    entries.retain(|entry| match whole {
        true => !layers
            .iter()
            .any(|layer| entry.name.contains(&format!("layers.{layer}."))),
        false => !entry.name.contains("cross_attn"),
    });
    for entry in entries
        .iter_mut()
        .filter(|entry| whole && entry.name.contains("embed_tokens"))
    {
        let row = entry.data.len() / entry.shape[0];
        entry.shape[0] -= 8;
        entry.data.truncate(entry.shape[0] * row);
    }
    files::write_entries(&path, &entries);
    folder
}

/// The tokens of an answer and their log probabilities.
pub fn said(heard: &Heard) -> (Vec<u32>, Vec<f32>) {
    heard.logprobs.iter().map(|token| (token.token, token.logprob)).unzip()
}

pub fn apart(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
