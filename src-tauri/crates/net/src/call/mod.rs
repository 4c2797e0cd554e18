//! One call: the request as it is put together and sent, and its response.

mod builder;
mod response;
mod timeouts;

pub use builder::RequestBuilder;
pub use response::Response;
pub use timeouts::Timeouts;
