//! Changes of a list, which servers since 2026-07-28 tell only to those who subscribed.

use std::time::Duration;

use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::{Peer, RoleClient};
use tokio::sync::watch;
use tokio::time::sleep;

/// How long a subscription that ended waits before the next one.
const REST: Duration = Duration::from_secs(5);

/// Subscriptions that bring nothing before they are given up.
const MOST: u32 = 5;

/// True if the server tells changes of its tools to those who subscribe.
pub(super) fn are_told(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info().is_some_and(|server| {
        let tools = server.capabilities.tools.as_ref();
        server.protocol_version >= ProtocolVersion::V_2026_07_28
            && tools.is_some_and(|tools| tools.list_changed == Some(true))
    })
}

/// Hears the changes until the session ends, or the server goes on ending the subscription.
pub(super) async fn hear(peer: Peer<RoleClient>, listed: watch::Sender<u64>) {
    let mut in_vain = 0;
    while in_vain < MOST && !peer.is_transport_closed() {
        in_vain += 1;
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(mut subscription) => {
                while let Ok(Some(notification)) = subscription.next().await {
                    if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
                        in_vain = 0;
                        listed.send_modify(|times| *times += 1);
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "changes of a list are not told"),
        }
        sleep(REST).await;
    }
}
