//! Adapters that lie among the weights themselves and belong to them.

use checkpoint::config::decoder::MergedAdapter;
use mlx::tensor::{eval, Tensor};
use mlx::Dtype;

use super::file_tensors::StoredTensor;
use super::{wrong_shape, Weights};
use crate::error::{Error, Result};

/// The parts of names that stand before a matrix with adapters beside it, and before their two factors.
const BASE: &str = "base_layer";
const FACTORS: [&str; 2] = ["lora_A", "lora_B"];

impl Weights<'_> {
    /// Adds the products of an adapter to the matrices that files keep apart from it, and leaves out other adapters.
    pub fn merge_adapter(&mut self, adapter: MergedAdapter) -> Result<()> {
        let end = format!(".{BASE}.weight");
        let paths = self.tensors.keys().filter_map(|name| name.strip_suffix(&end));
        let paths: Vec<String> = paths.map(str::to_owned).collect();
        for path in paths {
            if self.has(&format!("{path}.{BASE}.scales")) {
                return Err(Error::Unsupported(format!(
                    "an adapter beside `{path}`, which is quantized"
                )));
            }
            let base = self.take_stored(&format!("{path}.{BASE}.weight"))?;
            let factors = FACTORS.map(|factor| format!("{path}.{factor}.{}.weight", adapter.name));
            let merged = match factors.iter().any(|name| self.has(name)) {
                true => self.sum(base, &factors, adapter.scale)?,
                false => base,
            };
            // One by one, so that the parts are free again.
            eval([&merged])?;
            self.tensors
                .insert(format!("{path}.weight"), StoredTensor::from(merged));
        }
        let is_factor = |name: &str| FACTORS.iter().any(|factor| name.contains(&format!(".{factor}.")));
        self.tensors.retain(|name, _| !is_factor(name));
        Ok(())
    }

    /// `base` `[outputs, inputs]` and the product of the second factor `[outputs, rank]` and the first `[rank, inputs]`
    /// times `scale`, in the type of `base`.
    fn sum(&mut self, base: Tensor, names: &[String; 2], scale: f32) -> Result<Tensor> {
        let (down, up) = (self.take_stored(&names[0])?, self.take_stored(&names[1])?);
        let fits = match (base.shape(), down.shape(), up.shape()) {
            (&[outputs, inputs], &[rank, from], &[to, same]) => (outputs, inputs, rank) == (to, from, same),
            _ => false,
        };
        if !fits {
            let wanted = format!("factors of {:?}, and {} is {:?}", base.shape(), names[1], up.shape());
            return Err(wrong_shape(&names[0], &down, wanted));
        }
        let wide = |tensor: &Tensor| tensor.astype(Dtype::Float32);
        let scale = Tensor::scalar(scale, Dtype::Float32)?;
        let product = wide(&up)?.mul(&scale)?.matmul(&wide(&down)?)?;
        Ok(wide(&base)?.add(&product)?.astype(base.dtype())?)
    }

    fn take_stored(&mut self, name: &str) -> Result<Tensor> {
        let stored = self.tensors.remove(name);
        stored
            .ok_or_else(|| Error::MissingTensor(name.to_owned()))
            .and_then(StoredTensor::read)
    }
}
