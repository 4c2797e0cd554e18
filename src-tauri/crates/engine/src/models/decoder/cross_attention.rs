//! Layers that attend to images next to the text (Llama 3.2 Vision). A row that sees no image passes by the layer, as
//! in the models' original code; transformers lets rows before the first image attend to all of them alike.

use std::ops::Range;

use checkpoint::config::decoder::CrossAttentionConfig;
use checkpoint::memory::MAX_VISION_SCORES;
use mlx::ops::{join, Mask};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::cache::{Cache, CrossCache, KvView};
use crate::error;
use crate::layers::{scaled_dot_product_attention, Linear, RmsNorm};
use crate::models::decoder::load_context::LoadContext;
use crate::models::ChunkImage;

/// Attention from tokens to the states of a vision encoder, whose heads may share keys.
#[derive(Parameters)]
pub struct CrossAttention {
    heads: i32,
    key_heads: i32,
    width: i32,
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    q_norm: RmsNorm,
    k_norm: RmsNorm,
    o_proj: Linear,
    /// Factors `[1]` of what attention adds and of what the network adds.
    gates: [Tensor; 2],
}

/// Rows that follow each other and see the same.
struct Segment {
    rows: Range<i32>,
    seen: Option<KvView>,
}

/// The keys and values that the rows of a pass see.
pub struct CrossAttentionStates {
    segments: Vec<Segment>,
    /// 1 for rows that see an image and 0 for the others, `[rows, 1]`; `None` if all do.
    row_mask: Option<Tensor>,
}

impl CrossAttention {
    /// Loads what stands below `path`: `cross_attn` and the gates.
    pub fn load(config: &CrossAttentionConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let (heads, key_heads, width) = (config.heads as i32, config.key_heads as i32, config.head_dim as i32);
        let (hidden, eps) = (loading.config.hidden_size as i32, loading.config.norm.eps);
        let weights = &mut *loading.weights;
        let at = |name: &str| format!("{path}.cross_attn.{name}");
        let gates = [
            weights.take(&format!("{path}.cross_attn_attn_gate"), &[1])?.tanh()?,
            weights.take(&format!("{path}.cross_attn_mlp_gate"), &[1])?.tanh()?,
        ];
        weights.materialize(&gates)?;
        Ok(Self {
            heads,
            key_heads,
            width,
            q_proj: Linear::load(weights, &at("q_proj"), hidden, heads * width)?,
            k_proj: Linear::load(weights, &at("k_proj"), hidden, key_heads * width)?,
            v_proj: Linear::load(weights, &at("v_proj"), hidden, key_heads * width)?,
            q_norm: RmsNorm::load(weights, &at("q_norm"), width, eps)?,
            k_norm: RmsNorm::load(weights, &at("k_norm"), width, eps)?,
            o_proj: Linear::load(weights, &at("o_proj"), heads * width, hidden)?,
            gates,
        })
    }

    /// Takes the images of a chunk of `rows` tokens into the cache, and tells what each row sees, or the row of each of
    /// several sequences; `None` if none sees anything.
    pub fn update_and_fetch(
        &self,
        images: &[ChunkImage],
        rows: usize,
        caches: &mut [&mut Cache],
    ) -> Result<Option<CrossAttentionStates>> {
        let view = |cache: &CrossCache| {
            let (keys, values) = cache.seen()?;
            Some(KvView::Plain {
                keys: keys.clone(),
                values: values.clone(),
            })
        };
        let segment = |rows: Range<usize>, cache: &CrossCache| Segment {
            rows: rows.start as i32..rows.end as i32,
            seen: view(cache),
        };
        let mut segments = Vec::with_capacity(caches.len());
        match caches {
            [cache] => {
                let (cache, mut start) = (cache.cross(), 0);
                let before = cache.offset();
                for (image, row) in images.iter().filter_map(|image| Some((image, image.beside?))) {
                    if row > start {
                        segments.push(segment(start..row, cache));
                    }
                    let (keys, values) = self.states(&image.features.embeddings)?;
                    cache.update(before + row, keys, values)?;
                    start = row;
                }
                segments.push(segment(start..rows, cache));
                cache.advance(rows);
            }
            several => {
                for (row, cache) in several.iter_mut().enumerate() {
                    let cache = cache.cross();
                    cache.advance(1);
                    segments.push(segment(row..row + 1, cache));
                }
            }
        }
        let seeing = segments.iter().filter(|segment| segment.seen.is_some()).count();
        if seeing == 0 {
            return Ok(None);
        }
        let mark = |segment: &Segment| vec![if segment.seen.is_some() { 1.0 } else { 0.0 }; segment.rows.len()];
        let row_mask = (seeing < segments.len()).then(|| {
            let marks: Vec<f32> = segments.iter().flat_map(mark).collect();
            Tensor::from_f32(&marks, &[marks.len() as i32, 1])
        });
        Ok(Some(CrossAttentionStates { segments, row_mask }))
    }

