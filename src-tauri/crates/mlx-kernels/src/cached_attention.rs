//! Attention of a recorded step: one query of each sequence to what its cache holds, in one launch for all of them.

use std::rc::Rc;

use mlx::recording::{CacheOf, CacheShape, CachedAttention, StepRows};
use mlx::tensor::Tensor;
use mlx::{Dtype, Error, Result};

use crate::compiler::{Entry, Module};
use crate::program;
use crate::recorder::{nothing, shape_bytes, with, Argument, Grid, HeadsLaunch, Launch, OFFSETS, PLACES, PLACE_BYTES};

/// Query heads that a block lets share what it reads.
const MAX_QUERIES: i32 = 8;
/// Numbers of its heads that a block keeps in shared memory.
const MAX_NUMBERS: i32 = 2048;
/// Blocks that keep all of a card busy.
const BLOCKS: i32 = 264;
/// The most parts that the keys of a sequence are split into.
const MAX_PARTS: i32 = 32;

const ENTRY: Entry = Entry {
    inputs: &["p", "queries", "keys", "values", "sinks", "places", "offsets"],
    outputs: &["result", "partial", "counter"],
    call: "ponder_cached_entry(p_shape, queries, keys, values, sinks, places, offsets, result, partial, counter);",
    waits: true,
};

/// The same with the heads as a projection gives them.
const PROJECTED: Entry = Entry {
    inputs: &[
        "p", "h", "all", "factors", "periods", "positions", "sinks", "places", "offsets",
    ],
    outputs: &["result", "partial", "counter"],
    call: "ponder_projected_entry(p_shape, h_shape, all, factors, periods, positions, sinks, places, offsets, result, partial, counter);",
    waits: true,
};

/// The work of a launch.
#[derive(Clone, Copy)]
enum Work {
    Read = 0,
    WriteAndRead = 1,
    Write = 2,
}

/// How an attention is launched.
struct Plan {
    /// The kernel for its heads.
    module: Rc<Module>,
    /// The numbers that the kernel gets, and its blocks and threads, of each launch.
    launches: Vec<([i32; 8], Grid)>,
    /// The shape of the result.
    result: [i32; 2],
    /// How many floats blocks leave for the one that joins.
    partial: [i32; 1],
    /// How many counters they share.
    counters: [i32; 1],
}

/// Records attention by caches.
pub fn attend(attention: CachedAttention<'_>) -> Result<Option<Tensor>> {
    let dtype = attention.queries.dtype();
    let of_width = || Error::Unsupported(format!("recorded attention of {:?}", attention.queries));
    let (number, shape) = match attention.cache {
        CacheOf::Shared(number) => with(|recorder| Ok((number, recorder.caches.get(number).copied())))?,
        CacheOf::Own(keys, values) => match (keys.shape(), values.shape()) {
            (&[_, heads, 1, width], values) if *values == *keys.shape() => {
                with(|recorder| Ok((recorder.caches.len(), Some(CacheShape { dtype, heads, width }))))?
            }
            _ => return Err(of_width()),
        },
    };
    let shape = shape.ok_or_else(of_width)?;
    let rows = with(|recorder| Ok(recorder.rows))?;
    // Heads are made where they are read, if nothing else reads them.
    let projected = match attention.cache {
        CacheOf::Own(keys, values) => with(|recorder| Ok(recorder.take_heads([attention.queries, keys, values])))?,
        CacheOf::Shared(_) => None,
    };
    let plan = plan(attention, shape, rows, projected.is_some())?.ok_or_else(of_width)?;
    with(|recorder| {
        if number == recorder.caches.len() {
            recorder.caches.push(shape);
        }
        let heads = match projected {
            Some(HeadsLaunch { numbers, inputs }) => [vec![nothing(), numbers], inputs].concat(),
            None => {
                let queries = recorder.input(attention.queries)?;
                match attention.cache {
                    CacheOf::Own(keys, values) => vec![queries, recorder.input(keys)?, recorder.input(values)?],
                    CacheOf::Shared(_) => vec![queries, nothing(), nothing()],
                }
            }
        };
        let sinks = attention.sinks.map(|sinks| recorder.input(sinks)).transpose()?;
        let result = recorder.buffer(&plan.result, dtype, false)?;
        let partial = recorder.buffer(&plan.partial, Dtype::Float32, false)?;
        let counters = recorder.buffer(&plan.counters, Dtype::Uint32, true)?;
        let mut arguments = vec![nothing(), nothing()];
        arguments.extend(heads);
        arguments.extend([
            sinks.unwrap_or_else(nothing),
            Argument::Buffer(PLACES, number * rows.count() * PLACE_BYTES),
            Argument::Buffer(OFFSETS, 0),
            Argument::Buffer(result.buffer, 0),
            Argument::Buffer(partial.buffer, 0),
            Argument::Buffer(counters.buffer, 0),
        ]);
        for (numbers, grid) in plan.launches {
            let mut arguments = arguments.clone();
            arguments[1] = Argument::Bytes(shape_bytes(&numbers));
            recorder.launches.push(Launch {
                module: plan.module.clone(),
                arguments,
                grid,
            });
        }
        Tensor::zeros(&plan.result, dtype).map(|described| Some(described.from_launch(result)))
    })
}

