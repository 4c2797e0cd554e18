//! The weights of a layer's experts, in every form that checkpoints have them in.

use mlx::ops::stack;
use mlx::tensor::Tensor;
use mlx::Dtype;

use super::{wrong_shape, Matrix, StoredMatrix, Weights};
use crate::error::{Error, Result};

/// The paths of a layer's experts below its feed-forward: MLX's own files (`switch_mlp`, Gemma 4's `switch_glu`) and
/// transformers' and gpt-oss' `experts`.
pub(super) const PREFIXES: [&str; 3] = ["switch_mlp", "experts.switch_glu", "experts"];

/// The names of an expert's gate, up and down projections; the second ones are LFM2's and Mixtral's, the third ones
/// DBRX's.
const NAMES: [[&str; 3]; 3] = [
    ["gate_proj", "up_proj", "down_proj"],
    ["w1", "w3", "w2"],
    ["w1", "v1", "w2"],
];

/// The sizes of a layer's experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertShape {
    /// How many there are.
    pub experts: i32,
    /// Width of the residual stream.
    pub hidden: i32,
    /// Width of one expert.
    pub width: i32,
    /// True if they must have biases.
    pub bias: bool,
    /// True if what comes up is gated by a second projection.
    pub gated: bool,
}

/// The names of the projections up and down of experts without a gate; the first ones are those of MLX's own files.
const UNGATED: [[&str; 2]; 2] = [["fc1", "fc2"], ["up_proj", "down_proj"]];

/// The projections of all experts of a layer, expert after expert.
pub struct ExpertMatrices {
    /// Gate and up projection `[experts, width, hidden]` each, or one `[experts, 2 · width, hidden]` with the gate's
    /// rows first; without a gate the up projection alone.
    pub gate_up: Vec<Matrix>,
    /// The biases of gate and up `[experts, 2 · width]`, the gate's first.
    pub gate_up_bias: Option<Tensor>,
    /// The down projection `[experts, hidden, width]`.
    pub down: Matrix,
    /// Its biases `[experts, hidden]`.
    pub down_bias: Option<Tensor>,
}