    /// Keys and values `[1, key heads, states, width]` of the states of an image `[states, hidden]`.
    fn states(&self, states: &Tensor) -> Result<(Tensor, Tensor)> {
        let heads = |part: Tensor| part.reshape(&[1, part.dim(0), self.key_heads, self.width]);
        let turned = |part: Tensor| part.swapaxes(1, 2)?.contiguous();
        let keys = self.k_norm.forward(&heads(self.k_proj.forward(states)?)?)?;
        Ok((turned(keys)?, turned(heads(self.v_proj.forward(states)?)?)?))
    }

    /// The attention of the normed rows `[rows, hidden]` over the image states that they see, in the same shape.
    pub fn forward(&self, x: &Tensor, states: &CrossAttentionStates) -> Result<Tensor> {
        let queries = self.q_proj.forward(x)?.reshape(&[x.dim(0), self.heads, self.width])?;
        let queries = self.q_norm.forward(&queries)?;
        let mut found = Vec::with_capacity(states.segments.len());
        for Segment { rows, seen } in &states.segments {
            match seen {
                Some(seen) => self.attend(&queries, rows.clone(), seen, &mut found)?,
                None => found.push(Tensor::zeros(&[rows.len() as i32, self.heads * self.width], x.dtype())?),
            }
        }
        self.o_proj.forward(&join(&found, 0)?)
    }

    /// Rows of queries `[rows, heads, width]` look in turns if the scores of all would take too much memory, should no
    /// kernel keep them to itself.
    fn attend(&self, queries: &Tensor, rows: Range<i32>, seen: &KvView, found: &mut Vec<Tensor>) -> Result<()> {
        let KvView::Plain { keys, .. } = seen else {
            unreachable!("images are kept as they were computed")
        };
        let of_one = self.heads as u64 * keys.dim(2) as u64 * 4;
        let together = (MAX_VISION_SCORES / of_one.max(1)).clamp(1, i32::MAX as u64) as i32;
        let scale = (self.width as f32).powf(-0.5);
        let mut start = rows.start;
        while start < rows.end {
            let end = rows.end.min(start.saturating_add(together));
            let some = queries.slice(0, start, end)?;
            let some = some
                .reshape(&[1, end - start, self.heads, self.width])?
                .swapaxes(1, 2)?;
            found.push(scaled_dot_product_attention(&some, seen, scale, &Mask::None, None)?);
            start = end;
        }
        Ok(())
    }

    /// The attention's output through its gate; zeros for rows that see no image.
    pub fn gate_attention(&self, x: &Tensor, states: &CrossAttentionStates) -> Result<Tensor> {
        gated(x, &self.gates[0], states)
    }

    /// The same of what the network gave.
    pub fn gate_feed_forward(&self, x: &Tensor, states: &CrossAttentionStates) -> Result<Tensor> {
        gated(x, &self.gates[1], states)
    }
}

fn gated(x: &Tensor, gate: &Tensor, states: &CrossAttentionStates) -> Result<Tensor> {
    let gate = gate.astype(x.dtype())?;
    match &states.row_mask {
        Some(mask) => x.mul(&mask.astype(x.dtype())?.mul(&gate)?),
        None => x.mul(&gate),
    }
}
