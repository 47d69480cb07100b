//! Sums over rows that add up to the same bits, whoever adds them.
//!
//! Floating-point addition is not associative. So a sum keeps the numbers of every chunk apart ([`ChunkSums`]), and adds them in
//! the order of the chunks at the very end. Merging is then exact: it is associative, and its order does not matter.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::error::{Error, Result};

/// The first bytes of a sum, with the version of the format.
const MAGIC: &[u8; 8] = b"prslsum1";

/// Sums over the rows of some chunks: the same number of numbers for each chunk.
///
/// ```
/// use prsl::learn::ChunkSums;
///
/// let mut sums = ChunkSums::of(1, vec![0.1, 2.0]);
/// sums.merge(ChunkSums::of(0, vec![0.2, 3.0]))?;
/// assert_eq!(sums.total(), [0.2 + 0.1, 5.0]); // chunk 0 first
/// assert!(sums.merge(ChunkSums::of(0, vec![0.2, 3.0])).is_err()); // no row counts twice
/// assert_eq!(ChunkSums::from_bytes(&sums.to_bytes())?, sums);
/// # Ok::<(), prsl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkSums {
    /// Number of numbers per chunk.
    width: usize,
    parts: BTreeMap<u32, Vec<f64>>,
}

impl ChunkSums {
    /// Sums over no rows, with this many numbers per chunk.
    pub fn new(width: usize) -> Self {
        Self { width, parts: BTreeMap::new() }
    }

    /// The sums of one chunk.
    pub fn of(chunk: u32, values: Vec<f64>) -> Self {
        Self { width: values.len(), parts: BTreeMap::from([(chunk, values)]) }
    }

    /// Adds the sums of other chunks. Returns an error if there is a chunk in both, or if the sums are of another kind.
    pub fn merge(&mut self, other: Self) -> Result<()> {
        if self.width != other.width {
            let problem = format!("sums of {} numbers do not add to sums of {}", other.width, self.width);
            return Err(Error::Sums { problem });
        }
        if let Some(chunk) = other.parts.keys().find(|chunk| self.parts.contains_key(chunk)) {
            return Err(Error::Sums { problem: format!("chunk {chunk} is summed twice") });
        }
        self.parts.extend(other.parts);
        Ok(())
    }

    /// The chunks, in order.
    pub fn chunks(&self) -> impl Iterator<Item = u32> + '_ {
        self.parts.keys().copied()
    }

    /// The sums of a chunk.
    pub fn of_chunk(&self, chunk: u32) -> Option<&[f64]> {
        self.parts.get(&chunk).map(Vec::as_slice)
    }

    /// The sums over all chunks, added in the order of the chunks.
    pub fn total(&self) -> Vec<f64> {
        let mut total = vec![0.0; self.width];
        for part in self.parts.values() {
            total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
        total
    }

    /// The sums as bytes, the same on every machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((self.width as u64).to_le_bytes());
        bytes.extend((self.parts.len() as u64).to_le_bytes());
        for (chunk, values) in &self.parts {
            bytes.extend(chunk.to_le_bytes());
            values.iter().for_each(|value| bytes.extend(value.to_bits().to_le_bytes()));
        }
        bytes
    }

    /// Reads [`Self::to_bytes`]. Returns an error if the bytes are damaged, cut off or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut bytes = Bytes::new(bytes, MAGIC, "sums")?;
        let (width, n_parts) = (bytes.size()?, bytes.size()?);
        let each = width.checked_mul(8).and_then(|n| n.checked_add(4));
        if each.and_then(|each| each.checked_mul(n_parts)) != Some(bytes.len()) {
            return Err(bytes.damaged());
        }
        let mut parts = BTreeMap::new();
        for _ in 0..n_parts {
            let chunk = bytes.u32()?;
            let values = (0..width).map(|_| bytes.f64()).collect::<Result<Vec<f64>>>()?;
            match parts.entry(chunk) {
                Entry::Vacant(place) => place.insert(values),
                Entry::Occupied(_) => return Err(bytes.damaged()),
            };
        }
        Ok(Self { width, parts })
    }
}

/// Reads numbers from bytes, and checks their number.
pub(crate) struct Bytes<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Bytes<'a> {
    /// The bytes after `magic`, which names format and version.
    pub(crate) fn new(bytes: &'a [u8], magic: &[u8; 8], what: &'static str) -> Result<Self> {
        let damaged = Self { rest: &[], what }.damaged();
        bytes.strip_prefix(magic).map(|rest| Self { rest, what }).ok_or(damaged)
    }

    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn damaged(&self) -> Error {
        let problem = format!("the bytes are no {} of this version of prsl, or they are damaged", self.what);
        Error::Sums { problem }
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    pub(crate) fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_bits(self.u64()?))
    }

    /// A number of things.
    pub(crate) fn size(&mut self) -> Result<usize> {
        usize::try_from(self.u64()?).map_err(|_| self.damaged())
    }

    /// All bytes that are left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}
