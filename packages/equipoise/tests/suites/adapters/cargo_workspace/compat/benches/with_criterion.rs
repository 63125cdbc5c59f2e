use criterion::{criterion_group, criterion_main, Criterion};

fn sums(c: &mut Criterion) {
    c.bench_function("sums of criterion", |b| b.iter(|| compat::sum(1000)));
}

criterion_group!(benches, sums);
criterion_main!(benches);
