//! The table `settings`: values of the whole app, as JSON under a key.

use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::rows::{from_json, to_json};
use crate::{History, Result};

impl History {
    /// The value under this key; `None` where it was never set.
    pub async fn setting<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let json: Option<String> = sqlx::query_scalar("SELECT value FROM settings WHERE key = ?")
            .bind(key)
            .fetch_optional(&self.readers)
            .await?;
        json.map(|json| from_json("setting", &json)).transpose()
    }

    /// Sets the value under this key.
    pub async fn set_setting<T: Serialize + Sync>(&self, key: &str, value: &T) -> Result<()> {
        let mut transaction = self.write().await?;
        sqlx::query("INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
            .bind(key)
            .bind(to_json(value))
            .execute(&mut *transaction)
            .await?;
        Ok(transaction.commit().await?)
    }
}
