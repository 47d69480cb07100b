//! Fixed chunks of rows.
//!
//! All sums over rows are sums of sums over chunks, added in the order of the chunks. So the bits do not depend on the number
//! of threads, or on which machine has which chunk. A row's chunk is decided by its position, or by its key if it has one.

use std::ops::Range;

use crate::infer::expectations::CHUNK;

/// Number of rows of a chunk in the order of the rows, and mean number of rows of a chunk by key. It limits the memory of one
/// evaluation.
pub(crate) const CHUNK_ROWS: usize = 128 * CHUNK;

/// Rows that are added up together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Sums are added in the order of these numbers.
    pub(crate) number: u32,
    pub(crate) rows: Range<usize>,
}

/// The number of chunks of rows with keys: one for each 8,192 rows.
///
/// ```
/// assert_eq!([0, 1, 8192, 8193].map(prsl::learn::n_chunks), [1, 1, 1, 2]);
/// ```
pub fn n_chunks(n_rows: u64) -> u32 {
    u32::try_from(n_rows.div_ceil(CHUNK_ROWS as u64)).unwrap_or(u32::MAX).max(1)
}

/// The chunk of a row, given the text of its key: ⌊hash · chunks / 2⁶⁴⌋. The hash is FNV-1a of the text in UTF-8, scattered by
/// the finalizer of SplitMix64.
///
/// ```
/// use prsl::learn::chunk_of;
///
/// assert_eq!(chunk_of("row 17", 1), 0);
/// assert!(chunk_of("row 17", 1000) < 1000);
/// ```
pub fn chunk_of(key: &str, n_chunks: u32) -> u32 {
    let hash = splitmix(fnv(key.bytes()));
    ((u128::from(hash) * u128::from(n_chunks)) >> 64) as u32
}

/// Chunks of rows in their order.
pub(crate) fn in_order(n_rows: usize) -> Vec<Chunk> {
    let starts = (0..n_rows).step_by(CHUNK_ROWS).enumerate();
    starts
        .map(|(number, start)| Chunk { number: number as u32, rows: start..n_rows.min(start + CHUNK_ROWS) })
        .collect()
}

/// The FNV-1a hash of bytes.
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A bijection that scatters its input (the finalizer of SplitMix64).
pub(crate) fn splitmix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_keys_is_fixed() {
        assert_eq!(fnv("".bytes()), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv("a".bytes()), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv("foobar".bytes()), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn keys_are_spread_evenly() {
        let mut counts = [0; 16];
        (0..16_000).for_each(|key| counts[chunk_of(&key.to_string(), 16) as usize] += 1);
        // Counts have a mean of 1,000 and a standard deviation of 31.
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn chunks_cover_all_rows() {
        assert_eq!(in_order(0), []);
        let rows: Vec<Range<usize>> = in_order(20_000).into_iter().map(|chunk| chunk.rows).collect();
        assert_eq!(rows, [0..8192, 8192..16_384, 16_384..20_000]);
    }
}
