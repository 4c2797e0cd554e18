//! Collections: folders of documents that chats ask, as windows show them.

mod citations;
mod collections;

pub use citations::{CheckedCitation, CheckedCitations, CitationVerdict, PageMark, PassagePage, PassageText};
pub use collections::{
    CollectionActivity, CollectionFile, CollectionFileState, CollectionSource, CollectionView, CollectionsView,
    EmbeddingProgress, ImageReading, LeftOut, RerankingView, SkipReason, Unwatched,
};
