//! Softmax attention and its cost.

use super::{Backend, CacheFormat, MixerCost, Part, Prefill};

/// Norms of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadNorms {
    None,
    /// One operation for queries and keys.
    Together,
    /// One for queries and one for keys.
    Separate,
    /// The same after they have turned.
    Turned,
}

/// Attention of one layer, of any family.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttentionCost {
    pub heads: u64,
    pub key_heads: u64,
    /// Width of a head.
    pub width: u64,
    /// Width of a value.
    pub value_width: u64,
    pub window: Option<u64>,
    pub keys: Keys,
    pub norms: HeadNorms,
    /// True if the kernel of our own that splits, norms and rotates the projections has norms of this kind.
    pub one_kernel: bool,
    /// True if heads that share keys do not lie side by side.
    pub tiled: bool,
    /// True if positions turn queries and keys.
    pub turns: bool,
    /// Numbers of a gate for what the heads found.
    pub gate: u64,
    /// True if queries grow with their position.
    pub scales: bool,
    /// True if what it finds is mixed with what the same queries find in the keys of the first loop.
    pub mixes_loops: bool,
    /// True if keys and values are sums of two tokens.
    pub key_conv: bool,
    pub sinks: bool,
    /// True if scores are squeezed, which no kernel does.
    pub capped: bool,
    /// True if each head sees other positions, which no kernel hides.
    pub striped: bool,
    /// True if queries, keys and values have biases.
    pub bias: bool,
    /// True if the output has one.
    pub out_bias: bool,
    /// The index of the blocks that are looked at.
    pub index: Option<IndexCost>,
}

/// An index of blocks of positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexCost {
    pub heads: u64,
    /// Width of a head and of the key.
    pub width: u64,
    /// Positions of a key.
    pub block: u64,
    /// Positions that a query looks at; nothing is chosen while there are no more.
    pub seen: u64,
}

/// The source of keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Projections of the layer.
    Own,
    /// The layer's keys, which are its values too.
    AreValues,
    /// An earlier layer.
    Shared,
}

/// The shape of queries times keys.
pub(crate) struct ScoreShape {
    pub heads: u64,
    pub width: u64,
    pub value_width: u64,
    /// Positions with keys.
    pub seen: u64,
    pub sinks: bool,
    /// True if scores are squeezed, which no kernel does.
    pub capped: bool,
    /// True if each head sees other positions, which no kernel hides.
    pub striped: bool,
    /// True if a mask hides some of the earlier positions.
    pub masked: bool,
}

impl AttentionCost {
    /// Numbers that the projection produces, those of the gate included.
    fn projected(&self) -> u64 {
        let own = match self.keys {
            Keys::Own => self.pair(),
            Keys::AreValues => self.key_heads * self.width,
            Keys::Shared => 0,
        };
        let index = self.index.map_or(0, |index| index.projected());
        self.heads * self.width + own + self.gate + index
    }

    /// Numbers of the keys and values of a position.
    fn pair(&self) -> u64 {
        self.key_heads * (self.width + self.value_width)
    }

    /// Bytes of the chunk's keys and values as a cache keeps them.
    fn kept(&self, pass: &Prefill<'_>) -> u64 {
        pass.rows * self.pair() * pass.cache.kv_element
    }

    /// Queries that grow with their position, written over those that do not.
    fn scale_queries(&self, pass: &mut Prefill<'_>) {
        if self.scales {
            pass.last_leaves();
            pass.in_place(1);
        }
    }

