//! What all requests share.

use std::net::SocketAddr;
use std::sync::Arc;

use protocol::Engine;
use tokio_util::sync::CancellationToken;

use crate::catalogue::Catalogue;
use crate::clients::Clients;
use crate::exchange::Clock;
use crate::guard::Guard;
use crate::json_body::BodyLimits;
use crate::metrics::Metrics;
use crate::responses_store::ResponsesStore;

/// What all requests share.
pub(crate) struct State {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) catalogue: Catalogue,
    pub(crate) guard: Guard,
    pub(crate) clients: Clients,
    pub(crate) metrics: Metrics,
    pub(crate) responses: ResponsesStore,
    pub(crate) clock: Clock,
    /// Answers that may be made or waited for.
    pub(crate) most_answers: usize,
    pub(crate) body: BodyLimits,
    pub(crate) address: SocketAddr,
    /// Ends everything.
    pub(crate) stop: CancellationToken,
}
