//! Written files, and the state after a failed write.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use prsl_data::{Column, ColumnKind, ColumnSpec, Error, Format, TableReader, TableWriter, Target};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn specs() -> Vec<ColumnSpec> {
    vec![
        ColumnSpec::new("a,\"b\"", ColumnKind::Text),
        ColumnSpec::new("p", ColumnKind::Number),
        ColumnSpec::new("ok", ColumnKind::Boolean),
    ]
}

fn rows() -> Vec<Column> {
    vec![
        Column::Text(vec![Some("x \"y\"\n\u{1}".into()), None, Some("é".into())]),
        Column::Number(vec![Some(0.7034), Some(1e-300), None]),
        Column::Boolean(vec![Some(true), None, Some(false)]),
    ]
}

fn written(format: Format, specs: &[ColumnSpec], rows: &[Column]) -> Result<String, Error> {
    let shared = Shared::default();
    let mut table =
        TableWriter::create(Target::Writer(Box::new(shared.clone()), "out".into()), format, specs)?;
    table.write(rows)?;
    table.finish()?;
    Ok(String::from_utf8(shared.0.lock().unwrap().clone()).unwrap())
}

#[test]
fn csv_and_json_lines_look_as_documented() {
    assert_eq!(
        written(Format::Csv, &specs(), &rows()).unwrap(),
        "\"a,\"\"b\"\"\",p,ok\n\"x \"\"y\"\"\n\u{1}\",0.7034,true\n,1e-300,\né,,false\n"
    );
    assert_eq!(
        written(Format::JsonLines, &specs(), &rows()).unwrap(),
        "{\"a,\\\"b\\\"\":\"x \\\"y\\\"\\n\\u0001\",\"p\":0.7034,\"ok\":true}\n\
         {\"a,\\\"b\\\"\":null,\"p\":1e-300,\"ok\":null}\n\
         {\"a,\\\"b\\\"\":\"é\",\"p\":null,\"ok\":false}\n"
    );
}

#[test]
fn columns_that_were_not_announced_are_refused() {
    let refused = |rows: &[Column]| written(Format::Csv, &specs(), rows).unwrap_err().to_string();
    assert_eq!(refused(&rows()[..2]), "cannot write `out`: 2 columns given, expected 3");
    let mut wrong = rows();
    wrong.swap(0, 1);
    assert_eq!(refused(&wrong), "cannot write `out`: column `a,\"b\"` holds numbers, expected text");
    let mut wrong = rows();
    wrong[2] = Column::Boolean(vec![]);
    assert_eq!(
        refused(&wrong),
        "cannot write `out`: column `ok` has 0 rows, expected 3 as in the first column"
    );
    let twice = [ColumnSpec::new("a", ColumnKind::Text), ColumnSpec::new("a", ColumnKind::Text)];
    assert_eq!(
        written(Format::Csv, &twice, &[]).unwrap_err().to_string(),
        "`out`: columns 1 and 2 are both named `a`"
    );
}

#[test]
fn infinities_are_refused_where_they_cannot_be_written() {
    let specs = [ColumnSpec::new("p", ColumnKind::Number)];
    let rows = [Column::Number(vec![Some(1.0), Some(f64::NEG_INFINITY)])];
    let error = written(Format::JsonLines, &specs, &rows).unwrap_err().to_string();
    assert_eq!(error, "cannot write `out`: row 2, column `p`: json has no way to write -inf");
    assert!(written(Format::Csv, &specs, &rows).is_err());
}

#[test]
fn a_broken_pipe_is_distinguished_from_a_full_disk() {
    let fail = |kind| {
        let target = Target::Writer(Box::new(Broken(kind)), "out".into());
        let mut table = TableWriter::create(target, Format::Csv, &specs())?;
        table.write(&rows())?;
        table.finish()
    };
    let error: Error = fail(io::ErrorKind::BrokenPipe).unwrap_err();
    assert!(error.is_broken_pipe());
    let error: Error = fail(io::ErrorKind::StorageFull).unwrap_err();
    assert!(!error.is_broken_pipe());
    assert_eq!(error.to_string(), "cannot write `out`: no storage space");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_names_the_file() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        eprintln!("skipped: no device that is always full");
        return;
    }
    for format in [Format::Csv, Format::JsonLines, Format::Parquet] {
        let fail = || {
            let mut table = TableWriter::create(full.into(), format, &specs())?;
            table.write(&rows())?;
            table.finish()
        };
        let error: Error = fail().unwrap_err();
        assert!(error.to_string().starts_with("cannot write `/dev/full`: No space left"), "{error}");
    }
    assert!(!full.metadata().unwrap().is_file());
}

