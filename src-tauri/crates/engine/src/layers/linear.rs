//! Projections.

use std::ops::Range;

use crate::error::Result;
use crate::kernels::{self, After, Curve};
use crate::layers::{Activation, Gelu, Parameters, RmsNorm, Stream};
use crate::ops::{concatenate, Packed};
use crate::tensor::{device, Device, Tensor};
use crate::weights::{Matrix, Weights};

/// A projection, or several of one input that were joined at load: their outputs stand side by side.
pub struct Linear {
    product: Product,
    /// Added to every row, `[1, outputs]`.
    bias: Option<Tensor>,
}

/// One of several projections of the same input.
pub struct Rows {
    path: String,
    outputs: i32,
    /// Which row of the checkpoint comes where; as they are where `None`.
    order: Option<Vec<i32>>,
}

impl Rows {
    /// `path.weight` `[outputs, inputs]`, and `path.bias` `[outputs]` where there is one.
    pub fn new(path: impl Into<String>, outputs: i32) -> Self {
        Self {
            path: path.into(),
            outputs,
            order: None,
        }
    }

    /// For rows that lie in groups, each with some rows of every part: the parts one after another. `parts` says where in a
    /// group each part lies, in the order that is wanted; together they are the group.
    pub fn by_part(mut self, parts: &[Range<i32>]) -> Self {
        let group: i32 = parts.iter().map(|part| part.end - part.start).sum();
        let groups = self.outputs / group;
        let of_part = |part: &Range<i32>| {
            let part = part.clone();
            (0..groups).flat_map(move |index| part.clone().map(move |row| index * group + row))
        };
        self.order = Some(parts.iter().flat_map(of_part).collect());
        self
    }

    fn matrix(&self, weights: &mut Weights<'_>, inputs: i32) -> Result<Matrix> {
        let matrix = weights.take_matrix(&self.path, self.outputs, inputs, u64::MAX)?;
        let Some(order) = self.order() else { return Ok(matrix) };
        Ok(match matrix {
            Matrix::Plain(rows) => Matrix::Plain(rows.take(&order, 0)?),
            Matrix::Packed(packed) => Matrix::Packed(Packed {
                weight: packed.weight.take(&order, 0)?,
                scales: packed.scales.take(&order, 0)?,
                biases: packed.biases.map(|biases| biases.take(&order, 0)).transpose()?,
                format: packed.format,
            }),
        })
    }

    fn bias(&self, weights: &mut Weights<'_>) -> Result<Tensor> {
        let bias = weights.take(&self.bias_name(), &[self.outputs])?;
        match self.order() {
            Some(order) => bias.take(&order, 0),
            None => Ok(bias),
        }
    }

    fn bias_name(&self) -> String {
        format!("{}.bias", self.path)
    }

    fn order(&self) -> Option<Tensor> {
        let order = self.order.as_ref()?;
        Some(Tensor::from_i32(order, &[order.len() as i32]))
    }
}

enum Product {
    /// Plain numbers, turned to `[inputs, outputs]`.
    Plain(Tensor),
    /// Quantised rows, one per output.
    Packed(Packed),
    /// Projections in different number formats, which cannot become one matrix.
    Side(Vec<Product>),
}

impl Linear {
    /// Loads `path.weight` `[outputs, inputs]`, and `path.bias` `[outputs]` where there is one.
    pub fn load(weights: &mut Weights<'_>, path: &str, inputs: i32, outputs: i32) -> Result<Self> {
        Self::load_joined(weights, &[(path.to_owned(), outputs)], inputs)
    }

    /// Loads projections of one input and joins them, so that a step launches one product instead of several.
    pub fn load_joined(weights: &mut Weights<'_>, parts: &[(String, i32)], inputs: i32) -> Result<Self> {
        let parts: Vec<Rows> = parts.iter().map(|(path, outputs)| Rows::new(path, *outputs)).collect();
        Self::load_rows(weights, &parts, inputs)
    }

    /// The same for projections whose rows have to be put in order.
    pub fn load_rows(weights: &mut Weights<'_>, parts: &[Rows], inputs: i32) -> Result<Self> {
        let matrices = parts.iter().map(|part| part.matrix(weights, inputs)).collect::<Result<Vec<_>>>()?;
        let linear = Self {
            bias: load_bias(weights, parts)?,
            product: Product::join(matrices)?,
        };
        weights.settle(linear.tensors())?;
        Ok(linear)
    }

    /// The projection that is a tied embedding read the other way round.
    pub fn from_rows(rows: &Tensor) -> Result<Self> {
        Ok(Self {
            product: Product::from_rows(rows)?,
            bias: None,
        })
    }

    /// The projection that is a tied quantised embedding read the other way round.
    pub fn from_packed(rows: Packed) -> Self {
        Self {
            product: Product::Packed(rows),
            bias: None,
        }
    }

