//! Attention by fewer or smaller operations: over quantized keys and values as they are, by a kernel for one query, and
//! by plain products where a kernel would first have to be planned.

use std::cell::RefCell;
use std::collections::HashMap;

use mlx::device::{device, Device};
use mlx::ops::{concatenate, Mask};
use mlx::quantized::{QuantizationFormat, QuantizedTensor};
use mlx::tensor::Tensor;
use mlx::{Dtype, Result};

use crate::cache::{composes, KvView};
use crate::kernels::kernels;
use crate::layers::sequences::merge_heads;
use crate::products::product_check;

/// One query for each head `[1, heads, 1, width]` against quantized keys and values as they are, which a GPU alone does
/// faster than unpacking them.
pub fn over_quantized(queries: &Tensor, view: &KvView, scale: f32, sinks: Option<&Tensor>) -> Result<Option<Tensor>> {
    match view {
        KvView::Quantized { keys, values }
            if queries.dim(2) == 1 && device() != Device::Cpu && packed_is_right(queries, keys, values)? =>
        {
            attend_packed(queries, keys, values, scale, sinks).map(Some)
        }
        KvView::Plain { .. } | KvView::Quantized { .. } => Ok(None),
    }
}

/// Queries `[1, heads, length, width]` against keys and values `[1, key heads, positions, width]`; the result is
/// `[length, heads · value width]`.
pub fn attend(
    queries: &Tensor,
    (keys, values): (&Tensor, &Tensor),
    scale: f32,
    mask: &Mask,
    sinks: Option<&Tensor>,
) -> Result<Option<Tensor>> {
    if let Some(attended) = kernels().attend(queries, (keys, values), scale, mask, sinks)? {
        return Ok(Some(attended));
    }
    match mask {
        Mask::Array(seen) if composes(queries.dim(2) as usize, keys.dim(2) as usize) => {
            let scaled = queries.mul(&Tensor::scalar(scale, queries.dtype())?)?;
            merge_heads(&attend_composed(&scaled, (keys, values), Ok, Some(seen), sinks)?).map(Some)
        }
        _ => Ok(None),
    }
}

/// Scaled queries `[1, heads, length, width]` against keys and values `[1, key heads, positions, width]` of which they
/// see those marked in `seen` `[length, positions]`, or all; the result is `[1, heads, length, value width]`. `cap`
/// changes the scores before some are hidden.
pub fn attend_composed(
    scaled: &Tensor,
    (keys, values): (&Tensor, &Tensor),
    cap: impl FnOnce(Tensor) -> Result<Tensor>,
    seen: Option<&Tensor>,
    sinks: Option<&Tensor>,
) -> Result<Tensor> {
    let &[_, heads, length, width] = scaled.shape() else {
        unreachable!("queries have four axes")
    };
    let (key_heads, positions) = (keys.dim(1), keys.dim(2));
    // Queries that share a key head become the rows of one product.
    let rows = heads / key_heads * length;
    let scores = scaled
        .reshape(&[1, key_heads, rows, width])?
        .matmul(&keys.swapaxes(2, 3)?)?;
    let scores = cap(scores.reshape(&[1, heads, length, positions])?)?;
    let scores = match seen {
        Some(seen) => seen.select(&scores, &Tensor::scalar(f32::NEG_INFINITY, scores.dtype())?)?,
        None => scores,
    };
    let shares = match sinks {
        None => scores.softmax(-1, true)?,
        Some(sinks) => {
            let logits = sinks.astype(scores.dtype())?.reshape(&[1, heads, 1, 1])?;
            let logits = logits.broadcast(&[1, heads, length, 1])?;
            concatenate(&[&scores, &logits], 3)?
                .softmax(-1, true)?
                .slice(3, 0, positions)?
        }
    };
    let attended = shares.reshape(&[1, key_heads, rows, positions])?.matmul(values)?;
    attended.reshape(&[1, heads, length, values.dim(3)])
}

/// The properties that decide whether attention over quantized keys and values is right: their bits, the numbers of
/// query heads and key heads, their widths, and the type of the queries.
type PackedKind = (i32, [i32; 4], Dtype);

thread_local! {
    static PACKED: RefCell<HashMap<PackedKind, bool>> = RefCell::default();
}

/// Positions that are compared: which kernel MLX takes depends on their number and on what divides it.
const COMPARED: [i32; 8] = [3, 8, 20, 64, 130, 512, 1030, 1280];

