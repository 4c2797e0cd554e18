//! A check of the device's products with quantized numbers. Each kind of product that a model uses is computed once and
//! compared with the same product of the dequantized numbers; a kind that is wrong is not used: the weights are
//! dequantized. So a fault of MLX or of a driver costs speed and memory, and never an answer.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use mlx::device::Device;
use mlx::fused::Rows;
use mlx::ops::concatenate;
use mlx::quantized::QuantizedTensor;
use mlx::tensor::Tensor;
use mlx::{device, memory, Dtype, Result};
use serde::{Deserialize, Serialize};

use crate::error::{self, Error};
use crate::kernels::kernels;
use crate::products::packed_product::{gathered_product, packed_product};

/// The largest difference from the right product, relative to its greatest value, that counts as rounding: 16 bit
/// products differ by 0.003, wrong ones by 1.
const TOLERANCE: f32 = 0.05;

/// The same for our own kernels for the processor with rows of 16 or 32 bits.
const EXACT_TOLERANCE: f32 = 1e-4;

/// The same with rows that are rounded to 8 bits: products differ by up to 0.006.
const ROUNDED_TOLERANCE: f32 = 0.01;

/// The same for MLX's kernels for the processor, which also sum 16 bit products in 16 bits.
const MLX_CPU_TOLERANCE: f32 = 0.25;

/// One row as in decoding, some rows as in a batch, and a chunk: devices have a kernel for each.
const ROWS: [i32; 3] = [1, 5, 130];

/// Tokens of the gathered products: one, and enough for the rows to be sorted by expert.
const GATHERED: [i32; 2] = [1, 72];

/// Outputs that are computed at most, more or less: kernels cut them into tiles, of which the last one may be narrower.
const MAX_OUTPUTS: i32 = 1024;
const TILE: i32 = 128;

/// How a quantized product is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Rows times the rows of a matrix `[outputs, inputs]`.
    Rows,
    /// Rows times the matrices that their experts have in a stack `[experts, outputs, inputs]`.
    Experts,
    /// Rows of each head times the matrix of the head `[heads, outputs, inputs]`, in both directions.
    Heads,
}

thread_local! {
    static CHECKS: RefCell<ProductChecks> = RefCell::default();
}

/// Begins with what `folder` remembers of this version of MLX, this device and this driver; nothing is remembered
/// without a folder. Before that, this thread knows nothing and remembers nothing.
pub fn open(folder: Option<&Path>) {
    CHECKS.set(ProductChecks::open(folder));
}

/// True if products with this matrix were compared, here or in an earlier process.
pub fn is_known(matrix: &QuantizedTensor, layout: Layout) -> bool {
    CHECKS.with_borrow(|checks| checks.verdicts.contains_key(&Kind::of(matrix, layout).to_string()))
}

/// The numbers of `matrix` if its products would be wrong here, in the type that they are computed in; `None` if it may
/// stay quantized.
///
/// # Errors
/// [`Error::WrongProducts`] if there is no memory for the numbers.
pub fn replacement(matrix: &QuantizedTensor, layout: Layout) -> error::Result<Option<Tensor>> {
    CHECKS.with_borrow_mut(|checks| checks.replacement(matrix, layout))
}

/// Returns and forgets the kinds that were found to be wrong since the last call.
pub fn drain_failed_kinds() -> Vec<String> {
    CHECKS.with_borrow_mut(|checks| std::mem::take(&mut checks.wrong))
}

/// True if another computation over quantized numbers is right: `difference` compares it, once.
pub fn is_right(name: &str, difference: impl FnOnce() -> Result<f32>) -> Result<bool> {
    CHECKS.with_borrow_mut(|checks| checks.is_right(name, difference))
}

/// True if something was found to be right on this platform before.
pub fn was_right(name: &str) -> bool {
    CHECKS.with_borrow(|checks| checks.verdicts.get(name) == Some(&true))
}

/// Remembers that something was found to be right.
pub fn remember_right(name: &str) {
    CHECKS.with_borrow_mut(|checks| {
        checks.verdicts.insert(name.to_owned(), true);
        checks.store();
    });
}

/// The verdicts on products, per kind; kept in a file from run to run, because a GPU compiles a kernel for each.
#[derive(Default)]
struct ProductChecks {
    file: Option<PathBuf>,
    platform: String,
    verdicts: BTreeMap<String, bool>,
    /// Kinds that MLX refused to compute. They are not used in this process, and tried again in the next: memory may
    /// have been short.
    refused: BTreeSet<String>,
    /// Kinds that this load uses and must not.
    wrong: Vec<String>,
}

