//! The programs: few, because each takes a second to compile. They differ by their number of results; sizes are no
//! constants but come as the shape of an array of one element, which the device gets without reading memory.

use std::ffi::CStr;

use mlx::{Dtype, Error, Result};

use crate::compiler::{Entry, Module};

/// Bounds the threads of a block and says how many blocks of as many a multiprocessor shall hold, and by that the
/// registers of a thread; the function is written elsewhere.
macro_rules! bounded {
    ($bounds:literal) => {
        concat!("#define ponder_kernel __launch_bounds__(", $bounds, ") ponder_kernel\n")
    };
}

/// A unit of compilation: functions with the same inputs and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Program {
    /// Gates, sums, heads of queries.
    One,
    /// A sum and its norm.
    Two,
    /// Heads of queries, keys and values.
    Three,
    /// Attention, and joining its parts.
    Attend,
    /// Parts of an attention.
    Parts,
    /// Projections of one row.
    Row,
    /// Projections of up to 8 rows.
    Rows8,
    /// Projections of up to 16 rows.
    Rows16,
    /// Projections of up to 32 rows.
    Rows32,
    /// A sum, its norm and a projection of that.
    NormLinear,
    /// Products with the matrices of chosen experts.
    Experts,
    /// The same of one token.
    RowExperts,
    /// Products of up to 32 rows a matrix with those of a stack, or with one matrix.
    Grouped32,
    /// Products of up to 64 rows a matrix.
    Grouped64,
    /// Products of up to 128 rows a matrix.
    Grouped128,
    /// The choice of experts.
    Route,
    /// A sum, its norm, and the choice of experts by that.
    NormRoute,
    /// The order of tokens by their experts.
    Sort,
    /// The address of an array.
    Address,
    /// The first and the last launch of a recorded step.
    Ends,
}