/// True if [`attend_packed`] may be used here: it is compared once with the same attention over dequantized keys and
/// values, as the products with weights are.
fn packed_is_right(queries: &Tensor, keys: &QuantizedTensor, values: &QuantizedTensor) -> Result<bool> {
    let (bits, dtype) = (keys.format.bits, queries.dtype());
    let width = |packed: &QuantizedTensor| packed.scales.dim(3) * packed.format.group_size;
    let shape = [queries.dim(1), keys.scales.dim(1), width(keys), width(values)];
    // MLX's kernel for keys that are no wider than a group is wrong for some numbers of positions, and for others it
    // stops the device.
    if device() == Device::Cuda && width(keys) <= keys.format.group_size {
        return Ok(false);
    }
    if let Some(right) = PACKED.with_borrow(|known| known.get(&(bits, shape, dtype)).copied()) {
        return Ok(right);
    }
    let [heads, key_heads, key_width, value_width] = shape;
    let group_size = keys.format.group_size;
    let name = format!(
        "attention, {bits} bit, groups of {group_size}, {heads} heads of {key_width} and {value_width} over {key_heads}, {dtype:?}"
    );
    let right = product_check::is_right(&name, || packed_difference(shape, dtype, [keys.format, values.format]))?;
    PACKED.with_borrow_mut(|known| known.insert((bits, shape, dtype), right));
    Ok(right)
}

fn packed_difference(shape: [i32; 4], dtype: Dtype, [of_keys, of_values]: [QuantizationFormat; 2]) -> Result<f32> {
    let [heads, key_heads, key_width, value_width] = shape;
    let scale = (key_width as f32).sqrt().recip();
    let queries = product_check::activations(&[1, heads, 1, key_width], dtype)?;
    let mut worst = 0.0;
    for positions in COMPARED {
        let packed = |width, format| {
            QuantizedTensor::quantize(
                &product_check::activations(&[1, key_heads, positions, width], dtype)?,
                format,
            )
        };
        let (keys, values) = (packed(key_width, of_keys)?, packed(value_width, of_values)?);
        let wide = |packed: &QuantizedTensor| packed.dequantize()?.astype(Dtype::Float32);
        let right =
            queries
                .astype(Dtype::Float32)?
                .fast_attention(&wide(&keys)?, &wide(&values)?, scale, &Mask::None, None)?;
        let found = attend_packed(&queries, &keys, &values, scale, None)?;
        let difference = product_check::relative(&found, &right.reshape(&[1, heads * value_width])?)?;
        worst = product_check::worse(worst, difference);
    }
    Ok(worst)
}

/// One query for each head `[1, heads, 1, width]` against quantized keys and values, all of which it sees: two products
/// with quantized numbers, so that what is read from memory stays small.
fn attend_packed(
    queries: &Tensor,
    keys: &QuantizedTensor,
    values: &QuantizedTensor,
    scale: f32,
    sinks: Option<&Tensor>,
) -> Result<Tensor> {
    let (heads, width, key_heads) = (queries.dim(1), queries.dim(3), keys.weight.dim(1));
    // Queries that share a key head become the rows of one product.
    let grouped = queries.reshape(&[1, key_heads, heads / key_heads, width])?;
    let scaled = if scale == 1.0 {
        grouped
    } else {
        grouped.mul(&Tensor::scalar(scale, queries.dtype())?)?
    };
    let scores = scaled.quantized_matmul(keys, true)?;
    let shares = match sinks {
        None => scores.softmax(-1, true)?,
        Some(sinks) => {
            let logits = sinks
                .astype(scores.dtype())?
                .reshape(&[1, key_heads, heads / key_heads, 1])?;
            let positions = scores.dim(3);
            concatenate(&[&scores, &logits], 3)?
                .softmax(-1, true)?
                .slice(3, 0, positions)?
        }
    };
    // The last axis of quantized values counts words, so the width comes from the result.
    shares.quantized_matmul(values, false)?.reshape(&[1, -1])
}

#[cfg(test)]
mod tests {
    use mlx::device::{connect, pretend_gpu};
    use mlx::ops::Mask;
    use mlx::quantized::{inject_fault, QuantizationFormat, QuantizedTensor};
    use mlx::Dtype;

    use crate::cache::KvView;
    use crate::layers::scaled_dot_product_attention;
    use crate::products::product_check::{activations, relative};

    #[test]
    fn wrong_products_with_packed_keys_are_made_of_numbers() {
        connect().unwrap();
        pretend_gpu();
        // Wider than a group, because those that are not are never multiplied quantized on CUDA.
        let format = |group_size| QuantizationFormat {
            group_size,
            bits: 8,
            mode: c"affine",
        };
        for (heads, width, wrong) in [(6, 128, 0), (4, 128, 128), (8, 128, 128), (4, 64, 64)] {
            inject_fault(wrong);
            let queries = activations(&[1, heads, 1, width], Dtype::Float32).unwrap();
            let kept = activations(&[1, 2, 40, width], Dtype::Float32).unwrap();
            let packed = || QuantizedTensor::quantize(&kept, format(64)).unwrap();
            let view = KvView::Quantized {
                keys: packed(),
                values: packed(),
            };
            let found = scaled_dot_product_attention(&queries, &view, 0.125, &Mask::None, None).unwrap();
            inject_fault(0);
            let right = queries.fast_attention(&kept, &kept, 0.125, &Mask::None, None).unwrap();
            let right = right.reshape(&[1, heads * width]).unwrap();
            let difference = relative(&found, &right).unwrap();
            assert!(difference < 0.02, "{heads} heads: {difference}");
        }
    }
}