/// The file of verdicts.
#[derive(Serialize, Deserialize)]
struct VerdictFile {
    /// MLX's version, the device and its driver.
    platform: String,
    /// True for each kind that is computed rightly.
    verdicts: BTreeMap<String, bool>,
}

impl ProductChecks {
    fn open(folder: Option<&Path>) -> Self {
        let platform = device::platform();
        let file = folder.map(|folder| folder.join("packed-products.json"));
        let stored = file.as_ref().and_then(|file| fs::read(file).ok());
        let stored = stored.and_then(|bytes| serde_json::from_slice::<VerdictFile>(&bytes).ok());
        Self {
            verdicts: stored
                .filter(|stored| stored.platform == platform)
                .map(|stored| stored.verdicts)
                .unwrap_or_default(),
            file,
            platform,
            ..Self::default()
        }
    }

    fn replacement(&mut self, matrix: &QuantizedTensor, layout: Layout) -> error::Result<Option<Tensor>> {
        let kind = Kind::of(matrix, layout);
        let name = kind.to_string();
        if self.is_right(&name, || kind.difference(matrix))? {
            return Ok(None);
        }
        let needed = matrix.numbers() as u64 * 2;
        if memory::figures()?.active + needed > memory::limit()? {
            return Err(Error::WrongProducts(name));
        }
        if !self.wrong.contains(&name) {
            self.wrong.push(name);
        }
        Ok(Some(matrix.dequantize()?))
    }

    fn is_right(&mut self, name: &str, difference: impl FnOnce() -> Result<f32>) -> Result<bool> {
        if let Some(right) = self.verdicts.get(name) {
            return Ok(*right);
        }
        if self.refused.contains(name) {
            return Ok(false);
        }
        let start = Instant::now();
        let difference = match difference() {
            Ok(difference) => difference,
            Err(error) => {
                tracing::warn!(
                    kind = name,
                    %error,
                    "MLX cannot compute these packed products here; they are dequantised"
                );
                self.refused.insert(name.to_owned());
                memory::clear_cache()?;
                return Ok(false);
            }
        };
        memory::clear_cache()?;
        // A number that is none is greater than nothing.
        let right = difference <= tolerance();
        let milliseconds = start.elapsed().as_millis() as u64;
        if right {
            tracing::debug!(kind = name, difference, milliseconds, "packed products are right");
        } else {
            tracing::warn!(
                kind = name,
                difference,
                milliseconds,
                "MLX computes these packed products wrongly here; they are dequantised"
            );
        }
        self.verdicts.insert(name.to_owned(), right);
        self.store();
        Ok(right)
    }

    /// Remembers the verdicts. Losing them costs the next start some time and nothing else.
    fn store(&self) {
        let Some(file) = &self.file else { return };
        let stored = VerdictFile {
            platform: self.platform.clone(),
            verdicts: self.verdicts.clone(),
        };
        let written = serde_json::to_vec_pretty(&stored)
            .map_err(std::io::Error::from)
            .and_then(|bytes| {
                let folder = file.parent().unwrap_or(Path::new("."));
                fs::create_dir_all(folder)?;
                let partial = file.with_extension(format!("json.{}", std::process::id()));
                fs::write(&partial, bytes)?;
                fs::rename(partial, file)
            });
        if let Err(error) = written {
            tracing::warn!(%error, file = %file.display(), "what was found out about packed products could not be kept");
        }
    }
}

/// The properties by which a device chooses its kernel for a product.
struct Kind {
    layout: Layout,
    mode: String,
    bits: i32,
    group_size: i32,
    inputs: i32,
    outputs: i32,
    /// The type of the numbers.
    dtype: Dtype,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            layout,
            mode,
            bits,
            group_size,
            inputs,
            outputs,
            dtype,
        } = self;
        let layout = match layout {
            Layout::Rows => "",
            Layout::Experts => ", experts",
            Layout::Heads => ", heads",
        };
        write!(
            f,
            "{mode} {bits} bit, groups of {group_size}, {inputs} to {outputs}{layout}, {dtype:?}"
        )
    }
}

impl Kind {
    fn of(matrix: &QuantizedTensor, layout: Layout) -> Self {
        let format = &matrix.format;
        Self {
            layout,
            mode: format.mode.to_string_lossy().into_owned(),
            bits: format.bits,
            group_size: format.group_size,
            inputs: matrix.scales.dim(-1) * format.group_size,
            outputs: matrix.scales.dim(-2),
            dtype: match device::device() {
                Device::Cpu => Dtype::Float32,
                Device::Metal | Device::Cuda => matrix.dtype(),
            },
        }
    }

