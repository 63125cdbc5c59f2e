//! Searches bytes and words in generated text, over and over.

const ROUNDS: usize = 100;

fn main() {
    let mut state = 1u32;
    let text: Vec<u8> = (0..200_000)
        .map(|_| {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            b"etaoin shrdlu "[(state >> 20) as usize % 14]
        })
        .collect();
    let finder = memchr::memmem::Finder::new("the rain");
    let mut sum = 0usize;
    for round in 0..ROUNDS {
        for start in (0..3).map(|number| 7 * number + round) {
            sum += memchr::memchr_iter(b' ', &text[start..]).count();
            sum += memchr::memchr2_iter(b'e', b't', &text[start..]).last().unwrap_or(0);
            sum += finder.find_iter(&text[start..]).count();
        }
    }
    println!("{sum}");
}