impl Weights<'_> {
    /// Refuses experts that lack the biases they must have.
    fn complete(experts: ExpertMatrices, path: &str, shape: ExpertShape) -> Result<ExpertMatrices> {
        match (&experts.gate_up_bias, &experts.down_bias) {
            (None, _) if shape.bias => Err(Error::MissingTensor(format!("{path}.experts.gate_proj.bias"))),
            (_, None) if shape.bias => Err(Error::MissingTensor(format!("{path}.experts.down_proj.bias"))),
            _ => Ok(experts),
        }
    }

    /// The experts below `path`, the name of a layer's feed-forward: stacked by MLX, one by one, or fused as
    /// transformers (`gate_up_proj`) and gpt-oss (`gate_up_proj_blocks`) store them.
    pub fn take_experts(&mut self, path: &str, shape: ExpertShape) -> Result<ExpertMatrices> {
        let experts = match shape.gated {
            true => self.find_experts(path, shape)?,
            false => self.find_ungated(path, shape)?,
        };
        Self::complete(experts, path, shape)
    }

    /// Calls the last of `count` and one experts below `path` the network beside them, which mlx-vlm's files of MiniMax M3
    /// have stacked with them.
    pub fn part_shared_expert(&mut self, path: &str, count: i32) -> Result<()> {
        let place = format!("{path}.switch_mlp.");
        let stacked = self.tensors.iter().filter(|(name, stored)| {
            name.starts_with(&place) && stored.described().shape().first() == Some(&(count + 1))
        });
        let names: Vec<String> = stacked.map(|(name, _)| name.clone()).collect();
        for name in names {
            let Some(stored) = self.tensors.remove(&name) else {
                continue;
            };
            let all = stored.read()?;
            let last = all.slice(0, count, count + 1)?.reshape(&all.shape()[1..])?;
            let shared = name.replacen(&place, &format!("{path}.shared_experts."), 1);
            self.tensors.insert(shared, last.into());
            self.tensors.insert(name, all.slice(0, 0, count)?.into());
        }
        Ok(())
    }

    /// Experts without a gate: stacked, with or without `.weight` at the end of the name, or one by one.
    fn find_ungated(&mut self, path: &str, shape: ExpertShape) -> Result<ExpertMatrices> {
        let ExpertShape {
            experts, hidden, width, ..
        } = shape;
        let (rising, falling) = ([experts, width, hidden], [experts, hidden, width]);
        for place in PREFIXES.map(|place| format!("{path}.{place}")) {
            for [up, down] in UNGATED {
                let [up_path, down_path] = [up, down].map(|name| format!("{place}.{name}"));
                let biases = [
                    self.take_biases(&place, up, [experts, width])?,
                    self.take_biases(&place, down, [experts, hidden])?,
                ];
                let (up, down) = if self.has(&format!("{up_path}.weight")) {
                    (
                        self.take_stack(&up_path, &rising)?,
                        self.take_stack(&down_path, &falling)?,
                    )
                } else if self.has(&up_path) {
                    (
                        self.take_plain(&up_path, &rising)?,
                        self.take_plain(&down_path, &falling)?,
                    )
                } else if self.has(&format!("{place}.0.{up}.weight")) {
                    (
                        self.take_each(&place, up, &rising)?,
                        self.take_each(&place, down, &falling)?,
                    )
                } else {
                    continue;
                };
                let [gate_up_bias, down_bias] = biases;
                return Ok(ExpertMatrices {
                    gate_up: vec![up],
                    gate_up_bias,
                    down,
                    down_bias,
                });
            }
        }
        Err(Error::MissingTensor(format!("{path}.switch_mlp.fc1.weight")))
    }

    /// A stack of plain numbers whose name has no end.
    fn take_plain(&mut self, path: &str, shape: &[i32]) -> Result<Matrix> {
        let parts = StoredMatrix {
            weight: self.take_raw(path)?,
            scales: None,
            biases: None,
        };
        self.matrix(path, parts, shape)
    }

    fn find_experts(&mut self, path: &str, shape: ExpertShape) -> Result<ExpertMatrices> {
        let ExpertShape {
            experts, hidden, width, ..
        } = shape;
        for place in PREFIXES.map(|place| format!("{path}.{place}")) {
            if self.has(&format!("{place}.gate_up_proj")) {
                return self.take_fused(&place, shape);
            }
            if self.has(&format!("{place}.gate_up_proj.weight")) {
                return Ok(ExpertMatrices {
                    gate_up: vec![self.take_stack(&format!("{place}.gate_up_proj"), &[experts, 2 * width, hidden])?],
                    gate_up_bias: None,
                    down: self.take_stack(&format!("{place}.down_proj"), &[experts, hidden, width])?,
                    down_bias: None,
                });
            }
            if self.has(&format!("{place}.gate_up_proj_blocks")) {
                return self.take_blocks(&place, shape);
            }
            for [gate, up, down] in NAMES.map(|names| names.map(|name| format!("{place}.{name}"))) {
                if self.has(&format!("{gate}.weight")) {
                    return Ok(ExpertMatrices {
                        gate_up_bias: self.take_gate_up_bias(&gate, &up, shape)?,
                        down_bias: self.take_bias(&format!("{down}.bias"), &[experts, hidden])?,
                        gate_up: vec![
                            self.take_stack(&gate, &[experts, width, hidden])?,
                            self.take_stack(&up, &[experts, width, hidden])?,
                        ],
                        down: self.take_stack(&down, &[experts, hidden, width])?,
                    });
                }
            }
            for names in NAMES {
                let [gate, up, down] = names;
                // DBRX's and Mixtral's differ in the name of up alone.
                let has = |name: &str| self.has(&format!("{place}.0.{name}.weight"));
                if has(gate) && (has(up) || !has("v1")) {
                    return Ok(ExpertMatrices {
                        gate_up: vec![
                            self.take_each(&place, gate, &[experts, width, hidden])?,
                            self.take_each(&place, up, &[experts, width, hidden])?,
                        ],
                        gate_up_bias: None,
                        down: self.take_each(&place, down, &[experts, hidden, width])?,
                        down_bias: None,
                    });
                }
            }
        }
        // None of the forms is there: the error names the one that MLX's own files have.
        Err(Error::MissingTensor(format!("{path}.switch_mlp.gate_proj.weight")))
    }

    /// Matrices `[count, rows, columns]` that may be quantized, as [`Weights::take_matrix`] takes one.
    pub fn take_stack(&mut self, path: &str, shape: &[i32]) -> Result<Matrix> {
        let parts = self.take_parts(path)?;
        self.matrix(path, parts, shape)
    }

    /// A table `[rows, columns]` of numbers of experts, of which there are `experts`: a number beyond them would be read
    /// from whatever follows them in memory.
    pub fn take_expert_table(&mut self, name: &str, shape: [i32; 2], experts: i32) -> Result<Tensor> {
        let table = self.take_raw(name)?;
        if table.shape() != shape {
            return Err(wrong_shape(name, &table, format!("{shape:?}")));
        }
        let number = |number: i32| Tensor::from_i32(&[number], &[1]);
        let table = table
            .astype(Dtype::Int32)?
            .maximum(&number(0))?
            .minimum(&number(experts - 1))?;
        Ok(table.astype(Dtype::Uint32)?)
    }

    /// Stacks `place.0.name`, `place.1.name` and so on.
    fn take_each(&mut self, place: &str, name: &str, shape: &[i32]) -> Result<Matrix> {
        let each = (0..shape[0])
            .map(|expert| self.take_parts(&format!("{place}.{expert}.{name}")))
            .collect::<Result<Vec<_>>>()?;
        let path = format!("{place}.0.{name}");
        let alike = |field: fn(&StoredMatrix) -> Option<&Tensor>| -> Result<Option<Tensor>> {
            let all: Vec<&Tensor> = each.iter().filter_map(field).collect();
            let Some(first) = all.first() else { return Ok(None) };
            match all
                .iter()
                .find(|other| other.shape() != first.shape() || other.dtype() != first.dtype())
            {
                Some(other) => Err(wrong_shape(
                    &path,
                    other,
                    format!("{:?}, as the other experts", first.shape()),
                )),
                None if all.len() != each.len() => {
                    Err(wrong_shape(&path, first, "the same format for all experts".into()))
                }
                None => Ok(Some(stack(&all, 0)?)),
            }
        };
        let parts = StoredMatrix {
            weight: alike(|parts| Some(&parts.weight))?.ok_or_else(|| Error::MissingTensor(path.clone()))?,
            scales: alike(|parts| parts.scales.as_ref())?,
            biases: alike(|parts| parts.biases.as_ref())?,
        };
        self.matrix(&path, parts, shape)
    }

    /// Transformers' form: plain numbers, the rows of gate before those of up. Some files have the transposes
    /// (Qwen3-VL).
    fn take_fused(&mut self, place: &str, shape: ExpertShape) -> Result<ExpertMatrices> {
        let ExpertShape {
            experts, hidden, width, ..
        } = shape;
        let turned =
            2 * width != hidden && self.shape(&format!("{place}.gate_up_proj")) == Some(&[experts, hidden, 2 * width]);
        let mut plain = |name: &str, shape: &[i32]| {
            let path = format!("{place}.{name}");
            let stored = self.take_raw(&path)?;
            let parts = StoredMatrix {
                weight: if turned && stored.shape().len() == 3 {
                    stored.swapaxes(1, 2)?
                } else {
                    stored
                },
                scales: None,
                biases: None,
            };
            self.matrix(&path, parts, shape)
        };
        Ok(ExpertMatrices {
            gate_up: vec![plain("gate_up_proj", &[experts, 2 * width, hidden])?],
            gate_up_bias: None,
            down: plain("down_proj", &[experts, hidden, width])?,
            down_bias: None,
        })
    }

    /// OpenAI's form: bytes of two 4 bit floats in blocks of 32 with a scale each, the rows of gate and up by turns.
    fn take_blocks(&mut self, place: &str, shape: ExpertShape) -> Result<ExpertMatrices> {
        let ExpertShape {
            experts, hidden, width, ..
        } = shape;
        let mut matrix = |name: &str, shape: &[i32], in_order: fn(Tensor) -> Result<Tensor>| {
            let path = format!("{place}.{name}");
            let blocks = self.take_raw(&format!("{path}_blocks"))?;
            let &[count, rows, groups, 16] = blocks.shape() else {
                return Err(wrong_shape(&path, &blocks, format!("blocks of 16 bytes for {shape:?}")));
            };
            let words = blocks.view(Dtype::Uint32)?.reshape(&[count, rows, groups * 4])?;
            let parts = StoredMatrix {
                weight: in_order(words)?,
                scales: Some(in_order(self.take_raw(&format!("{path}_scales"))?)?),
                biases: None,
            };
            self.matrix(&path, parts, shape)
        };
        let gate_up = matrix("gate_up_proj", &[experts, 2 * width, hidden], by_turns_to_halves)?;
        let down = matrix("down_proj", &[experts, hidden, width], Ok)?;
        let gate_up_bias = self.take_bias(&format!("{place}.gate_up_proj_bias"), &[experts, 2 * width])?;
        Ok(ExpertMatrices {
            gate_up: vec![gate_up],
            gate_up_bias: gate_up_bias.map(by_turns_to_halves).transpose()?,
            down,
            down_bias: self.take_bias(&format!("{place}.down_proj_bias"), &[experts, hidden])?,
        })
    }

    fn take_bias(&mut self, name: &str, shape: &[i32]) -> Result<Option<Tensor>> {
        self.has(name).then(|| self.take(name, shape)).transpose()
    }

    /// The biases of a projection of all experts, stacked or one by one.
    fn take_biases(&mut self, place: &str, name: &str, [experts, width]: [i32; 2]) -> Result<Option<Tensor>> {
        if !self.has(&format!("{place}.0.{name}.bias")) {
            return self.take_bias(&format!("{place}.{name}.bias"), &[experts, width]);
        }
        let each = (0..experts).map(|expert| self.take(&format!("{place}.{expert}.{name}.bias"), &[width]));
        let each = each.collect::<Result<Vec<_>>>()?;
        Ok(Some(stack(&each.iter().collect::<Vec<_>>(), 0)?))
    }

    fn take_gate_up_bias(&mut self, gate: &str, up: &str, shape: ExpertShape) -> Result<Option<Tensor>> {
        let each = [shape.experts, shape.width];
        let Some(gate) = self.take_bias(&format!("{gate}.bias"), &each)? else {
            return Ok(None);
        };
        let up = self.take(&format!("{up}.bias"), &each)?;
        Ok(Some(mlx::ops::concatenate(&[&gate, &up], 1)?))
    }
}

