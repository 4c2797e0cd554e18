//! Blocks of positions that attention sees: the last ones, and one of every few before them, another one for each head
//! (Phi 3 small).

use crate::config::limits::{check_nonzero, check_width};
use crate::error::{unusable, Error};

/// The blocks that queries of one layer see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripesConfig {
    /// Positions of a block (`blocksparse_block_size`).
    pub block: u32,
    /// Blocks up to a query's own that are seen in any case (`blocksparse_num_local_blocks`).
    pub local: u32,
    /// One of so many blocks before them is seen (`blocksparse_vert_stride`).
    pub stride: u32,
}

impl StripesConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_nonzero("blocksparse_block_size", self.block)?;
        check_width("blocksparse_block_size", self.block.into())?;
        check_nonzero("blocksparse_num_local_blocks", self.local)?;
        check_width("blocksparse_num_local_blocks", self.local.into())?;
        match self.stride {
            1..=1024 => Ok(()),
            other => unusable("blocksparse_vert_stride", format!("{other} is not between 1 and 1024")),
        }
    }

    /// The remainder of each head: it sees the blocks whose numbers and this sum up to a multiple of the stride.
    pub fn remainders(&self, heads: u32) -> Vec<u32> {
        let step = (self.stride / heads.max(1)).max(1);
        (0..heads).map(|head| (head * step + 1) % self.stride).collect()
    }
}