    /// The same projection with every output times its own factor, where the weights are plain numbers of 32 bits and nothing
    /// is lost by that; `None` elsewhere.
    pub fn scaled(&self, factors: &[f32]) -> Result<Option<Self>> {
        let Product::Plain(weight) = &self.product else { return Ok(None) };
        if weight.dtype() != mlx_rs::Dtype::Float32 {
            return Ok(None);
        }
        let factors = Tensor::from_f32(factors, &[1, factors.len() as i32]);
        Ok(Some(Self {
            product: Product::Plain(weight.mul(&factors)?),
            bias: self.bias.as_ref().map(|bias| bias.mul(&factors)).transpose()?,
        }))
    }

    /// `[length, inputs]` to `[length, outputs]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match (&self.product, &self.bias) {
            (Product::Plain(weight), Some(bias)) => x.addmm(weight, bias),
            (product, Some(bias)) => product.forward(x)?.add(bias),
            (product, None) => product.forward(x),
        }
    }
}

impl Linear {
    /// The projection of the normed stream.
    pub fn read(&self, stream: &mut Stream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        if let (Some(packed), None) = (self.product.packed(), &self.bias) {
            if let Some(read) = stream.read(norm, |row| kernels::read(row, packed, After::Plain))? {
                return Ok(read);
            }
        }
        self.forward(&stream.normed(norm)?)
    }

    /// `activation(gate) · up` of the normed stream, where this projection makes both side by side.
    pub fn read_gated(&self, stream: &mut Stream<'_>, norm: Option<&RmsNorm>, activation: &Activation) -> Result<Tensor> {
        if let (Some(packed), None, Some(curve)) = (self.product.packed(), &self.bias, activation.curve()) {
            if let Some(read) = stream.read(norm, |row| kernels::read(row, packed, After::Gated(curve)))? {
                return Ok(read);
            }
        }
        self.gated(&stream.normed(norm)?, activation)
    }

    /// GELU of the stream's projection times `other` `[length, outputs]`.
    pub fn read_times(&self, stream: &mut Stream<'_>, gelu: &Gelu, other: &Tensor) -> Result<Tensor> {
        if let (Some(packed), None) = (self.product.packed(), &self.bias) {
            if let Some(read) = stream.read(None, |row| kernels::read(row, packed, After::Times(Curve::Gelu, other)))? {
                return Ok(read);
            }
        }
        gelu.times(&self.forward(stream.sum()?)?, other)
    }

    /// `activation(gate) · up` of an input, where this projection makes both side by side.
    pub fn gated(&self, x: &Tensor, activation: &Activation) -> Result<Tensor> {
        if let (Some(packed), None, Some(curve)) = (self.product.packed(), &self.bias, activation.curve()) {
            if let Some(gated) = kernels::linear(x, packed, Some(curve))? {
                return Ok(gated);
            }
        }
        activation.gated(&self.forward(x)?)
    }
}

impl Product {
    /// The matrix of a projection that may be quantised.
    fn packed(&self) -> Option<&Packed> {
        match self {
            Self::Packed(packed) => Some(packed),
            _ => None,
        }
    }

    fn from_rows(rows: &Tensor) -> Result<Self> {
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

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            Self::Plain(weight) => x.matmul(weight),
            Self::Packed(packed) => match kernels::linear(x, packed, None)? {
                Some(y) => Ok(y),
                None => x.quantized_matmul(packed),
            },
            Self::Side(sides) => {
                let outputs = sides.iter().map(|side| side.forward(x)).collect::<Result<Vec<_>>>()?;
                concatenate(&outputs.iter().collect::<Vec<_>>(), -1)
            }
        }
    }
}

/// The biases of joined projections, `[1, outputs]`, with zeros for parts that have none.
fn load_bias(weights: &mut Weights<'_>, parts: &[Rows]) -> Result<Option<Tensor>> {
    let Some(first) = parts.iter().find(|part| weights.has(&part.bias_name())) else {
        return Ok(None);
    };
    let dtype = weights.dtype(&first.bias_name());
    let biases = parts
        .iter()
        .map(|part| match weights.has(&part.bias_name()) {
            true => part.bias(weights)?.reshape(&[1, part.outputs]),
            false => Tensor::zeros(&[1, part.outputs], dtype),
        })
        .collect::<Result<Vec<_>>>()?;
    match &biases[..] {
        [one] => Ok(Some(one.clone())),
        several => Ok(Some(concatenate(&several.iter().collect::<Vec<_>>(), 1)?)),
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

impl Parameters for Product {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        match self {
            Self::Plain(weight) => visitor(weight),
            Self::Packed(packed) => packed.visit(visitor),
            Self::Side(sides) => sides.visit(visitor),
        }
    }
}

impl Parameters for Linear {
    fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Tensor)) {
        let Self { product, bias } = self;
        product.visit(visitor);
        bias.visit(visitor);
    }
}
