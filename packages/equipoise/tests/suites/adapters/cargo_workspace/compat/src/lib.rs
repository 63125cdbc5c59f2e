pub fn sum(n: u64) -> u64 {
    (0..n).fold(0, |total, i| std::hint::black_box(total ^ i))
}
