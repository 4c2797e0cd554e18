//! The blocks of MobileNet v5: convolutions over a grid and attention of its places. References: timm's
//! `_efficientnet_blocks.py` and `attention2d.py`.

use mlx::parameters::Parameters;
use mlx::tensor::Tensor;
use mlx::Result;

use super::attention::attend_in_turns;
use crate::error::{self, Error};
use crate::layers::{Linear, Pointwise, RmsNorm};
use crate::weights::Weights;

/// The epsilon of the network's norms (timm's `RmsNorm2d`).
const EPS: f32 = 1e-6;

/// Every stage and the stem halve the grid.
pub(super) const STRIDE: i32 = 2;

/// States on a grid: `[rows · columns, channels]` of `[rows, columns]`.
pub(super) struct FeatureMap {
    pub(super) states: Tensor,
    pub(super) rows: i32,
    pub(super) columns: i32,
}

impl FeatureMap {
    pub(super) fn with(&self, states: Tensor) -> Self {
        Self { states, ..*self }
    }
}

/// The order of the axes of convolutions in the weight files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KernelLayout {
    /// `[outputs, inputs, rows, columns]`, as PyTorch has them.
    Oihw,
    /// `[outputs, rows, columns, inputs]`, as MLX has them.
    Ohwi,
}

/// Everything that the parts are loaded with.
pub(super) struct LoadContext<'l, 'w> {
    pub(super) weights: &'l mut Weights<'w>,
    pub(super) layout: KernelLayout,
}

impl LoadContext<'_, '_> {
    /// The kernel `[outputs, rows, columns, channels of a group]` of a convolution.
    fn kernel(&mut self, path: &str) -> error::Result<Tensor> {
        let name = format!("{path}.weight");
        let kernel = self.weights.take_any(&name)?;
        match (kernel.shape().len(), self.layout) {
            (4, KernelLayout::Ohwi) => Ok(kernel),
            (4, KernelLayout::Oihw) => Ok(kernel.transpose(&[0, 2, 3, 1])?.contiguous()?),
            _ => Err(Error::WrongShape {
                name,
                expected: "a convolution over rows and columns".into(),
                found: kernel.shape().to_vec(),
            }),
        }
    }

    /// A convolution of one place, which is a product with its channels, with its bias if there is one.
    pub(super) fn pointwise(&mut self, path: &str) -> error::Result<Linear> {
        let kernel = self.kernel(path)?;
        let bias = self
            .weights
            .take_if_present(&format!("{path}.bias"), &[kernel.dim(0)])?;
        let linear = Linear::with_bias(&kernel.reshape(&[kernel.dim(0), -1])?, bias.as_ref())?;
        self.weights.materialize(linear.tensors())?;
        Ok(linear)
    }

    pub(super) fn norm(&mut self, path: &str) -> error::Result<RmsNorm> {
        let weight = self.weights.take_any(&format!("{path}.weight"))?.reshape(&[-1])?;
        let norm = RmsNorm::new(weight, EPS);
        self.weights.materialize(norm.tensors())?;
        Ok(norm)
    }

    /// A convolution with the norm after it, at these names below `path`.
    pub(super) fn convolution(
        &mut self,
        path: &str,
        [convolution, norm]: [&str; 2],
        stride: i32,
    ) -> error::Result<NormedConvolution> {
        Ok(NormedConvolution {
            convolution: Convolution::load(&format!("{path}.{convolution}"), stride, self)?,
            norm: self.norm(&format!("{path}.{norm}"))?,
        })
    }

    fn factors(&mut self, path: &str) -> error::Result<Option<Tensor>> {
        let name = format!("{path}.layer_scale.gamma");
        if !self.weights.has(&name) {
            return Ok(None);
        }
        let factors = self.weights.take_any(&name)?.reshape(&[1, -1])?;
        self.weights.materialize([&factors])?;
        Ok(Some(factors))
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.weights.has(&format!("{path}.weight"))
    }
}