    /// The largest difference of the quantized products from those of the numbers, relative to their greatest value.
    fn difference(&self, matrix: &QuantizedTensor) -> Result<f32> {
        let outputs = match self.outputs {
            few if few <= MAX_OUTPUTS => few,
            many => MAX_OUTPUTS + many % TILE,
        };
        let few = match self.layout {
            Layout::Experts => matrix.slice(0, 0, matrix.scales.dim(0).min(2))?,
            Layout::Rows | Layout::Heads => matrix.clone(),
        };
        let part = few.slice(few.scales.shape().len() - 2, 0, outputs)?;
        let numbers = match self.dtype {
            Dtype::Float32 => part.dequantize_to_f32()?,
            _ => part.dequantize()?.astype(Dtype::Float32)?,
        };
        let turned = numbers.swapaxes(-2, -1)?;
        let rows = if self.layout == Layout::Experts {
            &GATHERED[..]
        } else {
            &ROWS[..]
        };
        let mut worst = 0.0;
        for count in rows {
            let difference = match self.layout {
                Layout::Rows => {
                    let x = activations(&[*count, self.inputs], self.dtype)?;
                    relative(&packed_product(&x, &part)?, &x.astype(Dtype::Float32)?.matmul(&turned)?)?
                }
                Layout::Heads => {
                    let x = activations(&[1, part.scales.dim(0), *count, self.inputs], self.dtype)?;
                    let there = relative(
                        &x.quantized_matmul(&part, true)?,
                        &x.astype(Dtype::Float32)?.matmul(&turned)?,
                    )?;
                    let y = activations(&[1, part.scales.dim(0), *count, outputs], self.dtype)?;
                    let back = relative(
                        &y.quantized_matmul(&part, false)?,
                        &y.astype(Dtype::Float32)?.matmul(&numbers)?,
                    )?;
                    worse(there, back)
                }
                Layout::Experts => self.gathered_difference(*count, &part, &turned)?,
            };
            worst = worse(worst, difference);
        }
        Ok(worst)
    }

    /// The same for rows of which the first half goes to the first expert of two, and the others to the second.
    fn gathered_difference(&self, count: i32, part: &QuantizedTensor, turned: &Tensor) -> Result<f32> {
        let experts = part.scales.dim(0);
        let x = activations(&[count, self.inputs], self.dtype)?;
        let wide = x.astype(Dtype::Float32)?;
        let expert = |index: i32| turned.slice(0, index, index + 1)?.reshape(&[self.inputs, -1]);
        if count == 1 {
            let indices = Tensor::from_i32(&(0..experts).collect::<Vec<_>>(), &[1, experts]).astype(Dtype::Uint32)?;
            let products = gathered_product(
                &x.reshape(&[1, 1, 1, self.inputs])?,
                Rows::Quantized(part),
                &indices,
                false,
            )?;
            let right = (0..experts)
                .map(|index| wide.matmul(&expert(index)?))
                .collect::<Result<Vec<_>>>()?;
            return relative(
                &products.reshape(&[experts, -1])?,
                &concatenate(&right.iter().collect::<Vec<_>>(), 0)?,
            );
        }
        let half = count / experts;
        let chosen: Vec<i32> = (0..count).map(|row| (row / half).min(experts - 1)).collect();
        let indices = Tensor::from_i32(&chosen, &[count]).astype(Dtype::Uint32)?;
        let products = gathered_product(
            &x.reshape(&[count, 1, self.inputs])?,
            Rows::Quantized(part),
            &indices,
            true,
        )?;
        let right = (0..experts)
            .map(|index| {
                let end = if index + 1 == experts {
                    count
                } else {
                    (index + 1) * half
                };
                wide.slice(0, index * half, end)?.matmul(&expert(index)?)
            })
            .collect::<Result<Vec<_>>>()?;
        relative(
            &products.reshape(&[count, -1])?,
            &concatenate(&right.iter().collect::<Vec<_>>(), 0)?,
        )
    }
}

/// The largest difference that counts as rounding on this thread's device.
fn tolerance() -> f32 {
    let rounds = || kernels().processor().is_some_and(|used| used.activation_bits == 8);
    match device::device() {
        Device::Cpu if rounds() => ROUNDED_TOLERANCE,
        Device::Cpu => EXACT_TOLERANCE,
        Device::Metal | Device::Cuda if device::on_cpu() => MLX_CPU_TOLERANCE,
        Device::Metal | Device::Cuda => TOLERANCE,
    }
}

