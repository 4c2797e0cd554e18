//! One call: the request as it is put together and sent, and its response.

mod builder;
#[cfg(test)]
mod local_network_tests;
mod redirect;
mod response;
mod timeouts;

pub use builder::RequestBuilder;
pub use redirect::public_host;
pub use response::Response;
pub use timeouts::Timeouts;