/// A convolution over a grid, padded with zeros so that strides alone make it smaller.
#[derive(Parameters)]
pub(super) struct Convolution {
    kernel: Tensor,
    bias: Option<Tensor>,
    stride: i32,
    /// True if as many zeros stand after the grid as before it, half a kernel of them, as PyTorch has them.
    centered: bool,
}

impl Convolution {
    pub(super) fn load(path: &str, stride: i32, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let kernel = loading.kernel(path)?;
        let name = format!("{path}.bias");
        let bias = loading.weights.take_if_present(&name, &[kernel.dim(0)])?;
        let convolution = Self {
            kernel,
            bias,
            stride,
            centered: false,
        };
        loading.weights.materialize(convolution.tensors())?;
        Ok(convolution)
    }

    /// The same with as many zeros after the grid as before it.
    pub(super) fn load_centered(path: &str, stride: i32, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        Ok(Self {
            centered: true,
            ..Self::load(path, stride, loading)?
        })
    }

    /// The convolution at `path` with the batch norm at `norm` after it, which is a factor and a bias of each channel.
    pub(super) fn load_with_batch_norm(
        path: &str,
        norm: &str,
        eps: f32,
        loading: &mut LoadContext<'_, '_>,
    ) -> error::Result<Self> {
        let kernel = loading.kernel(path)?;
        let outputs = kernel.dim(0);
        let mut part = |name: &str| loading.weights.take(&format!("{norm}.{name}"), &[outputs]);
        let [weight, bias] = [part("weight")?, part("bias")?];
        let [mean, variance] = [part("running_mean")?, part("running_var")?];
        let eps = Tensor::scalar(eps, variance.dtype())?;
        let factor = weight.mul(&variance.add(&eps)?.rsqrt()?)?;
        let convolution = Self {
            kernel: kernel
                .mul(&factor.reshape(&[outputs, 1, 1, 1])?)?
                .astype(kernel.dtype())?,
            bias: Some(bias.sub(&mean.mul(&factor)?)?.astype(kernel.dtype())?),
            stride: 1,
            centered: true,
        };
        loading.weights.materialize(convolution.tensors())?;
        Ok(convolution)
    }

    pub(super) fn forward(&self, x: &FeatureMap) -> Result<FeatureMap> {
        let &[outputs, side, _, of_group] = self.kernel.shape() else {
            unreachable!("kernels have four axes")
        };
        // MLX's convolution on a CPU writes beside its memory if a kernel is larger than the grid.
        if self.centered && side.max(self.kernel.dim(2)) > x.rows.min(x.columns) {
            return Err(mlx::Error::Unsupported(format!(
                "a convolution of {side} places over a grid of {} by {}",
                x.rows, x.columns
            )));
        }
        let channels = x.states.dim(1);
        // TensorFlow's rule: if the zeros are odd in number, one more stands after than before.
        let made = |length: i32| match self.centered {
            true => (length + side / 2 * 2 - side) / self.stride + 1,
            false => (length + self.stride - 1) / self.stride,
        };
        let (rows, columns) = (made(x.rows), made(x.columns));
        let zeros = match self.centered {
            true => side / 2 * 2,
            false => ((rows - 1) * self.stride + side - x.rows).max(0),
        };
        let groups = channels / of_group.max(1);
        let grid = x.states.reshape(&[1, x.rows, x.columns, channels])?;
        let grid = grid.conv2d(&self.kernel, self.stride, (zeros / 2, zeros - zeros / 2), groups)?;
        let mut states = grid.reshape(&[rows * columns, outputs])?;
        if let Some(bias) = &self.bias {
            states = states.add(bias)?;
        }
        Ok(FeatureMap { states, rows, columns })
    }
}

/// A convolution and the norm after it.
#[derive(Parameters)]
pub(super) struct NormedConvolution {
    convolution: Convolution,
    norm: RmsNorm,
}

