//! What a tower takes, and looking at one picture with it.

use super::Backend;
use crate::config::vision::VisionConfig;

/// The most tokens of a picture in normal detail.
const TOKENS: u64 = 2048;

/// The most bytes of scores that are there at once; more queries look in turns.
pub const MAX_TOWER_SCORES: u64 = 256 << 20;

/// A tower as far as memory depends on it.
pub struct TowerShape {
    /// How many layers.
    pub layers: u64,
    /// Width of its stream.
    pub hidden: u64,
    /// Width inside of its networks.
    pub width: u64,
    /// Projections of its networks: 2, or 3 if they are gated.
    pub projections: u64,
    /// Heads of its attention.
    pub heads: u64,
    /// Numbers of what is neither attention nor network: patches, positions, and what leads to the language part.
    pub others: u64,
    /// Patches that become one token.
    pub patches_of_token: u64,
    /// The most tokens of a picture.
    pub tokens: u64,
}

impl TowerShape {
    fn of(config: &VisionConfig) -> Self {
        match config {
            VisionConfig::Gemma4(tower) => Self {
                layers: tower.layers.into(),
                hidden: tower.hidden_size.into(),
                width: tower.intermediate_size.into(),
                projections: 3,
                heads: tower.heads.into(),
                others: u64::from(tower.hidden_size)
                    * (2 * u64::from(tower.positions) + 3 * u64::from(tower.patch_size).pow(2) + u64::from(tower.hidden_size)),
                patches_of_token: u64::from(tower.pooling).pow(2),
                tokens: TOKENS.min(280),
            },
            VisionConfig::Qwen(tower) => {
                let square = u64::from(tower.hidden_size) * u64::from(tower.merge).pow(2);
                let mergers = 1 + tower.deepstack.len() as u64;
                let patch = 3 * u64::from(tower.frames) * u64::from(tower.patch_size).pow(2);
                let positions = tower.positions.map_or(0, |table| u64::from(table.side).pow(2));
                Self {
                    layers: tower.layers.into(),
                    hidden: tower.hidden_size.into(),
                    width: tower.intermediate_size.into(),
                    projections: if tower.gated { 3 } else { 2 },
                    heads: tower.heads.into(),
                    others: u64::from(tower.hidden_size) * (patch + positions)
                        + mergers * square * (square + u64::from(tower.out_hidden_size)),
                    patches_of_token: u64::from(tower.merge).pow(2),
                    tokens: TOKENS,
                }
            }
        }
    }

    fn parameters(&self) -> u64 {
        self.layers * self.hidden * (4 * self.hidden + self.projections * self.width) + self.others
    }
}

/// How many numbers the weights of a tower are.
pub(super) fn parameters(config: &VisionConfig) -> u64 {
    TowerShape::of(config).parameters()
}

/// Bytes of the weights of a tower as they lie in memory. Conversions leave towers in 16 bits.
pub(super) fn weights(config: &VisionConfig, backend: Backend) -> u64 {
    parameters(config) * element(backend)
}

/// The most bytes that looking at a picture in normal detail takes.
pub(super) fn looking(config: &VisionConfig, backend: Backend) -> u64 {
    let shape = TowerShape::of(config);
    looking_at(config, backend, shape.tokens * shape.patches_of_token)
}

/// The bytes that looking at so many patches takes: states, queries, keys and values, what is inside of the network, and scores.
pub(super) fn looking_at(config: &VisionConfig, backend: Backend, patches: u64) -> u64 {
    let shape = TowerShape::of(config);
    let scores = (patches * patches * shape.heads * 4).min(MAX_TOWER_SCORES);
    // Rotations and norms are computed in 32 bits.
    patches * (10 * shape.hidden + 3 * shape.width) * element(backend).max(4) + scores
}

fn element(backend: Backend) -> u64 {
    match backend {
        Backend::Cpu => 4,
        Backend::Metal | Backend::Cuda => 2,
    }
}
