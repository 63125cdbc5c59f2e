//! An order in which points that follow each other are near each other.

use crate::fitness::blocks::LANES;

/// Orders groups of rows so that each block of `LANES` lies in a small box: halved again and again
/// in the column in which they lie furthest apart. `of` gives the values of a row.
pub fn by_nearness<'a>(groups: &mut [Vec<u32>], of: &impl Fn(u32) -> &'a [f64]) {
    if groups.len() <= LANES {
        return;
    }
    let mut low = of(groups[0][0]).to_vec();
    let mut high = low.clone();
    for group in groups.iter() {
        for ((low, high), &value) in low.iter_mut().zip(&mut high).zip(of(group[0])) {
            *low = low.min(value);
            *high = high.max(value);
        }
    }
    let width = |column: usize| high[column] - low[column];
    let widest = (0..low.len())
        .max_by(|&left, &right| width(left).total_cmp(&width(right)))
        .unwrap_or(0);
    let middle = (groups.len() / 2).next_multiple_of(LANES);
    let value = |group: &Vec<u32>| of(group[0])[widest];
    groups.select_nth_unstable_by(middle, |left, right| {
        value(left)
            .total_cmp(&value(right))
            .then(left[0].cmp(&right[0]))
    });
    let (first, second) = groups.split_at_mut(middle);
    by_nearness(first, of);
    by_nearness(second, of);
}
