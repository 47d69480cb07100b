//! A chunk of rows as bytes.

use super::super::chunks::fnv;
use super::super::examples::Examples;
use super::super::sums::Bytes;
use crate::belief::{BeliefMatrix, BeliefOrigin};
use crate::error::{Error, Result};
use crate::label::LabelId;
use crate::model::Model;
use crate::truth::Truth;

/// The first bytes of a chunk, with the version of the format.
const MAGIC: &[u8; 8] = b"prslrow1";
/// The mark of a truth that is not known.
const UNKNOWN: u16 = u16::MAX;

/// The number of a chunk, and a checksum of its rows.
pub(super) fn identity(bytes: &[u8]) -> Result<(u32, u64)> {
    let mut bytes = Bytes::new(bytes, MAGIC, "rows")?;
    Ok((bytes.u32()?, bytes.u64()?))
}

/// Rows as a chunk of this number: for each row the origins and values of its beliefs, its truths and its weight.
pub(super) fn encode(rows: &Examples, chunk: u32) -> Vec<u8> {
    let labels = rows.model().labels().len();
    let mut body = Vec::new();
    body.extend((labels as u64).to_le_bytes());
    body.extend((rows.model().n_categories() as u64).to_le_bytes());
    body.extend((rows.n_rows() as u64).to_le_bytes());
    let mut values = vec![0.0; rows.model().n_categories()];
    for row in 0..rows.n_rows() {
        body.extend((0..labels).map(|label| code(rows.origin(row, LabelId::new(label)))));
        rows.stored().values_into(row, &mut values);
        values.iter().for_each(|value| body.extend(value.to_bits().to_le_bytes()));
        for category in rows.truth(row).indices() {
            body.extend(category.map_or(UNKNOWN, |category| category as u16).to_le_bytes());
        }
        body.extend(rows.weights()[row].to_bits().to_le_bytes());
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend(chunk.to_le_bytes());
    bytes.extend(fnv(body.iter().copied()).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Reads [`encode`]. Returns an error if the rows are damaged, or about other labels than those of the model.
pub(super) fn decode(bytes: &[u8], model: &Model) -> Result<(u32, Examples)> {
    let mut bytes = Bytes::new(bytes, MAGIC, "rows")?;
    let (chunk, checksum) = (bytes.u32()?, bytes.u64()?);
    if fnv(bytes.rest().iter().copied()) != checksum {
        return Err(bytes.damaged());
    }
    let model = model.without_calibrators();
    let (n_labels, width) = (model.labels().len(), model.n_categories());
    let shape = (bytes.size()?, bytes.size()?);
    let n_rows = bytes.size()?;
    let each = n_labels + 8 * width + 2 * n_labels + 8;
    if shape != (n_labels, width) {
        return Err(Error::Examples { problem: "the rows are about other labels than the base".to_owned() });
    }
    if each.checked_mul(n_rows) != Some(bytes.len()) {
        return Err(bytes.damaged());
    }
    let mut origins = Vec::with_capacity(n_rows * n_labels);
    let mut values = Vec::with_capacity(n_rows * width);
    let (mut truths, mut weights) = (Vec::with_capacity(n_rows), Vec::with_capacity(n_rows));
    for _ in 0..n_rows {
        for _ in 0..n_labels {
            origins.push(origin(bytes.take::<1>()?[0]).ok_or_else(|| bytes.damaged())?);
        }
        for _ in 0..width {
            values.push(bytes.f64()?);
        }
        let truth = (0..n_labels).map(|_| bytes.u16()).collect::<Result<Vec<u16>>>()?;
        let known = |&code: &u16| (code != UNKNOWN).then_some(usize::from(code));
        truths.push(Truth::from_indices(truth.iter().map(known).collect::<Vec<_>>()));
        weights.push(bytes.f64()?);
    }
    let beliefs = BeliefMatrix::from_parts(&model, values, origins).ok_or_else(|| bytes.damaged())?;
    let rows = Examples::new(beliefs, truths)?.with_weights_of_part(weights)?;
    Ok((chunk, rows.as_chunk(chunk)))
}

/// All rows, one part after the other.
pub(super) fn concatenated(model: &Model, parts: impl Iterator<Item = Examples>) -> Result<Examples> {
    let mut rows = Examples::empty(&model.without_calibrators());
    for part in parts {
        rows.append(&part)?;
    }
    Ok(rows)
}

fn code(origin: BeliefOrigin) -> u8 {
    match origin {
        BeliefOrigin::Prior => 0,
        BeliefOrigin::Classifier => 1,
        BeliefOrigin::Observed => 2,
    }
}

fn origin(code: u8) -> Option<BeliefOrigin> {
    [BeliefOrigin::Prior, BeliefOrigin::Classifier, BeliefOrigin::Observed].get(usize::from(code)).copied()
}

impl Examples {
    /// The rows as bytes, as a chunk of this number, for [`ChunkWorker::answer`](super::ChunkWorker::answer).
    pub fn to_bytes(&self, chunk: u32) -> Vec<u8> {
        encode(self, chunk)
    }

    /// Reads [`Self::to_bytes`] for a model with the same labels. Returns an error if the bytes are damaged.
    ///
    /// ```
    /// use prsl::{BeliefMatrix, Evidence, Model, Truth};
    /// use prsl::learn::Examples;
    ///
    /// let model = Model::parse("label alarm")?;
    /// let mut beliefs = BeliefMatrix::new(&model);
    /// beliefs.push_evidence(&Evidence::new().belief("alarm", [0.3]))?;
    /// let rows = Examples::new(beliefs, vec![Truth::unknown(1)])?;
    /// let mut bytes = rows.to_bytes(7);
    /// assert_eq!(Examples::from_bytes(&bytes, &model)?.to_beliefs(), rows.to_beliefs());
    /// bytes[40] ^= 1;
    /// assert!(Examples::from_bytes(&bytes, &model).is_err());
    /// # Ok::<(), prsl::Error>(())
    /// ```
    pub fn from_bytes(bytes: &[u8], model: &Model) -> Result<Self> {
        Ok(decode(bytes, model)?.1)
    }
}
