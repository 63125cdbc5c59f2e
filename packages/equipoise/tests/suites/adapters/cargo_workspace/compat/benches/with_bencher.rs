use bencher::{benchmark_group, benchmark_main, Bencher};

fn sums(bencher: &mut Bencher) {
    bencher.iter(|| compat::sum(1000));
}

benchmark_group!(benches, sums);
benchmark_main!(benches);
