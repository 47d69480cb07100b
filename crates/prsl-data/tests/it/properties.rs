//! Properties of any table and any bytes.

use std::io;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Decimal128Array, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use prsl::Model;
use prsl_data::{
    ArffReader, BeliefOptions, BeliefReader, Cell, Column, ColumnKind, ColumnSpec, Format, MulanDataset,
    TableReader, TableWriter, Target, TruthOptions, TruthReader, parse_arff, parse_csv, parse_mulan_labels,
    parse_parquet,
};

/// The number of cases, with a fixed seed.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..Default::default() }
}

#[derive(Debug, Clone)]
struct Table {
    names: [String; 3],
    rows: Vec<(Option<f64>, Option<String>, Option<bool>)>,
}

fn number() -> impl Strategy<Value = f64> {
    let extreme = vec![0.0, -0.0, 1.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::MIN, 0.1 + 0.2, 1e16, 1e-5];
    prop_oneof![proptest::sample::select(extreme), any::<f64>()]
        .prop_filter("finite", |value| value.is_finite())
}

/// Text that survives the trimming of cells.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a,\"'\n\r\t {}%]{1,5}", any::<String>()]
        .prop_map(|text| text.trim_ascii().to_owned())
        .prop_filter("not empty", |text| !text.is_empty())
}

fn table() -> impl Strategy<Value = Table> {
    let row = (option::of(number()), option::of(text()), option::of(any::<bool>()));
    let names = [text(), text(), text()].prop_filter("different", |[a, b, c]| a != b && b != c && a != c);
    (names, vec(row, 0..20)).prop_map(|(names, rows)| Table { names, rows })
}

impl Table {
    fn write(&self, folder: &tempfile::TempDir, format: Format) -> std::path::PathBuf {
        let path = folder.path().join(match format {
            Format::Csv => "t.csv",
            Format::JsonLines => "t.jsonl",
            Format::Parquet => "t.parquet",
        });
        let kinds = [ColumnKind::Number, ColumnKind::Text, ColumnKind::Boolean];
        let specs: Vec<_> =
            self.names.iter().zip(kinds).map(|(name, kind)| ColumnSpec::new(name, kind)).collect();
        let mut table = TableWriter::create(Target::File(path.clone()), format, &specs).unwrap();
        for rows in self.rows.chunks(7) {
            table
                .write(&[
                    Column::Number(rows.iter().map(|row| row.0).collect()),
                    Column::Text(rows.iter().map(|row| row.1.clone()).collect()),
                    Column::Boolean(rows.iter().map(|row| row.2).collect()),
                ])
                .unwrap();
        }
        table.finish().unwrap();
        path
    }
}

