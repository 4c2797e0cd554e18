//! Attention of a recorded step: one query of each sequence to what its cache holds, in one launch for all of them.

use std::rc::Rc;

use mlx::recording::{CacheOf, CachedAttention};
use mlx::Result;

use crate::compiler::{Entry, Module};
use crate::program;
use crate::record::{CacheShape, Grid};

/// Threads of a block: as many warps as the kernel counts on.
const THREADS: u32 = 128;
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
};

/// How an attention is launched.
pub struct Plan {
    /// The kernel for its heads.
    pub module: Rc<Module>,
    /// The numbers that the kernel gets.
    pub numbers: [i32; 8],
    /// Its blocks and threads.
    pub grid: Grid,
    /// The shape of the result.
    pub result: [i32; 2],
    /// How many floats blocks leave for the one that joins.
    pub partial: [i32; 1],
    /// How many counters they share.
    pub counters: [i32; 1],
}

/// The launch of an attention to caches of this shape; `None` if the kernel does not fit its heads.
pub fn plan(attention: CachedAttention<'_>, caches: CacheShape) -> Result<Option<Plan>> {
    let CachedAttention {
        queries,
        cache,
        scale,
        window,
        sinks,
    } = attention;
    let &[sequences, heads, 1, width] = queries.shape() else {
        return Ok(None);
    };
    let (dtype, key_heads) = (queries.dtype(), caches.heads);
    let (writes, alike) = match cache {
        CacheOf::Own(keys, values) => (true, keys.dtype() == dtype && values.dtype() == dtype),
        CacheOf::Shared(_) => (false, true),
    };
    let sinks_fit = sinks.is_none_or(|sinks| sinks.dtype() == dtype);
    let fits = alike && sinks_fit && (caches.dtype, caches.width) == (dtype, width);
    if !fits || width % 64 != 0 || heads % key_heads != 0 {
        return Ok(None);
    }
    let shared = heads / key_heads;
    let groups = (shared + MAX_QUERIES - 1) / MAX_QUERIES;
    let of_block = (shared + groups - 1) / groups;
    if of_block * width > MAX_NUMBERS {
        return Ok(None);
    }
    let at_once = sequences * key_heads * groups;
    let parts = (BLOCKS / at_once).clamp(1, MAX_PARTS);
    let window = window.map_or(0, |window| window as i32);
    // A kernel gets its numbers as a shape, in which each is one more.
    let numbers = [
        heads,
        key_heads,
        parts,
        groups,
        window,
        i32::from(sinks.is_some()),
        scale.to_bits() as i32,
        i32::from(writes),
    ];
    let functions = format!(
        "#define WIDTH {width}\n#define QUERIES {of_block}\n{}",
        include_str!("cuda/cached.cuh")
    );
    let module = program::module(&format!("cached_{width}_{of_block}"), dtype, ENTRY, &functions)?;
    Ok(Some(Plan {
        module: Rc::new(module),
        numbers: numbers.map(|number| number + 1),
        grid: ((key_heads * groups * parts) as u32, sequences as u32, THREADS),
        result: [sequences, heads * width],
        partial: [at_once * parts * of_block * (width + 2)],
        counters: [at_once],
    }))
}
