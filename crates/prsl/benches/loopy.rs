//! Loopy propagation: time per row on one thread, on models simulated as in the paper.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use prsl::Loopy;
use prsl::infer::LoopySettings;
use prsl_testkit::simulated;

fn loopy(criterion: &mut Criterion) {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread can be had");
    for n_labels in [10, 30, 100] {
        let (model, rows) = simulated(n_labels, n_labels, 400, 1);
        let mut group = criterion.benchmark_group(format!("loopy/labels={n_labels}"));
        group.sample_size(10);
        group.throughput(Throughput::Elements(rows.n_rows() as u64));
        // With a tolerance of 0, no row stops before the sweep limit.
        let sweeps =
            LoopySettings { max_sweeps: 20, tolerance: 0.0, retry: false, ..LoopySettings::default() };
        for (name, settings) in [("default", LoopySettings::default()), ("sweeps=20", sweeps)] {
            let engine = Loopy::compile_with(&model, settings).expect("the settings are in range");
            group.bench_function(format!("marginals/{name}/rows=400"), |bencher| {
                bencher.iter(|| one.install(|| black_box(engine.infer_batch(black_box(&rows)).unwrap())));
            });
            group.bench_function(format!("mpe/{name}/rows=400"), |bencher| {
                bencher.iter(|| one.install(|| black_box(engine.decode_batch(black_box(&rows)).unwrap())));
            });
        }
        group.throughput(Throughput::Elements(1));
        group.bench_function("compile", |bencher| bencher.iter(|| black_box(Loopy::compile(&model)).is_ok()));
        group.finish();
    }
}

criterion_group!(benches, loopy);
criterion_main!(benches);
