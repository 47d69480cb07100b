//! Keys of rows.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int32Array,
    Int64Array, RecordBatch, UInt64Array,
};
use prsl::Model;
use prsl::learn::chunk_of;
use prsl_data::{Key, RowColumns, TableReader, TruthOptions, TruthReader};

const LARGE: i64 = 1 << 53;

/// The keys in a Parquet file with this column of them.
fn keys(column: ArrayRef) -> Vec<Key> {
    let alarm: ArrayRef = Arc::new(BooleanArray::from(vec![true; column.len()]));
    let batch = RecordBatch::try_from_iter([("alarm", alarm), ("id", column)]).unwrap();
    let mut file = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let table = TableReader::parquet(file, "t.parquet").unwrap();
    let columns = RowColumns::new(None, Some("id"));
    let model = Model::parse("label alarm").unwrap();
    let mut reader = TruthReader::with_columns(&model, table, TruthOptions::default(), columns).unwrap();
    while reader.next_chunk(2).unwrap().is_some() {}
    reader.keys().unwrap().to_vec()
}

/// The keys of texts, which Spark hashes.
fn of_texts<T: ToString>(values: &[T]) -> Vec<Key> {
    values.iter().map(|value| Key::from(value.to_string().as_str())).collect()
}

#[test]
fn integers_beyond_2_to_the_53_were_rounded() {
    let signed = [LARGE - 1, LARGE, LARGE + 1, -LARGE, -LARGE - 1, i64::MAX, i64::MAX - 1, i64::MIN, 17, -3];
    let unsigned = [LARGE as u64, LARGE as u64 + 1, u64::MAX, u64::MAX - 1, 0];
    let found = [
        keys(Arc::new(Int64Array::from(signed.to_vec()))),
        keys(Arc::new(UInt64Array::from(unsigned.to_vec()))),
    ];
    assert_eq!(found, [of_texts(&signed), of_texts(&unsigned)]);
    for (key, number) in found[0].iter().zip(signed) {
        assert_eq!(found[0].iter().filter(|other| *other == key).count(), 1, "{key}");
        assert_eq!(chunk_of(&key.to_string(), 1000), chunk_of(&number.to_string(), 1000), "{key}");
    }
}

#[test]
fn integers_in_dictionaries_and_decimals_have_all_their_digits() {
    let values = vec![LARGE + 1, LARGE];
    let dictionary = DictionaryArray::new(Int32Array::from(vec![0, 1]), Arc::new(Int64Array::from(values)));
    let expected = of_texts(&[LARGE + 1, LARGE]);
    assert_eq!(keys(Arc::new(dictionary)), expected);
    let decimals = vec![i128::from(LARGE) + 1, i128::from(LARGE)];
    let decimals = Decimal128Array::from(decimals).with_precision_and_scale(20, 0).unwrap();
    assert_eq!(keys(Arc::new(decimals)), expected);
    let halves = Decimal128Array::from(vec![25, -5]).with_precision_and_scale(10, 1).unwrap();
    assert_eq!(keys(Arc::new(halves)), [Key::Number(2.5), Key::Number(-0.5)]);
}

#[test]
fn other_numbers_have_the_keys_of_their_texts_on_spark() {
    let doubles = keys(Arc::new(Float64Array::from(vec![0.1, -2.0, 1e20, -1.5e300, f64::INFINITY])));
    assert_eq!(doubles, of_texts(&["0.1", "-2.0", "1.0E20", "-1.5E300", "Infinity"]));
    let singles = keys(Arc::new(Float32Array::from(vec![0.1, 16_777_216.0])));
    assert_eq!(singles, of_texts(&["0.1", "1.6777216E7"]));
    assert_eq!(keys(Arc::new(BooleanArray::from(vec![true, false]))), of_texts(&["true", "false"]));
}
