use std::hint::black_box;

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion};

fn sums(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("group");
    group.bench_with_input(BenchmarkId::new("sum", 10), &10u64, |bencher, size| {
        bencher.iter(|| (0..black_box(*size)).sum::<u64>());
    });
    group.finish();
    criterion.bench_function("plain sum/with slash", |bencher| {
        bencher.iter(|| (0..black_box(100u64)).sum::<u64>());
    });
}

criterion_group!(benches, sums);
criterion_main!(benches);