impl NormedConvolution {
    pub(super) fn forward(&self, x: &FeatureMap) -> Result<FeatureMap> {
        let made = self.convolution.forward(x)?;
        let states = self.norm.forward(&made.states)?;
        Ok(made.with(states))
    }
}

/// Attention of all places to a smaller grid, whose one head all queries share.
#[derive(Parameters)]
pub(super) struct Attention {
    norm: RmsNorm,
    query: Linear,
    key: DownsampledProjection,
    value: DownsampledProjection,
    output: Linear,
    factors: Option<Tensor>,
}

/// A projection of a grid that may be reduced before.
#[derive(Parameters)]
struct DownsampledProjection {
    down: Option<NormedConvolution>,
    projection: Linear,
}

impl DownsampledProjection {
    fn load(path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let has_down = loading.has(&format!("{path}.down_conv"));
        let down = || loading.convolution(path, ["down_conv", "norm"], STRIDE);
        Ok(Self {
            down: has_down.then(down).transpose()?,
            projection: loading.pointwise(&format!("{path}.proj"))?,
        })
    }

    /// `[1, 1, places, width]`.
    fn forward(&self, x: &FeatureMap) -> Result<Tensor> {
        let down = self.down.as_ref().map(|down| down.forward(x)).transpose()?;
        let projected = self.projection.forward(&down.as_ref().unwrap_or(x).states)?;
        projected.reshape(&[1, 1, projected.dim(0), projected.dim(1)])
    }
}

impl Attention {
    fn load(path: &str, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let at = |name: &str| format!("{path}.{name}");
        Ok(Self {
            norm: loading.norm(&at("norm"))?,
            query: loading.pointwise(&at("attn.query.proj"))?,
            key: DownsampledProjection::load(&at("attn.key"), loading)?,
            value: DownsampledProjection::load(&at("attn.value"), loading)?,
            output: loading.pointwise(&at("attn.output.proj"))?,
            factors: loading.factors(path)?,
        })
    }

    fn forward(&self, x: FeatureMap) -> Result<FeatureMap> {
        let normed = x.with(self.norm.forward(&x.states)?);
        let (keys, values) = (self.key.forward(&normed)?, self.value.forward(&normed)?);
        let queries = self.query.forward(&normed.states)?;
        let (places, width) = (queries.dim(0), keys.dim(3));
        let heads = queries.dim(1) / width.max(1);
        let queries = queries.reshape(&[1, places, heads, width])?.swapaxes(1, 2)?;
        let found = attend_in_turns(&queries, &keys, &values, (width as f32).powf(-0.5))?.swapaxes(1, 2)?;
        let found = self.output.forward(&found.reshape(&[places, heads * values.dim(3)])?)?;
        Ok(x.with(x.states.add(&scaled(found, &self.factors)?)?))
    }
}

fn scaled(x: Tensor, factors: &Option<Tensor>) -> Result<Tensor> {
    factors.as_ref().map_or(Ok(x.clone()), |factors| x.mul(factors))
}

/// A convolution over places that widens, then one of each place that narrows.
#[derive(Parameters)]
pub(super) struct EdgeResidual {
    expansion: NormedConvolution,
    projection: Linear,
    output_norm: RmsNorm,
}

/// Widened and narrowed place by place, convolutions of each channel by itself before and between.
#[derive(Parameters)]
pub(super) struct UniversalInvertedResidual {
    before: Option<NormedConvolution>,
    expansion: (Linear, RmsNorm),
    between: Option<NormedConvolution>,
    projection: (Linear, RmsNorm),
    factors: Option<Tensor>,
}

impl EdgeResidual {
    fn load(path: &str, stride: i32, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let at = |name: &str| format!("{path}.{name}");
        Ok(Self {
            expansion: loading.convolution(path, ["conv_exp", "bn1"], stride)?,
            projection: loading.pointwise(&at("conv_pwl"))?,
            output_norm: loading.norm(&at("bn2"))?,
        })
    }

