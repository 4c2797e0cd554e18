//! What the layers' ways of mixing positions allocate.

use super::cache;
use super::prefill::Prefill;
use super::shapes::{Attention, Keys, Layer, Mixer};
use super::Backend;
use crate::config::decoder::{CrossAttentionConfig, DeltaNetConfig, QkNorm};
use crate::config::mla::MlaConfig;

/// Tokens that the delta rule computes together (`CHUNK` of the engine's `DeltaRule`).
const RULE_CHUNK: u64 = 64;

/// What heads look at.
struct Attended {
    heads: u64,
    width: u64,
    value_width: u64,
    /// Positions that there are.
    seen: u64,
    sinks: bool,
    /// Whether marks say what each position sees, which is less than everything before it.
    masked: bool,
}

impl Prefill<'_> {
    /// The mixer of a layer, from the normed stream on; of the last layer that is read only what its cache keeps.
    pub(super) fn mixer(&mut self, layer: &Layer, keys_alone: bool) {
        match &layer.mixer {
            Mixer::Attention(attention) => {
                self.heads(attention);
                if attention.keys != Keys::Shared {
                    self.grow(&layer.mixer);
                }
                if !keys_alone {
                    self.unpack(&layer.mixer, attention);
                    self.attention(attention);
                }
            }
            Mixer::Mla(latent) => self.latent(latent, &layer.mixer, keys_alone),
            Mixer::DeltaNet(net) => self.delta_net(net),
            Mixer::CrossAttention(cross) => self.cross(cross),
            Mixer::GatedConv(conv) => {
                let (hidden, kernel) = (self.shapes.hidden, u64::from(conv.kernel));
                self.product(hidden, 3 * hidden);
                self.make(hidden);
                self.short_conv(hidden, kernel, self.element);
                self.product(hidden, hidden);
            }
        }
    }

    /// Attention to the states of a picture.
    fn cross(&mut self, cross: &CrossAttentionConfig) {
        let (heads, width) = (u64::from(cross.heads), u64::from(cross.head_dim));
        self.product(self.shapes.hidden, heads * width);
        self.norm(heads * width, false);
        self.attend(&Attended {
            heads,
            width,
            value_width: width,
            seen: cross.states.into(),
            sinks: false,
            masked: false,
        });
        self.product(heads * width, self.shapes.hidden);
        self.make(self.shapes.hidden);
    }

    /// Projections, norms and positions of all heads.
    fn heads(&mut self, attention: &Attention) {
        let (queries, keys) = (attention.heads * attention.width, attention.key_heads * attention.width);
        let turning = match attention.keys {
            Keys::Shared => queries,
            Keys::Own | Keys::AreValues => queries + keys,
        };
        self.product(self.shapes.hidden, attention.projected() * attention.width);
        let kernel = self.workload.backend == Backend::Cuda
            && !attention.output_gate
            && !matches!(attention.norm, QkNorm::Whole | QkNorm::PerHeadTurned);
        if kernel && attention.keys != Keys::AreValues {
            // One kernel writes queries, keys and values.
            return self.make(attention.projected() * attention.width);
        }
        self.head_norms(attention.norm, queries, turning - queries);
        if attention.keys == Keys::AreValues {
            self.make(turning);
        }
        self.turn(turning);
    }

    /// Rotary positions. The CPU has no kernel: four halves, which become two, and the two joined.
    fn turn(&mut self, numbers: u64) {
        if self.workload.backend == Backend::Cpu {
            for _ in 0..4 {
                self.make(numbers.div_ceil(2));
            }
            // The table of angles, and views of the halves.
            self.in_place(10);
        }
        self.make(numbers);
    }

    /// A cache takes the chunk in: it is copied to a larger place, and the old one lives a while longer. What it keeps in the
    /// end counts elsewhere.
    fn grow(&mut self, mixer: &Mixer) {
        let before = self.positions - self.rows;
        let old = match before {
            0 => 0,
            _ => cache::of_layer(self.shapes, mixer, self.workload, before),
        };
        let new = cache::of_layer(self.shapes, mixer, self.workload, self.positions);
        // Keys, then values. What is added at the end is made of zeros first, and then written over.
        self.take(old, 0);
        match mixer {
            Mixer::Attention(attention) if attention.window.is_some() => self.in_place(3),
            _ => {
                self.take(new.saturating_sub(old), 0);
                self.in_place(6);
            }
        }
    }

    /// Keys and values of few bits are made plain again for a chunk.
    fn unpack(&mut self, mixer: &Mixer, attention: &Attention) {
        if cache::is_packed(mixer, self.workload.kv_bits) {
            let bytes = 2 * attention.key_heads * attention.width * self.positions * self.element;
            self.take(bytes, 0);
            self.in_place(1);
        }
    }

    fn attention(&mut self, attention: &Attention) {
        let seen = attention.window.map_or(self.positions, |window| self.seen(window));
        let (width, outputs) = (attention.width, attention.heads * attention.width);
        self.attend(&Attended {
            heads: attention.heads,
            width,
            value_width: width,
            seen,
            sinks: attention.sinks,
            masked: attention.window.is_some_and(|window| seen > window),
        });
        if attention.output_gate {
            self.make(outputs);
            self.in_place(1);
        }
        self.product(outputs, self.shapes.hidden);
    }

    /// Scaled dot product attention, and its result put in the order of the tokens.
    fn attend(&mut self, attended: &Attended) {
        let outputs = attended.heads * attended.value_width;
        if !self.fused(attended) {
            let scores = (attended.heads * self.rows)
                .saturating_mul(attended.seen)
                .saturating_mul(self.element);
            // Scaled queries, what may be seen, scores; the mask and the softmax are written over these.
            self.make(attended.heads * attended.width);
            self.take(self.rows.saturating_mul(attended.seen), 0);
            self.take(scores, 0);
            self.in_place(2);
            if attended.sinks {
                // The sinks' column beside them.
                self.take(scores, 0);
            }
        }
        if self.workload.backend == Backend::Cpu {
            // Views of heads that share keys, and of what may be seen.
            self.in_place(8);
        }
        self.make(outputs);
        self.make(outputs);
    }

    /// Whether MLX has a kernel for many queries that writes no scores to memory: what
    /// `scaled_dot_product_attention.cpp` of the backend says, and what an H200 was seen to do.
    fn fused(&self, attended: &Attended) -> bool {
        let (width, value_width) = (attended.width, attended.value_width);
        match self.workload.backend {
            Backend::Cpu => false,
            // Widths that kernels were made for.
            Backend::Metal => width == value_width && matches!(width, 64 | 80 | 128),
            // cuDNN's, which knows no sinks beside a mask.
            Backend::Cuda => {
                width <= 128
                    && value_width <= 128
                    && width.is_multiple_of(8)
                    && value_width.is_multiple_of(8)
                    && !(attended.sinks && attended.masked)
            }
        }
    }

    fn latent(&mut self, latent: &MlaConfig, mixer: &Mixer, keys_alone: bool) {
        let [heads, rank, still, turning, value] = [
            latent.heads,
            latent.kv_lora_rank,
            latent.qk_nope_head_dim,
            latent.qk_rope_head_dim,
            latent.v_head_dim,
        ]
        .map(u64::from);
        let (hidden, queries) = (self.shapes.hidden, heads * (still + turning));
        self.product(hidden, latent.q_lora_rank.map_or(queries, u64::from) + rank + turning);
        self.norm(rank, false);
        self.turn(turning);
        self.grow(mixer);
        if keys_alone {
            return;
        }
        if let Some(squeezed) = latent.q_lora_rank.map(u64::from) {
            self.norm(squeezed, false);
            self.product(squeezed, queries);
        }
        self.in_place(1);
        self.turn(heads * turning);
        // Keys and values of all positions are unfolded.
        let unfolded = |width: u64| heads * self.positions * width * self.element;
        let (keys, joined, values) = (unfolded(still), unfolded(still + turning), unfolded(value));
        for bytes in [keys, joined, values] {
            self.take(bytes, 0);
        }
        self.make(queries);
        self.attend(&Attended {
            heads,
            width: still + turning,
            value_width: value,
            seen: self.positions,
            sinks: false,
            masked: false,
        });
        self.product(heads * value, hidden);
    }

    /// A short convolution with what came before: joined, then filtered.
    fn short_conv(&mut self, channels: u64, kernel: u64, element: u64) {
        let bytes = self.rows * channels * element;
        self.take(bytes, 0);
        match self.workload.backend {
            Backend::Cpu => {
                // A product for each place of the filter, each added to the ones before.
                for _ in 0..kernel {
                    self.take(bytes, 0);
                    self.in_place(1);
                }
            }
            Backend::Metal | Backend::Cuda => self.take(bytes, 0),
        }
        self.in_place(1);
    }

    /// From the convolution to the gated norm everything is in 32 bits.
    fn delta_net(&mut self, net: &DeltaNetConfig) {
        const WIDE: u64 = 4;
        let (key_heads, value_heads) = (u64::from(net.key_heads), u64::from(net.value_heads));
        let (key_width, value_width) = (u64::from(net.key_width), u64::from(net.value_width));
        let (keys, values) = (key_heads * key_width, value_heads * value_width);
        let mixed = 2 * keys + values;
        let rows = self.rows;
        let wide = |pass: &mut Self, numbers: u64| pass.take(rows * numbers * WIDE, rows * numbers);
        self.product(self.shapes.hidden, mixed + values + 2 * value_heads);
        if self.element != WIDE {
            wide(self, mixed);
        }
        self.short_conv(mixed, net.kernel.into(), WIDE);
        wide(self, mixed);
        self.in_place(1);
        // Unit vectors, values in rows of their own, decays and rates.
        for numbers in [2 * keys, 2 * keys, values, 6 * value_heads] {
            wide(self, numbers);
        }
        self.rule(key_heads, value_heads, key_width, value_width);
        // The norm of what was found, its gate, and both in the type of the stream.
        for numbers in [values, values, values, values] {
            wide(self, numbers);
        }
        self.in_place(2);
        if self.element != WIDE {
            self.make(values);
        }
        self.product(values, self.shapes.hidden);
    }

    /// The delta rule by chunks (the engine's `DeltaRule::chunks`, in its order).
    fn rule(&mut self, key_heads: u64, value_heads: u64, key_width: u64, value_width: u64) {
        const WIDE: u64 = 4;
        let rows = self.rows;
        let chunks = rows.div_ceil(RULE_CHUNK);
        let squares = rows * RULE_CHUNK;
        let make = |pass: &mut Self, numbers: u64| pass.take(numbers * WIDE, numbers);
        // Copies in the order of the chunks.
        for numbers in [rows * key_heads * key_width; 3] {
            make(self, numbers);
        }
        // What fades between tokens, and how alike their keys are.
        for numbers in [
            value_heads * squares,
            value_heads * squares,
            key_heads * squares,
            value_heads * squares,
        ] {
            make(self, numbers);
        }
        self.in_place(4);
        // The inverse of the triangles, by blocks, and the solver.
        for numbers in [value_heads * squares; 8] {
            make(self, numbers);
        }
        self.in_place(24);
        for numbers in [
            key_heads * squares,
            value_heads * squares,
            rows * value_heads * key_width,
            rows * value_heads * key_width,
            rows * value_heads * key_width,
        ] {
            make(self, numbers);
        }
        let state = value_heads * value_width * key_width;
        for _ in 0..chunks {
            let of_values = RULE_CHUNK * value_heads * value_width;
            for numbers in [of_values, of_values, state, state] {
                make(self, numbers);
            }
            self.in_place(1);
        }
        // States and corrections joined, one copy for each, then the outputs, in the order of the tokens at last.
        make(self, chunks * state);
        self.in_place(2 * chunks);
        for numbers in [rows * value_heads * value_width; 4] {
            make(self, numbers);
        }
    }
}
