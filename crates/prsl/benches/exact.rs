//! Exact inference: time per row on one thread, and time to compile.
//!
//! The names tell what varies. Models are the authors' if their files are available, and simulated like them otherwise.
//! Each size is represented by the model whose plan is the median of ten.

use std::hint::black_box;

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use prsl::infer::{MaxProductTree, Sampling};
use prsl::{BeliefMatrix, JunctionTree, Model};
use prsl_testkit::{golden, simulated};

fn models(n_labels: usize, prefix: &str) -> Vec<(Model, BeliefMatrix)> {
    let golden: Vec<_> = golden(prefix).into_iter().map(|golden| (golden.model, golden.rows)).collect();
    if !golden.is_empty() {
        return golden;
    }
    (0..10).map(|seed| simulated(n_labels, n_labels, 100, seed)).collect()
}

fn median_of(models: Vec<(Model, BeliefMatrix)>) -> (Model, BeliefMatrix) {
    let price = |model: &Model| JunctionTree::compile(model).expect("affordable").cost().multiply_adds;
    let mut priced: Vec<_> = models.into_iter().map(|(model, rows)| (price(&model), model, rows)).collect();
    priced.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, model, rows) = priced.swap_remove(priced.len() / 2);
    (model, rows)
}

fn exact(criterion: &mut Criterion) {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread can be had");
    for (n_labels, prefix) in [(5, "small"), (10, "medium"), (30, "almostLarge")] {
        let (model, rows) = median_of(models(n_labels, prefix));
        let (sum, max) = (JunctionTree::compile(&model).unwrap(), MaxProductTree::compile(&model).unwrap());
        let mut group: BenchmarkGroup<'_, WallTime> = criterion.benchmark_group(format!("labels={n_labels}"));
        group.sample_size(10);
        group.throughput(Throughput::Elements(rows.n_rows() as u64));
        group.bench_function("marginals/rows=100", |bencher| {
            bencher.iter(|| one.install(|| black_box(sum.infer_batch(black_box(&rows)).unwrap())));
        });
        group.bench_function("mpe/rows=100", |bencher| {
            bencher.iter(|| one.install(|| black_box(max.best_batch(black_box(&rows)).unwrap())));
        });
        for n_samples in [1, 100] {
            let sampling = Sampling { n_samples, ..Sampling::default() };
            group.throughput(Throughput::Elements((rows.n_rows() * n_samples) as u64));
            group.bench_function(format!("samples={n_samples}/rows=100"), |bencher| {
                bencher.iter(|| {
                    one.install(|| black_box(sum.sample_batch(black_box(&rows), &sampling).unwrap()))
                });
            });
        }
        group.throughput(Throughput::Elements(1));
        group.bench_function("compile", |bencher| {
            bencher.iter(|| black_box(JunctionTree::compile(&model)).is_ok())
        });
        group.finish();
    }
}

criterion_group!(benches, exact);
criterion_main!(benches);
