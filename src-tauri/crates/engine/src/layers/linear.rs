//! Projections.

use std::ops::Range;
use std::rc::Rc;

use mlx::fused::Rows;
use mlx::ops::join;
use mlx::parameters::Parameters;
use mlx::quantized::QuantizedTensor;
use mlx::recording;
use mlx::tensor::Tensor;
use mlx::Result;

use crate::error;
use crate::kernels::kernels;
use crate::layers::product::{computed, Form, Product};
use crate::layers::{fast, Activation, Gelu, Pointwise, ResidualStream, RmsNorm};
use crate::products::packed_product::product;
use crate::products::product_check::Layout;
use crate::weights::{AdapterPart, AdapterPlace, Matrix, PlaceKind, Weights};

/// A projection, or several of one input that were joined at load: their outputs stand side by side.
#[derive(Parameters)]
pub struct Linear {
    weight: Product,
    /// Added to every row, `[1, outputs]`.
    bias: Option<Tensor>,
    /// The place at which adapters add to it.
    #[parameters(skip)]
    adapters: Option<Rc<AdapterPlace>>,
}

/// One of several projections of the same input.
pub struct Projection {
    path: String,
    outputs: i32,
    /// The rows of the checkpoint in the order they are used; unchanged if `None`.
    order: Option<Vec<i32>>,
}

impl Projection {
    /// `path.weight` `[outputs, inputs]`, and `path.bias` `[outputs]` if there is one.
    pub fn new(path: impl Into<String>, outputs: i32) -> Self {
        Self {
            path: path.into(),
            outputs,
            order: None,
        }
    }

    /// For interleaved rows, which lie in groups that each hold some rows of every part, such as the query and the gate
    /// of a head: puts the parts one after another. `parts` are the ranges within a group, in the order that is wanted.
    pub fn deinterleaved(mut self, parts: &[Range<i32>]) -> Self {
        let group: i32 = parts.iter().map(|part| part.end - part.start).sum();
        let groups = self.outputs / group;
        let of_part = |part: &Range<i32>| {
            let part = part.clone();
            (0..groups).flat_map(move |index| part.clone().map(move |row| index * group + row))
        };
        self.order = Some(parts.iter().flat_map(of_part).collect());
        self
    }

    /// Repeats the rows after the first `before` `times` times, `width` of them together: for keys and values that
    /// several heads share in the checkpoint and not in the model.
    pub fn repeated(mut self, before: i32, width: i32, times: i32) -> Self {
        let groups = before / width..self.outputs / width;
        let repeated = groups.flat_map(|group| std::iter::repeat_n(group, times as usize));
        let rows = (0..before / width).chain(repeated);
        self.order = Some(rows.flat_map(|group| group * width..(group + 1) * width).collect());
        self
    }

    fn matrix(&self, weights: &mut Weights<'_>, inputs: i32) -> error::Result<Matrix> {
        let matrix = weights.take_matrix(&self.path, self.outputs, inputs)?;
        let Some(order) = self.order() else { return Ok(matrix) };
        Ok(match matrix {
            Matrix::Plain(rows) => Matrix::Plain(rows.take(&order, 0)?),
            Matrix::Quantized(quantized) => Matrix::Quantized(quantized.map(|rows| rows.take(&order, 0))?),
        })
    }

    fn bias(&self, weights: &mut Weights<'_>) -> error::Result<Tensor> {
        let bias = weights.take(&self.bias_name(), &[self.outputs])?;
        Ok(match self.order() {
            Some(order) => bias.take(&order, 0)?,
            None => bias,
        })
    }

    fn bias_name(&self) -> String {
        format!("{}.bias", self.path)
    }

    fn adapter_part(&self) -> AdapterPart {
        AdapterPart {
            path: self.path.clone(),
            aliases: Vec::new(),
            outputs: self.outputs,
            order: self.order(),
        }
    }

    fn order(&self) -> Option<Tensor> {
        let order = self.order.as_ref()?;
        Some(Tensor::from_i32(order, &[order.len() as i32]))
    }
}

/// How the rows of projections `[outputs, inputs]` are joined and turned.
const ROWS: Form = Form {
    layout: Layout::Rows,
    outputs: 0,
    turn: |parts| join(parts.iter().copied(), 0)?.swapaxes(0, 1),
};

