//! The places of packed numbers in bytes, for instructions that move bytes into lanes.

/// The bytes that are loaded for `count` numbers of `BITS` bits from number `first` on of a block of 32: where the load
/// begins, so that it ends within the block, and where in it each number's two bytes are, as masks of a shuffle that
/// puts them into lanes; and how far each lane is shifted.
pub struct Shuffle<const BYTES: usize, const LANES: usize> {
    pub start: usize,
    pub bytes: [u8; BYTES],
    pub shifts: [u32; LANES],
}

/// Clears the byte of a shuffle.
const NONE: u8 = 0x80;

impl<const BYTES: usize, const LANES: usize> Shuffle<BYTES, LANES> {
    /// `loaded` bytes are read at once.
    pub const fn new(bits: usize, first: usize, loaded: usize) -> Self {
        let (begin, block) = (bits * first / 8, 4 * bits);
        let start = if block <= loaded {
            0
        } else if begin + loaded > block {
            block - loaded
        } else {
            begin
        };
        let wide = BYTES / LANES;
        let (mut bytes, mut shifts, mut lane) = ([NONE; BYTES], [0; LANES], 0);
        while lane < LANES {
            let bit = bits * (first + lane) - 8 * start;
            bytes[wide * lane] = (bit / 8) as u8;
            // The second byte, if the number reaches into it.
            if bit % 8 + bits > 8 {
                bytes[wide * lane + 1] = (bit / 8 + 1) as u8;
            }
            shifts[lane] = (bit % 8) as u32;
            lane += 1;
        }
        Self { start, bytes, shifts }
    }
}
