//! What a tower takes, and encoding one picture with it.

use super::Backend;
use crate::config::vision::{MllamaVisionConfig, MobileNetConfig, SiglipProjector, TowerShape, VisionConfig};

/// The most tokens of a picture in normal detail.
const TOKENS: u64 = 2048;

/// The most bytes of scores that are there at once; more queries look in turns.
pub const MAX_TOWER_SCORES: u64 = 256 << 20;

/// A tower as far as memory depends on it.
pub struct TowerCost {
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
    /// What the patches of a view become if it does not go through the tower by itself: rows of all views (Llama 3.2 Vision).
    pub together: Option<u64>,
}

impl TowerCost {
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
                together: None,
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
                    together: None,
                }
            }
            VisionConfig::Siglip(tower) => {
                let cost = Self::plain(&tower.shape, 2, tower.side, 1);
                match tower.projector {
                    // Whatever the size of the picture, the tower sees its one size.
                    SiglipProjector::Pooled { tokens } => {
                        let tokens = u64::from(tokens).pow(2).max(1);
                        let patches_of_token = u64::from(tower.side).pow(2).div_ceil(tokens);
                        Self {
                            patches_of_token,
                            tokens,
                            ..cost
                        }
                    }
                    SiglipProjector::Joined { merge } | SiglipProjector::NormedNetwork { merge } => cost.joined(merge),
                    SiglipProjector::Network { merge, width, .. } => {
                        let inside = u64::from(width) * cost.hidden * u64::from(merge).pow(2);
                        let cost = cost.joined(merge);
                        Self {
                            others: cost.others + inside,
                            ..cost
                        }
                    }
                }
            }
            VisionConfig::Pixtral(tower) => Self::plain(&tower.shape, 3, 0, 1).joined(tower.merger.map_or(1, |merger| merger.merge)),
            VisionConfig::InternVit(tower) => Self::plain(&tower.shape, 2, tower.side, 1).joined(tower.merge),
            VisionConfig::Mllama(tower) => Self::mllama(tower),
            VisionConfig::MobileNet(tower) => Self::mobilenet(tower),
            VisionConfig::Hunyuan(tower) => {
                let cost = Self::plain(&tower.shape, 2, tower.side, 1);
                let patches_of_token = u64::from(tower.merge).pow(2);
                // Two convolutions, and a projection to a language part that is about as wide as the tower.
                let merger = 2 * cost.hidden * cost.hidden * (patches_of_token + 4) + 4 * cost.hidden * cost.hidden;
                Self {
                    others: cost.others + merger,
                    patches_of_token,
                    ..cost
                }
            }
            VisionConfig::Falcon(patches) => Self {
                layers: 0,
                hidden: 3 * u64::from(patches.patch_size).pow(2),
                width: 0,
                projections: 0,
                heads: 0,
                others: (3 * u64::from(patches.patch_size).pow(2)).pow(2),
                patches_of_token: 1,
                tokens: TOKENS,
                together: None,
            },
            VisionConfig::Glm(tower) => {
                let cost = Self::plain(&tower.shape, 3, tower.learned.unwrap_or(0), tower.frames);
                let outputs = u64::from(tower.out_hidden_size);
                let block = cost.hidden * u64::from(tower.merge).pow(2);
                Self {
                    others: cost.others + outputs * (block + outputs + 3 * u64::from(tower.merger_width)),
                    patches_of_token: u64::from(tower.merge).pow(2),
                    ..cost
                }
            }
        }
    }

    /// A fixed network: most is there at once when its second stage widens what the first one made of 768 by 768 pixels.
    fn mobilenet(tower: &MobileNetConfig) -> Self {
        const PARAMETERS: u64 = 300_000_000;
        const PLACES: u64 = 192 * 192;
        const WIDTH: u64 = 6 * 128;
        Self {
            layers: 0,
            hidden: 128,
            width: WIDTH,
            projections: 2,
            heads: 0,
            others: PARAMETERS + u64::from(tower.hidden_size) * u64::from(tower.marks),
            patches_of_token: 1,
            tokens: u64::from(tower.side).pow(2),
            together: Some(PLACES),
        }
    }

    /// Tables with a row for each arrangement of tiles, and a projection of all that the language part looks at, which is taken to be about three
    /// times as wide as the tower.
    fn mllama(tower: &MllamaVisionConfig) -> Self {
        let cost = Self::plain(&tower.shape, 2, tower.side, 1);
        let table = u64::from(tower.tiles) * cost.hidden * (u64::from(tower.states_of_tile()) + 2);
        let joined = cost.hidden * (1 + tower.intermediate.len() as u64);
        Self {
            layers: cost.layers + u64::from(tower.global_layers),
            others: cost.others + table * (1 + tower.arrangements.len() as u64) + joined * 3 * cost.hidden,
            together: Some(u64::from(tower.tiles) * u64::from(tower.rows_of_tile())),
            ..cost
        }
    }

    /// A stack with learned positions for so many patches along a side, whose patches hold so many frames.
    fn plain(shape: &TowerShape, projections: u64, side: u32, frames: u32) -> Self {
        let hidden = u64::from(shape.hidden_size);
        let patch = 3 * u64::from(frames) * u64::from(shape.patch_size).pow(2);
        Self {
            layers: shape.layers.into(),
            hidden,
            width: shape.intermediate_size.into(),
            projections,
            heads: shape.heads.into(),
            others: hidden * (patch + u64::from(side).pow(2)),
            patches_of_token: 1,
            tokens: TOKENS,
            together: None,
        }
    }

    /// Joined to the language part by blocks of so many patches along a side; it is taken to be about as wide as a block.
    fn joined(self, merge: u32) -> Self {
        let patches_of_token = u64::from(merge).pow(2);
        let block = self.hidden * patches_of_token;
        Self {
            others: self.others + block * block,
            patches_of_token,
            ..self
        }
    }

    fn parameters(&self) -> u64 {
        self.layers * self.hidden * (4 * self.hidden + self.projections * self.width) + self.others
    }
}

/// How many numbers the weights of a tower are.
pub(super) fn parameters(config: &VisionConfig) -> u64 {
    TowerCost::of(config).parameters()
}

/// Bytes of the weights of a tower as they lie in memory. Conversions leave towers in 16 bits.
pub(super) fn weights(config: &VisionConfig, backend: Backend) -> u64 {
    parameters(config) * element(backend)
}

/// The most bytes that encoding a picture in normal detail takes.
pub(super) fn encoding_memory(config: &VisionConfig, backend: Backend) -> u64 {
    let shape = TowerCost::of(config);
    encoding_memory_of(config, backend, shape.tokens * shape.patches_of_token)
}

/// The bytes that encoding so many patches takes: states, queries, keys and values, what is inside of the network, and scores.
pub(super) fn encoding_memory_of(config: &VisionConfig, backend: Backend, patches: u64) -> u64 {
    let shape = TowerCost::of(config);
    let patches = shape.together.unwrap_or(patches);
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
