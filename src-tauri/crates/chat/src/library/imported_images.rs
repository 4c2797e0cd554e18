//! Images of chats that come from files: what a file says of them is not believed.

use std::collections::BTreeMap;

use history::ImportedChat;
use media::Measured;
use protocol::Content;

/// Measures the images of a chat, and takes out those that cannot be shown: each would fail, or take its time, whenever
/// the chat is opened.
pub(super) fn measure_images(chat: &mut ImportedChat) {
    let mut measured: BTreeMap<String, Option<Measured>> = BTreeMap::new();
    let parts = chat.messages.iter_mut().flat_map(|message| &mut message.parts);
    for content in parts.map(|part| &mut part.content).chain(&mut chat.draft) {
        let Content::Image {
            attachment,
            media_type,
            width,
            height,
            ..
        } = content
        else {
            continue;
        };
        let Some((_, bytes)) = chat.images.get(attachment.as_str()) else {
            continue;
        };
        let facts = measured
            .entry(attachment.clone())
            .or_insert_with(|| media::measure(bytes).ok());
        if let Some(facts) = facts {
            facts.kind.media_type().clone_into(media_type);
            (*width, *height) = (facts.width, facts.height);
        }
    }
    for (attachment, facts) in measured {
        match (facts, chat.images.get_mut(&attachment)) {
            (Some(facts), Some((media_type, _))) => facts.kind.media_type().clone_into(media_type),
            _ => {
                chat.images.remove(&attachment);
                chat.dropped_images += 1;
            }
        }
    }
}