    /// Projections, norms and positions of all heads.
    fn heads(&self, pass: &mut Prefill<'_>) {
        let (queries, keys) = (self.heads * self.width, self.key_heads * self.width);
        let turning = match self.keys {
            Keys::Shared => queries,
            Keys::Own | Keys::AreValues => queries + keys,
        };
        if pass.workload.backend == Backend::Cpu && self.bias && !pass.norms_apart {
            // The norm is no part of a product with a bias, which the kernel adds.
            pass.make_by_kernel(pass.hidden);
        }
        pass.product(pass.hidden, self.projected());
        if self.key_conv {
            pass.short_conv(self.pair(), 2, pass.element);
            pass.make(self.projected());
        }
        let kernel = match pass.workload.backend {
            Backend::Cpu => self.one_kernel,
            Backend::Metal => false,
            Backend::Cuda => {
                self.one_kernel && self.gate == 0 && self.index.is_none() && self.norms != HeadNorms::Turned
            }
        };
        if kernel && self.keys != Keys::AreValues {
            if self.gate > 0 || self.index.is_some() {
                // The gate, or what an index reads, is another part of what the product gave.
                pass.last_leaves();
            }
            // One kernel writes queries, keys and values.
            if pass.workload.backend != Backend::Cpu {
                return pass.make(self.projected());
            }
            pass.take(self.kept(pass), 0);
            pass.last_joins();
            if self.window.is_some() && pass.positions > pass.rows {
                // They are put after those that the window sees.
                pass.last_leaves();
            }
            match self.norms == HeadNorms::Turned {
                true => self.norms_of_turned(pass),
                false => pass.make_by_kernel(queries),
            }
            if self.mixes_loops || self.index.is_some() {
                pass.last_leaves();
            }
            return self.scale_queries(pass);
        }
        if pass.workload.backend == Backend::Cpu && self.keys != Keys::AreValues {
            return self.compose(pass, queries, turning - queries);
        }
        pass.head_norms(self.norms, queries, turning - queries);
        if self.keys == Keys::AreValues {
            pass.make(turning);
        }
        match self.turns {
            true => pass.turn(turning),
            // Brought into the order in which they are read.
            false => pass.make(queries),
        }
    }

    /// Norms of queries and keys that a kernel has turned. Keys are in 16 bits by then, for which there is no kernel.
    fn norms_of_turned(&self, pass: &mut Prefill<'_>) {
        let (queries, keys) = (self.heads * self.width, self.key_heads * self.width);
        let wide = pass.rows * keys * pass.element;
        pass.last_leaves();
        pass.make_by_kernel(queries);
        pass.last_leaves();
        // Widened, and squared beside that; the mean, its root and two products.
        pass.take(wide, 0);
        pass.take(wide, 0);
        pass.in_place(5);
        pass.take(self.kept(pass) / 2, 0);
        pass.last_joins();
    }

    /// The same by several operations on a CPU, between which heads are looked at in another order.
    fn compose(&self, pass: &mut Prefill<'_>, queries: u64, keys: u64) {
        pass.last_leaves();
        match self.norms {
            HeadNorms::None | HeadNorms::Turned => {
                pass.look(2);
                if self.turns {
                    pass.make_by_kernel(queries + keys);
                }
            }
            HeadNorms::Together => {
                pass.look(1);
                pass.make_by_kernel(queries + keys);
                pass.last_leaves();
                pass.look(4);
                if self.turns {
                    pass.make_by_kernel(queries + keys);
                }
            }
            HeadNorms::Separate => {
                for width in [queries, keys] {
                    pass.make_by_kernel(width);
                    pass.last_leaves();
                    pass.look(2);
                    if self.turns {
                        pass.make_by_kernel(width);
                    }
                }
                pass.look(3);
            }
        }
        if self.norms == HeadNorms::Turned {
            pass.make_by_kernel(queries);
            pass.make_by_kernel(keys);
        }
        self.scale_queries(pass);
        pass.take(self.kept(pass), 0);
        pass.last_joins();
    }

