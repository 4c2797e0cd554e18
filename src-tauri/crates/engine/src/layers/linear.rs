//! Projections without bias.

use crate::error::Result;
use crate::layers::Parameters;
use crate::ops::{concatenate, Packed};
use crate::tensor::{device, Device, Tensor};
use crate::weights::{Matrix, Weights};

/// A projection, or several of one input that were joined at load: their outputs stand side by side.
pub enum Linear {
    /// Plain numbers, turned to `[inputs, outputs]`.
    Plain(Tensor),
    /// Quantised rows, one per output.
    Packed(Packed),
    /// Projections in different number formats, which cannot become one matrix.
    Side(Vec<Linear>),
}

impl Linear {
    /// Loads `path.weight` `[outputs, inputs]`.
    pub fn load(weights: &mut Weights<'_>, path: &str, inputs: i32, outputs: i32) -> Result<Self> {
        Self::load_joined(weights, &[(path.to_owned(), outputs)], inputs)
    }

    /// Loads projections of one input and joins them, so that a step launches one product instead of several.
    pub fn load_joined(weights: &mut Weights<'_>, parts: &[(String, i32)], inputs: i32) -> Result<Self> {
        let matrices = parts
            .iter()
            .map(|(path, outputs)| weights.take_matrix(path, *outputs, inputs, u64::MAX))
            .collect::<Result<Vec<_>>>()?;
        let linear = Self::join(matrices)?;
        weights.settle(linear.tensors())?;
        Ok(linear)
    }

    /// The projection that is a tied embedding read the other way round.
    pub fn from_rows(rows: &Tensor) -> Result<Self> {
        let turned = rows.swapaxes(0, 1)?;
        // The CPU's matrix product is several times faster on rows that lie in memory the way they are summed.
        Ok(Self::Plain(if device() == Device::Cpu { turned.contiguous()? } else { turned }))
    }

    fn join(matrices: Vec<Matrix>) -> Result<Self> {
        let (mut plain, mut packed) = (Vec::new(), Vec::new());
        for matrix in &matrices {
            match matrix {
                Matrix::Plain(rows) => plain.push(rows),
                Matrix::Packed(rows) => packed.push(rows),
            }
        }
        if packed.is_empty() {
            return Self::from_rows(&join_rows(&plain)?);
        }
        let alike = plain.is_empty() && packed.iter().all(|other| other.format == packed[0].format);
        if !alike {
            let sides = matrices.into_iter().map(|matrix| Self::join(vec![matrix])).collect::<Result<_>>()?;
            return Ok(Self::Side(sides));
        }
        let field = |of: fn(&Packed) -> &Tensor| join_rows(&packed.iter().map(|one| of(one)).collect::<Vec<_>>());
        let biases: Vec<&Tensor> = packed.iter().filter_map(|one| one.biases.as_ref()).collect();
        Ok(Self::Packed(Packed {
            weight: field(|one| &one.weight)?,
            scales: field(|one| &one.scales)?,
            biases: if biases.is_empty() { None } else { Some(join_rows(&biases)?) },
            format: packed[0].format,
        }))
    }

    /// `[length, inputs]` to `[length, outputs]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Plain(weight) => x.matmul(weight),
            Self::Packed(packed) => x.quantized_matmul(packed),
            Self::Side(sides) => {
                let outputs = sides.iter().map(|side| side.forward(x)).collect::<Result<Vec<_>>>()?;
                concatenate(&outputs.iter().collect::<Vec<_>>(), -1)
            }
        }
    }
}

fn join_rows(parts: &[&Tensor]) -> Result<Tensor> {
    match parts {
        [one] => Ok((*one).clone()),
        several => concatenate(several, 0),
    }
}

impl Parameters for Packed {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self {
            weight,
            scales,
            biases,
            format: _,
        } = self;
        visitor(weight);
        visitor(scales);
        biases.visit(visitor);
    }
}

impl Parameters for Linear {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Plain(weight) => visitor(weight),
            Self::Packed(packed) => packed.visit(visitor),
            Self::Side(sides) => sides.visit(visitor),
        }
    }
}
