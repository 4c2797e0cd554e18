//! The weights of a model by name, handed out once each and made resident piece by piece.

mod adapters;
mod experts;
mod file_tensors;
mod matrix;
mod merged;
mod modal;
mod rows;
mod ternary;
mod whole_numbers;

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use checkpoint::config::decoder::RowFactors;
use checkpoint::{is_unused_tensor, tower_tensor, without_wrappers};
use checkpoint::{weight_files, Header};
use mlx::device::{self, device, Device};
use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::tensor::{eval, Tensor};
use mlx::Dtype;

use crate::error::{Error, Result};
use crate::kernels::kernels;
use crate::products::product_check::{self, Layout};

pub use adapters::{AdapterPart, AdapterPlace, AdapterPlaces, AttachedAdapter, LowRank, PlaceKind};
pub use experts::ExpertShape;
pub use file_tensors::dtype_of;
use file_tensors::{file_tensors, StoredTensor};
pub use matrix::{join_quantized, Matrix, Storage};

/// Gets resident and total bytes between two pieces of a load; an error from it ends the load.
pub type LoadProgress<'a> = dyn FnMut(LoadStep) -> Result<()> + 'a;

/// The progress of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadStep {
    /// Bytes that are resident.
    Weights {
        /// Bytes done.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// The device's kernels are compiled and compared, once on a computer.
    Kernels,
}

/// A matrix, or a stack of such, as the file has it.
struct StoredMatrix {
    weight: Tensor,
    scales: Option<Tensor>,
    biases: Option<Tensor>,
}

/// The weights of a model that no part has taken yet.
pub struct Weights<'a> {
    /// Those of the part that is being loaded.
    tensors: HashMap<String, StoredTensor>,
    /// Those of the vision encoder, until that is loaded; empty if it will not be.
    tower: HashMap<String, StoredTensor>,
    /// The products of the language model, for adapters; `None` once another part is being loaded.
    places: Option<AdapterPlaces>,
    total: u64,
    taken: u64,
    resident: u64,
    parameters: u64,
    /// Factors of matrices, by the ends of their paths.
    factors: Vec<(&'static str, RowFactors)>,
    progress: &'a mut LoadProgress<'a>,
}

impl<'a> Weights<'a> {
    /// Opens every shard of a folder, those of a vision encoder only if `sees`. Nothing is read but the headers;
    /// `progress` gets resident and total bytes.
    pub fn open(dir: &Path, supports_vision: bool, progress: &'a mut LoadProgress<'a>) -> Result<Self> {
        let mut files = Vec::new();
        for name in weight_files(dir)? {
            let path = dir.join(name);
            let (header, data) = Header::read(&path)?;
            // MLX reads lazily and would find a truncated file only in the middle of an evaluation.
            header.check(&path, data)?;
            files.push((path, header));
        }
        let (mut tensors, mut tower, mut total) = (HashMap::new(), HashMap::new(), 0);
        for (path, header) in files {
            for (name, tensor) in file_tensors(&path, &header)? {
                let bytes = header.bytes(&name).unwrap_or_default();
                if let Some(short) = tower_tensor(&name) {
                    if supports_vision {
                        total += bytes;
                        tower.insert(short, tensor);
                    }
                } else if let Some(short) = canonical(&name) {
                    total += bytes;
                    tensors.insert(short.to_owned(), tensor);
                }
            }
        }
        progress(LoadStep::Weights { done: 0, total })?;
        let mut weights = Self::of(tensors, progress);
        (weights.tower, weights.total) = (tower, total);
        Ok(weights)
    }

    /// A place for adapters at a product of `inputs` with these parts; `None` outside the language model.
    pub fn adapter_place(&mut self, kind: PlaceKind, parts: Vec<AdapterPart>, inputs: i32) -> Option<Rc<AdapterPlace>> {
        Some(self.places.as_mut()?.register(kind, parts, inputs))
    }

    /// The places of the language model, once it is loaded; what is loaded from here on has none.
    pub fn take_adapter_places(&mut self) -> AdapterPlaces {
        self.places.take().unwrap_or_default()
    }

    /// From here on the vision encoder's tensors are handed out, by the names that [`tower_tensor`] gives them; what is
    /// left of the language part is freed.
    pub fn begin_tower(&mut self) {
        self.tensors = std::mem::take(&mut self.tower);
    }

    fn of(tensors: HashMap<String, StoredTensor>, progress: &'a mut LoadProgress<'a>) -> Self {
        Self {
            tensors,
            tower: HashMap::new(),
            places: Some(AdapterPlaces::default()),
            total: 0,
            taken: 0,
            resident: 0,
            parameters: 0,
            factors: Vec::new(),
            progress,
        }
    }