impl Linear {
    /// Loads `path.weight` `[outputs, inputs]`, and `path.bias` `[outputs]` if there is one.
    pub fn load(weights: &mut Weights<'_>, path: &str, inputs: i32, outputs: i32) -> error::Result<Self> {
        Self::load_joined(weights, &[(path.to_owned(), outputs)], inputs)
    }

    /// Loads projections of one input and joins them, so that a step launches one product instead of several.
    pub fn load_joined(weights: &mut Weights<'_>, parts: &[(String, i32)], inputs: i32) -> error::Result<Self> {
        let parts: Vec<Projection> = parts
            .iter()
            .map(|(path, outputs)| Projection::new(path, *outputs))
            .collect();
        Self::load_rows(weights, &parts, inputs)
    }

    /// The same for projections whose rows have to be put in order.
    pub fn load_rows(weights: &mut Weights<'_>, parts: &[Projection], inputs: i32) -> error::Result<Self> {
        let matrices = parts
            .iter()
            .map(|part| part.matrix(weights, inputs))
            .collect::<error::Result<Vec<_>>>()?;
        let places = parts.iter().map(Projection::adapter_part).collect();
        let linear = Self {
            bias: load_bias(weights, parts)?,
            weight: Product::join(matrices, ROWS)?.checked(ROWS, weights)?,
            adapters: weights.adapter_place(PlaceKind::Matrix, places, inputs),
        };
        weights.materialize(linear.tensors())?;
        Ok(linear)
    }

    /// The projection that is a tied embedding read the other way round.
    pub fn from_rows(rows: &Tensor) -> Result<Self> {
        Ok(Self {
            weight: Product::plain(&[rows], ROWS)?,
            bias: None,
            adapters: None,
        })
    }

    /// The same, and what adapters add to the embedding is added the other way round.
    pub fn tied_to(self, adapters: Option<Rc<AdapterPlace>>) -> Self {
        Self { adapters, ..self }
    }

    /// The projection by rows `[outputs, inputs]`, with a bias `[outputs]` if there is one.
    pub fn with_bias(rows: &Tensor, bias: Option<&Tensor>) -> Result<Self> {
        Ok(Self {
            weight: Product::plain(&[rows], ROWS)?,
            bias: bias
                .map(|bias| computed(bias.reshape(&[1, bias.dim(0)])?))
                .transpose()?,
            adapters: None,
        })
    }

    /// The projection that is a tied quantized embedding read the other way round.
    pub fn from_quantized(rows: QuantizedTensor, weights: &mut Weights<'_>) -> error::Result<Self> {
        let linear = Self {
            weight: Product::Quantized(rows).checked(ROWS, weights)?,
            bias: None,
            adapters: None,
        };
        weights.materialize(linear.tensors())?;
        Ok(linear)
    }

    /// `[length, inputs]` to `[length, outputs]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if let Some(adapted) = self.adapted(x)? {
            return Ok(adapted);
        }
        if let Some(product) = fast::linear::biased(self.weight.rows(), x, self.bias.as_ref(), None)? {
            return Ok(product);
        }
        match (&self.weight, &self.bias) {
            (Product::Plain(weight), Some(bias)) if !recording::is_on() => x.addmm(weight, bias),
            (_, Some(bias)) => self.multiply(x)?.add(bias),
            (_, None) => self.multiply(x),
        }
    }

    /// The activation of every output.
    pub fn activated(&self, x: &Tensor, activation: &Pointwise) -> Result<Tensor> {
        if let Some(fusible) = activation.fusible().filter(|_| !self.is_adapted()) {
            if let Some(activated) = fast::linear::biased(self.weight.rows(), x, self.bias.as_ref(), Some(fusible))? {
                return Ok(activated);
            }
        }
        activation.forward(&self.forward(x)?)
    }

    /// The projection with the addition of the active adapter; `None` if it has none.
    fn adapted(&self, x: &Tensor) -> Result<Option<Tensor>> {
        let Some((place, addition)) = self
            .adapters
            .as_ref()
            .and_then(|place| Some((place, place.addition()?)))
        else {
            return Ok(None);
        };
        let product = self.multiply(x)?;
        let sum = match place.kind() {
            // Of an embedding, whose rows are read the other way round.
            PlaceKind::Table => addition.add_turned(x, &product)?,
            PlaceKind::Matrix | PlaceKind::Experts(_) => addition.add(x, &product, || self.weight.rows_f32())?,
        };
        let biased = self.bias.as_ref().map(|bias| sum.add(bias)).transpose()?;
        Ok(Some(biased.unwrap_or(sum)))
    }

    fn is_adapted(&self) -> bool {
        self.adapters.as_ref().is_some_and(|place| place.addition().is_some())
    }

    fn multiply(&self, x: &Tensor) -> Result<Tensor> {
        self.weight
            .forward(&|weight| plain_product(x, weight), &|rows| product(x, rows))
    }
}