/// Numbers between −1 and 1 without a pattern, the same every time.
pub fn activations(shape: &[i32], dtype: Dtype) -> Result<Tensor> {
    let count = shape.iter().product::<i32>() as u32;
    let number = |index: u32| {
        // The finaliser of MurmurHash3.
        let mixed = (index ^ (index >> 16)).wrapping_mul(0x85eb_ca6b);
        let mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
        ((mixed ^ (mixed >> 16)) >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    Tensor::from_f32(&(1..=count).map(number).collect::<Vec<_>>(), shape).astype(dtype)
}

/// The largest difference, relative to the greatest right value; not a number if any of them is none.
pub fn relative(found: &Tensor, right: &Tensor) -> Result<f32> {
    let (found, right) = (found.astype(Dtype::Float32)?.to_f32()?, right.to_f32()?);
    let greatest = right.iter().fold(0.0, |greatest: f32, value| greatest.max(value.abs()));
    let differences = found.iter().zip(&right).map(|(found, right)| (found - right).abs());
    let worst = differences.fold(0.0, worse);
    Ok(if greatest > 0.0 { worst / greatest } else { worst })
}

/// The greater of two differences, and not a number if one of them is none, which `max` would forget.
pub fn worse(one: f32, other: f32) -> f32 {
    if one.is_nan() || one > other {
        one
    } else {
        other
    }
}

#[cfg(test)]
mod tests {
    use mlx::device::{connect, pretend_gpu};
    use mlx::quantized::{inject_fault, QuantizationFormat, QuantizedTensor};
    use mlx::Dtype;

    use super::{activations, Kind, Layout, ProductChecks, TOLERANCE};

    fn packed(shape: &[i32], bits: i32, group_size: i32) -> QuantizedTensor {
        let mode = c"affine";
        QuantizedTensor::quantize(
            &activations(shape, Dtype::Float32).unwrap(),
            QuantizationFormat { group_size, bits, mode },
        )
        .unwrap()
    }

    #[test]
    fn right_products_of_every_layout_are_found_right() {
        connect().unwrap();
        for (bits, group_size) in [(2, 32), (3, 64), (4, 64), (4, 128), (5, 64), (6, 64), (8, 64)] {
            for (layout, shape) in [
                (Layout::Rows, vec![1100, 128]),
                (Layout::Experts, vec![3, 96, 128]),
                (Layout::Experts, vec![1, 96, 128]),
                (Layout::Heads, vec![4, 64, 128]),
            ] {
                let matrix = packed(&shape, bits, group_size);
                let difference = Kind::of(&matrix, layout).difference(&matrix).unwrap();
                assert!(
                    difference < TOLERANCE / 10.0,
                    "{} of {layout:?}: {difference}",
                    Kind::of(&matrix, layout)
                );
            }
        }
    }

    #[test]
    fn a_wrong_product_is_replaced_by_numbers_and_remembered_for_this_platform_alone() {
        connect().unwrap();
        // Our own kernels for the processor have no faults to inject.
        pretend_gpu();
        let (folder, matrix) = (tempfile::tempdir().unwrap(), packed(&[256, 64], 8, 64));
        inject_fault(64);
        let mut checks = ProductChecks::open(Some(folder.path()));
        let numbers = checks.replacement(&matrix, Layout::Rows).unwrap().unwrap();
        assert_eq!(numbers.shape(), [256, 64]);
        assert_eq!(checks.wrong, ["affine 8 bit, groups of 64, 64 to 256, Float32"]);

        inject_fault(0);
        let mut remembered = ProductChecks::open(Some(folder.path()));
        assert!(remembered.replacement(&matrix, Layout::Rows).unwrap().is_some());
        let file = folder.path().join("packed-products.json");
        let other = std::fs::read_to_string(&file).unwrap().replace("MLX ", "MLX 0.1 and ");
        std::fs::write(&file, other).unwrap();
        let mut anew = ProductChecks::open(Some(folder.path()));
        assert!(anew.replacement(&matrix, Layout::Rows).unwrap().is_none());
        for garbage in ["", "{", "[]", "{\"platform\":1}"] {
            std::fs::write(&file, garbage).unwrap();
            assert!(ProductChecks::open(Some(folder.path()))
                .replacement(&matrix, Layout::Rows)
                .unwrap()
                .is_none());
        }
    }
}