#[test]
fn a_file_is_complete_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let names =
        || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    for format in [Format::Csv, Format::JsonLines, Format::Parquet] {
        let path = folder.path().join("out");
        let create = || TableWriter::create(path.as_path().into(), format, &specs()).unwrap();
        let mut table = create();
        table.write(&rows()).unwrap();
        assert!(!path.exists());
        drop(table);
        assert!(names().is_empty(), "{:?}", names());

        let mut table = create();
        table.write(&rows()).unwrap();
        table.finish().unwrap();
        let before = fs::read(&path).unwrap();
        let mut table = create();
        table.write(&rows()[..1]).unwrap_err();
        drop(table);
        assert_eq!((names().len(), fs::read(&path).unwrap()), (1, before));
        fs::remove_file(&path).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_new_file_has_ordinary_permissions_and_an_old_one_keeps_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &Path| {
        TableWriter::create(path.into(), Format::Csv, &specs()).unwrap().finish().unwrap();
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    let ordinary = folder.path().join("ordinary");
    fs::write(&ordinary, "").unwrap();
    let mode = fs::metadata(&ordinary).unwrap().permissions().mode() & 0o777;
    assert_eq!(write(&folder.path().join("new")), mode);
    fs::set_permissions(&ordinary, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(write(&ordinary), 0o640);

    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&ordinary, &link).unwrap();
    fs::write(&ordinary, "old").unwrap();
    write(&link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_ne!(fs::read(&ordinary).unwrap(), b"old");
}

#[test]
fn impossible_targets_are_refused() {
    let error = TableWriter::create(Path::new("-").into(), Format::Parquet, &specs()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "parquet cannot be written to standard output; name a file ending in .parquet, or write csv or json lines"
    );
    let error = TableWriter::create(Path::new("absent/out.csv").into(), Format::Csv, &specs()).unwrap_err();
    assert_eq!(error.to_string(), "cannot write `absent/out.csv`: there is no folder `absent`");
    let error = TableWriter::create(Path::new(".").into(), Format::Csv, &specs()).unwrap_err();
    assert_eq!(error.to_string(), "cannot write `.`: is a directory");
}

#[test]
fn the_name_tells_the_format() {
    for (name, format) in [
        ("a.csv", Format::Csv),
        ("a.JSONL", Format::JsonLines),
        ("a.ndjson", Format::JsonLines),
        ("a.parquet", Format::Parquet),
        ("a.b.pq", Format::Parquet),
    ] {
        assert_eq!(Format::from_path(name.as_ref()).unwrap(), format);
    }
    assert_eq!(
        Format::from_path("csv".as_ref()).unwrap_err().to_string(),
        "cannot tell the format of `csv` from its name, expected it to end in .csv, .csv.gz, .jsonl, .jsonl.gz, .ndjson, .parquet or .pq"
    );
}

#[test]
fn names_that_end_in_gz_are_compressed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["t.csv.gz", "t.jsonl.gz"] {
        let path = folder.path().join(name);
        let columns = [ColumnSpec::new("rain", ColumnKind::Number)];
        let format = Format::from_path(&path).unwrap();
        let mut table = TableWriter::create(Target::File(path.clone()), format, &columns).unwrap();
        table.write(&[Column::Number((0..5000).map(|row| Some(f64::from(row))).collect())]).unwrap();
        assert!(!path.exists());
        table.finish().unwrap();
        let packed = fs::read(&path).unwrap();
        assert_eq!(packed[..2], [0x1f, 0x8b], "{name}");
        let mut text = String::new();
        io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed[..]), &mut text).unwrap();
        assert!(text.lines().last().unwrap().contains("4999.0"), "{name}");
    }
    let mut table = TableReader::open(&folder.path().join("t.csv.gz")).unwrap();
    let mut n_rows = 0;
    while let Some(chunk) = table.read_chunk(1000).unwrap() {
        n_rows += chunk.n_rows();
    }
    assert_eq!(n_rows, 5000);
    assert!(Format::from_path("t.parquet.gz".as_ref()).is_err());
}
