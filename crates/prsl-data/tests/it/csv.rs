//! Accepted and refused CSV files.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prsl_data::{Cell, Error, MAX_RECORD_BYTES, TableReader};

fn rows(bytes: impl Into<Vec<u8>>) -> Result<Vec<Vec<Option<String>>>, Error> {
    let mut table = TableReader::csv(io::Cursor::new(bytes.into()), "t.csv")?;
    let n_columns = table.columns().len();
    let mut rows = Vec::new();
    while let Some(chunk) = table.read_chunk(2)? {
        assert_eq!(chunk.first_row(), rows.len() as u64 + 1);
        for row in 0..chunk.n_rows() {
            rows.push((0..n_columns).map(|column| text(chunk.cell(row, column))).collect());
        }
    }
    Ok(rows)
}

fn text(cell: Cell<'_>) -> Option<String> {
    match cell {
        Cell::Missing => None,
        Cell::Number(_) => panic!("csv has no numbers"),
        Cell::Text(text) => Some(text.to_owned()),
    }
}

fn row(cells: &[&str]) -> Vec<Option<String>> {
    cells.iter().map(|cell| (!cell.is_empty()).then(|| (*cell).to_owned())).collect()
}

fn message(bytes: impl Into<Vec<u8>>) -> String {
    rows(bytes).expect_err("this table is wrong").to_string()
}

#[test]
fn cells_are_trimmed_and_empty_ones_missing() {
    assert_eq!(rows("a,b,c\n 1 ,,\t x y \n").unwrap(), [row(&["1", "", "x y"])]);
    assert_eq!(rows("a,b\n\"\",\" \"\n").unwrap(), [row(&["", ""])]);
}

#[test]
fn quoted_cells_were_trimmed() {
    let table = "a,b\n\" x \", y \n\"z \" ,\"\t\"\n";
    assert_eq!(rows(table).unwrap(), [row(&[" x ", "y"]), row(&["z ", ""])]);
}

#[test]
fn quotes_keep_commas_quotes_and_lines_together() {
    let table = "a,b\n\"x, \"\"y\"\"\",\"one\ntwo\"\n 3, \"four\" \n5,6\"\n";
    assert_eq!(
        rows(table).unwrap(),
        [row(&["x, \"y\"", "one\ntwo"]), row(&["3", "four"]), row(&["5", "6\""])]
    );
}

#[test]
fn all_line_ends_and_a_byte_order_mark_are_fine() {
    let expected = [row(&["1", "2"]), row(&["3", "4"])];
    for table in
        ["a,b\n1,2\n3,4", "a,b\r\n1,2\r\n\r\n3,4\r\n", "a,b\r1,2\r3,4\r", "\u{FEFF}a,b\n\n1,2\n3,4\n\n"]
    {
        assert_eq!(rows(table).unwrap(), expected, "{table:?}");
    }
    let table = TableReader::csv("\u{FEFF}a,b".as_bytes(), "t.csv").unwrap();
    assert_eq!(table.columns(), ["a", "b"]);
}

#[test]
fn a_byte_order_mark_that_trickles_in_is_skipped() {
    struct Trickle(&'static [u8]);
    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1);
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }
    let mut table = TableReader::csv(Trickle("\u{FEFF}a,b\r\n\"1\"\"\",2\r\n".as_bytes()), "t.csv").unwrap();
    assert_eq!(table.columns(), ["a", "b"]);
    let chunk = table.read_chunk(10).unwrap().unwrap();
    assert_eq!(chunk.cell(0, 0), Cell::Text("1\""));
}

#[test]
fn ragged_rows_are_refused() {
    assert_eq!(message("a,b\n1,2\n\n3\n"), "`t.csv`, line 4 (row 2): 1 cell, expected 2 as in the header");
    assert_eq!(message("a,b\n1,2,3\n"), "`t.csv`, line 2 (row 1): 3 cells, expected 2 as in the header");
}

#[test]
fn invalid_utf8_is_refused() {
    assert_eq!(
        message(&b"a,b\n1,\xFF\n"[..]),
        "`t.csv`, line 2 (row 1): column `b` is not valid UTF-8; save the file in that encoding"
    );
    assert_eq!(
        message(&b"a,\xFF\n"[..]),
        "`t.csv`, line 1 (header): column number 2 is not valid UTF-8; save the file in that encoding"
    );
}

#[test]
fn open_quotes_and_text_after_quotes_are_refused() {
    assert_eq!(
        message("a,b\n\"x\n\",y\n1,\"2\n3,4\n"),
        "`t.csv`, line 4 (row 2): a quoted cell is not closed before the end of the file (column `b`)"
    );
    let expected = "`t.csv`, line 2 (row 1): text after the closing quote of column `a`; \
                    write a quote within quotes as `\"\"`";
    assert_eq!(message("a,b\n\"x\"y,1\n"), expected);
    assert_eq!(message("a,b\n\"x\" \"y\",1\n"), expected);
}

