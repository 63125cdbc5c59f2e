//! Benchmarks for `equipoise gate --functions`.

use std::hint::black_box;
use std::sync::OnceLock;

static NUMBERS: OnceLock<Vec<u32>> = OnceLock::new();

/// The code under test; usually it is a crate of its own.
fn checksum(values: &[u32]) -> u64 {
    values.iter().fold(0, |sum, &value| {
        (sum ^ u64::from(value)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// Runs once in each process, untimed, before the first call.
#[unsafe(no_mangle)]
pub extern "C" fn equipoise_setup() {
    NUMBERS.get_or_init(|| {
        (0..1000u32)
            .map(|index| index.wrapping_mul(2_654_435_761))
            .collect()
    });
}

/// Calls the code under test, and returns a value that depends on every call.
#[unsafe(no_mangle)]
pub extern "C" fn equipoise_bench_checksum(iterations: u64) -> u64 {
    let numbers = NUMBERS.get().expect("equipoise_setup was called");
    (0..iterations).fold(0, |sum, _| sum ^ checksum(black_box(numbers)))
}
