//! Services on the session bus of Linux.

use zbus::fdo::DBusProxy;
use zbus::names::BusName;
use zbus::{Connection, Result};

/// True if a program offers this service or, if that counts (`started`), would be started for it.
pub async fn offers(name: &'static str, started: bool) -> bool {
    let asked = async {
        let connection = Connection::session().await?;
        let bus = DBusProxy::new(&connection).await?;
        let there = bus.name_has_owner(BusName::try_from(name)?).await?;
        Result::Ok(
            there
                || (started
                    && bus
                        .list_activatable_names()
                        .await?
                        .iter()
                        .any(|known| known.as_str() == name)),
        )
    };
    asked.await.unwrap_or(false)
}
