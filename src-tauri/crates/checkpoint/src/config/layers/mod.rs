//! Kinds of layers: for each its config, its checks and the memory that it costs. A file for each mixer, `dense` and
//! `moe` for the feed-forward networks, `hyper` for what connects them.

pub(crate) mod attention;
pub(crate) mod block_index;
pub(crate) mod cross_attention;
pub(crate) mod cycles;
pub(crate) mod delta_net;
pub(crate) mod dense;
pub(crate) mod embedder;
pub(crate) mod folded;
pub(crate) mod gated_conv;
pub(crate) mod hyper;
pub(crate) mod joint;
pub(crate) mod key_conv;
pub(crate) mod layer_runs;
pub(crate) mod lightning;
pub(crate) mod linear;
pub(crate) mod mamba;
pub(crate) mod mamba2;
pub(crate) mod mean_index;
pub mod mla;
pub mod moe;
pub(crate) mod ngrams;
pub(crate) mod norms;
pub(crate) mod plain;
pub(crate) mod pooled;
pub(crate) mod rg_lru;
pub(crate) mod rwkv;
pub(crate) mod stripes;