    fn forward(&self, x: &FeatureMap, gelu: &Pointwise) -> Result<FeatureMap> {
        let wide = self.expansion.forward(x)?;
        let states = gelu.forward(&wide.states)?;
        let narrow = self.output_norm.forward(&self.projection.forward(&states)?)?;
        Ok(wide.with(narrow))
    }
}

impl UniversalInvertedResidual {
    pub(super) fn load(path: &str, stride: i32, loading: &mut LoadContext<'_, '_>) -> error::Result<Self> {
        let at = |name: &str| format!("{path}.{name}");
        let has_between = loading.has(&at("dw_mid.conv"));
        let mut depthwise = |name: &str, stride: i32| {
            let has_it = loading.has(&at(&format!("{name}.conv")));
            let convolution = || loading.convolution(&at(name), ["conv", "bn"], stride);
            has_it.then(convolution).transpose()
        };
        let before = depthwise("dw_start", if has_between { 1 } else { stride })?;
        let between = depthwise("dw_mid", stride)?;
        Ok(Self {
            before,
            expansion: (loading.pointwise(&at("pw_exp.conv"))?, loading.norm(&at("pw_exp.bn"))?),
            between,
            projection: (
                loading.pointwise(&at("pw_proj.conv"))?,
                loading.norm(&at("pw_proj.bn"))?,
            ),
            factors: loading.factors(path)?,
        })
    }

    pub(super) fn forward(&self, x: &FeatureMap, gelu: &Pointwise) -> Result<FeatureMap> {
        let before = self.before.as_ref().map(|before| before.forward(x)).transpose()?;
        let started = before.as_ref().unwrap_or(x);
        let (expansion, norm) = &self.expansion;
        let wide = started.with(gelu.forward(&norm.forward(&expansion.forward(&started.states)?)?)?);
        let wide = match &self.between {
            Some(between) => {
                let made = between.forward(&wide)?;
                let states = gelu.forward(&made.states)?;
                made.with(states)
            }
            None => wide,
        };
        let (projection, norm) = &self.projection;
        let narrow = norm.forward(&projection.forward(&wide.states)?)?;
        Ok(wide.with(scaled(narrow, &self.factors)?))
    }
}

/// One block of a stage.
#[derive(Parameters)]
pub(super) enum Block {
    Edge(EdgeResidual),
    Inverted(Box<UniversalInvertedResidual>),
    Attention(Box<Attention>),
}

impl Block {
    /// Loads what lies at `path`; `None` if nothing does.
    pub(super) fn load(path: &str, stride: i32, loading: &mut LoadContext<'_, '_>) -> error::Result<Option<Self>> {
        let has = |name: &str| loading.has(&format!("{path}.{name}"));
        Ok(if has("conv_exp") {
            Some(Self::Edge(EdgeResidual::load(path, stride, loading)?))
        } else if has("attn.query.proj") {
            Some(Self::Attention(Box::new(Attention::load(path, loading)?)))
        } else if has("pw_exp.conv") {
            let inverted = UniversalInvertedResidual::load(path, stride, loading)?;
            Some(Self::Inverted(Box::new(inverted)))
        } else {
            None
        })
    }

    pub(super) fn forward(&self, x: FeatureMap, gelu: &Pointwise) -> Result<FeatureMap> {
        let made = match self {
            Self::Attention(attention) => return attention.forward(x),
            Self::Edge(edge) => edge.forward(&x, gelu)?,
            Self::Inverted(inverted) => inverted.forward(&x, gelu)?,
        };
        // A block that keeps its shape is added to its input.
        match x.states.shape() == made.states.shape() {
            true => Ok(made.with(x.states.add(&made.states)?)),
            false => Ok(made),
        }
    }
}