impl Linear {
    /// The projection of the normed stream.
    pub fn forward_normed(&self, stream: &mut ResidualStream<'_>, norm: Option<&RmsNorm>) -> Result<Tensor> {
        match fast::linear::forward_normed(self.rows(), stream, norm)? {
            Some(read) => Ok(read),
            None => self.forward(&stream.normed(norm)?),
        }
    }

    /// `activation(gate) · up` of the normed stream, if this projection gives both side by side.
    pub fn gated_normed(
        &self,
        stream: &mut ResidualStream<'_>,
        norm: Option<&RmsNorm>,
        activation: &Activation,
    ) -> Result<Tensor> {
        match fast::linear::gated_normed(self.rows(), stream, norm, activation)? {
            Some(read) => Ok(read),
            None => self.gated(&stream.normed(norm)?, activation),
        }
    }

    /// GELU of the stream's projection times `other` `[length, outputs]`.
    pub fn gelu_times(&self, stream: &mut ResidualStream<'_>, gelu: &Gelu, other: &Tensor) -> Result<Tensor> {
        match fast::linear::gelu_times(self.rows(), stream, other)? {
            Some(read) => Ok(read),
            None => gelu.times(&self.forward(stream.sum()?)?, other),
        }
    }

    /// `activation(gate) · up` of an input, if this projection gives both side by side.
    pub fn gated(&self, x: &Tensor, activation: &Activation) -> Result<Tensor> {
        match fast::linear::gated(self.rows(), x, activation)? {
            Some(gated) => Ok(gated),
            None => activation.gated(&self.forward(x)?),
        }
    }

    /// The rows `[outputs, inputs]` of plain numbers, and the bias `[1, outputs]`, if there is one.
    pub fn plain_rows(&self) -> Result<Option<(Tensor, Option<Tensor>)>> {
        let Product::Plain(weight) = &self.weight else {
            return Ok(None);
        };
        if self.is_adapted() {
            return Ok(None);
        }
        Ok(Some((weight.swapaxes(0, 1)?, self.bias.clone())))
    }

    /// The matrix, if it is as it is stored and all there is to the projection.
    fn rows(&self) -> Option<Rows<'_>> {
        self.weight.rows().filter(|_| self.bias.is_none() && !self.is_adapted())
    }
}

/// `x` `[length, inputs]` times `[inputs, outputs]`, which are stored rows that were turned.
fn plain_product(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if recording::is_on() {
        let rows = weight.swapaxes(0, 1)?;
        if let Some(product) = kernels().linear(x, Rows::Plain(&rows), None)? {
            return Ok(product);
        }
    }
    x.matmul(weight)
}

/// The biases of joined projections, `[1, outputs]`, with zeros for parts that have none.
fn load_bias(weights: &mut Weights<'_>, parts: &[Projection]) -> error::Result<Option<Tensor>> {
    let Some(first) = parts.iter().find(|part| weights.has(&part.bias_name())) else {
        return Ok(None);
    };
    let dtype = weights.dtype(&first.bias_name());
    let biases = parts
        .iter()
        .map(|part| match weights.has(&part.bias_name()) {
            true => Ok(part.bias(weights)?.reshape(&[1, part.outputs])?),
            false => Ok(Tensor::zeros(&[1, part.outputs], dtype)?),
        })
        .collect::<error::Result<Vec<_>>>()?;
    Ok(Some(computed(join(&biases, 1)?)?))
}