/// Rows (the second axis) that belong to gate and up by turns, as those of gate followed by those of up.
fn by_turns_to_halves(x: Tensor) -> Result<Tensor> {
    let shape = x.shape().to_vec();
    let mut pairs = vec![shape[0], shape[1] / 2, 2];
    pairs.extend(&shape[2..]);
    Ok(x.reshape(&pairs)?.swapaxes(1, 2)?.reshape(&shape)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use mlx::device::{connect, pretend_gpu};
    use mlx::ops::concatenate;

    use super::*;

    const SHAPE: ExpertShape = ExpertShape {
        experts: 3,
        hidden: 32,
        width: 32,
        bias: false,
        gated: true,
    };

    fn numbers(from: i32, shape: &[i32]) -> Tensor {
        let count: i32 = shape.iter().product();
        let all: Vec<f32> = (from..from + count).map(|number| (number % 251) as f32).collect();
        Tensor::from_f32(&all, shape)
    }

    fn bytes(from: i32, shape: &[i32]) -> Tensor {
        numbers(from, shape).astype(Dtype::Uint8).unwrap()
    }

    /// The values that a layer reads from tensors of these names: gate and up joined, then down, each flat.
    fn read(tensors: Vec<(&str, Tensor)>) -> [Vec<f32>; 2] {
        let mut progress = |_| Ok(());
        let named = tensors
            .into_iter()
            .map(|(name, tensor)| (format!("mlp.{name}"), tensor.into()))
            .collect();
        let mut weights = Weights::of(named, &mut progress);
        let taken = weights.take_experts("mlp", SHAPE).unwrap();
        let flat = |matrix: &Matrix| match matrix {
            Matrix::Plain(stack) => stack.clone(),
            Matrix::Quantized(quantized) => quantized.dequantize().unwrap(),
        };
        let gate_up: Vec<Tensor> = taken.gate_up.iter().map(flat).collect();
        let joined = concatenate(&gate_up.iter().collect::<Vec<_>>(), 1).unwrap();
        assert!(weights.tensors.is_empty(), "{:?}", weights.tensors.keys());
        [joined.to_f32().unwrap(), flat(&taken.down).to_f32().unwrap()]
    }

    #[test]
    fn stacked_single_and_fused_experts_are_the_same() {
        connect().unwrap();
        let [gate, up, down] = [0, 7, 30].map(|from| numbers(from, &[3, 32, 32]));
        let one = |stack: &Tensor, expert: i32| stack.slice(0, expert, expert + 1).unwrap().reshape(&[32, 32]).unwrap();
        let stacked = |place: &str| -> Vec<(String, Tensor)> {
            let named = [("gate_proj", &gate), ("up_proj", &up), ("down_proj", &down)];
            named
                .map(|(name, stack)| (format!("{place}.{name}.weight"), stack.clone()))
                .into()
        };
        let single = |[g, u, d]: [&str; 3]| -> Vec<(String, Tensor)> {
            let named = [(g, &gate), (u, &up), (d, &down)];
            let each = named.iter().flat_map(|(name, stack)| {
                (0..3).map(move |expert| (format!("experts.{expert}.{name}.weight"), one(stack, expert)))
            });
            each.collect()
        };
        let fused = vec![
            (
                "experts.gate_up_proj".to_owned(),
                concatenate(&[&gate, &up], 1).unwrap(),
            ),
            ("experts.down_proj".to_owned(), down.clone()),
        ];
        let expected = [
            concatenate(&[&gate, &up], 1).unwrap().to_f32().unwrap(),
            down.to_f32().unwrap(),
        ];
        let forms = [
            stacked("switch_mlp"),
            stacked("experts.switch_glu"),
            stacked("experts"),
            single(["gate_proj", "up_proj", "down_proj"]),
            single(["w1", "w3", "w2"]),
            fused,
        ];
        for form in forms {
            let names: Vec<_> = form
                .iter()
                .map(|(name, tensor)| (name.as_str(), tensor.clone()))
                .collect();
            assert!(read(names) == expected, "{}", form[0].0);
        }
    }

    #[test]
    fn blocks_with_gate_and_up_by_turns_are_the_stacked_words() {
        connect().unwrap();
        pretend_gpu();
        let (blocks, scales) = (bytes(0, &[3, 64, 1, 16]), numbers(120, &[3, 64, 1]));
        let scales = scales.clone().astype(Dtype::Uint8).unwrap();
        let (down, down_scales) = (bytes(5, &[3, 32, 1, 16]), bytes(100, &[3, 32, 1]));
        let words = |blocks: &Tensor, rows: i32| blocks.view(Dtype::Uint32).unwrap().reshape(&[3, rows, 4]).unwrap();
        let every_second = |all: &Tensor, first: i32| {
            let shape = all.shape().to_vec();
            let rows: Vec<Tensor> = (0..32)
                .map(|row| all.slice(1, 2 * row + first, 2 * row + first + 1).unwrap())
                .collect();
            let joined = concatenate(&rows.iter().collect::<Vec<_>>(), 1).unwrap();
            assert_eq!(joined.dim(1), shape[1] / 2);
            joined
        };
        let all = words(&blocks, 64);
        let stacked = vec![
            ("experts.gate_proj.weight", every_second(&all, 0)),
            ("experts.gate_proj.scales", every_second(&scales, 0)),
            ("experts.up_proj.weight", every_second(&all, 1)),
            ("experts.up_proj.scales", every_second(&scales, 1)),
            ("experts.down_proj.weight", words(&down, 32)),
            ("experts.down_proj.scales", down_scales.clone()),
        ];
        let raw = vec![
            ("experts.gate_up_proj_blocks", blocks),
            ("experts.gate_up_proj_scales", scales),
            ("experts.down_proj_blocks", down),
            ("experts.down_proj_scales", down_scales),
        ];
        assert!(read(stacked) == read(raw));
    }

    #[test]
    fn experts_that_differ_or_are_missing_are_named() {
        connect().unwrap();
        let fails = |tensors: Vec<(&str, Tensor)>| {
            let mut progress = |_| Ok(());
            let named = tensors
                .into_iter()
                .map(|(name, tensor)| (name.to_owned(), tensor.into()))
                .collect();
            let taken = Weights::of(named, &mut progress).take_experts("mlp", SHAPE);
            taken.err().unwrap().to_string()
        };
        assert!(fails(Vec::new()).contains("mlp.switch_mlp.gate_proj.weight"));
        let one = numbers(0, &[32, 32]);
        let error = fails(vec![
            ("mlp.experts.0.w1.weight", one.clone()),
            ("mlp.experts.1.w1.weight", one.clone()),
        ]);
        assert!(error.contains("mlp.experts.2.w1.weight"), "{error}");
        let other = [
            ("mlp.experts.0.w1.weight", one.clone()),
            ("mlp.experts.1.w1.weight", numbers(0, &[32, 16])),
            ("mlp.experts.2.w1.weight", one),
        ];
        let error = fails(other.into());
        assert!(error.contains("[32, 16]"), "{error}");
    }
}