    fn scores(&self, pass: &mut Prefill<'_>) {
        let seen = self.window.map_or(pass.positions, |window| pass.seen(window));
        let outputs = self.heads * self.value_width;
        if self.striped {
            // Marks of blocks, spread over their positions.
            pass.in_place(14);
        }
        pass.attend(&ScoreShape {
            heads: self.heads,
            width: self.width,
            value_width: self.value_width,
            seen,
            sinks: self.sinks,
            capped: self.capped,
            striped: self.striped,
            masked: self.window.is_some_and(|window| seen > window)
                || self.index.is_some_and(|index| seen > index.seen),
        });
        if self.mixes_loops {
            self.mix_loops(pass);
        }
        if self.tiled {
            // In the order of the checkpoint, by way of another one.
            pass.last_leaves();
            pass.look(2);
            pass.make(outputs);
            if pass.workload.backend != Backend::Cpu {
                pass.make(outputs);
            }
        }
        if self.gate > 0 {
            pass.last_leaves();
            pass.look(1);
            pass.make(self.gate);
            match self.gate == outputs || pass.workload.backend != Backend::Cpu {
                // Written over the gate.
                true => pass.in_place(1),
                // A number for each head, which has to be brought beside those of the head.
                false => {
                    pass.look(3);
                    pass.make(outputs);
                }
            }
        }
        pass.product(outputs, pass.hidden);
        if (self.out_bias || self.bias) && pass.workload.backend != Backend::Cpu {
            pass.in_place(1);
        }
    }
}

impl AttentionCost {
    /// A gate of the queries, and by it what is found in the keys of two loops.
    fn mix_loops(&self, pass: &mut Prefill<'_>) {
        let (queries, outputs) = (self.heads * self.width, self.heads * self.value_width);
        pass.last_leaves();
        // The values found in the first loop, and queries times the factors of their gates.
        pass.make_by_kernel(outputs);
        pass.last_leaves();
        pass.make(queries);
        for _ in 0..4 {
            pass.make(self.heads);
        }
        pass.look(6);
        // The difference of both, which the rest is written over.
        pass.make(outputs);
        pass.in_place(2);
    }
}

impl IndexCost {
    fn projected(self) -> u64 {
        (self.heads + 1) * self.width
    }

    /// Its queries and keys, and the scores of all positions in 32 bits.
    fn prefill(self, pass: &mut Prefill<'_>) {
        pass.norm(self.projected(), false);
        pass.turn(self.projected());
        if pass.positions <= self.seen {
            return;
        }
        let all = (self.heads * pass.rows).saturating_mul(pass.positions / self.block);
        // Whole chunks end with whole blocks, so that scores have no copies with room for the rest of one. They are gone
        // before the marks are spread.
        pass.hold_in_one_layer(
            all.saturating_mul(4)
                .saturating_add(pass.rows.saturating_mul(pass.positions)),
        );
        pass.in_place(12);
    }
}

impl MixerCost for AttentionCost {
    fn weights(&self, hidden: u64) -> Vec<Part> {
        vec![
            Part::matrix(self.projected(), hidden),
            Part::matrix(hidden, self.heads * self.value_width),
        ]
    }

    fn cache(&self, format: &CacheFormat, positions: u64) -> u64 {
        match (self.keys, self.window) {
            (Keys::Shared, _) => 0,
            (_, Some(window)) => {
                let rows = positions.min(window.saturating_sub(1) + format.chunk.min(positions));
                self.pair() * format.kv_element * rows
            }
            (_, None) => {
                let row = format.row(self.width) + format.row(self.value_width);
                let index = self
                    .index
                    .map_or(0, |index| (index.width * format.element).div_ceil(index.block));
                (self.key_heads * row + index) * CacheFormat::grown(positions)
            }
        }
    }

    fn prefill(&self, pass: &mut Prefill<'_>, keys_alone: bool) {
        self.heads(pass);
        if self.keys != Keys::Shared {
            pass.grow(self);
        }
        if keys_alone {
            return;
        }
        if self.window.is_none() && pass.cache.quantizes(self.width) {
            // Quantized keys and values become plain again for a chunk.
            pass.take(self.pair() * pass.positions * pass.element, 0);
            pass.in_place(1);
        }
        if let Some(index) = self.index {
            index.prefill(pass);
        }
        self.scores(pass);
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn shares_keys(&self) -> bool {
        self.keys == Keys::Shared
    }
}