#[test]
fn headers_without_names_are_refused() {
    assert_eq!(message(""), "`t.csv`: the file is empty, expected a header with the names of the columns");
    assert_eq!(
        message("\n\r\n"),
        "`t.csv`: the file is empty, expected a header with the names of the columns"
    );
    assert_eq!(message("a, ,b\n"), "`t.csv`: column 2 has no name");
    assert_eq!(message("a,b,a\n"), "`t.csv`: columns 1 and 3 are both named `a`");
}

#[test]
fn endless_rows_are_refused() {
    let endless = io::repeat(b'x');
    let error =
        TableReader::csv("a\n".as_bytes().chain(endless), "t.csv").unwrap().read_chunk(1).unwrap_err();
    let expected = format!(
        "`t.csv`, line 2 (row 1): a row of more than {MAX_RECORD_BYTES} bytes; is a quote left open?"
    );
    assert_eq!(error.to_string(), expected);
    TableReader::csv(io::repeat(b','), "t.csv").unwrap_err();
}

#[test]
fn rows_are_read_on_demand() {
    struct Endless(std::sync::Arc<std::sync::atomic::AtomicUsize>);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let start = self.0.fetch_add(buffer.len(), std::sync::atomic::Ordering::Relaxed);
            for (index, byte) in buffer.iter_mut().enumerate() {
                *byte = if (start + index).is_multiple_of(2) { b'1' } else { b'\n' };
            }
            Ok(buffer.len())
        }
    }
    let n_bytes = std::sync::Arc::default();
    let endless = Endless(std::sync::Arc::clone(&n_bytes));
    let mut table = TableReader::csv(endless, "t.csv").unwrap();
    for chunk in 0..1000 {
        let chunk_read = table.read_chunk(10).unwrap().unwrap();
        assert_eq!((chunk_read.n_rows(), chunk_read.first_row()), (10, 10 * chunk + 1));
    }
    assert!(n_bytes.load(std::sync::atomic::Ordering::Relaxed) < 100_000);
}

#[test]
fn only_decimal_numbers_are_numbers() {
    for (text, value) in [("1", 1.0), ("-0.5", -0.5), ("+.5", 0.5), ("1e-300", 1e-300), ("2.E2", 200.0)] {
        assert_eq!(Cell::Text(text).number(), Ok(Some(value)));
    }
    for text in ["nan", "NaN", "inf", "-infinity", "0x10", "1_000", "1e999", "0,5", "e", "-", "½"] {
        let problem = Cell::Text(text).number().unwrap_err();
        assert!(problem.to_string().starts_with(&format!("`{text}` is not a number")), "{problem}");
    }
    assert!(Cell::Number(f64::NAN).number().is_err());
}

#[test]
fn only_selected_columns_are_kept() {
    let mut table = TableReader::csv("a,b,c\n1,2,3\n4,5,6\n".as_bytes(), "t.csv").unwrap();
    table.select(&[2, 0]).unwrap();
    let chunk = table.read_chunk(10).unwrap().unwrap();
    let cells: Vec<_> = (0..3).map(|column| text(chunk.cell(1, column))).collect();
    assert_eq!(cells, row(&["4", "", "6"]));
}

#[test]
fn files_are_opened_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all("a\n".as_bytes()).unwrap();
    packed.write_all("0.5\n".repeat(10_000).as_bytes()).unwrap();
    let packed = packed.finish().unwrap();

    let mut table = TableReader::open(&write("t.CSV", b"a\n1\n")).unwrap();
    assert!(table.read_chunk(10).unwrap().is_some());
    assert_eq!((table.progress(), table.rows_hint()), (Some(1.0), None));

    let mut table = TableReader::open(&write("t.csv.gz", &packed)).unwrap();
    let mut n_rows = 0;
    while let Some(chunk) = table.read_chunk(999).unwrap() {
        n_rows += chunk.n_rows();
    }
    assert_eq!((n_rows, table.progress()), (10_000, Some(1.0)));

    let path = write("cut.csv.gz", &packed[..packed.len() - 10]);
    let error = TableReader::open(&path).and_then(|mut table| {
        while table.read_chunk(999)?.is_some() {}
        Ok(())
    });
    let expected = format!("`{}` is cut off: its compressed data end too early", path.display());
    assert_eq!(error.unwrap_err().to_string(), expected);

    let error = TableReader::open("t.xls".as_ref()).unwrap_err().to_string();
    let expected = ".csv, .csv.gz, .parquet or .pq";
    assert_eq!(
        error,
        format!("cannot tell the format of `t.xls` from its name, expected it to end in {expected}")
    );
    let error = TableReader::open("absent.csv".as_ref()).unwrap_err().to_string();
    assert!(error.starts_with("cannot open `absent.csv`: "), "{error}");
}
