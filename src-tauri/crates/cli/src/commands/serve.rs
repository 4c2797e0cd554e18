use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Result;
use api::ModelShelf;
use clap::Args;
use engine_socket::EngineSocket;
use protocol::{FolderSource, LoadEvent, LocalEngine};
use serde_json::json;
use server::{new_key, AllowedDocuments, KeepAlive, Limits, Server, ServerConfig, DEFAULT_PORT, WAITING};
use tokio::signal::unix::{signal, SignalKind};

use crate::commands::docs::collection_named;
use crate::input::{whole, DeviceArg};
use crate::{app, output};

/// Examples below the help of `ponder serve`.
pub const EXAMPLES: &str = "Examples:
  ponder serve --no-key
  ponder serve -m pebble --port 8080 --keep-alive 10m
  PONDER_API_KEY=secret ponder serve --host 0.0.0.0";

/// `ponder serve`.
#[derive(Args)]
pub struct ServeArgs {
    /// Address to listen on (other computers need an API key)
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS", value_parser = host)]
    host: IpAddr,
    /// Port to listen on (0 picks a free one)
    #[arg(long, default_value_t = DEFAULT_PORT, value_name = "PORT", value_parser = whole(0u16, u16::MAX))]
    port: u16,
    /// API key for clients (a new one if not given, the variable hides it)
    #[arg(long, env = "PONDER_API_KEY", hide_env_values = true, value_name = "KEY")]
    api_key: Option<String>,
    /// Let programs on this computer connect without an API key
    #[arg(long)]
    no_key: bool,
    /// Load this model now, and use it for unknown model names
    #[arg(long, short, value_name = "MODEL")]
    model: Option<String>,
    #[command(flatten)]
    device: DeviceArg,
    /// Write at most N responses at once
    #[arg(long, value_name = "N", value_parser = whole(1u16, 256))]
    max_sequences: Option<u16>,
    /// Eject idle models after this time, for example 10m (-1: only when needed)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    keep_alive: Option<KeepAlive>,
    /// Allow a web page to connect, for example http://localhost:3000 (repeatable)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Allow another host name for this server, for example a proxy's (repeatable)
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Let programs search this collection of documents (repeatable)
    #[arg(long, value_name = "NAME")]
    docs: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Parses an address. `localhost` is the only name; no other is looked up.
fn host(text: &str) -> std::result::Result<IpAddr, String> {
    match text {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        other => other
            .parse()
            .map_err(|_| "it is not an address like 127.0.0.1 or ::1".to_owned()),
    }
}

/// Serves models of this computer over HTTP until it is interrupted.
///
/// # Errors
/// When the model is not here or cannot be loaded, or the address cannot be listened on.
pub async fn run(args: ServeArgs) -> Result<()> {
    args.device.apply();
    let (shared, models) = (app::shared_engine().await?, app::models().await);
    let settings = app::settings().await;
    let mut limits = Limits::default();
    // Limits of its own need an engine of its own.
    let engine: Arc<dyn LocalEngine> = if shared.is_own() || args.max_sequences.is_some() {
        let own = app::engine()?;
        own.limit_prefix_caches(settings.engine.prefix_cache_bytes());
        own.set_threads(settings.engine.threads);
        own.set_device(settings.engine.device);
        if let Some(most) = args.max_sequences {
            own.set_max_sequences(most.into());
            limits.answers = WAITING + usize::from(most);
        }
        Arc::new(own)
    } else {
        Arc::new(shared)
    };
    // While it runs, other commands answer with its engine. If it cannot be shared, or another Ponder shares its own,
    // each process has one.
    let _sharing = EngineSocket::listen(&hub::data_dir()?, engine.clone()).unwrap_or_else(|error| {
        output::warn(&output::sentence(&error.into()));
        None
    });
    let model = args
        .model
        .as_deref()
        .map(|reference| models.find(&app::reference_of(&models, reference)))
        .transpose();
    let model = model.map_err(protocol::Error::from)?;
    let given = args.api_key.filter(|key| !key.trim().is_empty());
    let made = match (&given, args.no_key) {
        (None, false) => Some(new_key()?),
        _ => None,
    };
    let config = ServerConfig {
        address: SocketAddr::new(args.host, args.port),
        key: given.or_else(|| made.clone()),
        allow_origins: args.allow_origin,
        allow_hosts: args.allow_host,
        fallback_model: model.as_ref().map(|model| model.reference.clone()),
        keep_alive: args.keep_alive.unwrap_or_default(),
        image_detail: settings.image_detail,
        documents: documents(&args.docs).await?,
        trim_heap: Some(engine::trim_heap),
        limits,
    };
    // Signals are caught before anybody can know that it listens.
    let (mut interrupted, mut terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let shelf: Arc<dyn ModelShelf> = Arc::new(models);
    let server = Server::start(config, engine.clone(), shelf)
        .await
        .map_err(protocol::Error::from)?;
    let address = server.address();
    if args.json {
        let mut listening = json!({"type": "listening", "address": address.to_string(), "port": address.port()});
        if let Some(key) = made {
            listening["key"] = key.into();
        }
        output::line(&listening)?;
    } else {
        output::text(&format!(
            "Listening on http://{address}/v1 (OpenAI) and http://{address} (Anthropic, Ollama). Press Ctrl+C to stop.\n"
        ))?;
        if let Some(key) = made {
            output::text(&format!("API key for this run: {key} (--no-key goes without one)\n"))?;
        }
    }
    let outcome = tokio::select! {
        failed = load(engine.as_ref(), model) => failed,
        _ = interrupted.recv() => Ok(()),
        _ = terminated.recv() => Ok(()),
    };
    server.stop().await;
    outcome
}

/// The documents that programs may search: the collections of these names.
async fn documents(names: &[String]) -> Result<AllowedDocuments> {
    if names.is_empty() {
        return Ok(AllowedDocuments::default());
    }
    let knowledge = app::knowledge().await?;
    let mut allowed = Vec::new();
    for name in names {
        allowed.push(collection_named(&knowledge, name).await?.id);
    }
    Ok(AllowedDocuments::new(Arc::new(knowledge), allowed))
}

/// Loads the model, if there is one; ends only if that fails.
async fn load(engine: &dyn LocalEngine, model: Option<FolderSource>) -> Result<()> {
    let Some(model) = model else {
        return std::future::pending().await;
    };
    let mut events = engine.load(model);
    while let Some(event) = events.recv().await {
        if let LoadEvent::Failed(error) = event {
            return Err(error.into());
        }
    }
    std::future::pending().await
}
