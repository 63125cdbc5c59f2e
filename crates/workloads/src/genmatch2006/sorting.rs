//! Shell's sort with an index (Shell 1959; gaps after Knuth, The Art of Computer Programming 3).

/// Puts the keys in ascending order, and what stands beside each of them with it.
pub fn shell_sort(keys: &mut [f64], index: &mut [usize]) {
    let mut gap = 1;
    while gap < keys.len() / 3 {
        gap = 3 * gap + 1;
    }
    while gap > 0 {
        for end in gap..keys.len() {
            let (key, beside) = (keys[end], index[end]);
            let mut place = end;
            while place >= gap && keys[place - gap] > key {
                keys[place] = keys[place - gap];
                index[place] = index[place - gap];
                place -= gap;
            }
            keys[place] = key;
            index[place] = beside;
        }
        gap /= 3;
    }
}

#[cfg(test)]
mod tests {
    use super::shell_sort;
    use crate::random::Draws;

    #[test]
    fn keys_end_in_order_with_their_index() {
        for count in [0, 1, 2, 3, 13, 260, 1000] {
            let given: Vec<f64> = (0..count)
                .map(|number| (Draws::new(1).uniform(number) * 20.0).floor())
                .collect();
            let mut keys = given.clone();
            let mut index: Vec<usize> = (0..given.len()).collect();
            shell_sort(&mut keys, &mut index);
            assert!(keys.is_sorted());
            let beside: Vec<f64> = index.iter().map(|&place| given[place]).collect();
            assert_eq!(keys, beside);
            index.sort_unstable();
            assert!(index.iter().copied().eq(0..given.len()));
        }
    }
}
