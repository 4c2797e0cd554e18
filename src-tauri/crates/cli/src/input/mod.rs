//! Arguments and files: the model, sampling, limits, conversations, images, documents, responses to be continued.

mod absolute;
mod answer_prefix;
mod confirmation;
mod conversation;
mod device;
mod documents;
mod enter_key;
mod images;
mod limits;
mod messages;
mod model;
mod number;
mod piped_text;
mod sampling;
mod text_file;

pub(crate) use absolute::absolute;
pub(crate) use answer_prefix::read_answer_prefix;
pub(crate) use confirmation::confirmed;
pub(crate) use conversation::ConversationArgs;
pub use device::DeviceArg;
pub(crate) use documents::{read_document, DocumentArgs};
pub(crate) use enter_key::EnterKey;
pub use images::{check_vision, ImageArgs, Images};
pub(crate) use images::{read_image, DetailArgs};
pub use limits::KvBitsArg;
pub(crate) use limits::LimitArgs;
pub use messages::{read_json, read_messages, read_tools};
pub use model::ModelArg;
pub(crate) use number::{at_least, whole};
pub(crate) use piped_text::piped_text;
pub(crate) use sampling::SamplingArgs;
pub use sampling::ThinkingArg;
