use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Result;
use api::ModelShelf;
use clap::Args;
use engine_socket::EngineSocket;
use protocol::{FolderSource, LoadEvent, LocalEngine};
use serde_json::json;
use server::{KeepAlive, Limits, Server, ServerConfig, DEFAULT_PORT, WAITING};
use tokio::signal::unix::{signal, SignalKind};

use crate::{app, output};

/// `ponder serve`.
#[derive(Args)]
pub struct ServeArgs {
    /// The address to listen on; any but this computer's own needs a key
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS", value_parser = host)]
    host: IpAddr,
    /// The port to listen on; 0 takes a free one
    #[arg(long, default_value_t = DEFAULT_PORT, value_name = "PORT")]
    port: u16,
    /// The key that clients must send; other programs of this computer can read arguments, so PONDER_API_KEY is the
    /// better place
    #[arg(long, env = "PONDER_API_KEY", hide_env_values = true, value_name = "KEY")]
    api_key: Option<String>,
    /// Load this model at once, and answer with it if a client names a model that is not here
    #[arg(long, value_name = "REF")]
    model: Option<String>,
    /// At most this many answers at once; more wait
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    max_sequences: Option<u16>,
    /// How long a model that a client asked stays in memory after its last answer, such as 10m, 0 or -1 (until another
    /// one needs the room, which is the default); a request may say otherwise
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    keep_alive: Option<KeepAlive>,
    /// A web page that may ask, such as http://localhost:3000
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Another name of this server, such as that of a proxy in front of it
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Print the address as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Parses an address. `localhost` is the only name; no other is looked up.
fn host(text: &str) -> std::result::Result<IpAddr, String> {
    match text {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        other => other
            .parse()
            .map_err(|_| "it is an address such as 127.0.0.1 or ::1".to_owned()),
    }
}

/// Serves models of this computer over HTTP until it is interrupted.
///
/// # Errors
/// When the model is not here or cannot be loaded, or the address cannot be listened on.
pub async fn run(args: ServeArgs) -> Result<()> {
    let (shared, models) = (app::shared_engine()?, app::models().await);
    let settings = app::settings().await;
    let mut limits = Limits::default();
    // Limits of its own need an engine of its own.
    let engine: Arc<dyn LocalEngine> = if shared.is_own() || args.max_sequences.is_some() {
        let own = app::engine()?;
        own.limit_prefix_caches(settings.engine.prefix_cache_bytes());
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
    let config = ServerConfig {
        address: SocketAddr::new(args.host, args.port),
        key: args.api_key,
        allow_origins: args.allow_origin,
        allow_hosts: args.allow_host,
        fallback_model: model.as_ref().map(|model| model.reference.clone()),
        keep_alive: args.keep_alive.unwrap_or_default(),
        image_detail: settings.image_detail,
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
        output::line(&json!({"type": "listening", "address": address.to_string(), "port": address.port()}))?;
    } else {
        output::text(&format!(
            "Ponder answers at http://{address}/v1 (OpenAI) and http://{address} (Anthropic); Ctrl+C ends it\n"
        ))?;
    }
    let outcome = tokio::select! {
        failed = load(engine.as_ref(), model) => failed,
        _ = interrupted.recv() => Ok(()),
        _ = terminated.recv() => Ok(()),
    };
    server.stop().await;
    outcome
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