/// The launch of an attention to caches of this shape; `None` if the kernel does not fit its heads. `projected` ones are
/// made by it.
fn plan(attention: CachedAttention<'_>, caches: CacheShape, rows: StepRows, projected: bool) -> Result<Option<Plan>> {
    let CachedAttention {
        queries,
        cache,
        scale,
        window,
        sinks,
    } = attention;
    // Tokens of one sequence are laid out as those of several.
    let &[_, heads, 1, width] = queries.shape() else {
        return Ok(None);
    };
    let count = rows.count() as i32;
    let (dtype, key_heads) = (queries.dtype(), caches.heads);
    let (writes, alike) = match cache {
        CacheOf::Own(keys, values) => (true, keys.dtype() == dtype && values.dtype() == dtype),
        CacheOf::Shared(_) => (false, true),
    };
    let sinks_fit = sinks.is_none_or(|sinks| sinks.dtype() == dtype);
    let fits = alike && sinks_fit && (caches.dtype, caches.width) == (dtype, width);
    if !fits || !matches!(width, 64 | 128 | 256 | 512) || heads % key_heads != 0 {
        return Ok(None);
    }
    let (shared, most) = (heads / key_heads, MAX_QUERIES.min(MAX_NUMBERS / width));
    let groups = (shared + most - 1) / most;
    let of_block = (shared + groups - 1) / groups;
    let at_once = count * key_heads * groups;
    let parts = (BLOCKS / at_once).clamp(1, MAX_PARTS);
    let window = window.map_or(0, |window| window as i32);
    // As many as the kernel counts on.
    let threads = if of_block * width > MAX_NUMBERS / 2 { 128 } else { 256 };
    let launch = |parts: i32, groups: i32, work: Work| {
        let numbers = [
            heads,
            key_heads,
            parts,
            groups,
            window,
            i32::from(sinks.is_some()),
            scale.to_bits() as i32,
            work as i32,
        ];
        // A kernel gets its numbers as a shape, in which each is one more.
        let grid = ((key_heads * groups * parts) as u32, count as u32, threads);
        (numbers.map(|number| number + 1), grid)
    };
    let launches = match (writes, rows) {
        (false, _) => vec![launch(parts, groups, Work::Read)],
        (true, StepRows::OfSequences(_)) => vec![launch(parts, groups, Work::WriteAndRead)],
        // A token sees what those before it write.
        (true, StepRows::OfOne(_)) => vec![launch(1, 1, Work::Write), launch(parts, groups, Work::Read)],
    };
    let functions = format!(
        "#define WIDTH {width}\n#define QUERIES {of_block}\n{}",
        include_str!("cuda/cached.cuh")
    );
    let (name, entry) = match projected {
        true => ("projected", PROJECTED),
        false => ("cached", ENTRY),
    };
    let module = program::module(&format!("{name}_{width}_{of_block}"), dtype, entry, &functions)?;
    Ok(Some(Plan {
        module: Rc::new(module),
        launches,
        result: [count, heads * width],
        partial: [at_once * parts * (of_block * width + (2 * of_block + 3) / 4 * 4)],
        counters: [at_once],
    }))
}
