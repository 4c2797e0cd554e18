//! Models: those on this computer, on the hub and behind endpoints.

mod endpoint;
mod gguf;
mod hub;
mod local;
mod quantize;
mod users;

pub use endpoint::{Endpoint, EndpointAddress, EndpointInfo, EndpointModels, KeySource, RemoteModel};
pub use gguf::{GgufImport, GgufModel};
pub use hub::{
    Download, DownloadFile, DownloadState, FileFault, FitVerdict, HubModel, MachineMemory, MemoryFit, ModelNote,
    NetSettings, OutboundRequest, Purpose, Removal, SearchPage, SearchQuery, Sort, TokenSource, Update, Verification,
    VerifyProgress, WrongFile,
};
pub use local::{EngineStatus, LocalModel, LocalRevision, ModelFolderEntry, ModelPlace, ModelShelf};
pub use quantize::{QuantizeChoice, QuantizeFormat, QuantizedModel};
pub use users::{ModelUsage, ModelUsers};