impl Table {
    /// The table as a Parquet file with some decimals, compressed in one of seven ways.
    fn parquet(&self, compression: usize) -> Vec<u8> {
        let compression = [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(GzipLevel::default()),
            Compression::BROTLI(BrotliLevel::default()),
            Compression::LZ4,
            Compression::LZ4_RAW,
            Compression::ZSTD(ZstdLevel::default()),
        ][compression];
        let decimals: Decimal128Array = (0..self.rows.len() as i128).map(Some).collect();
        let columns: [(&str, ArrayRef); 4] = [
            ("a=x", Arc::new(self.rows.iter().map(|row| row.0).collect::<Float64Array>())),
            ("a", Arc::new(self.rows.iter().map(|row| row.1.clone()).collect::<StringArray>())),
            ("b=yes", Arc::new(self.rows.iter().map(|row| row.2).collect::<BooleanArray>())),
            ("b=no", Arc::new(decimals.with_precision_and_scale(9, 3).unwrap())),
        ];
        let columns = columns.map(|(name, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        bytes
    }
}

fn same_bits(a: Option<f64>, b: Option<f64>) -> bool {
    a.map(f64::to_bits) == b.map(f64::to_bits)
}

fn boolean(cell: Cell<'_>) -> Option<bool> {
    match cell {
        Cell::Missing => None,
        Cell::Number(value) => Some(value == 1.0),
        Cell::Text(text) => Some(text == "true"),
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn written_tables_read_back_unchanged(table in table()) {
        let folder = tempfile::tempdir().unwrap();
        for format in [Format::Csv, Format::Parquet] {
            let mut reader = TableReader::open(&table.write(&folder, format)).unwrap();
            prop_assert_eq!(reader.columns(), &table.names[..]);
            let mut rows = table.rows.iter();
            while let Some(chunk) = reader.read_chunk(3).unwrap() {
                for row in 0..chunk.n_rows() {
                    let (number, text, yes) = rows.next().expect("no row is invented");
                    let found = chunk.cell(row, 0).number().unwrap();
                    prop_assert!(same_bits(found, *number), "{:?} {:?}", found, number);
                    prop_assert_eq!(chunk.cell(row, 1), text.as_deref().map_or(Cell::Missing, Cell::Text));
                    prop_assert_eq!(boolean(chunk.cell(row, 2)), *yes);
                }
            }
            prop_assert!(rows.next().is_none());
        }
    }

    #[test]
    fn json_lines_are_what_json_says(table in table()) {
        let folder = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(table.write(&folder, Format::JsonLines)).unwrap();
        let lines: Vec<serde_json::Value> =
            text.split_terminator('\n').map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(lines.len(), table.rows.len());
        for (line, (number, text, yes)) in lines.iter().zip(&table.rows) {
            prop_assert!(same_bits(line[&table.names[0]].as_f64(), *number));
            prop_assert_eq!(line[&table.names[1]].as_str(), text.as_deref());
            prop_assert_eq!(line[&table.names[2]].as_bool(), *yes);
        }
    }

    /// Integers in the range that `f64` represents exactly.
    #[test]
    fn integers_are_read_again(integers in vec(option::of(-(1i64 << 53)..=1 << 53), 0..20)) {
        let folder = tempfile::tempdir().unwrap();
        for (name, format) in [("t.csv", Format::Csv), ("t.pq", Format::Parquet)] {
            let path = folder.path().join(name);
            let specs = [ColumnSpec::new("n", ColumnKind::Integer), ColumnSpec::new("x", ColumnKind::Boolean)];
            let mut table = TableWriter::create(Target::File(path.clone()), format, &specs).unwrap();
            for part in integers.chunks(7) {
                table.write(&[Column::Integer(part.to_vec()), Column::Boolean(vec![Some(true); part.len()])]).unwrap();
            }
            table.finish().unwrap();
            let mut reader = TableReader::open(&path).unwrap();
            let mut found = Vec::new();
            while let Some(chunk) = reader.read_chunk(3).unwrap() {
                found.extend((0..chunk.n_rows()).map(|row| chunk.cell(row, 0).number().unwrap()));
            }
            let expected: Vec<_> = integers.iter().map(|n| n.map(|n| n as f64)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn infinities_and_nan_survive_parquet(bits in vec(any::<u64>(), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.pq");
        let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let values: Vec<_> = bits.iter().map(|&bits| f64::from_bits(bits)).chain(special).collect();
        let specs = [ColumnSpec::new("x", ColumnKind::Number)];
        let mut table = TableWriter::create(Target::File(path.clone()), Format::Parquet, &specs).unwrap();
        table.write(&[Column::Number(values.iter().copied().map(Some).collect())]).unwrap();
        table.finish().unwrap();
        let chunk = TableReader::open(&path).unwrap().read_chunk(100).unwrap().unwrap();
        for (row, value) in values.iter().enumerate() {
            let Cell::Number(found) = chunk.cell(row, 0) else { panic!("not a number") };
            prop_assert_eq!(found.to_bits(), value.to_bits());
        }
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = (parse_csv(&bytes), parse_parquet(&bytes), parse_arff(&bytes), parse_mulan_labels(&bytes));
    }

    #[test]
    fn no_table_makes_the_csv_reader_panic(text in "[ab,\"\n\r\t é\u{FEFF}]{0,40}") {
        let _ = parse_csv(text.as_bytes());
    }

    #[test]
    fn no_file_makes_the_arff_reader_panic(
        attributes in "(@attribute [ab'{},%\\\\ ]{0,8} (real|string|date|\\{0,1\\}|[{},'a]{0,6})\n){0,3}",
        data in "[01,{}'\"\\\\%? \nab\u{e9}]{0,40}",
    ) {
        let _ = parse_arff(format!("@relation r\n{attributes}@data\n{data}").as_bytes());
        let text = format!("@attribute a {{0,1}}\n@attribute b real\n@data\n{data}");
        let arff = ArffReader::new(io::Cursor::new(text.into_bytes()), "arff").unwrap();
        let labels = parse_mulan_labels(b"<labels><label name='a'/></labels>").unwrap();
        let mut dataset = MulanDataset::new(arff, &labels).unwrap();
        while let Ok(Some(_)) = dataset.next_row() {}
    }

    #[test]
    fn no_table_makes_the_belief_reader_panic(
        columns in vec(proptest::sample::select(&["a", "b", "a=x", "a=y", "x", "y", "b=yes", "no", "c", "c=u"][..]), 1..4),
        cells in vec(vec(proptest::sample::select(&["", "x", "u", "yes", "0", "1", "0.5", "-1", "2", "1e308", "nan"][..]), 3), 0..4),
        normalize in any::<bool>(),
    ) {
        let model = Model::parse("label a: x, y\nlabel b\nlabel c: u, v latent").unwrap();
        let rows = cells.iter().map(|row| row[..columns.len()].join(",") + "\n").collect::<String>();
        let text = format!("{}\n{rows}", columns.join(","));
        let open = || TableReader::csv(io::Cursor::new(text.clone().into_bytes()), "csv");
        if let Ok(table) = open() {
            let options = BeliefOptions { normalize, ignore_extra: false };
            if let Ok(mut reader) = BeliefReader::new(&model, table, options) {
                while let Ok(Some(chunk)) = reader.next_chunk(2) {
                    for row in 0..chunk.n_rows() {
                        for id in model.label_ids() {
                            let sum: f64 = chunk.row(row)[model.block(id)].iter().sum();
                            prop_assert!((sum - 1.0).abs() < 1e-12);
                        }
                    }
                }
            }
        }
        if let Ok(table) = open()
            && let Ok(mut reader) = TruthReader::new(&model, table, TruthOptions { ignore_extra: true })
        {
            while let Ok(Some(_)) = reader.next_chunk(2) {}
        }
    }

    #[test]
    fn no_label_file_makes_the_reader_panic(
        parts in vec(proptest::sample::select(&[
            "<labels>", "</labels>", "<label name='a'>", "<label name=\"&#x41;b\"/>", "</label>", "<label", ">", "/>",
            "&", "&amp;", "<!DOCTYPE a>", "<![CDATA[", "]]>", "<!--", "-->", "<?xml", "?>", "é", " ", "\n", "name=",
        ][..]), 0..12)
    ) {
        let _ = parse_mulan_labels(parts.concat().as_bytes());
    }
}

proptest! {
    #![proptest_config(cases(300))]

    /// Bytes are replaced, bits flipped, and bytes removed anywhere. The result is an error or some table.
    #[test]
    fn no_damage_makes_the_parquet_reader_panic(
        table in table(),
        compression in 0..7_usize,
        replaced in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        flipped in vec((any::<prop::sample::Index>(), 0..8_u32), 0..3),
        cut in option::of((any::<prop::sample::Index>(), 1..50_usize)),
    ) {
        let mut bytes = table.parquet(compression);
        prop_assert!(parse_parquet(&bytes).is_ok());
        for (place, byte) in replaced {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for (place, bit) in flipped {
            let place = place.index(bytes.len());
            bytes[place] ^= 1 << bit;
        }
        if let Some((place, length)) = cut {
            let start = place.index(bytes.len());
            bytes.drain(start..bytes.len().min(start + length));
        }
        if let Err(error) = parse_parquet(&bytes) {
            prop_assert!(!error.to_string().is_empty());
        }
        let model = Model::parse("label a: x, y\nlabel b").unwrap();
        let options = BeliefOptions { ignore_extra: true, normalize: true };
        let open = || TableReader::parquet(&bytes[..], "t.parquet");
        if let Ok(mut reader) = open().and_then(|table| BeliefReader::new(&model, table, options)) {
            while let Ok(Some(_)) = reader.next_chunk(3) {}
        }
    }
}