    /// From here on matrices whose paths end so are multiplied.
    pub fn scale(&mut self, factors: &[(&'static str, RowFactors)]) {
        self.factors.extend_from_slice(factors);
    }

    /// The numbers of a matrix times its factors, if it has any, in the same type.
    fn scaled(&self, path: &str, matrix: Tensor) -> Result<Tensor> {
        let rows = matrix.dim(0);
        let Some((_, factors)) = self.factors.iter().find(|(end, _)| path.ends_with(end)) else {
            return Ok(matrix);
        };
        let factors: Vec<f32> = match factors {
            RowFactors::All(factor) => vec![*factor; rows as usize],
            RowFactors::Spans(spans) => {
                let each = |(rows, factor): &(u64, f32)| std::iter::repeat_n(*factor, *rows as usize);
                spans.iter().flat_map(each).collect()
            }
        };
        let product = matrix
            .astype(Dtype::Float32)?
            .mul(&Tensor::from_f32(&factors, &[rows, 1]))?;
        Ok(product.astype(matrix.dtype())?)
    }

    /// True if a tensor is there and not taken.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// True if there is a tensor that is not taken whose name and shape fit.
    pub fn any(&self, fits: impl Fn(&str, &[i32]) -> bool) -> bool {
        let mut shapes = self
            .tensors
            .iter()
            .map(|(name, stored)| (name, stored.described().shape()));
        shapes.any(|(name, shape)| fits(name, shape))
    }

    /// The shape of a tensor that is not taken.
    pub fn shape(&self, name: &str) -> Option<&[i32]> {
        self.tensors.get(name).map(|stored| stored.described().shape())
    }

    /// Refuses weights without this tensor.
    pub fn require(&self, name: &str) -> Result<()> {
        match self.has(name) {
            true => Ok(()),
            false => Err(Error::MissingTensor(name.to_owned())),
        }
    }

    /// The type that [`Weights::take`] would give a tensor; 32 bit floats if there is none of that name.
    pub fn dtype(&self, name: &str) -> Dtype {
        match self.tensors.get(name).map(|stored| stored.described().dtype()) {
            Some(dtype) if device() != Device::Cpu || !dtype.is_float() => dtype,
            _ => Dtype::Float32,
        }
    }

    /// The type of the numbers that a matrix stands for; `None` if neither it nor its scales tell.
    pub fn dtype_of_matrix(&self, path: &str) -> Option<Dtype> {
        let names = ["scales", "weight"].map(|part| format!("{path}.{part}"));
        let name = names.iter().find(|name| self.has(name))?;
        Some(self.dtype(name)).filter(|dtype| dtype.is_float())
    }

    /// Calls the tensors by other names: in each name the first part of the table that it has, one or more whole
    /// segments between dots, is replaced.
    pub fn rename(&mut self, table: &[(&str, &str)]) {
        if table.is_empty() {
            return;
        }
        if let Some(places) = &mut self.places {
            places.rename(table);
        }
        self.tensors = std::mem::take(&mut self.tensors)
            .into_iter()
            .map(|(name, tensor)| (renamed(&name, table).unwrap_or(name), tensor))
            .collect();
    }

    /// Calls each tensor by the name that `of` has for its own; those that it has none for keep theirs. Adapters are
    /// not asked.
    pub fn rename_each(&mut self, of: impl Fn(&str) -> Option<String>) {
        self.tensors = std::mem::take(&mut self.tensors)
            .into_iter()
            .map(|(name, tensor)| (of(&name).unwrap_or(name), tensor))
            .collect();
    }

    /// Turns the matrices whose names fit: rows become columns.
    pub fn turn(&mut self, fits: impl Fn(&str) -> bool) -> Result<()> {
        let turned = std::mem::take(&mut self.tensors).into_iter().map(|(name, stored)| {
            let stored = match fits(&name) && stored.described().shape().len() == 2 {
                true => StoredTensor::from(stored.read()?.swapaxes(0, 1)?.contiguous()?),
                false => stored,
            };
            Ok((name, stored))
        });
        self.tensors = turned.collect::<Result<_>>()?;
        Ok(())
    }

    /// A tensor that is used as it is, in the device's working type.
    pub fn take(&mut self, name: &str, shape: &[i32]) -> Result<Tensor> {
        let tensor = self.take_raw(name)?;
        if tensor.shape() != shape {
            return Err(wrong_shape(name, &tensor, format!("{shape:?}")));
        }
        self.parameters += tensor.size() as u64;
        to_compute_dtype(name, tensor)
    }

    /// The same, if there is such a tensor.
    pub fn take_if_present(&mut self, name: &str, shape: &[i32]) -> Result<Option<Tensor>> {
        self.has(name).then(|| self.take(name, shape)).transpose()
    }

    /// A tensor of any shape, in the device's working type.
    pub fn take_any(&mut self, name: &str) -> Result<Tensor> {
        let tensor = self.take_raw(name)?;
        self.parameters += tensor.size() as u64;
        to_compute_dtype(name, tensor)
    }

    /// A matrix `[rows, columns]` as it is stored, quantized or not.
    pub fn take_matrix(&mut self, path: &str, rows: i32, columns: i32) -> Result<Matrix> {
        let parts = self.take_parts(path)?;
        if parts.scales.is_none() && self.has(&format!("{path}.weight_scale")) {
            return self.ternary(path, &parts.weight, rows, columns);
        }
        self.matrix(path, parts, &[rows, columns])
    }

    /// The tensors of one matrix as the file has them.
    fn take_parts(&mut self, path: &str) -> Result<StoredMatrix> {
        let mut maybe = |name: &str| {
            let name = format!("{path}.{name}");
            self.has(&name).then(|| self.take_raw(&name)).transpose()
        };
        let (scales, biases) = (maybe("scales")?, maybe("biases")?);
        Ok(StoredMatrix {
            weight: self.take_raw(&format!("{path}.weight"))?,
            scales,
            biases,
        })
    }

    /// Checks parts against `shape`, rows and columns last.
    fn matrix(&mut self, path: &str, parts: StoredMatrix, shape: &[i32]) -> Result<Matrix> {
        let name = format!("{path}.weight");
        let (rows, columns) = shape.split_at(shape.len() - 1);
        let size = shape.iter().map(|length| *length as u64).product::<u64>();
        let StoredMatrix {
            weight,
            scales: Some(scales),
            biases,
        } = parts
        else {
            if parts.weight.shape() != shape {
                return Err(wrong_shape(&name, &parts.weight, format!("{shape:?}")));
            }
            self.parameters += size;
            let numbers = float(&name, parts.weight)?;
            return self.scaled(path, numbers).map(Matrix::Plain);
        };
        if self.factors.iter().any(|(end, _)| path.ends_with(end)) {
            return Err(Error::Unsupported(format!("factors of `{path}`, which is quantized")));
        }
        let wrong = || wrong_shape(&name, &weight, format!("a quantised {shape:?}"));
        let format = infer_format(&weight, &scales, columns[0]).ok_or_else(wrong)?;
        if weight.shape()[..rows.len()] != *rows || scales.shape()[..rows.len()] != *rows {
            return Err(wrong());
        }
        if (format.mode == c"affine") != biases.is_some()
            || biases.as_ref().is_some_and(|biases| biases.shape() != scales.shape())
        {
            return Err(wrong_shape(
                &format!("{path}.biases"),
                &scales,
                "one bias per scale in the affine format".into(),
            ));
        }
        self.parameters += size;
        Ok(Matrix::Quantized(QuantizedTensor {
            weight,
            scales,
            biases,
            format,
        }))
    }

    /// Computes the results of the tensors taken since the last call, so that their source can be freed, and reports.
    pub fn materialize<'t>(&mut self, tensors: impl IntoIterator<Item = &'t Tensor>) -> Result<()> {
        let tensors: Vec<&Tensor> = tensors.into_iter().collect();
        kernels().join(&tensors)?;
        eval(tensors)?;
        self.resident += std::mem::take(&mut self.taken);
        (self.progress)(LoadStep::Weights {
            done: self.resident,
            total: self.total,
        })
    }

    /// The numbers of `matrix` if this device would multiply it wrongly, as [`product_check::replacement`].
    pub fn replacement(&mut self, matrix: &QuantizedTensor, layout: Layout) -> Result<Option<Tensor>> {
        // Elsewhere products are compiled already, or soon.
        if device() == Device::Cuda && !product_check::is_known(matrix, layout) {
            (self.progress)(LoadStep::Kernels)?;
        }
        product_check::replacement(matrix, layout)
    }

    /// How many parameters were taken.
    pub fn parameters(&self) -> u64 {
        self.parameters
    }

    /// Ends the load: frees the rest and reports the rest of the progress.
    pub fn finish(self) -> Result<()> {
        if !self.tensors.is_empty() {
            tracing::debug!(count = self.tensors.len(), "tensors that this model does not use");
        }
        drop(self.tensors);
        kernels().loaded();
        let total = self.total;
        (self.progress)(LoadStep::Weights { done: total, total })?;
        Ok(device::synchronize()?)
    }

    fn take_raw(&mut self, name: &str) -> Result<Tensor> {
        let stored = self
            .tensors
            .remove(name)
            .ok_or_else(|| Error::MissingTensor(name.to_owned()))?;
        self.taken += stored.described().nbytes() as u64;
        stored.read()
    }
}

/// The name inside the text model, without the wrappers' prefixes; `None` for parts that are not used.
fn canonical(name: &str) -> Option<&str> {
    if is_unused_tensor(name) {
        return None;
    }
    Some(without_wrappers(name))
}

fn renamed(name: &str, table: &[(&str, &str)]) -> Option<String> {
    let dotted = format!(".{name}.");
    table.iter().find_map(|(from, to)| {
        let start = dotted.find(&format!(".{from}."))?;
        // The dotted form has one dot more before the place, and the name goes on after the part.
        Some(format!("{}{to}{}", &name[..start], &name[start + from.len()..]))
    })
}

/// The format by the shapes alone, as mlx-lm infers it; the config's own words may name other paths or be wrong.
fn infer_format(weight: &Tensor, scales: &Tensor, columns: i32) -> Option<QuantizationFormat> {
    let (&[.., words], &[.., groups]) = (weight.shape(), scales.shape()) else {
        return None;
    };
    let all_bits = i64::from(words) * 32;
    if weight.dtype() != Dtype::Uint32
        || weight.shape().len() != scales.shape().len()
        || groups == 0
        || columns % groups != 0
        || all_bits % i64::from(columns) != 0
    {
        return None;
    }
    let (group_size, bits) = (columns / groups, (all_bits / i64::from(columns)) as i32);
    let mode = match (scales.dtype(), bits, group_size) {
        (Dtype::Uint8, 4, 16) => c"nvfp4",
        (Dtype::Uint8, 4, 32) => c"mxfp4",
        (Dtype::Uint8, 8, 32) => c"mxfp8",
        (Dtype::Uint8, ..) => return None,
        (scales, 2..=6 | 8, 32 | 64 | 128) if scales.is_float() => c"affine",
        _ => return None,
    };
    Some(QuantizationFormat { group_size, bits, mode })
}

/// The tensor, if it holds floats.
fn float(name: &str, tensor: Tensor) -> Result<Tensor> {
    match tensor.dtype().is_float() {
        true => Ok(tensor),
        false => Err(Error::Unsupported(format!(
            "numbers of type {:?} in `{name}`",
            tensor.dtype()
        ))),
    }
}

/// The type the device computes in: the checkpoint's own on a GPU, 32 bit floats on the CPU, where 16 bit ones are
/// slow.
fn to_compute_dtype(name: &str, tensor: Tensor) -> Result<Tensor> {
    let tensor = float(name, tensor)?;
    match device() {
        Device::Cpu => Ok(tensor.astype(Dtype::Float32)?),
        Device::Metal | Device::Cuda => Ok(tensor),
    }
}

fn wrong_shape(name: &str, tensor: &Tensor, expected: String) -> Error {
    Error::WrongShape {
        name: name.to_owned(),
        expected,
        found: tensor.shape().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::{canonical, renamed};

    #[test]
    fn whole_segments_of_names_are_replaced() {
        let table = [("feed_forward.w1", "mlp.gate_proj"), ("norm", "input_layernorm")];
        let renamed = |name| renamed(name, &table);
        assert_eq!(
            renamed("layers.0.feed_forward.w1.weight").as_deref(),
            Some("layers.0.mlp.gate_proj.weight")
        );
        assert_eq!(renamed("norm.weight").as_deref(), Some("input_layernorm.weight"));
        assert_eq!(renamed("layers.0.norm").as_deref(), Some("layers.0.input_layernorm"));
        assert_eq!(renamed("layers.0.q_norm.weight"), None);
    }

    #[test]
    fn every_prefix_of_the_text_model_is_stripped() {
        for name in [
            "language_model.model.norm.weight",
            "model.language_model.norm.weight",
            "model.norm.weight",
            "model.text_model.norm.weight",
            "norm.weight",
        ] {
            assert_eq!(canonical(name), Some("norm.weight"));
        }
        assert_eq!(canonical("language_model.lm_head.weight"), Some("lm_head.weight"));
        assert_eq!(canonical("vision_tower.encoder.layers.0.input_max"), None);
        assert_eq!(canonical("model.embed_vision.embedding_projection.weight"), None);
    }
}
