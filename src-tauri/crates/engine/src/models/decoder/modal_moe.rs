//! Experts of text beside experts of images, each with a router of its own (ERNIE 4.5 VL). Reference: transformers'
//! `modeling_ernie4_5_vl_moe.py`.

use checkpoint::config::decoder::ModalMoeConfig;
use mlx::ops::{ids_tensor, join};
use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::layers::{ResidualStream, RmsNorm};
use crate::models::decoder::load_context::LoadContext;
use crate::models::decoder::sparse_moe::SparseMoe;
use crate::models::decoder::step::StepTokens;

/// Both kinds of one layer.
#[derive(Parameters)]
pub struct ModalMoe {
    /// Those of text, and the network beside them, which is for all tokens.
    text: SparseMoe,
    vision: SparseMoe,
}

impl ModalMoe {
    /// Loads the experts of text below `path`, and those of images below `path.vision_moe`.
    pub fn load(config: &ModalMoeConfig, path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let counts = [config.text, config.vision].map(|experts| experts.num_experts as i32);
        let hidden = loading.config.hidden_size as i32;
        loading.weights.part_modal_experts(path, hidden, counts)?;
        Ok(Self {
            text: SparseMoe::load(&config.text, path, loading)?,
            vision: SparseMoe::load(&config.vision, &format!("{path}.vision_moe"), loading)?,
        })
    }

    /// The output for the normed stream, `[length, hidden]`.
    pub(super) fn forward(
        &self,
        stream: &mut ResidualStream<'_>,
        norm: Option<&RmsNorm>,
        tokens: StepTokens<'_>,
    ) -> Result<Tensor> {
        if tokens.of_images.is_empty() {
            return self.text.forward(stream, norm, tokens.ids);
        }
        let x = stream.normed(norm)?;
        let count = x.dim(0) as u32;
        let is_image = |row: &u32| tokens.of_images.iter().any(|rows| rows.contains(&(*row as usize)));
        let (of_images, of_text): (Vec<u32>, Vec<u32>) = (0..count).partition(is_image);
        let read = |rows: &[u32]| x.take(&ids_tensor(rows), 0).map(ResidualStream::new);
        let mut parts = Vec::new();
        if !of_text.is_empty() {
            parts.push(self.text.forward(&mut read(&of_text)?, None, None)?);
        }
        if !of_images.is_empty() {
            let mut stream = read(&of_images)?;
            let fed = self.vision.forward(&mut stream, None, None)?;
            parts.push(match self.text.shared(stream.sum()?)? {
                Some(shared) => fed.add(&shared)?,
                None => fed,
            });
        }
        let mut places = vec![0; count as usize];
        for (place, row) in (0..).zip(of_text.iter().chain(&of_images)) {
            places[*row as usize] = place;
        }
        join(&parts, 0)?.take(&ids_tensor(&places), 0)
    }
}