impl Program {
    /// Names of inputs and results, and the call in which all of it ends.
    pub fn call(self) -> (&'static [&'static str], &'static [&'static str], &'static CStr) {
        const ROWS: &[&str] = &["p", "x", "weight", "scales", "biases", "bias"];
        const EXPERTS: &[&str] = &["p", "x", "weight", "scales", "biases", "bias", "experts", "shares"];
        const GROUPS: &[&str] = &["p", "x", "weight", "scales", "biases", "bias", "order", "tiles"];
        match self {
            Self::One => (
                &["p", "a", "b", "c", "d"],
                &["out"],
                c"ponder_one(p_shape, a, a_strides, b, b_strides, c, d, out);",
            ),
            Self::Two => (
                &["p", "a", "b", "c", "d", "e"],
                &["sum", "normed"],
                c"ponder_two(p_shape, a, b, c, d, e, sum, normed);",
            ),
            Self::Three => (
                &["p", "a", "b", "c", "d"],
                &["queries", "keys", "values"],
                c"ponder_three(p_shape, a, b, c, d, queries, keys, values);",
            ),
            Self::Attend => (
                &["p", "a", "b", "c"],
                &["result"],
                c"ponder_whole(p_shape, a, b, b_shape, b_strides, c, c_strides, result);",
            ),
            Self::Parts => (
                &["p", "a", "b", "c"],
                &["partial", "weights"],
                c"ponder_split(p_shape, a, b, b_shape, b_strides, c, c_strides, partial, weights);",
            ),
            Self::Row => (
                ROWS,
                &["y"],
                c"ponder_row_entry(p_shape, x, x_shape, weight, weight_shape, scales, scales_shape, biases, bias, y);",
            ),
            Self::Rows8 => (
                ROWS,
                &["y"],
                c"ponder_rows<1>(p_shape, x, x_shape, x_strides, weight, weight_shape, scales, scales_shape, biases, bias, y);",
            ),
            Self::Rows16 => (
                ROWS,
                &["y"],
                c"ponder_rows<2>(p_shape, x, x_shape, x_strides, weight, weight_shape, scales, scales_shape, biases, bias, y);",
            ),
            Self::Rows32 => (
                ROWS,
                &["y"],
                c"ponder_rows<4>(p_shape, x, x_shape, x_strides, weight, weight_shape, scales, scales_shape, biases, bias, y);",
            ),
            Self::NormLinear => (
                &["p", "h", "x", "inner", "factor", "outer", "weight", "scales", "biases", "other"],
                &["y", "sum"],
                c"ponder_reading(p_shape, h, x, x_shape, inner, factor, outer, weight, weight_shape, scales, scales_shape, biases, other, y, sum);",
            ),
            Self::Experts => (
                EXPERTS,
                &["result"],
                c"ponder_experts(p_shape, x, x_shape, x_strides, weight, scales, scales_shape, biases, bias, experts, experts_shape, experts_strides, shares, shares_strides, result);",
            ),
            Self::RowExperts => (
                EXPERTS,
                &["result"],
                c"ponder_row_experts(p_shape, x, x_shape, x_strides, weight, scales, scales_shape, biases, bias, experts, experts_shape, experts_strides, shares, shares_strides, result);",
            ),
            Self::Grouped32 => (
                GROUPS,
                &["result"],
                c"ponder_groups<1>(p_shape, x, x_shape, x_strides, weight, scales, scales_shape, biases, bias, order, tiles, result);",
            ),
            Self::Grouped64 => (
                GROUPS,
                &["result"],
                c"ponder_groups<2>(p_shape, x, x_shape, x_strides, weight, scales, scales_shape, biases, bias, order, tiles, result);",
            ),
            Self::Grouped128 => (
                GROUPS,
                &["result"],
                c"ponder_groups<4>(p_shape, x, x_shape, x_strides, weight, scales, scales_shape, biases, bias, order, tiles, result);",
            ),
            Self::Route => (
                &["p", "scores"],
                &["places", "shares"],
                c"ponder_route(p_shape, scores, scores_shape, scores_strides, places, shares);",
            ),
            Self::NormRoute => (
                &["p", "h", "x", "inner", "factor", "outer", "weight", "bias", "counters"],
                &["sum", "normed", "scores", "places", "shares"],
                c"ponder_norm_route(p_shape, h, x, inner, factor, outer, weight, weight_shape, bias, counters, sum, normed, scores, places, shares);",
            ),
            Self::Sort => (
                &["p", "experts"],
                &["order", "tiles"],
                c"ponder_sort(p_shape, experts, experts_shape, experts_strides, order, tiles);",
            ),
            Self::Address => (&["p", "a"], &["address"], c"ponder_address(a, address);"),
            Self::Ends => (
                &["p", "a", "b", "c", "d"],
                &["out"],
                c"ponder_ends(p_shape, a, b, c, d, out);",
            ),
        }
    }

    /// Its device functions.
    fn functions(self) -> &'static [&'static str] {
        const LAYERS: &str = include_str!("cuda/layers.cuh");
        const TILES: &str = include_str!("cuda/tiles.cuh");
        const ROW: &str = include_str!("cuda/row.cuh");
        const ROUTE: &str = include_str!("cuda/route.cuh");
        const LINEAR: &str = include_str!("cuda/linear.cuh");
        match self {
            Self::One => &[LAYERS, include_str!("cuda/one.cuh")],
            Self::Two | Self::Three => &[LAYERS],
            Self::Attend | Self::Parts => &[include_str!("cuda/attend.cuh")],
            Self::Row => &[TILES, ROW, include_str!("cuda/row_linear.cuh"), bounded!("640, 1")],
            Self::Rows8 => &[TILES, LINEAR, bounded!("384, 2")],
            Self::Rows16 => &[TILES, LINEAR, bounded!("320, 2")],
            Self::Rows32 => &[TILES, LINEAR, bounded!("256, 2")],
            Self::NormLinear => &[TILES, ROW, include_str!("cuda/norm_linear.cuh"), bounded!("640, 1")],
            Self::Experts => &[TILES, include_str!("cuda/experts.cuh"), bounded!("512, 1")],
            Self::RowExperts => &[TILES, ROW, include_str!("cuda/row_experts.cuh"), bounded!("640, 1")],
            Self::Grouped32 | Self::Grouped64 | Self::Grouped128 => {
                &[TILES, include_str!("cuda/grouped.cuh"), bounded!("256, 2")]
            }
            Self::Route => &[ROUTE],
            Self::NormRoute => &[LAYERS, ROUTE, include_str!("cuda/norm_route.cuh")],
            Self::Sort => &[include_str!("cuda/sort.cuh")],
            Self::Address => &[include_str!("cuda/address.cuh")],
            Self::Ends => &[include_str!("cuda/choice.cuh"), include_str!("cuda/ends.cuh")],
        }
    }

    /// The module that is compiled for activations of this type.
    pub fn module(self, dtype: Dtype) -> Result<Module> {
        let (inputs, outputs, call) = self.call();
        let call = call.to_str().map_err(|error| Error::Failed(error.to_string()))?;
        let functions = self.functions().concat();
        let entry = Entry {
            inputs,
            outputs,
            call,
            waits: functions.contains("ponder_wait();"),
        };
        module(&format!("{self:?}").to_lowercase(), dtype, entry, &functions)
    }
}

/// The name of a type of activations in the sources; `None` if there are no kernels for it.
pub fn element(dtype: Dtype) -> Option<&'static str> {
    match dtype {
        Dtype::Bfloat16 => Some("BFloat16"),
        Dtype::Float16 => Some("Float16"),
        Dtype::Float32 => Some("float"),
        _ => None,
    }
}

/// The module of these functions for activations of a type.
pub fn module(name: &str, dtype: Dtype, entry: Entry, functions: &str) -> Result<Module> {
    let element = element(dtype).ok_or_else(|| Error::Unsupported(format!("a kernel for {dtype:?}")))?;
    let functions = format!(
        "{}#define T {element}\n{}{functions}",
        include_str!("cuda/types.cuh"),
        include_str!("cuda/common.cuh"),
    );
    Ok(Module::new(
        &format!("{name}_{element}").to_lowercase(),
        entry,
        functions,
    ))
}
