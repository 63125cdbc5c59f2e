fn main() {
    divan::main();
}

#[divan::bench(args = [1000, 2000])]
fn sums(n: u64) -> u64 {
    original::sum(n)
}

#[divan::bench]
fn prints() {
    println!("printed");
}
