//! Formats numbers, over and over.

const ROUNDS: usize = 100;

fn main() {
    let mut buffer = itoa::Buffer::new();
    let mut sum = 0usize;
    for round in 0..ROUNDS as u64 {
        let mut state = round + 1;
        for _ in 0..40_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let text = buffer.format(state >> (state & 63));
            sum += text.len() + usize::from(text.as_bytes()[0]);
        }
    }
    println!("{sum}");
}
